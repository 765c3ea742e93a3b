import { isPlausible, numberIn, STANDS_BESIDE, USAGE_NAMES, USAGE_NUMBERS, type UsageNumber } from './usage-names.ts'

/** Tokens of a model call as every dialect means them once it has been read: wholes include their parts. */
export interface TokenCounts {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Of the input, what the provider read from its cache. */
  readonly cacheReadTokens?: number
  /** Of the input, what the provider wrote to its cache. */
  readonly cacheWriteTokens?: number
  /** Of what it wrote, the part to be kept for an hour. */
  readonly cacheWrite1hTokens?: number
  /** Of the output, the model's reasoning. */
  readonly reasoningTokens?: number
  /** Of the input, and of the output, sound. */
  readonly audioInputTokens?: number
  readonly audioOutputTokens?: number
}

/** What a model call reports: costUsd is undefined if it reports no cost. */
export interface CallUsage extends Required<TokenCounts> {
  costUsd: number | undefined
}

const NO_RANK = 999
const INDEX = Object.fromEntries(USAGE_NUMBERS.map((field, index) => [field, index])) as Record<UsageNumber, number>
const NOT_TOKENS: ReadonlySet<UsageNumber> = new Set([
  'costUsd',
  'totalTokens',
  'audioInputTokens',
  'audioOutputTokens',
])
/** 1 for the fields any of which makes a report of tokens. */
const IS_TOKENS = Uint8Array.from(USAGE_NUMBERS, (field) => (NOT_TOKENS.has(field) ? 0 : 1))

/**
 * The numbers that one model call reports, each under the preferred of its names that has a plausible value. Their dialect
 * is found by the names, or else by the numbers: parts that are larger than the whole, or without which the total is
 * too small, stand beside it (docs/usage.md).
 */
export class ReportedUsage {
  hasTokens = false
  private readonly values = new Float64Array(USAGE_NUMBERS.length)
  private readonly ranks = new Int32Array(USAGE_NUMBERS.length).fill(NO_RANK)

  clear(): void {
    this.hasTokens = false
    for (let index = 0; index < this.ranks.length; index++) {
      this.values[index] = 0
      this.ranks[index] = NO_RANK
    }
  }

  /** @param rank of the name in `USAGE_NAMES`; lower ranks are preferred */
  keep(field: UsageNumber, rank: number, value: number): void {
    const index = INDEX[field]
    if (rank > this.rankOf(field) || !isPlausible(field, value)) return
    this.ranks[index] = rank
    this.values[index] = value
    if (IS_TOKENS[index] === 1) this.hasTokens = true
  }

  has(field: UsageNumber): boolean {
    return this.rankOf(field) !== NO_RANK
  }

  private valueOf(field: UsageNumber): number {
    return this.values[INDEX[field]] ?? 0
  }

  private rankOf(field: UsageNumber): number {
    return this.ranks[INDEX[field]] ?? NO_RANK
  }

  usage(): CallUsage {
    const cacheReadTokens = this.valueOf('cacheReadTokens')
    const cacheWrite1hTokens = this.valueOf('cacheWrite1hTokens')
    const parts = this.valueOf('cacheWrite5mTokens') + cacheWrite1hTokens
    const cacheWriteTokens = Math.max(this.valueOf('cacheWriteTokens'), parts)
    const reasoningTokens = this.valueOf('reasoningTokens')
    const cached = cacheReadTokens + cacheWriteTokens
    let inputTokens = this.valueOf('inputTokens')
    let outputTokens = this.valueOf('outputTokens')
    if (cached > 0 && this.isInputBeside(cached)) inputTokens += cached
    if (reasoningTokens > 0 && this.isOutputBeside(reasoningTokens, inputTokens)) outputTokens += reasoningTokens
    return {
      inputTokens,
      outputTokens,
      cacheReadTokens,
      cacheWriteTokens,
      cacheWrite1hTokens,
      reasoningTokens,
      audioInputTokens: Math.min(this.valueOf('audioInputTokens'), inputTokens - cached),
      audioOutputTokens: Math.min(this.valueOf('audioOutputTokens'), outputTokens - reasoningTokens),
      costUsd: this.has('costUsd') ? this.valueOf('costUsd') : undefined,
    }
  }

  private isInputBeside(cached: number): boolean {
    const input = this.valueOf('inputTokens')
    if (cached > input || this.isTotal(input + this.valueOf('outputTokens') + cached)) return true
    if (!this.standsBeside('inputTokens')) return false
    if (this.has('cacheReadTokens')) return this.standsBeside('cacheReadTokens')
    // Without a sum of what was written there are only Anthropic's parts of it.
    return !this.has('cacheWriteTokens') || this.standsBeside('cacheWriteTokens')
  }

  private isOutputBeside(reasoning: number, input: number): boolean {
    const output = this.valueOf('outputTokens')
    if (reasoning > output || this.isTotal(input + output + reasoning)) return true
    return this.standsBeside('outputTokens') && this.standsBeside('reasoningTokens')
  }

  private isTotal(tokens: number): boolean {
    return this.has('totalTokens') && this.valueOf('totalTokens') === tokens
  }

  private standsBeside(field: keyof typeof STANDS_BESIDE): boolean {
    return STANDS_BESIDE[field][this.rankOf(field)] === true
  }
}

/**
 * Reads usage by looking up its names.
 * @param valueAt the value under a name whose dots may be part of a key or separate nested objects
 */
export function reportedUsage(valueAt: (name: string) => unknown): ReportedUsage {
  const reported = new ReportedUsage()
  for (const field of USAGE_NUMBERS) {
    const names: readonly string[] = USAGE_NAMES[field]
    for (let rank = 0; rank < names.length && !reported.has(field); rank++) {
      reported.keep(field, rank, numberOf(valueAt(names[rank]!)))
    }
  }
  return reported
}

const FIELD_OF = new Map(
  USAGE_NUMBERS.flatMap((field) => USAGE_NAMES[field].map((name, rank) => [name as string, { field, rank }] as const)),
)

/** Reads usage from members whose names are whole. Faster than {@link reportedUsage}, because most names are unknown. */
export function usageAmong(members: Iterable<readonly [string, unknown]>): ReportedUsage {
  const reported = new ReportedUsage()
  for (const [name, value] of members) {
    const known = FIELD_OF.get(name)
    if (known !== undefined) reported.keep(known.field, known.rank, numberOf(value))
  }
  return reported
}

/** NaN for what is neither a number nor a string of one. */
function numberOf(value: unknown): number {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  return typeof value === 'string' ? numberIn(value) : Number.NaN
}

/** The member at a path, whose dots may be part of a key or separate nested objects. */
export function memberAt(value: unknown, path: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  const members = value as Readonly<Record<string, unknown>>
  if (Object.hasOwn(members, path)) return members[path]
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const head = path.slice(0, dot)
    const found = Object.hasOwn(members, head) ? memberAt(members[head], path.slice(dot + 1)) : undefined
    if (found !== undefined) return found
  }
  return undefined
}
