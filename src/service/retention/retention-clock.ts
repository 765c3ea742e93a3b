import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Metrics } from '../../base/metrics.ts'
import type { Sql } from '../../stores/postgres/connect.ts'

interface RetentionClockDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Pick<Metrics, 'gauge'>
  /** Milliseconds on a monotonic clock. */
  readonly monotonic?: () => number
}

const DAY_MS = 86_400_000
/** While the retention clock is behind the system clock it runs at this multiple of real time. */
const CATCH_UP = 2
/** Logs a warning when the lag exceeds this. */
const LAG_WARN_MS = 3_600_000

/**
 * The time that retention uses: never ahead of the system clock, and stored in Postgres, so that a system clock that
 * jumps ahead does not delete everything. At a start it advances to the system clock, but by a day at most. While the
 * process runs it advances by at most twice the elapsed monotonic time until it has caught up. After a jump this is one
 * day at once and two days per day from then on, which leaves time to notice and to correct the system clock.
 *
 * It implements {@link Clock} for other data that must not expire early, such as idempotency keys.
 */
export class RetentionClock implements Clock {
  private storedMs = 0
  private advancedAtMs = 0
  private isBehind = false

  private constructor(private readonly deps: RetentionClockDeps) {}

  /** Reads the stored time and advances it for the first time in this process. */
  static async open(deps: RetentionClockDeps): Promise<RetentionClock> {
    const retentionClock = new RetentionClock(deps)
    await retentionClock.advanceBy(DAY_MS)
    const help = 'Seconds by which the retention clock is behind the system clock; the log warns above an hour.'
    deps.metrics.gauge('retention_clock_lag_seconds', help, () => Math.round(retentionClock.lagMs / 1000))
    return retentionClock
  }

  /** Advances with the elapsed time. @returns Unix milliseconds, at most the system clock */
  async advance(): Promise<number> {
    await this.advanceBy(CATCH_UP * (this.monotonic - this.advancedAtMs))
    return this.now()
  }

  now(): number {
    return Math.min(this.deps.clock.now(), this.storedMs + this.monotonic - this.advancedAtMs)
  }

  private get monotonic(): number {
    return (this.deps.monotonic ?? (() => performance.now()))()
  }

  private get lagMs(): number {
    return this.deps.clock.now() - this.now()
  }

  /**
   * Several processes may call this: the stored time advances by no more than the time since its last update allows, and
   * never goes back. The first time it is set to the system clock.
   */
  private async advanceBy(byAtMostMs: number): Promise<void> {
    const { sql, clock } = this.deps
    const advancedAtMs = this.monotonic
    const now = clock.now()
    const [row] = await sql<[{ now_ms: number }]>`
      insert into retention_clock as c (now_ms, observed_ms) values (${now}, ${now})
      on conflict (only_row) do update set
        now_ms = greatest(c.now_ms, least(
          excluded.observed_ms,
          c.now_ms + least(${Math.round(byAtMostMs)}, greatest(0, ${CATCH_UP} * (excluded.observed_ms - c.observed_ms)))
        )),
        observed_ms = excluded.observed_ms
      returning now_ms`
    this.storedMs = row.now_ms
    this.advancedAtMs = advancedAtMs
    this.logWhetherBehind()
  }

  private logWhetherBehind(): void {
    const { clock, log } = this.deps
    const isBehind = this.lagMs > LAG_WARN_MS
    if (isBehind && !this.isBehind) {
      const fields = { clock: isoOf(clock.now()), deletes_as_of: isoOf(this.now()) }
      log.warn(
        'retention: the system clock is far ahead of the retention clock; deleting at most one day. Check the system clock',
        fields,
      )
    } else if (!isBehind && this.isBehind) log.info('retention: caught up with the system clock')
    this.isBehind = isBehind
  }
}

/**
 * A time at which the system clock is wrong if it is earlier: a day before the retention clock, which goes on with the
 * monotonic clock. What gets an earlier time, perhaps at the start of a machine whose clock is not set yet, would expire at once.
 */
export async function earliestTime(sql: Sql, clock: Clock): Promise<() => number> {
  const [row] = await sql<{ now_ms: number }[]>`select now_ms from retention_clock`
  const offsetMs = (row?.now_ms ?? clock.now()) - DAY_MS - performance.now()
  return () => offsetMs + performance.now()
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString()
}
