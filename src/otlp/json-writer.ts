import { Bytes } from '../clickhouse/bytes.ts'
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
} from '../http/json-scan.ts'
import { createSimdMemory } from '../http/simd-text.ts'
import { type AnyValue, type Attributes, KEPT_BYTES_MAX } from './telemetry.ts'

/** Writes values as JSON, without loss of precision. */

const simd = createSimdMemory()
/** Where the SIMD memory has escaped text, with its quotes: after the text itself. */
const ESCAPED_AT = 2 * KEPT_BYTES_MAX
/** Texts up to this length are written without a native call. */
const SHORT_LENGTH_MAX = 64

const scratch = new Bytes()

/** What `write` writes, in memory of its own. */
export function written(write: (out: Bytes) => void): Buffer {
  return withWritten(write, (buffer, start, end) => {
    const copy = Buffer.allocUnsafeSlow(end - start)
    buffer.copy(copy, 0, start, end)
    return copy
  })
}

/** Encodes a value as JSON. */
export function encodeValue(value: AnyValue): string {
  return withWritten(
    (out) => writeValue(out, value),
    (buffer, start, end) => buffer.toString('utf8', start, end),
  )
}

/** May be nested: what is written comes after what the caller has written so far. */
function withWritten<T>(write: (out: Bytes) => void, use: (buffer: Buffer, start: number, end: number) => T): T {
  const start = scratch.length
  if (start === 0) scratch.clear()
  try {
    write(scratch)
    return use(scratch.buffer, start, scratch.length)
  } finally {
    scratch.length = start
  }
}

export function writeValue(out: Bytes, value: AnyValue): void {
  if (typeof value === 'string') writeText(out, value)
  else if (value === null || typeof value !== 'object') out.text(`${value}`)
  else if (value instanceof Uint8Array) writeUtf8(out, value)
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
  if (text.length > SHORT_LENGTH_MAX || !writePlain(out, text)) out.text(encodeText(text))
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

function writeUtf8(out: Bytes, text: Uint8Array): void {
  if (simd === undefined || text.length > KEPT_BYTES_MAX) out.text(encodeText(textOf(text)))
  else {
    const { bytes, escapeText } = simd
    bytes.set(text)
    const end = escapeText(0, text.length, ESCAPED_AT + 1)
    bytes[ESCAPED_AT] = bytes[end] = QUOTE
    out.bytes(bytes.subarray(ESCAPED_AT, end + 1))
  }
}

/** A string that may have been kept as its UTF-8. */
export function textOf(text: string | Uint8Array): string {
  return typeof text === 'string' ? text : Buffer.from(text.buffer, text.byteOffset, text.length).toString()
}

/** Whether this is one JSON value without space around it, nested at most `depth` deep. */
export function isJson(text: string | Uint8Array, depth: number): boolean {
  const utf8 = typeof text === 'string' ? Buffer.from(text) : text
  // The scanner needs a zero byte after the text.
  const isShort = simd !== undefined && utf8.length <= KEPT_BYTES_MAX
  const bytes = isShort ? simd.bytes : new Uint8Array(utf8.length + 1)
  bytes.set(utf8)
  bytes[utf8.length] = 0
  try {
    return skipValue(bytes, 0, depth, isShort ? simd.skipText : undefined) === utf8.length
  } catch {
    return false
  }
}
