import { sleep } from '../../base/abort.ts'
import type { Log } from '../../base/log.ts'
import type { Gap } from '../../stores/journal/journal.ts'

interface FoundGapsDeps {
  /** Storing a gap again changes nothing. @param all that are known, this one included */
  readonly store: (gap: Gap, all: readonly Gap[]) => Promise<void>
  readonly partition: number
  readonly log: Log
  /** Pause after the first failure; it doubles with each. */
  readonly retryMs?: number
}

const RETRY_MS = 100
const RETRY_MAX_MS = 5_000

/** The gaps that readers of a log find, each stored until the stores have it, in order. */
export class FoundGaps {
  private readonly waiting: Gap[] = []
  private all: readonly Gap[] = []
  private storing: Promise<void> | undefined
  private readonly stopping = new AbortController()

  constructor(private readonly deps: FoundGapsDeps) {}

  add(gap: Gap, all: readonly Gap[]): void {
    this.waiting.push(gap)
    this.all = all
    this.storing ??= this.storeAll()
  }

  /** What is not stored yet is found again by the next owner. */
  stop(): void {
    this.stopping.abort()
  }

  private async storeAll(): Promise<void> {
    const { store, partition, log, retryMs = RETRY_MS } = this.deps
    const { signal } = this.stopping
    let pauseMs = retryMs
    for (let gap = this.waiting[0]; gap !== undefined && !signal.aborted; gap = this.waiting[0])
      try {
        await store(gap, this.all)
        this.waiting.shift()
        pauseMs = retryMs
      } catch (error) {
        log.error('cluster: cannot store a gap; trying again', { partition, error })
        await sleep(pauseMs, signal)
        pauseMs = Math.min(pauseMs * 2, RETRY_MAX_MS)
      }
    this.storing = undefined
  }
}
