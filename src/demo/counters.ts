import { LatencyHistogram } from './latency.ts'

export type RunState = 'running' | 'completed' | 'failed'

/**
 * What the service has acknowledged so far, and what it took. Only sums, so that a demo may run for days; ids go into
 * checksums that SQL can compute too.
 */
export class Counters {
  readonly runs: Record<RunState, number> = { running: 0, completed: 0, failed: 0 }
  runIdSum = 0
  events = 0
  eventIdSum = 0
  /** Tasks by the status that was acknowledged last. */
  readonly tasks = new Map<string, number>()
  /** From request to acknowledgement, of calls that report events. */
  readonly ackLatency = new LatencyHistogram()
  retries = 0
  /** Calls that the service refused; there should be none. */
  refused = 0
  lastRefusal: string | undefined
  /** Calls that were given up without an answer: the service may or may not have carried them out. */
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

  taskMoved(from: string | undefined, to: string): void {
    if (from !== undefined) this.tasks.set(from, this.tasks.get(from)! - 1)
    this.tasks.set(to, (this.tasks.get(to) ?? 0) + 1)
  }
}

/** The same as `CRC32` of ClickHouse. */
function checksum(id: string): number {
  return Bun.hash.crc32(id)
}
