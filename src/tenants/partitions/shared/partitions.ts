import { ApiError } from '../../../base/errors.ts'
import { isOutboxDrained } from '../../../stores/journal/outbox-rows.ts'
import type { Sql } from '../../../stores/postgres/connect.ts'
import type { LoadProgress } from '../../../stores/sink/sink.ts'
import { checkJournals, oldestUnloadedOf, type Partition, type Partitions } from '../partition.ts'
import type { SharedFeeds } from './feeds.ts'
import type { OpenPartition, Ownership } from './ownership.ts'
import type { PartitionStore } from './tables.ts'

interface SharedPartitionsDeps {
  readonly count: number
  readonly sql: Sql
  readonly rows: PartitionStore
  readonly ownership: Ownership
  readonly feeds: Pick<SharedFeeds<never>, 'endSeq'>
  /** Whether this node reaches the logs. */
  readonly isConnected: () => boolean
}

const FLUSH_MS = 10_000
const POLL_MS = 25
/** An older report is ignored: the state is then unknown. */
const REPORT_VALID_MS = 30_000

/** The partitions that several processes share, as one of them sees them. */
export class SharedPartitions implements Partitions {
  readonly isOnlyOne = false
  private readonly all: readonly SharedPartition[]

  constructor(private readonly deps: SharedPartitionsDeps) {
    this.all = Array.from({ length: deps.count }, (_, id) => new SharedPartition(id, deps))
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

  async oldestUnloaded(): Promise<number | null> {
    const { ownership, rows } = this.deps
    const times = await Promise.all(
      (await rows.all()).map(async ({ partition, oldestUnloadedMs, reportAgeMs, endSeq }) => {
        const owned = ownership.get(partition)
        if (owned !== undefined) return oldestUnloadedOf(owned)
        // A partition that no process has ever written.
        if (reportAgeMs === null && endSeq === 0) return null
        return reportAgeMs === null || reportAgeMs > REPORT_VALID_MS ? 0 : oldestUnloadedMs
      }),
    )
    const known = times.filter((time) => time !== null)
    return known.length === 0 ? null : Math.min(...known)
  }
}

class SharedPartition implements Partition {
  private readonly remote: LoadProgress

  constructor(
    readonly id: number,
    private readonly deps: SharedPartitionsDeps,
  ) {
    this.remote = remoteLoad(id, deps)
  }

  get owned(): OpenPartition | undefined {
    return this.deps.ownership.get(this.id)
  }

  get loading(): LoadProgress {
    return this.owned === undefined ? this.remote : ownLoad(this.owned, this.deps.rows, this.remote)
  }

  /** Waits until the owner has appended the outbox rows of this partition. */
  async flushChanges(): Promise<void> {
    const { sql, feeds } = this.deps
    if (this.owned !== undefined) await this.owned.relay.flush()
    else if (!(await isOutboxDrained(sql, this.id, FLUSH_MS)))
      throw new ApiError('UNAVAILABLE', 'recent changes cannot be read yet; try again')
    await feeds.endSeq(this.id)
  }
}

/**
 * How far a partition of this node is loaded. Another node may have taken it over a moment ago and acknowledged rows since,
 * which this process learns with its next round: only then is the own log not everything.
 */
function ownLoad({ id, generation, sink }: OpenPartition, rows: PartitionStore, remote: LoadProgress): LoadProgress {
  return {
    epoch: sink.epoch,
    loadedSeq: () => sink.loadedSeq(),
    waitFor: (seq, timeoutMs) => sink.waitFor(seq, timeoutMs),
    async waitForAll(timeoutMs) {
      const isOurs = await rows.hasGeneration(id, generation)
      return (isOurs ? sink : remote).waitForAll(timeoutMs)
    },
  }
}

/** How far a partition of another node is loaded into ClickHouse, as its owner stores it in Postgres. */
function remoteLoad(id: number, { rows, ownership, feeds }: SharedPartitionsDeps): LoadProgress {
  async function waitFor(seq: number, timeoutMs: number): Promise<boolean> {
    const deadline = performance.now() + timeoutMs
    for (;;) {
      if ((await rows.loadedSeq(id)) >= seq) return true
      if (performance.now() > deadline) return false
      await Bun.sleep(POLL_MS)
    }
  }
  return {
    get epoch() {
      return ownership.partitions[id].epoch
    },
    loadedSeq: () => ownership.partitions[id].position.loadedSeq,
    waitFor,
    waitForAll: async (timeoutMs) => waitFor(await feeds.endSeq(id), timeoutMs),
  }
}
