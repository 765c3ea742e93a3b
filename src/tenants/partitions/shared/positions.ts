import { assert } from '../../../base/assert.ts'
import type { Log } from '../../../base/log.ts'
import type { SinkPosition, SinkPositionStore } from '../../../stores/sink/position.ts'
import type { ClaimedRow, PartitionStore } from './tables.ts'

/**
 * The sink's position in Postgres, for the node that holds the claim. Once another node has taken over the partition,
 * nothing is stored any more. So an earlier owner can only repeat the batch that it had announced, with the same
 * deduplication token, which changes nothing; and it asks here before it completes a load, see `Sink`.
 */
export class ClusterSinkPosition implements SinkPositionStore {
  readonly announcedAgeMs: () => number
  private last: SinkPosition
  private isLost = false

  constructor(
    private readonly partitions: PartitionStore,
    private readonly claim: ClaimedRow,
  ) {
    this.last = claim.position
    this.announcedAgeMs = claim.announcedAgeMs
  }

  get(): SinkPosition {
    return this.last
  }

  async set(changes: Partial<SinkPosition>): Promise<void> {
    const position = { ...this.last, ...changes }
    const isStored = await this.partitions.setPosition(this.claim, position)
    assert(!isStored || !this.isLost, 'a claim that was taken over stores nothing more')
    this.isLost = !isStored
    if (this.isLost) throw new Error(`another node has taken over partition ${this.claim.partition}`)
    this.last = position
  }

  async close(): Promise<void> {}
}

const RETRY_MS = 250

/** The sink's position in a file, which Postgres follows a moment later, for processes that wait for rows in SQL. */
export class MirroredPosition implements SinkPositionStore {
  private mirroredSeq = -1
  private isMirroring = false
  private isClosed = false

  /** @param mirror stores a position in Postgres; returns false once no process needs it any more */
  constructor(
    private readonly file: SinkPositionStore,
    private readonly mirror: (position: SinkPosition) => Promise<boolean>,
    private readonly log: Log,
  ) {
    void this.mirrorAll()
  }

  announcedAgeMs(): number {
    return this.file.announcedAgeMs()
  }

  get(): SinkPosition {
    return this.file.get()
  }

  async set(changes: Partial<SinkPosition>): Promise<void> {
    await this.file.set(changes)
    void this.mirrorAll()
  }

  async close(): Promise<void> {
    this.isClosed = true
    await this.file.close()
  }

  /** The file decides, so a failure does not concern the sink. */
  private async mirrorAll(): Promise<void> {
    if (this.isMirroring) return
    this.isMirroring = true
    while (!this.isClosed && this.get().loadedSeq !== this.mirroredSeq) {
      const position = this.get()
      try {
        this.isClosed ||= !(await this.mirror(position))
        this.mirroredSeq = position.loadedSeq
      } catch (error) {
        this.log.info('sink: cannot store the position in Postgres; trying again', { error })
        await Bun.sleep(RETRY_MS)
      }
    }
    this.isMirroring = false
  }
}
