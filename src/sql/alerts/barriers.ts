import type { Clock } from '../../base/clock.ts'
import { ApiError } from '../../base/errors.ts'
import type { Loop } from '../../base/loops.ts'
import type { OwnedPartition } from '../../tenants/partitions/partition.ts'

const LOADED_TIMEOUT_MS = 10_000
/** A partition that could not be waited for rests this long. */
const RETRY_MS = 500

interface Barrier {
  /** ClickHouse has everything that was accepted by then, Unix milliseconds. */
  passedMs: number
  /** Its state is changing: until then only ticks up to `passedMs` can be evaluated. */
  isWaiting: boolean
  /** It rests until then, on a monotonic clock. */
  restsUntil: number
  isFailing: boolean
}

interface BarriersDeps {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Reports whether ClickHouse loads what the ticks need. */
  readonly loop: Loop
  /** A barrier has been passed, or it can be tried again. */
  readonly onChange: () => void
}

/**
 * Waits until ClickHouse has everything that a partition had accepted by a time. One wait serves all alerts of a tick, and
 * none of them holds a slot meanwhile: a partition that does not load delays only its own alerts.
 */
export class Barriers {
  private readonly all = new Map<OwnedPartition, Barrier>()

  constructor(private readonly deps: BarriersDeps) {}

  /** Forgets all partitions but these. */
  keep(owned: readonly OwnedPartition[]): void {
    const others = [...this.all.keys()].filter((partition) => !owned.includes(partition))
    if (others.length === 0) return
    for (const partition of others) this.all.delete(partition)
    this.report()
  }

  /** Ticks from this time on need not be looked for: they wait for the partition, Unix milliseconds. */
  limitOf(partition: OwnedPartition): number {
    const { passedMs, isWaiting, restsUntil } = this.of(partition)
    return isWaiting || performance.now() < restsUntil ? passedMs + 1 : this.deps.clock.now()
  }

  /** Whether ClickHouse has everything up to a past time, Unix milliseconds. If not, it begins to wait for that. */
  hasPassed(partition: OwnedPartition, ms: number): boolean {
    const barrier = this.of(partition)
    if (barrier.passedMs >= ms) return true
    if (!barrier.isWaiting) void this.wait(partition, barrier)
    return false
  }

  private of(partition: OwnedPartition): Barrier {
    const barrier = this.all.getOrInsertComputed(partition, () => ({
      passedMs: Number.NEGATIVE_INFINITY,
      isWaiting: false,
      restsUntil: 0,
      isFailing: false,
    }))
    // The clock has gone back: rows that are accepted now may get times that were past before.
    if (barrier.passedMs >= this.deps.clock.now()) barrier.passedMs = Number.NEGATIVE_INFINITY
    return barrier
  }

  private async wait(partition: OwnedPartition, barrier: Barrier): Promise<void> {
    const { clock, loop, signal, onChange } = this.deps
    barrier.isWaiting = true
    const throughMs = clock.now() - 1
    try {
      await loaded(partition)
      barrier.passedMs = throughMs
      const { isFailing } = barrier
      barrier.isFailing = false
      if (isFailing) this.report()
    } catch (error) {
      barrier.restsUntil = performance.now() + RETRY_MS
      barrier.isFailing = true
      if (!signal.aborted && this.all.has(partition)) loop.failed(error)
    }
    barrier.isWaiting = false
    onChange()
  }

  /** Alerts can be evaluated, unless a partition does not load. */
  report(): void {
    if (!this.all.values().some(({ isFailing }) => isFailing)) this.deps.loop.succeeded()
  }
}

/** Waits for a commit that is running: what has been accepted is acknowledged then, and later rows get later times. */
export async function committed({ journal }: Pick<OwnedPartition, 'journal'>): Promise<void> {
  const release = await journal.hold()
  release()
}

async function loaded({ journal, sink }: OwnedPartition): Promise<void> {
  await committed({ journal })
  const { endSeq } = journal
  if (!(await sink.waitFor(endSeq, LOADED_TIMEOUT_MS)))
    throw new ApiError('UNAVAILABLE', `position ${endSeq} is not readable yet`, { reason: 'not_loaded' })
}
