import type { Sql } from './connect.ts'

/** The last sign of life of a process that shares the database, as its row has it. */
export interface Sign {
  readonly instanceId: string
  /** Another number with each sign. */
  readonly beats: number
  /** How long the sign counts, in milliseconds; null: until the row is deleted. */
  readonly leaseMs: number | null
}

interface Seen extends Sign {
  lookedAtMs: number
  /** How long the sign has been seen, on the monotonic clock. */
  silentMs: number
}

/** The most that two monotonic clocks may drift apart during one lease. */
const DRIFT_MS = 100

/**
 * Which of the processes that share the database are gone: those whose sign has not changed for as long as it counts. That is
 * measured on the monotonic clock of this process, from when it first saw the sign. No system clock matters, neither here nor
 * there nor of Postgres. Between two looks at most half of a lease counts: after an outage of the database, or of this process,
 * the others have time to return.
 */
export class Liveness {
  private seen = new Map<string, Seen>()

  constructor(private readonly now = () => performance.now()) {}

  /** Records the signs of all other processes, as just read. */
  look(signs: readonly Sign[]): void {
    const now = this.now()
    const before = this.seen
    this.seen = new Map()
    for (const { instanceId, beats, leaseMs } of signs) {
      const last = before.get(instanceId)
      const passedMs = Math.min(now - (last?.lookedAtMs ?? now), Math.max(DRIFT_MS, (leaseMs ?? 0) / 2))
      const silentMs = last?.beats === beats ? last.silentMs + passedMs : 0
      this.seen.set(instanceId, { instanceId, beats, leaseMs, lookedAtMs: now, silentMs })
    }
  }

  isGone(instanceId: string, forMs = 0): boolean {
    const { silentMs, leaseMs } = this.seen.get(instanceId) ?? { silentMs: 0, leaseMs: null }
    return leaseMs !== null && silentMs > leaseMs + DRIFT_MS + forMs
  }

  /** The last signs of the processes that are gone, for {@link isGone}. @param forMs how long they have been gone at least */
  gone(forMs = 0): readonly Sign[] {
    return [...this.seen.values()].filter(({ instanceId }) => this.isGone(instanceId, forMs))
  }
}

/**
 * SQL: whether a row of such a table belongs to a process that is gone. One that has returned since has another number.
 * @param row its name in the statement
 */
export function isGone(sql: Sql, row: string, gone: readonly Sign[]) {
  return sql`(${sql(row)}.instance_id, ${sql(row)}.beats) in (
    select * from unnest(${gone.map(({ instanceId }) => instanceId)}::uuid[], ${gone.map(({ beats }) => beats)}::bigint[]))`
}
