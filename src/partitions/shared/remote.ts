import type { LoadProgress } from '../../sink/sink.ts'
import type { PartitionStore } from './partition-rows.ts'

interface RemoteLoadDeps {
  readonly partitions: Pick<PartitionStore, 'loadedSeq'>
  readonly partition: number
  /** The epoch and position as of the last round. */
  readonly known: () => { readonly epoch: string; readonly loadedSeq: number }
  /** Reads the current end of the log. */
  readonly endSeq: () => Promise<number>
}

const POLL_MS = 25

/** How far a partition of another node is loaded into ClickHouse, as its owner stores it in Postgres. */
export class RemoteLoad implements LoadProgress {
  constructor(private readonly deps: RemoteLoadDeps) {}

  get epoch(): string {
    return this.deps.known().epoch
  }

  loadedSeq(): number {
    return this.deps.known().loadedSeq
  }

  async waitFor(seq: number, timeoutMs: number): Promise<boolean> {
    const deadline = performance.now() + timeoutMs
    for (;;) {
      if ((await this.deps.partitions.loadedSeq(this.deps.partition)) >= seq) return true
      if (performance.now() > deadline) return false
      await Bun.sleep(POLL_MS)
    }
  }

  async waitForAll(timeoutMs: number): Promise<boolean> {
    return this.waitFor(await this.deps.endSeq(), timeoutMs)
  }
}
