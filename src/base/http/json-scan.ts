/**
 * A JSON scanner over bytes: checks the grammar of RFC 8259 and finds where values begin and end, without building them.
 *
 * Ingest copies payloads as they were sent, so it needs their position, not their value. Scanning is several times
 * cheaper than `JSON.parse` and `JSON.stringify`, and preserves 64-bit integers, key order and escapes.
 *
 * All functions take bytes that are valid UTF-8 and END WITH A ZERO BYTE that is not part of the text (see
 * {@link terminated}): it ends every loop without a bounds check. They return the position after the value, or throw
 * {@link JsonSyntaxError}.
 */

export const QUOTE = 0x22
export const COMMA = 0x2c
export const COLON = 0x3a
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
export const OPEN_BRACKET = 0x5b
export const CLOSE_BRACKET = 0x5d
export const BACKSLASH = 0x5c
const MINUS = 0x2d
const ZERO = 0x30

/** 1 for bytes that need no escape in a string: no quote, backslash or control character. */
const PLAIN = new Uint8Array(256).fill(1, 0x20)
PLAIN[QUOTE] = 0
PLAIN[BACKSLASH] = 0

const DIGIT = new Uint8Array(256).fill(1, ZERO, ZERO + 10)
const HEX = new Uint8Array(256)
  .fill(1, ZERO, ZERO + 10)
  .fill(1, 0x41, 0x47)
  .fill(1, 0x61, 0x67)
const ESCAPABLE = new Uint8Array(256)
for (const char of '"\\/bfnrt') ESCAPABLE[char.charCodeAt(0)] = 1

/**
 * Values that JSON of a caller or a model may have if it is built and checked, which takes about half a microsecond for
 * each: more of them would stop the event loop for long. Free-form objects, which are only scanned, may have any number.
 */
export const JSON_VALUES_MAX = 50_000

const LITERALS = ['true', 'false', 'null'].map((word) => new TextEncoder().encode(word))

export class JsonSyntaxError extends Error {
  constructor(
    readonly at: number,
    readonly expected: string,
  ) {
    super(`expected ${expected} at byte ${at}`)
    this.name = 'JsonSyntaxError'
  }
}

/** A copy of `bytes` followed by the zero byte that all functions here rely on. */
export function terminated(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(bytes.length + 1)
  copy.set(bytes)
  return copy
}

export function skipSpace(bytes: Uint8Array, at: number): number {
  let byte = bytes[at]
  while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = bytes[++at]
  return at
}

/**
 * Skips characters of a string, also escapes of two characters. Returns the position of another byte: the closing quote,
 * another escape sequence, or what no string may contain. See `simd-text.ts`.
 */
export type SkipText = (at: number) => number

/** The position of the first byte from `at` on that ends a string, or begins an escape, or that no string may contain. */
export function skipPlain(bytes: Uint8Array, at: number): number {
  while (PLAIN[bytes[at]] === 1) at++
  return at
}

/** `at` is the opening quote. `skipText`: a faster way to read `bytes`. */
export function skipString(bytes: Uint8Array, at: number, skipText?: SkipText): number {
  at++
  for (;;) {
    if (skipText === undefined) while (PLAIN[bytes[at]] === 1) at++
    else if (PLAIN[bytes[at]] === 1) at = skipText(at)
    const byte = bytes[at]
    if (byte === QUOTE) return at + 1
    if (byte !== BACKSLASH) throw new JsonSyntaxError(at, "a character of a string or '\"'")
    const escaped = bytes[at + 1]
    if (ESCAPABLE[escaped] === 1) at += 2
    else if (escaped === 0x75 && isHex4(bytes, at + 2)) at += 6
    else throw new JsonSyntaxError(at, 'an escape sequence')
  }
}

function isHex4(bytes: Uint8Array, at: number): boolean {
  // Checked one by one: the terminating zero must stop the scan before the end of the buffer.
  return HEX[bytes[at]] === 1 && HEX[bytes[at + 1]] === 1 && HEX[bytes[at + 2]] === 1 && HEX[bytes[at + 3]] === 1
}

/**
 * Skips any value. `at` is its first byte, `depth` the levels of nesting still allowed, `skipText` a faster way to read
 * the strings of `bytes`.
 */
export function skipValue(bytes: Uint8Array, at: number, depth: number, skipText?: SkipText): number {
  const byte = bytes[at]
  if (byte === QUOTE) return skipString(bytes, at, skipText)
  if (byte === OPEN_BRACE) return skipObject(bytes, at, depth, skipText)
  if (byte === OPEN_BRACKET) return skipArray(bytes, at, depth, skipText)
  if (byte === MINUS || DIGIT[byte] === 1) return skipNumber(bytes, at)
  return skipLiteral(bytes, at)
}

