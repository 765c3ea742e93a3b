import type { Prices } from '../../base/conventions/prices.ts'
import { ReportedUsage, type TokenCounts } from '../../base/conventions/usage.ts'
import { numberIn, USAGE_NAMES, type UsageField } from '../../base/conventions/usage-names.ts'
import { readString } from '../../base/http/json-reader.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  startsWith,
} from '../../base/http/json-scan.ts'

/** The tokens and cost of one or more model calls. */
export interface UsageWithCost extends Required<TokenCounts> {
  readonly costUsd: number
}

/** Type of the events that report model calls. */
export const MODEL_CALL = 'llm.call'

/** A member to look for: a value that counts, an object that contains such values, or both. */
interface Member {
  readonly name: Uint8Array
  readonly length: number
  readonly value: { readonly field: UsageField; readonly rank: number } | undefined
  readonly inner: Members | undefined
}

/** The members to look for in an object, by {@link slotOf} their names: few share a slot, so that most others cost one look. */
type Members = readonly (readonly Member[])[]

const SLOTS = 128

/** @param last the last byte of a name: names of equal length usually differ in it */
function slotOf(length: number, last: number): number {
  return (length * 7 + last) & (SLOTS - 1)
}

/** The rest of a name below some object. Lower ranks are preferred. */
type Name = readonly [rest: string, field: UsageField, rank: number]

const OUTERMOST = membersOf(
  Object.entries(USAGE_NAMES).flatMap(([field, names]) =>
    names.map((name, rank): Name => [name, field as UsageField, rank]),
  ),
)

/** The members that these names may be: each dot is part of a key, or separates a key from those of a nested object. */
function membersOf(names: readonly Name[]): Members {
  const keys = new Set(
    names.flatMap(([rest]) => rest.split('.').map((_, dots, steps) => steps.slice(0, dots + 1).join('.'))),
  )
  const slots: Member[][] = Array.from({ length: SLOTS }, () => [])
  for (const key of keys) {
    const [, field, rank = 0] = names.find(([rest]) => rest === key) ?? []
    const within = names.filter(([rest]) => rest.startsWith(`${key}.`))
    const name = new TextEncoder().encode(key)
    slots[slotOf(name.length, name[name.length - 1])].push({
      name,
      length: name.length,
      value: field === undefined ? undefined : { field, rank },
      inner:
        within.length === 0 ? undefined : membersOf(within.map(([rest, ...of]) => [rest.slice(key.length + 1), ...of])),
    })
  }
  return slots
}

/** Every name of a number contains one of these. */
const PARTS_OF_NAMES = ['oken', 'usage', 'cost'].map((part) => Buffer.from(part))
/** In longer strings a native search for the end is faster. */
const SHORT_STRING_BYTES = 48
const MINUS = 0x2d
/** 1 for the bytes of numbers, `true`, `false` and `null`. */
const IN_LITERAL = new Uint8Array(256)
for (const char of '+-.0123456789Eaeflnrstu') IN_LITERAL[char.charCodeAt(0)] = 1
/** No reported number is longer. */
const NUMERIC_TEXT_MAX = 32
/** Integers with at most this many digits are exact. */
const DIGITS_MAX = 15

/**
 * Reads usage from the payloads of model calls (docs/usage.md) without parsing them: it compares the names of
 * members and skips everything else. Implausible values are ignored.
 */
export class UsageReader {
  private readonly reported = new ReportedUsage()
  /** Positions of the model names in the block, by rank (end 0: none). */
  private readonly modelStarts = new Int32Array(USAGE_NAMES.model.length)
  private readonly modelEnds = new Int32Array(USAGE_NAMES.model.length)
  /** The model name decoded last, and its bytes: most calls are of the same few models. */
  private lastModel = ''
  private lastModelBytes = new Uint8Array()

  constructor(private readonly prices: Prices) {}

  /**
   * @param block holds a payload at `start`: a valid JSON object
   * @param at when the call was made, Unix milliseconds
   * @returns null if the payload reports no usage. The cost of a model without a price is 0.
   */
  read(block: Buffer, start: number, at: number): UsageWithCost | null {
    const { reported } = this
    reported.clear()
    for (let rank = 0; rank < this.modelEnds.length; rank++) this.modelEnds[rank] = 0
    this.scan(block, start, OUTERMOST)
    if (!reported.hasTokens && !reported.has('costUsd')) return null
    const usage = reported.usage()
    usage.costUsd ??= this.price(block, usage, at)
    return usage as UsageWithCost
  }

