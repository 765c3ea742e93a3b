import { RawJson } from '../base/raw-json.ts'
import { CONTENT, ERROR } from '../conventions/names.ts'
import { skipValue } from '../http/json-scan.ts'
import { encodeValue, firstText, firstValue } from './attributes.ts'
import type { AnyValue, Attributes } from './telemetry.ts'

/** The input and output of a span, from its content attributes, as free-form JSON objects. */

/** How deep JSON in a string may be nested; a string with deeper JSON stays a string. */
const JSON_DEPTH_MAX = 100
/** Longer texts are only scanned: parsing them would take too much memory and time. */
const PARSED_LENGTH_MAX = 64 * 1024

export function inputOf(attributes: Attributes, bytesMax: number): RawJson | null {
  const value = firstValue(attributes, CONTENT.input) ?? mastraAttribute(attributes, 'input')
  return asObject(value ?? indexedMessages(attributes, 'gen_ai.prompt.'), bytesMax)
}

export function outputOf(attributes: Attributes, bytesMax: number): RawJson | null {
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
function asObject(value: AnyValue | undefined, bytesMax: number): RawJson | null {
  if (value === undefined) return null
  if (typeof value === 'string' && value.length > bytesMax) return startOf(value, bytesMax)
  const text = typeof value === 'string' ? (asJson(value) ?? encodeValue(value)) : encodeValue(value)
  const object = text[0] === '{' ? text : `{"${memberNameOf(text)}":${text}}`
  // A UTF-16 unit takes at most 3 bytes.
  if (object.length * 3 <= bytesMax || Buffer.byteLength(object) <= bytesMax) return new RawJson(object)
  return startOf(text, bytesMax)
}

function startOf(text: string, bytesMax: number): RawJson {
  // Escaping makes a string up to six times as long.
  const length = Math.max(0, Math.floor(bytesMax / 6) - 40)
  return new RawJson(`{"text":${JSON.stringify(text.slice(0, length).toWellFormed())},"truncated":true}`)
}

function memberNameOf(text: string): string {
  if (text[0] === '"') return 'text'
  return text.startsWith('[{') ? 'messages' : 'value'
}

/** The trimmed text if it is a JSON object or array; undefined otherwise. */
function asJson(text: string): string | undefined {
  const trimmed = text.trim()
  if (trimmed[0] !== '{' && trimmed[0] !== '[') return undefined
  return isJson(trimmed) ? trimmed : undefined
}

/** The built-in parser is the fastest check of a short text. Texts that are long, or may be nested too deep, are scanned. */
function isJson(text: string): boolean {
  try {
    if (text.length <= PARSED_LENGTH_MAX && !hasMoreLevels(text, JSON_DEPTH_MAX)) {
      JSON.parse(text)
      return true
    }
    // The scanner needs a zero byte after the text.
    const bytes = Buffer.from(`${text}\0`)
    return skipValue(bytes, 0, JSON_DEPTH_MAX) === bytes.length - 1
  } catch {
    return false
  }
}

/** Whether JSON may be nested deeper than `max`, judged by the number of its opening brackets. */
function hasMoreLevels(text: string, max: number): boolean {
  let levels = 0
  for (const bracket of '{[') {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) if (++levels > max) return true
  }
  return false
}
