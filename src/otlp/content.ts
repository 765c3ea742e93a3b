import { CONTENT, ERROR } from '../conventions/names.ts'
import { CLOSE_BRACE, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../http/json-scan.ts'
import { firstText, firstValue } from './attributes.ts'
import { isJson, textOf, writeValue, written } from './json-writer.ts'
import type { AnyValue, Attributes } from './telemetry.ts'

/** The input and output of a span, from its content attributes, as free-form JSON objects. */

/** How deep JSON in a string may be nested; a string with deeper JSON stays a string. */
const JSON_DEPTH_MAX = 100

export function inputOf(attributes: Attributes, bytesMax: number): Buffer | null {
  const value = firstValue(attributes, CONTENT.input) ?? mastraAttribute(attributes, 'input')
  return asObject(value ?? indexedMessages(attributes, 'gen_ai.prompt.'), bytesMax)
}

export function outputOf(attributes: Attributes, bytesMax: number): Buffer | null {
  const value = firstValue(attributes, CONTENT.output) ?? mastraAttribute(attributes, 'output')
  return asObject(value ?? indexedMessages(attributes, 'gen_ai.completion.'), bytesMax)
}

/** The error message in the attributes of a span or of its exception event. */
export function exceptionMessage(attributes: Attributes): string | null {
  return firstText(attributes, ERROR)
}

/** An attribute such as `mastra.agent_run.input`. */
function mastraAttribute(attributes: Attributes, what: 'input' | 'output'): AnyValue | undefined {
  const type = attributes.get('mastra.span.type')
  return type === undefined ? undefined : attributes.get(`mastra.${type}.${what}`)
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
 * Keeps an object as it is and wraps anything else: an array of messages as `messages`, a string as `text`, other values
 * as `value`. A string that contains a JSON object or array is treated as that JSON.
 */
function asObject(value: AnyValue | undefined, bytesMax: number): Buffer | null {
  if (value === undefined) return null
  if (value instanceof Uint8Array && value.length > bytesMax) return asObject(textOf(value), bytesMax)
  if (typeof value === 'string' && value.length > bytesMax) return startOf(value, bytesMax)
  return written((out) => {
    const start = out.length
    const json = typeof value === 'string' || value instanceof Uint8Array ? asJson(value) : undefined
    if (json === undefined) writeValue(out, value)
    else if (typeof json === 'string') out.text(json)
    else out.bytes(json)
    const head = headOf(out.buffer, start, out.length)
    const bytes = out.length - start + head.length + (head === '' ? 0 : 1)
    if (bytes > bytesMax) {
      const text = out.buffer.toString('utf8', start, out.length)
      out.length = start
      out.bytes(startOf(text, bytesMax))
    } else if (head !== '') {
      out.reserve(head.length + 1)
      out.buffer.copyWithin(start + head.length, start, out.length)
      out.buffer.write(head, start)
      out.length += head.length
      out.byte(CLOSE_BRACE)
    }
  })
}

function startOf(text: string, bytesMax: number): Buffer {
  // Escaping makes a string up to six times as long.
  const length = Math.max(0, Math.floor(bytesMax / 6) - 40)
  return Buffer.from(`{"text":${JSON.stringify(text.slice(0, length).toWellFormed())},"truncated":true}`)
}

/** What comes before a value to make it the member of an object; empty for an object. */
function headOf(json: Uint8Array, start: number, end: number): string {
  if (json[start] === OPEN_BRACE) return ''
  if (json[start] === QUOTE) return '{"text":'
  return json[start] === OPEN_BRACKET && end - start > 1 && json[start + 1] === OPEN_BRACE
    ? '{"messages":'
    : '{"value":'
}

/** The trimmed text if it is a JSON object or array; undefined otherwise. */
function asJson(text: string | Uint8Array): string | Uint8Array | undefined {
  if (typeof text === 'string') {
    const trimmed = text.trim()
    return (trimmed[0] === '{' || trimmed[0] === '[') && isJson(trimmed, JSON_DEPTH_MAX) ? trimmed : undefined
  }
  let start = 0
  let end = text.length
  while (start < end && isSpace(text[start])) start++
  while (start < end && isSpace(text[end - 1])) end--
  // Beyond ASCII there is more space.
  if (text[start] >= 0x80) return asJson(textOf(text))
  if (text[start] !== OPEN_BRACE && text[start] !== OPEN_BRACKET) return undefined
  if (text[end - 1] >= 0x80) return asJson(textOf(text))
  const trimmed = text.subarray(start, end)
  return isJson(trimmed, JSON_DEPTH_MAX) ? trimmed : undefined
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
}
