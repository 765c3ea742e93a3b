import { ApiError } from '../../base/errors.ts'
import type { LoadProgress } from '../../sink/sink.ts'
import { checkJournals, type FeedSource, oldestUnloadedOf, type Partition, type Partitions } from '../partition.ts'
import type { ClusterFeeds } from './feeds.ts'
import type { OpenPartition, Ownership } from './ownership.ts'
import { RemoteLoad } from './remote.ts'
import type { ClusterStore } from './store.ts'

export interface ClusterPartitionsDeps {
  readonly count: number
  readonly store: ClusterStore
  readonly ownership: Ownership
  readonly feeds: ClusterFeeds
  /** Whether this node reaches the logs. */
  readonly isConnected: () => boolean
}

const FLUSH_POLL_MS = 20
const FLUSH_MS = 10_000
/** What owners reported longer ago says nothing. */
const REPORT_VALID_MS = 30_000

/** The partitions of a cluster as one node sees them. */
export class ClusterPartitions implements Partitions {
  readonly isOnlyOne = false
  private readonly all: readonly ClusterPartition[]

  constructor(private readonly deps: ClusterPartitionsDeps) {
    this.all = Array.from({ length: deps.count }, (_, id) => new ClusterPartition(id, deps))
  }

  of({ partition }: { readonly partition: number }): Partition {
    return this.all[partition]
  }

  owned(): readonly OpenPartition[] {
    return this.deps.ownership.all()
  }

  async check(): Promise<void> {
    if (!this.deps.isConnected()) throw new ApiError('UNAVAILABLE', 'NATS cannot be reached')
    await checkJournals(this.owned())
  }

  openFeeds(): readonly FeedSource[] {
    return this.deps.feeds.all()
  }

  async oldestUnloaded(): Promise<number | null> {
    const { ownership, store } = this.deps
    const rows = await store.partitions()
    const times = await Promise.all(
      rows.map(async ({ partition, oldestUnloadedMs, reportAgeMs, endSeq }) => {
        const owned = ownership.get(partition)
        if (owned !== undefined) return oldestUnloadedOf(owned)
        // A partition that nobody has ever written.
        if (reportAgeMs === null && endSeq === 0) return null
        return reportAgeMs === null || reportAgeMs > REPORT_VALID_MS ? 0 : oldestUnloadedMs
      }),
    )
    const known = times.filter((time) => time !== null)
    return known.length === 0 ? null : Math.min(...known)
  }
}

class ClusterPartition implements Partition {
  private readonly remote: RemoteLoad

  constructor(
    readonly id: number,
    private readonly deps: ClusterPartitionsDeps,
  ) {
    const { store, ownership, feeds } = deps
    this.remote = new RemoteLoad({
      store,
      partition: id,
      known: () => {
        const row = ownership.partitions[id]
        return { epoch: row.epoch, loadedSeq: row.position.loadedSeq }
      },
      endSeq: () => feeds.endSeq(id),
    })
  }

  get owned(): OpenPartition | undefined {
    return this.deps.ownership.get(this.id)
  }

  get loading(): LoadProgress {
    return this.owned?.sink ?? this.remote
  }

  feeds(): Promise<FeedSource> {
    return this.deps.feeds.of(this.id)
  }

  /** Waits until the owner has appended what the outbox has of this partition. */
  async flushChanges(): Promise<void> {
    const { store, feeds } = this.deps
    if (this.owned !== undefined) await this.owned.relay.flush()
    else {
      const last = await store.lastOutboxId(this.id)
      const deadline = performance.now() + FLUSH_MS
      while (last > 0 && (await store.hasOutboxRow(this.id, last))) {
        if (performance.now() > deadline)
          throw new ApiError('UNAVAILABLE', 'recent changes cannot be read yet; try again')
        await Bun.sleep(FLUSH_POLL_MS)
      }
    }
    await feeds.endSeq(this.id)
  }
}
