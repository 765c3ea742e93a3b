import { isObject } from '../base/json-object.ts'
import type { Prices } from '../conventions/prices.ts'
import { isPlausible, numberIn, USAGE_NAMES, type UsageField, type UsageNumber } from '../conventions/usage-names.ts'
import { readString } from '../http/json-reader.ts'
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
} from '../http/json-scan.ts'
import type { ModelUsage } from '../model/model.ts'

/** The tokens and cost of one or more model calls. */
export interface UsageWithCost extends ModelUsage {
  readonly costUsd: number
}

/** Type of the events that report model calls. */
export const MODEL_CALL = 'llm.call'

interface Member {
  readonly name: Uint8Array
  readonly field: UsageField
  /** Lower ones are preferred. */
  readonly rank: number
}

const FIELDS = Object.keys(USAGE_NAMES) as UsageField[]
const MEMBERS = FIELDS.flatMap((field): Member[] =>
  USAGE_NAMES[field].map((name, rank) => ({ name: new TextEncoder().encode(name), field, rank })),
)
const NAME_BYTES_MAX = Math.max(...MEMBERS.map(({ name }) => name.length))
/** Members by the length of their name. */
const MEMBERS_OF_LENGTH = Array.from({ length: NAME_BYTES_MAX + 1 }, (_, length) =>
  MEMBERS.filter(({ name }) => name.length === length),
)
/** An object under `gen_ai` is the nested form of the names that start with `gen_ai.`. */
const NESTED = new TextEncoder().encode('gen_ai')
const PARTS_OF_NAMES = ['usage', 'token_count', 'cost_usd', 'cost.total'].map((part) => Buffer.from(part))
const NO_RANK = 99
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
 * Reads usage from the payloads of model calls (docs/specification.md#usage) without parsing them: it compares the names of
 * the outermost members and skips everything else. Only an object under `gen_ai` is parsed. Implausible values are ignored.
 */
export class UsageReader {
  private readonly ranks = { inputTokens: NO_RANK, outputTokens: NO_RANK, costUsd: NO_RANK }
  private readonly values = { inputTokens: 0, outputTokens: 0, costUsd: 0 }
  /** Model names by rank: from the nested form as strings, from the flat form as positions in the block (end 0: none). */
  private models: (string | undefined)[] = []
  private readonly modelStarts = new Int32Array(USAGE_NAMES.model.length)
  private readonly modelEnds = new Int32Array(USAGE_NAMES.model.length)
  /** The model name decoded last, and its bytes: most calls are of the same few models. */
  private lastModel = ''
  private lastModelBytes = new Uint8Array()

  constructor(private readonly prices: Prices) {}

  /**
   * @param block holds a payload at `start`: a valid JSON object
   * @returns null if the payload reports no usage. The cost of a model without a price is 0.
   */
  read(block: Buffer, start: number): UsageWithCost | null {
    const { ranks, values } = this
    ranks.inputTokens = ranks.outputTokens = ranks.costUsd = NO_RANK
    values.inputTokens = values.outputTokens = values.costUsd = 0
    if (this.models.length > 0) this.models = []
    for (let rank = 0; rank < this.modelEnds.length; rank++) this.modelEnds[rank] = 0
    this.scan(block, start)
    const hasTokens = ranks.inputTokens !== NO_RANK || ranks.outputTokens !== NO_RANK
    if (ranks.costUsd === NO_RANK) {
      if (!hasTokens) return null
      values.costUsd = this.price(block)
    }
    return { ...values }
  }

  /** Visits the outermost members. The payload is valid JSON, so only the ends of names and values are searched. */
  private scan(block: Buffer, start: number): void {
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
      if (nameEnd - name <= NAME_BYTES_MAX) this.member(block, name, nameEnd - name, value, at)
      at = skipSpace(block, at)
    } while (block[at] === COMMA)
  }

  private member(block: Buffer, name: number, length: number, start: number, end: number): void {
    if (length === NESTED.length && block[start] === OPEN_BRACE && startsWith(block, name, NESTED)) {
      this.nested('gen_ai', JSON.parse(block.toString('utf8', start, end)))
      return
    }
    for (const { name: wanted, field, rank } of MEMBERS_OF_LENGTH[length]) {
      if (!startsWith(block, name, wanted)) continue
      if (field !== 'model') this.keep(field, rank, numberAt(block, start, end))
      // Only the position: the name is decoded only if no cost is reported.
      else if (block[start] === QUOTE) {
        this.modelStarts[rank] = start
        this.modelEnds[rank] = end
      }
    }
  }

  private nested(path: string, object: unknown): void {
    if (!isObject(object)) return
    for (const [name, value] of Object.entries(object)) {
      const full = `${path}.${name}`
      for (const field of FIELDS) {
        const rank = (USAGE_NAMES[field] as readonly string[]).indexOf(full)
        if (rank < 0) continue
        if (field !== 'model')
          this.keep(
            field,
            rank,
            typeof value === 'string' ? numberIn(value) : typeof value === 'number' ? value : Number.NaN,
          )
        else if (typeof value === 'string') this.models[rank] = value
      }
      if (full === 'gen_ai.usage' || full === 'gen_ai.request' || full === 'gen_ai.response') this.nested(full, value)
    }
  }

  private keep(field: UsageNumber, rank: number, value: number): void {
    if (rank > this.ranks[field] || !isPlausible(field, value)) return
    this.ranks[field] = rank
    this.values[field] = value
  }

  /** The cost by the price of the first model name that has one; 0 if none has. */
  private price(block: Buffer): number {
    for (let rank = 0; rank < this.modelEnds.length; rank++) {
      const end = this.modelEnds[rank]
      const name = end > 0 ? this.modelAt(block, this.modelStarts[rank], end) : this.models[rank]
      const costUsd = name === undefined ? null : this.prices.costUsd(name, this.values)
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
