import type { SinkPosition, SinkPositionStore } from '../../sink/position.ts'
import type { Claim, ClusterStore } from './store.ts'

/**
 * The sink's position in Postgres, for the node that holds the claim. Once another node has taken the partition over,
 * nothing is stored any more. So an earlier owner can only repeat the batch that it had announced, with the same
 * deduplication token, which changes nothing.
 */
export class ClusterSinkPosition implements SinkPositionStore {
  constructor(
    private readonly store: ClusterStore,
    private readonly claim: Claim,
    private last: SinkPosition,
  ) {}

  get(): SinkPosition {
    return this.last
  }

  async set(changes: Partial<SinkPosition>): Promise<void> {
    const position = { ...this.last, ...changes }
    if (!(await this.store.setPosition(this.claim, position)))
      throw new Error(`another node has taken partition ${this.claim.partition} over`)
    this.last = position
  }

  async close(): Promise<void> {}
}
