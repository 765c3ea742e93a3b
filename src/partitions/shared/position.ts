import { assert } from '../../base/assert.ts'
import type { SinkPosition, SinkPositionStore } from '../../sink/position.ts'
import type { ClaimedRow, PartitionStore } from './partition-rows.ts'

/**
 * The sink's position in Postgres, for the node that holds the claim. Once another node has taken over the partition,
 * nothing is stored any more. So an earlier owner can only repeat the batch that it had announced, with the same
 * deduplication token, which changes nothing.
 */
export class ClusterSinkPosition implements SinkPositionStore {
  private last: SinkPosition
  private isLost = false

  constructor(
    private readonly partitions: PartitionStore,
    private readonly claim: ClaimedRow,
  ) {
    this.last = claim.position
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
