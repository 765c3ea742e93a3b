import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipValue,
} from '../../base/http/json-scan.ts'
import { createSimdMemory } from '../../base/http/simd-text.ts'
import { Bytes } from '../../stores/clickhouse/bytes.ts'
import { type AnyValue, type Attributes, UTF8_TEXT_MAX, Utf8Text } from './telemetry.ts'

/** Writes values as JSON, without loss of precision. */

const simd = createSimdMemory()
const simdBuffer = simd === undefined ? Buffer.alloc(0) : Buffer.from(simd.bytes.buffer, 0, simd.bytes.length)
/** Where the SIMD memory has escaped text, with its quotes: after the text itself. */
const ESCAPED_AT = 2 * UTF8_TEXT_MAX
/** Texts up to this length are checked and written character by character: longer ones are faster by regular expression. */
const PLAIN_LENGTH_MAX = 64

const scratch = new Bytes()

/** What `write` writes, as a string. May be nested: it then writes after what the caller has written so far. */
export function textFrom(write: (out: Bytes) => void): string {
  const start = scratch.length
  if (start === 0) scratch.clear()
  try {
    write(scratch)
    return scratch.buffer.toString('utf8', start, scratch.length)
  } finally {
    scratch.length = start
  }
}

/** Encodes a value as JSON. */
export function encodeValue(value: AnyValue): string {
  return textFrom((out) => writeValue(out, value))
}

export function writeValue(out: Bytes, value: AnyValue): void {
  if (typeof value === 'string') writeText(out, value)
  else if (value === null || typeof value !== 'object') out.text(`${value}`)
  else if (value instanceof Utf8Text) writeUtf8(out, value)
  else if (value instanceof Map) writeAttributes(out, value)
  else {
    out.byte(OPEN_BRACKET)
    value.forEach((item, index) => {
      if (index > 0) out.byte(COMMA)
      writeValue(out, item)
    })
    out.byte(CLOSE_BRACKET)
  }
}

function writeAttributes(out: Bytes, attributes: Attributes): void {
  let before = OPEN_BRACE
  for (const [name, value] of attributes) {
    out.byte(before)
    writeText(out, name)
    out.byte(COLON)
    writeValue(out, value)
    before = COMMA
  }
  if (before === OPEN_BRACE) out.byte(OPEN_BRACE)
  out.byte(CLOSE_BRACE)
}

function writeText(out: Bytes, text: string): void {
  if (text.length > PLAIN_LENGTH_MAX || !writePlain(out, text)) out.text(encodeText(text))
}

/** Writes a short text that needs no escape. Returns false, and writes nothing, for any other. */
function writePlain(out: Bytes, text: string): boolean {
  out.reserve(text.length + 2)
  const { buffer } = out
  let at = out.length
  buffer[at++] = QUOTE
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x20 || unit >= 0x80 || unit === QUOTE || unit === BACKSLASH) return false
    buffer[at++] = unit
  }
  buffer[at++] = QUOTE
  out.length = at
  return true
}

/** What JSON escapes: quotes, backslashes, control characters and surrogates, which may be lone. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes them. The inverted class takes ten times as long.
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/
/** The same without quotes and backslashes, whose escape is just a backslash in front. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
const NEEDS_STRINGIFY = /[\u0000-\u001f\ud800-\udfff]/

/**
 * Encodes a string as JSON. Contents are often JSON themselves, with many quotes, and `JSON.stringify` takes three times
 * as long for a string with quotes as for one without.
 */
function encodeText(text: string): string {
  if (!ESCAPED.test(text)) return `"${text}"`
  if (NEEDS_STRINGIFY.test(text)) return JSON.stringify(text)
  const escaped = text.includes('\\') ? text.replaceAll('\\', '\\\\') : text
  return `"${escaped.replaceAll('"', '\\"')}"`
}

function writeUtf8(out: Bytes, text: Utf8Text): void {
  if (simd === undefined) writeText(out, `${text}`)
  else {
    text.body.copy(simdBuffer, 0, text.start, text.end)
    const end = simd.escapeText(0, text.length, ESCAPED_AT + 1)
    simdBuffer[ESCAPED_AT] = simdBuffer[end] = QUOTE
    out.copy(simdBuffer, ESCAPED_AT, end + 1)
  }
}

/** Whether this is one JSON value without space around it, nested at most `depth` deep. */
export function isJson(text: string | Utf8Text, depth: number): boolean {
  const { body, start, end } = typeof text === 'string' ? utf8Of(text) : text
  const length = end - start
  const { bytes, skipText } = simd !== undefined && length <= UTF8_TEXT_MAX ? simd : plainMemory(length)
  body.copy(bytes, 0, start, end)
  // The scanner needs a zero byte after the text.
  bytes[length] = 0
  try {
    return skipValue(bytes, 0, depth, skipText) === length
  } catch {
    return false
  }
}

function utf8Of(text: string): Utf8Text {
  const body = Buffer.from(text)
  return new Utf8Text(body, 0, body.length)
}

function plainMemory(length: number) {
  return { bytes: new Uint8Array(length + 1), skipText: undefined }
}