function skipObject(bytes: Uint8Array, at: number, depth: number, skipText: SkipText | undefined): number {
  if (depth === 0) throw new JsonSyntaxError(at, 'less nesting')
  at = skipSpace(bytes, at + 1)
  if (bytes[at] === CLOSE_BRACE) return at + 1
  for (;;) {
    if (bytes[at] !== QUOTE) throw new JsonSyntaxError(at, "a member name or '}'")
    at = skipColon(bytes, skipString(bytes, at))
    at = skipSpace(bytes, skipValue(bytes, at, depth - 1, skipText))
    const byte = bytes[at]
    if (byte === CLOSE_BRACE) return at + 1
    if (byte !== COMMA) throw new JsonSyntaxError(at, "',' or '}'")
    at = skipSpace(bytes, at + 1)
  }
}

function skipArray(bytes: Uint8Array, at: number, depth: number, skipText: SkipText | undefined): number {
  if (depth === 0) throw new JsonSyntaxError(at, 'less nesting')
  at = skipSpace(bytes, at + 1)
  if (bytes[at] === CLOSE_BRACKET) return at + 1
  for (;;) {
    at = skipSpace(bytes, skipValue(bytes, at, depth - 1, skipText))
    const byte = bytes[at]
    if (byte === CLOSE_BRACKET) return at + 1
    if (byte !== COMMA) throw new JsonSyntaxError(at, "',' or ']'")
    at = skipSpace(bytes, at + 1)
  }
}

/** From the end of a member's name to the start of its value. */
export function skipColon(bytes: Uint8Array, at: number): number {
  at = skipSpace(bytes, at)
  if (bytes[at] !== COLON) throw new JsonSyntaxError(at, "':'")
  return skipSpace(bytes, at + 1)
}

/** From the end of an item to the next one, or to what closes the object or array. */
export function afterItem(bytes: Uint8Array, end: number, close: number): number {
  let at = skipSpace(bytes, end)
  if (bytes[at] === close) return at
  if (bytes[at] !== COMMA) throw noItem(at, close, true)
  at = skipSpace(bytes, at + 1)
  if (bytes[at] === close) throw noItem(at, close, false)
  return at
}

function noItem(at: number, close: number, isAfter: boolean): JsonSyntaxError {
  if (isAfter) return new JsonSyntaxError(at, close === CLOSE_BRACE ? "',' or '}'" : "',' or ']'")
  return new JsonSyntaxError(at, close === CLOSE_BRACE ? 'a member name' : 'a value')
}

/**
 * Visits the members of a valid JSON object; `name` and `value` are where they begin, `nameEnd` and `valueEnd` where they
 * end, the name with its quotes. Returns where the object ends.
 * @param text with a byte after the object
 */
export function visitMembers(
  text: Uint8Array,
  start: number,
  visit: (name: number, nameEnd: number, value: number, valueEnd: number) => void,
): number {
  let at = skipSpace(text, start + 1)
  while (text[at] === QUOTE) {
    const nameEnd = skipString(text, at)
    const value = skipColon(text, nameEnd)
    const valueEnd = skipValue(text, value, Number.POSITIVE_INFINITY)
    visit(at, nameEnd, value, valueEnd)
    at = skipSpace(text, valueEnd)
    if (text[at] === COMMA) at = skipSpace(text, at + 1)
  }
  return at + 1
}

function skipNumber(bytes: Uint8Array, at: number): number {
  if (bytes[at] === MINUS) at++
  if (bytes[at] === ZERO) at++
  else at = skipDigits(bytes, at)
  if (bytes[at] === 0x2e) at = skipDigits(bytes, at + 1)
  if (bytes[at] === 0x65 || bytes[at] === 0x45) {
    at++
    if (bytes[at] === 0x2b || bytes[at] === MINUS) at++
    at = skipDigits(bytes, at)
  }
  return at
}

function skipDigits(bytes: Uint8Array, at: number): number {
  if (DIGIT[bytes[at]] !== 1) throw new JsonSyntaxError(at, 'a digit')
  while (DIGIT[bytes[at]] === 1) at++
  return at
}

function skipLiteral(bytes: Uint8Array, at: number): number {
  for (const word of LITERALS) if (startsWith(bytes, at, word)) return at + word.length
  throw new JsonSyntaxError(at, 'a value')
}

/**
 * Whether valid JSON has more than `max` values, counting the members of objects and the elements of arrays. Cheap, so
 * that what is too much to build is refused before it is parsed.
 */
export function hasMoreValues(text: string, max: number): boolean {
  if (text.length <= max) return false
  const bytes = Buffer.from(`${text}\0`)
  let values = 1
  for (let at = 0; at < bytes.length; ) {
    const byte = bytes[at]
    if (byte === QUOTE) at = skipString(bytes, at)
    else {
      if ((byte === COMMA || byte === OPEN_BRACE || byte === OPEN_BRACKET) && ++values > max) return true
      at++
    }
  }
  return false
}

/** Whether the bytes at `at` start with `word`. Safe at the end of the buffer, because no word contains a zero byte. */
export function startsWith(bytes: Uint8Array, at: number, word: Uint8Array): boolean {
  for (let i = 0; i < word.length; i++) if (bytes[at + i] !== word[i]) return false
  return true
}
