import { invalid } from '../errors.ts'
import { RawJson } from '../raw-json.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  JSON_VALUES_MAX,
  JsonSyntaxError,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipColon,
  skipPlain,
  skipSpace,
  skipString,
  skipValue,
  terminated,
  visitMembers,
} from './json-scan.ts'

const LONG_BYTES = 64 * 1024
/** Of a value in a message. */
export const SHOWN_BYTES_MAX = 80
/** Members whose free-form objects are kept as text. */
const FREE_FORM = new Set(['input', 'edited_input', 'output', 'payload', 'error_detail', 'metadata'])
/** Members of a body whose objects may have free-form members, like the body itself. */
const CARRIERS = new Set(['task', 'events'])

/**
 * Parses a request body. Unlike `JSON.parse`, it returns the free-form objects of the body (and of its `task` and `events`)
 * as {@link RawJson}, bounds nesting and the number of values, refuses duplicate members, and reports the position of errors.
 *
 * @param bytes valid UTF-8
 * @param maxDepth levels of nesting allowed
 * @param Kept the class of the free-form objects
 * @throws ApiError VALIDATION_ERROR
 */
export function parseJson(bytes: Uint8Array, maxDepth: number, Kept = RawJson): unknown {
  return parse(terminated(bytes), maxDepth, Kept)
}

/** Like {@link parseJson}, of a text. @throws ApiError VALIDATION_ERROR */
export function parseText(text: string, maxDepth: number): unknown {
  const length = Buffer.byteLength(text)
  const source = Buffer.allocUnsafe(length + 1)
  source.write(text)
  source[length] = 0
  return parse(source, maxDepth, RawJson)
}

function parse(source: Uint8Array, maxDepth: number, Kept: typeof RawJson): unknown {
  try {
    return new Reader(source, Kept).document(maxDepth)
  } catch (error) {
    throw jsonError(error, source.subarray(0, -1))
  }
}

/** Converts a scanner error into the one that the client gets; returns any other error unchanged. */
export function jsonError(error: unknown, bytes: Uint8Array): unknown {
  if (!(error instanceof JsonSyntaxError)) return error
  let line = 1
  let lineStart = 0
  for (let at = 0; at < error.at; at++)
    if (bytes[at] === 0x0a) {
      line++
      lineStart = at + 1
    }
  const column = error.at - lineStart + 1
  const found = error.at >= bytes.length ? 'the body ends there' : `got ${JSON.stringify(charAt(bytes, error.at))}`
  return invalid('body', `not valid JSON: expected ${error.expected} at line ${line} column ${column}; ${found}`, {
    reason: 'body_unreadable',
  })
}

function charAt(bytes: Uint8Array, at: number): string {
  return [...new TextDecoder().decode(bytes.subarray(at, at + 4))][0]
}

class Reader {
  private at = 0
  private values = 0
  private readonly text: Buffer

