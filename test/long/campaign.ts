import { readdirSync, readFileSync } from 'node:fs'
import type { Random } from '../support/random.ts'
import type { SpawnedService } from '../support/service.ts'

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

/** A campaign against one service, which must stop in order at the end. */
export abstract class ServiceCampaign {
  protected readonly failures = new Failures()
  protected service!: SpawnedService
  /** How many responses had each status. */
  protected readonly statuses = new Map<number, number>()

  constructor(protected readonly options: CampaignOptions) {}

  async run(): Promise<CampaignResult> {
    this.service = await this.start()
    const figures = await this.act()
    this.service.kill('SIGTERM')
    this.failures.expect('exit code at the end', await this.service.exited, 0)
    return { figures, failures: this.failures.result }
  }

  protected abstract start(): Promise<SpawnedService>
  /** Does what the campaign is about. @returns its figures */
  protected abstract act(): Promise<CampaignResult['figures']>

  protected countStatus(status: number): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
  }

  protected statusesText(): string {
    return [...this.statuses]
      .sort(([a], [b]) => a - b)
      .map(([status, times]) => `${status}: ${times}`)
      .join(', ')
  }

  /** The memory and the open files of the service's own process, without the stores. */
  protected resources() {
    const { pid } = this.service
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return { residentMiB: Number(kib) / 1024, descriptors: readdirSync(`/proc/${pid}/fd`).length }
  }
}
