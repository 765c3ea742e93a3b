import { CONTENT, ERROR } from '../../base/conventions/names.ts'
import { CLOSE_BRACE, OPEN_BRACE, OPEN_BRACKET, QUOTE, skipSpace } from '../../base/http/json-scan.ts'
import type { Bytes } from '../../stores/clickhouse/bytes.ts'
import { firstText, firstValue } from './attributes.ts'
import { isJson, writeValue } from './json-writer.ts'
import { type AnyValue, type Attributes, type Range, Utf8Text } from './telemetry.ts'

/** The input and output of a span, from its content attributes, as free-form JSON objects. */

/** How deep JSON in a string may be nested; a string with deeper JSON stays a string. */
const JSON_DEPTH_MAX = 100

/** Writes the input. Null if there is none. */
export function writeInput(out: Bytes, attributes: Attributes, bytesMax: number): Range | null {
  const value = firstValue(attributes, CONTENT.input) ?? mastraAttribute(attributes, 'input')
  return writeObject(out, value ?? indexedMessages(attributes, 'gen_ai.prompt.'), bytesMax)
}

/** As {@link writeInput}. */
export function writeOutput(out: Bytes, attributes: Attributes, bytesMax: number): Range | null {
  const value = firstValue(attributes, CONTENT.output) ?? mastraAttribute(attributes, 'output')
  return writeObject(out, value ?? indexedMessages(attributes, 'gen_ai.completion.'), bytesMax)
}

/** The error message in the attributes of a span or of its exception event. */
export function exceptionMessage(attributes: Attributes): string | null {
  return firstText(attributes, ERROR)
}

/** An attribute such as `mastra.agent_run.input`. */
function mastraAttribute(attributes: Attributes, what: 'input' | 'output'): AnyValue | undefined {
  const type = firstText(attributes, ['mastra.span.type'])
  return type === null ? undefined : attributes.get(`mastra.${type}.${what}`)
}

/** Attributes such as `gen_ai.prompt.0.role` as a list of messages. */
function indexedMessages(attributes: Attributes, prefix: string): AnyValue | undefined {
  const messages: Attributes[] = []
  for (const [name, value] of attributes) {
    if (!name.startsWith(prefix)) continue
    const [, index, member] = /^(\d{1,3})\.(.+)$/.exec(name.slice(prefix.length)) ?? []
    if (member === undefined) continue
    messages[Number(index)] ??= new Map()
    messages[Number(index)].set(member, value)
  }
  const present = messages.filter((message) => message !== undefined)
  return present.length === 0 ? undefined : present
}

/**
 * Writes an object as it is and wraps anything else: an array of messages as `messages`, a string as `text`, other values
 * as `value`. A string that contains a JSON object or array is written as that. Above `bytesMax` only the start is kept.
 */
function writeObject(out: Bytes, value: AnyValue | undefined, bytesMax: number): Range | null {
  if (value === undefined) return null
  if (value instanceof Utf8Text && value.length > bytesMax) return writeObject(out, `${value}`, bytesMax)
  const start = out.length
  if (typeof value === 'string' && value.length > bytesMax) writeStart(out, value, bytesMax)
  else {
    writeContent(out, value)
    const head = headOf(out.buffer, start)
    const tail = head === '' ? 0 : 1
    if (out.length - start + head.length + tail > bytesMax) {
      const text = out.buffer.toString('utf8', start, out.length)
      out.length = start
      writeStart(out, text, bytesMax)
    } else if (head !== '') {
      out.reserve(head.length)
      out.buffer.copyWithin(start + head.length, start, out.length)
      out.buffer.write(head, start)
      out.length += head.length
      out.byte(CLOSE_BRACE)
    }
  }
  return { start, end: out.length }
}

function writeContent(out: Bytes, value: AnyValue): void {
  const json = typeof value === 'string' || value instanceof Utf8Text ? jsonIn(value) : undefined
  if (json === undefined) writeValue(out, value)
  else if (typeof json === 'string') out.text(json)
  else out.copy(json.body, json.start, json.end)
}

/** The text, trimmed, if it is a JSON object or array; undefined otherwise. */
function jsonIn(text: string | Utf8Text): string | Utf8Text | undefined {
  if (typeof text === 'string') {
    const trimmed = text.trim()
    return (trimmed[0] === '{' || trimmed[0] === '[') && isJson(trimmed, JSON_DEPTH_MAX) ? trimmed : undefined
  }
  const { body } = text
  let { start, end } = text
  while (start < end && isSpace(body[start])) start++
  while (start < end && isSpace(body[end - 1])) end--
  // `String.trim` also removes space that is not ASCII.
  if (body[start] >= 0x80 || body[end - 1] >= 0x80) return jsonIn(`${text}`)
  if (body[start] !== OPEN_BRACE && body[start] !== OPEN_BRACKET) return undefined
  const trimmed = new Utf8Text(body, start, end)
  return isJson(trimmed, JSON_DEPTH_MAX) ? trimmed : undefined
}

/** Writes the start of a text that is too long. */
export function writeStart(out: Bytes, text: string, bytesMax: number): void {
  // Escaping makes a string up to six times as long.
  const length = Math.max(0, Math.floor(bytesMax / 6) - 40)
  out.text(`{"text":${JSON.stringify(text.slice(0, length).toWellFormed())},"truncated":true}`)
}

/** What comes before a JSON value to make it the member of an object; empty for an object. */
export function headOf(json: Uint8Array, start: number): string {
  if (json[start] === OPEN_BRACE) return ''
  if (json[start] === QUOTE) return '{"text":'
  return json[start] === OPEN_BRACKET && json[skipSpace(json, start + 1)] === OPEN_BRACE ? '{"messages":' : '{"value":'
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
}
