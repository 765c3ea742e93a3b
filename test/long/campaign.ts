import type { Random } from '../support/random.ts'

/** The parameters of a campaign. */
export interface CampaignOptions {
  readonly random: Random
  /** Repetitions of the campaign's action: kills, corruptions, requests. */
  readonly rounds: number
  /** The duration of campaigns that run for a time. */
  readonly minutes: number
  /** The short form that the gate runs. */
  readonly isShort: boolean
  /** Only cases whose name contains this, of campaigns that consist of cases. */
  readonly only?: string
  /** Reports progress, one line at a time. */
  readonly progress: (text: string) => void
}

/** The findings of a campaign. It has passed if `failures` is empty. */
export interface CampaignResult {
  readonly figures: Readonly<Record<string, number | string>>
  /** Violations, one line each. */
  readonly failures: readonly string[]
}

export interface Campaign {
  readonly describe: string
  /** The number of rounds in full, and in the short form that the gate runs. */
  readonly rounds: number
  readonly shortRounds: number
  readonly minutes?: number
  readonly shortMinutes?: number
  run(options: CampaignOptions): Promise<CampaignResult>
}

/** Keeps the first failures and counts all. */
export class Failures {
  readonly lines: string[] = []
  count = 0

  add(line: string): void {
    this.count++
    if (this.lines.length < LINES_MAX) this.lines.push(line)
  }

  /** Adds a line unless `actual` is `expected`. */
  expect(what: string, actual: unknown, expected: unknown): void {
    if (actual !== expected) this.add(`${what}: expected ${String(expected)}, got ${String(actual)}`)
  }

  get result(): readonly string[] {
    const more = this.count - this.lines.length
    return more > 0 ? [...this.lines, `and ${more} more`] : this.lines
  }
}

const LINES_MAX = 50
