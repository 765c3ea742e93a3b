import { LatencyHistogram } from './latency.ts'

type RunState = 'running' | 'completed' | 'failed'

/**
 * Counts what the service has acknowledged. Only totals are kept, so that a demo can run for days; ids are added to
 * checksums that SQL can compute, too.
 */
export class Counters {
  readonly runs: Record<RunState, number> = { running: 0, completed: 0, failed: 0 }
  runIdSum = 0
  events = 0
  eventIdSum = 0
  /** Tasks by the last acknowledged status. */
  readonly tasks = new Map<string, number>()
  /** From request to acknowledgement, for calls that report events. */
  readonly ackLatency = new LatencyHistogram()
  retries = 0
  /** Calls that the service rejected; there should be none. */
  rejected = 0
  lastRejection: string | undefined
  /** Calls without a response: the service may or may not have executed them. */
  unconfirmed = 0

  get runsStarted(): number {
    return this.runs.running + this.runs.completed + this.runs.failed
  }

  runStarted(runId: string): void {
    this.runs.running++
    this.runIdSum += checksum(runId)
  }

  runEnded(state: 'completed' | 'failed'): void {
    this.runs.running--
    this.runs[state]++
  }

  eventsAcknowledged(ids: readonly string[]): void {
    this.events += ids.length
    for (const id of ids) this.eventIdSum += checksum(id)
  }

  taskChanged(from: string | undefined, to: string): void {
    if (from !== undefined) this.tasks.set(from, this.tasks.get(from)! - 1)
    this.tasks.set(to, (this.tasks.get(to) ?? 0) + 1)
  }
}

/** The same as ClickHouse's `CRC32`. */
function checksum(id: string): number {
  return Bun.hash.crc32(id)
}
