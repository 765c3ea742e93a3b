import type { Clock } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import type { OwnedPartition } from '../partitions/partition.ts'

const LOADED_TIMEOUT_MS = 10_000

interface Barrier {
  /** ClickHouse has everything that was accepted by then, Unix milliseconds. */
  readonly throughMs: number
  readonly passed: Promise<void>
}

/** Waits until ClickHouse has everything that a partition had accepted by a time. One wait serves all alerts of a tick. */
export class Barriers {
  private readonly newest = new WeakMap<OwnedPartition, Barrier>()

  constructor(private readonly clock: Clock) {}

  /**
   * @param ms a time in the past, Unix milliseconds
   * @throws ApiError UNAVAILABLE when loading takes too long
   */
  passed(partition: OwnedPartition, ms: number): Promise<void> {
    const known = this.newest.get(partition)
    if (known !== undefined && known.throughMs >= ms) return known.passed
    const barrier = { throughMs: this.clock.now() - 1, passed: loaded(partition) }
    this.newest.set(partition, barrier)
    barrier.passed.catch(() => {
      if (this.newest.get(partition) === barrier) this.newest.delete(partition)
    })
    return barrier.passed
  }
}

async function loaded({ journal, sink }: OwnedPartition): Promise<void> {
  // No commit is running then, and later ones get later times.
  const release = await journal.hold()
  const { endSeq } = journal
  release()
  if (!(await sink.waitFor(endSeq, LOADED_TIMEOUT_MS)))
    throw new ApiError('UNAVAILABLE', `position ${endSeq} is not readable yet`)
}
