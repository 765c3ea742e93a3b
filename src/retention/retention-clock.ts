import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../ops/metrics.ts'
import type { Sql } from '../postgres/connect.ts'

export interface RetentionClockDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Pick<Metrics, 'gauge'>
  /** Milliseconds on a clock that nobody can set. */
  readonly monotonic?: () => number
}

const DAY_MS = 86_400_000
/** The watermark moves by so much for each unit of time that passes, while it is behind the clock. */
const CATCH_UP = 2
/** Behind the clock by more than that is worth a word. */
const LAG_WARN_MS = 3_600_000

/**
 * What retention takes for the present: never ahead of the clock, and stored, so that a clock that jumps ahead does not
 * let it delete everything. With a start it moves to the clock, but by a day at most; while the process runs, by twice the
 * time that has passed on a clock that nobody can set, until it has caught up. After a jump that is a day at
 * once, and two days a day from then on: time enough to notice and to put the clock right.
 *
 * As a {@link Clock} it says how late it is at least, for whatever else must not be forgotten early.
 */
export class RetentionClock implements Clock {
  private watermarkMs = 0
  private advancedAtMs = 0
  private isBehind = false

  private constructor(private readonly deps: RetentionClockDeps) {}

  /** Moves it for the first time in this process. */
  static async open(deps: RetentionClockDeps): Promise<RetentionClock> {
    const watermark = new RetentionClock(deps)
    await watermark.move(DAY_MS)
    const help = 'How far the time up to which retention deletes is behind the clock; more than an hour: see the log.'
    deps.metrics.gauge('retention_clock_lag_seconds', help, () => Math.round(watermark.lagMs / 1000))
    return watermark
  }

  /** Moves it on, as far as time has passed. @returns Unix milliseconds, at most what the clock says */
  async advance(): Promise<number> {
    await this.move(CATCH_UP * (this.monotonic - this.advancedAtMs))
    return this.now()
  }

  now(): number {
    return Math.min(this.deps.clock.now(), this.watermarkMs + this.monotonic - this.advancedAtMs)
  }

  private get monotonic(): number {
    return (this.deps.monotonic ?? (() => performance.now()))()
  }

  private get lagMs(): number {
    return this.deps.clock.now() - this.now()
  }

  /**
   * Several processes may do so: what is stored moves by no more than the time since it was last moved allows, and never
   * back. The first time, there is nothing to go by but the clock.
   */
  private async move(byAtMostMs: number): Promise<void> {
    const { sql, clock } = this.deps
    const advancedAtMs = this.monotonic
    const now = clock.now()
    const [row] = await sql<[{ watermark_ms: number }]>`
      insert into retention_watermark as w (watermark_ms, observed_ms) values (${now}, ${now})
      on conflict (only_row) do update set
        watermark_ms = greatest(w.watermark_ms, least(
          excluded.observed_ms,
          w.watermark_ms + least(${Math.round(byAtMostMs)}, greatest(0, ${CATCH_UP} * (excluded.observed_ms - w.observed_ms)))
        )),
        observed_ms = excluded.observed_ms
      returning watermark_ms`
    this.watermarkMs = row.watermark_ms
    this.advancedAtMs = advancedAtMs
    this.sayWhetherBehind()
  }

  private sayWhetherBehind(): void {
    const { clock, log } = this.deps
    const isBehind = this.lagMs > LAG_WARN_MS
    if (isBehind && !this.isBehind) {
      const fields = { clock: isoOf(clock.now()), deletes_as_of: isoOf(this.now()) }
      log.warn(
        'retention: the clock is far ahead of where retention had come to; deleting a day at most. Check it',
        fields,
      )
    } else if (!isBehind && this.isBehind) log.info('retention: has caught up with the clock')
    this.isBehind = isBehind
  }
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString()
}
