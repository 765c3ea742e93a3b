import { isObject } from '../http/json-object.ts'
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
import type { Prices } from '../model/prices.ts'
import { USAGE_NAMES } from '../model/usage-names.ts'

/** What one model call used, or several. */
export interface ModelUse {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
}

/** Type of the events that report model calls. */
export const MODEL_CALL = 'llm.call'

/** Larger numbers are mistakes; they must not make the sums useless. */
const TOKENS_MAX = 1e12
const COST_USD_MAX = 1e9

type Slot = keyof typeof USAGE_NAMES
type NumberSlot = Exclude<Slot, 'model'>
interface Member {
  readonly word: Uint8Array
  readonly slot: Slot
  /** Lower ones are preferred. */
  readonly rank: number
}

const SLOTS = Object.keys(USAGE_NAMES) as Slot[]
const MEMBERS = SLOTS.flatMap((slot): Member[] =>
  USAGE_NAMES[slot].map((name, rank) => ({ word: new TextEncoder().encode(name), slot, rank })),
)
const NAME_BYTES_MAX = Math.max(...MEMBERS.map(({ word }) => word.length))
/** By the length of the name. */
const MEMBERS_OF_LENGTH = Array.from({ length: NAME_BYTES_MAX + 1 }, (_, length) =>
  MEMBERS.filter(({ word }) => word.length === length),
)
/** `gen_ai` with an object is the nested form of the names that begin so. */
const NESTED = new TextEncoder().encode('gen_ai')
const PARTS_OF_NAMES = ['usage', 'token_count', 'cost_usd', 'cost.total'].map((part) => Buffer.from(part))
const NO_RANK = 99
/** From there on a native search is faster. */
const SHORT_STRING_BYTES = 48
const MINUS = 0x2d
/** 1 for the bytes of numbers and of `true`, `false` and `null`. */
const IN_WORD = new Uint8Array(256)
for (const char of '+-.0123456789Eaeflnrstu') IN_WORD[char.charCodeAt(0)] = 1
/** Numbers of so many digits are exact. */
const DIGITS_MAX = 15

/**
 * Reads what model calls used from the payloads of their events (docs/specification.md#usage), without parsing them: the
 * names of the outermost members are compared, everything else is skipped. Values that are not such numbers are ignored.
 */
export class ModelUseReader {
  private readonly ranks = { inputTokens: NO_RANK, outputTokens: NO_RANK, costUsd: NO_RANK }
  private readonly values = { inputTokens: 0, outputTokens: 0, costUsd: 0 }
  /** By rank: names of the nested form. Of the others, where they are in the block; 0: nowhere. */
  private models: (string | undefined)[] = []
  private readonly modelStarts = new Int32Array(USAGE_NAMES.model.length)
  private readonly modelEnds = new Int32Array(USAGE_NAMES.model.length)
  /** The name decoded last: most calls are of the same few models. */
  private lastModel = ''
  private lastWord = new Uint8Array()

  constructor(private readonly prices: Prices) {}

  /**
   * @param block holds a payload at `start`: a valid JSON object
   * @returns null if the payload reports no use. The cost of a model without a price is 0.
   */
  read(block: Buffer, start: number): ModelUse | null {
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

  /** The payload is valid JSON, so this only looks for the ends of its parts. */
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
    for (const { word, slot, rank } of MEMBERS_OF_LENGTH[length]) {
      if (!startsWith(block, name, word)) continue
      if (slot !== 'model') this.keep(slot, rank, numberAt(block, start, end))
      // Decoded only if there is no cost.
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
      for (const slot of SLOTS) {
        const rank = (USAGE_NAMES[slot] as readonly string[]).indexOf(full)
        if (rank < 0) continue
        if (slot !== 'model') this.keep(slot, rank, typeof value === 'number' ? value : Number.NaN)
        else if (typeof value === 'string') this.models[rank] = value
      }
      if (full === 'gen_ai.usage' || full === 'gen_ai.request' || full === 'gen_ai.response') this.nested(full, value)
    }
  }

  private keep(slot: NumberSlot, rank: number, value: number): void {
    if (rank > this.ranks[slot] || !isPlausible(slot, value)) return
    this.ranks[slot] = rank
    this.values[slot] = value
  }

  /** By the first of the model's names that has a price. */
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
    const { lastWord } = this
    if (lastWord.length === end - start && startsWith(block, start, lastWord)) return this.lastModel
    this.lastWord = Uint8Array.prototype.slice.call(block, start, end)
    this.lastModel = readString(block, start, end)
    return this.lastModel
  }
}

/** Whether a block of events may report any use: every name that counts has one of these parts. A native search. */
export function mayReportUse(block: Buffer): boolean {
  return PARTS_OF_NAMES.some((part) => block.includes(part))
}

function isPlausible(slot: NumberSlot, value: number): boolean {
  if (slot === 'costUsd') return value >= 0 && value <= COST_USD_MAX
  return Number.isInteger(value) && value >= 0 && value <= TOKENS_MAX
}

/** The number from `start` to `end`; NaN for any other value. */
function numberAt(block: Buffer, start: number, end: number): number {
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
  // The rest of a number or a word.
  while (IN_WORD[block[at]] === 1) at++
  return at
}

/**
 * Skips a valid string from its opening quote. A long one is searched natively, with ever longer stretches in between when
 * that finds escaped quotes only.
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