  constructor(
    private readonly bytes: Uint8Array,
    private readonly Kept: typeof RawJson,
  ) {
    this.text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  document(depth: number): unknown {
    this.at = skipSpace(this.bytes, 0)
    const value = this.value(depth, 'body')
    this.at = skipSpace(this.bytes, this.at)
    if (this.at !== this.bytes.length - 1) throw new JsonSyntaxError(this.at, 'the end of the body')
    return value
  }

  /** `role` says whether this value may have free-form members: see {@link FREE_FORM}. */
  private value(depth: number, role: 'body' | 'carrier' | 'plain'): unknown {
    if (++this.values > JSON_VALUES_MAX)
      throw invalid('body', `expected at most ${JSON_VALUES_MAX} values outside of free-form objects`)
    const byte = this.bytes[this.at]
    if (byte === OPEN_BRACE) return this.object(depth, role)
    if (byte === OPEN_BRACKET) return this.array(depth, role === 'carrier' ? 'carrier' : 'plain')
    if (byte === QUOTE) return this.string()
    const start = this.at
    this.at = skipValue(this.bytes, start, 0)
    return JSON.parse(this.text.toString('latin1', start, this.at))
  }

  private object(depth: number, role: 'body' | 'carrier' | 'plain'): Record<string, unknown> {
    if (depth === 0) throw new JsonSyntaxError(this.at, 'less nesting')
    const object: Record<string, unknown> = {}
    this.at = skipSpace(this.bytes, this.at + 1)
    if (this.bytes[this.at] === CLOSE_BRACE) return this.end(object)
    for (;;) {
      if (this.bytes[this.at] !== QUOTE) throw new JsonSyntaxError(this.at, "a member name or '}'")
      const nameAt = this.at
      const name = this.string()
      // Parsers disagree on which of two members with the same name counts.
      if (Object.hasOwn(object, name)) throw new JsonSyntaxError(nameAt, 'each member name once')
      this.at = skipColon(this.bytes, this.at)
      const value = this.member(name, depth - 1, role)
      // A plain assignment would set the prototype instead.
      if (name === '__proto__')
        Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
      else object[name] = value
      this.at = skipSpace(this.bytes, this.at)
      if (this.bytes[this.at] === CLOSE_BRACE) return this.end(object)
      if (this.bytes[this.at] !== COMMA) throw new JsonSyntaxError(this.at, "',' or '}'")
      this.at = skipSpace(this.bytes, this.at + 1)
    }
  }

  private member(name: string, depth: number, role: 'body' | 'carrier' | 'plain'): unknown {
    if (role !== 'plain' && this.bytes[this.at] === OPEN_BRACE && FREE_FORM.has(name)) {
      const start = this.at
      this.at = skipValue(this.bytes, start, depth)
      return new this.Kept(this.text.toString('utf8', start, this.at))
    }
    return this.value(depth, role === 'body' && CARRIERS.has(name) ? 'carrier' : 'plain')
  }

  private array(depth: number, role: 'carrier' | 'plain'): unknown[] {
    if (depth === 0) throw new JsonSyntaxError(this.at, 'less nesting')
    const array: unknown[] = []
    this.at = skipSpace(this.bytes, this.at + 1)
    if (this.bytes[this.at] === CLOSE_BRACKET) return this.end(array)
    for (;;) {
      array.push(this.value(depth - 1, role))
      this.at = skipSpace(this.bytes, this.at)
      if (this.bytes[this.at] === CLOSE_BRACKET) return this.end(array)
      if (this.bytes[this.at] !== COMMA) throw new JsonSyntaxError(this.at, "',' or ']'")
      this.at = skipSpace(this.bytes, this.at + 1)
    }
  }

  private string(): string {
    const start = this.at
    const plainEnd = skipPlain(this.bytes, start + 1)
    if (this.bytes[plainEnd] === QUOTE) {
      this.at = plainEnd + 1
      return this.text.toString('utf8', start + 1, plainEnd)
    }
    this.at = skipString(this.bytes, start)
    return JSON.parse(this.text.toString('utf8', start, this.at))
  }

  private end<T>(value: T): T {
    this.at++
    return value
  }
}

/**
 * A member of an object if it is a string; the last one of that name, as `JSON.parse` reads it. Only scans the others: an
 * object of 3 MiB takes most of a second to parse.
 */
export function stringMember({ text }: RawJson, wanted: string): string | undefined {
  const bytes = Buffer.from(`${text}\0`)
  let found: string | undefined
  visitMembers(bytes, 0, (name, nameEnd, start, end) => {
    if (readString(bytes, name, nameEnd) === wanted)
      found = bytes[start] === QUOTE ? readString(bytes, start, end) : undefined
  })
  return found
}

/** The value of a scanned string; `start` and `end` include the quotes. */
export function readString(text: Buffer, start: number, end: number): string {
  // Of a long text there are as few copies as possible.
  if (end - start > LONG_BYTES && text.subarray(start, end).includes(BACKSLASH))
    return JSON.parse(text.toString('utf8', start, end))
  const inner = text.toString('utf8', start + 1, end - 1)
  // Decoded again with its quotes: to add them to `inner` would copy it twice.
  return inner.includes('\\') ? JSON.parse(text.toString('utf8', start, end)) : inner
}

/** The text between two offsets, truncated for a message. */
export function shownText(text: Buffer, start: number, end: number): string {
  const shown = text.toString('utf8', start, Math.min(end, start + SHOWN_BYTES_MAX))
  return end - start > SHOWN_BYTES_MAX ? `${shown}…` : shown
}