  /** Visits the members of an object. The payload is valid JSON, so only the ends of names and values are searched. */
  private scan(block: Buffer, start: number, members: Members): void {
    let at = start
    do {
      at = skipSpace(block, at + 1)
      if (block[at] !== QUOTE) return
      const name = at + 1
      at = skipText(block, at)
      const nameEnd = at - 1
      while (block[at] !== COLON) at++
      const value = skipSpace(block, at + 1)
      at = skipAny(block, value)
      const length = nameEnd - name
      // Of an empty name, the last byte is its quote, which no name ends with.
      const slot = members[slotOf(length, block[nameEnd - 1])]
      for (let index = 0; index < slot.length; index++) {
        const member = slot[index]
        if (length !== member.length || !startsWith(block, name, member.name)) continue
        this.found(block, member, value, at)
        break
      }
      at = skipSpace(block, at)
    } while (block[at] === COMMA)
  }

  private found(block: Buffer, { value, inner }: Member, start: number, end: number): void {
    if (inner !== undefined && block[start] === OPEN_BRACE) this.scan(block, start, inner)
    if (value === undefined) return
    const { field, rank } = value
    if (field !== 'model') this.reported.keep(field, rank, numberAt(block, start, end))
    // Only the position: the name is decoded only if no cost is reported.
    else if (block[start] === QUOTE) {
      this.modelStarts[rank] = start
      this.modelEnds[rank] = end
    }
  }

  /** The cost by the price of the first model name that has one; 0 if none has. */
  private price(block: Buffer, tokens: TokenCounts, at: number): number {
    for (let rank = 0; rank < this.modelEnds.length; rank++) {
      const end = this.modelEnds[rank]
      if (end === 0) continue
      const costUsd = this.prices.costUsd(this.modelAt(block, this.modelStarts[rank], end), tokens, at)
      if (costUsd !== null) return costUsd
    }
    return 0
  }

  private modelAt(block: Buffer, start: number, end: number): string {
    const { lastModelBytes } = this
    if (lastModelBytes.length === end - start && startsWith(block, start, lastModelBytes)) return this.lastModel
    this.lastModelBytes = Uint8Array.prototype.slice.call(block, start, end)
    this.lastModel = readString(block, start, end)
    return this.lastModel
  }
}

/** Whether a block of events may report usage. A native search, because every usage name contains one of a few parts. */
export function mayReportUsage(block: Buffer): boolean {
  return PARTS_OF_NAMES.some((part) => block.includes(part))
}

/** The number from `start` to `end`, or in the string there; NaN for any other value. */
function numberAt(block: Buffer, start: number, end: number): number {
  if (block[start] === QUOTE) {
    return end - start > NUMERIC_TEXT_MAX ? Number.NaN : numberIn(block.toString('latin1', start + 1, end - 1))
  }
  if (end - start > DIGITS_MAX) return otherNumberAt(block, start, end)
  let value = 0
  for (let at = start; at < end; at++) {
    const digit = block[at] - 0x30
    if (digit < 0 || digit > 9) return otherNumberAt(block, start, end)
    value = value * 10 + digit
  }
  return value
}

function otherNumberAt(block: Buffer, start: number, end: number): number {
  const first = block[start]
  const isNumber = first === MINUS || (first >= 0x30 && first <= 0x39)
  return isNumber ? Number(block.toString('latin1', start, end)) : Number.NaN
}

/** Skips a valid value. */
function skipAny(block: Buffer, at: number): number {
  let depth = 0
  do {
    const byte = block[at]
    if (byte === QUOTE) at = skipText(block, at)
    else {
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--
      at++
    }
  } while (depth > 0)
  // The rest of a number, `true`, `false` or `null`.
  while (IN_LITERAL[block[at]] === 1) at++
  return at
}

/**
 * Skips a valid string from its opening quote. In a long one, a native search looks for the closing quote. Whenever it
 * finds an escaped quote instead, a loop reads on for a while, each time twice as far: strings often have many of them.
 */
function skipText(block: Buffer, at: number): number {
  const short = at + SHORT_STRING_BYTES
  at++
  while (at < short) {
    const byte = block[at]
    if (byte === QUOTE) return at + 1
    at += byte === BACKSLASH ? 2 : 1
  }
  for (let stretch = SHORT_STRING_BYTES; ; stretch *= 2) {
    const quote = block.indexOf(QUOTE, at)
    let escapes = quote
    while (escapes > at && block[escapes - 1] === BACKSLASH) escapes--
    if ((quote - escapes) % 2 === 0) return quote + 1
    at = quote + 1
    for (const until = at + stretch; at < until; ) {
      const byte = block[at]
      if (byte === QUOTE) return at + 1
      at += byte === BACKSLASH ? 2 : 1
    }
  }
}
