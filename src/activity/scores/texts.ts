import { readString, SHOWN_BYTES_MAX, shownText } from '../../base/http/json-reader.ts'
import { BACKSLASH, QUOTE } from '../../base/http/json-scan.ts'
import { isUuid } from '../../base/ids.ts'

/** Strings in the body of a scan. `at` is the opening quote, `end` the offset after the closing one, unless stated. */

/** A UTF-16 unit takes at most six bytes of JSON, and a character at most two units. */
export const BYTES_PER_CHARACTER_MAX = 12
/** Of a UUID in its text form. */
export const UUID_BYTES = 36

/** Decodes a string in place: it is never longer. @returns where its text ends; -2 for text that cannot be stored */
export function decodeInPlace(text: Buffer, at: number, end: number): number {
  if (!hasEscape(text, at + 1, end - 1)) return end - 1
  const decoded = readString(text, at, end)
  if (decoded.includes('\0') || !decoded.isWellFormed()) return -2
  return at + 1 + text.write(decoded, at + 1)
}

function hasEscape(text: Buffer, at: number, end: number): boolean {
  if (end - at > SHOWN_BYTES_MAX) return text.subarray(at, end).includes(BACKSLASH)
  for (; at < end; at++) if (text[at] === BACKSLASH) return true
  return false
}

/** The characters of the UTF-8 between two offsets. */
export function charactersOf(text: Buffer, start: number, end: number): number {
  let count = 0
  for (let at = start; at < end; at++) if ((text[at] & 0xc0) !== 0x80) count++
  return count
}

/** Where the UUID in a string ends, decoded in place; -1 if it has none. */
export function uuidEnd(text: Buffer, at: number, end: number): number {
  if (text[at] !== QUOTE || end - at > UUID_BYTES * BYTES_PER_CHARACTER_MAX) return -1
  const textEnd = decodeInPlace(text, at, end)
  if (textEnd - at - 1 !== UUID_BYTES) return -1
  return isUuid(text.toString('latin1', at + 1, textEnd)) ? textEnd : -1
}

/** Whether the same UUID is at both offsets, in the same case. */
export function isSameUuid(text: Buffer, a: number, b: number): boolean {
  for (let i = UUID_BYTES - 1; i >= 0; i--) if (text[a + i] !== text[b + i]) return false
  return true
}

/** A name that may be written with escapes; undefined if it is longer than any field's. */
export function shortName(text: Buffer, at: number, end: number): string | undefined {
  return end - at > SHOWN_BYTES_MAX ? undefined : readString(text, at, end)
}

/** A name as a message shows it. */
export function shownName(text: Buffer, at: number, end: number): string {
  return shownText(text, at + 1, end - 1).toWellFormed()
}

const ZERO = 0x30
const MINUS = 0x2d
const POINT = 0x2e
/** An integer of so many digits is exact, and so is its quotient by a power of ten up to 10^22. */
const EXACT_DIGITS = 15
const POWERS = Array.from({ length: EXACT_DIGITS + 1 }, (_, exponent) => 10 ** exponent)

/** Where a number ends that {@link decimalOf} can read; -1 for all others. */
export function decimalEnd(text: Buffer, at: number): number {
  let digits = 0
  let points = 0
  const start = text[at] === MINUS ? at + 1 : at
  let end = start
  for (; ; end++) {
    const byte = text[end]
    if (byte >= ZERO && byte <= ZERO + 9) digits++
    else if (byte === POINT && points === 0 && end > start) points++
    else break
  }
  const next = text[end]
  if (digits === 0 || digits > EXACT_DIGITS || next === POINT || next === 0x65 || next === 0x45) return -1
  if (text[end - 1] === POINT || (text[start] === ZERO && end > start + 1 && text[start + 1] !== POINT)) return -1
  return end
}

/** The value of a number of few digits without an exponent, exactly as `Number` reads it. */
export function decimalOf(text: Buffer, at: number, end: number): number {
  const start = text[at] === MINUS ? at + 1 : at
  let value = 0
  let scale = 0
  for (let i = start; i < end; i++) {
    if (text[i] === POINT) scale = end - i - 1
    else value = value * 10 + (text[i] - ZERO)
  }
  const read = value / POWERS[scale]
  return start > at ? -read : read
}
