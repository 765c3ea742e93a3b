import { EventIdIndex } from '../../events/id-index.ts'
import { createEventIdSource, type KnownMark } from '../../events/id-source.ts'
import type { Journal, JournalReader } from '../../journal/journal.ts'
import { startOutboxRelay } from '../../journal/outbox-relay.ts'
import type { FeedSource } from '../../live/feed-source.ts'
import { withGaps } from '../../live/gaps.ts'
import { createHistory } from '../../live/history.ts'
import { Hub } from '../../live/hub.ts'
import { createPrices } from '../../model/prices.ts'
import type { SourceLifetime } from '../../partitions/feeds.ts'
import type { OwnedPartition } from '../../partitions/partition.ts'
import { type RetentionWatermarks, withinRetention } from '../../retention/retention-watermarks.ts'
import { startRunStatistics } from '../../runs/statistics.ts'
import { startUsageChanges } from '../../runs/usage-changes.ts'
import type { SinkPositionStore } from '../../sink/position.ts'
import { loadIntervalMs, Sink } from '../../sink/sink.ts'
import { clearRows } from '../../store-marks/columnar-marks.ts'
import type { ServiceContext } from '../context.ts'
import type { PipelineContext } from './pipeline.ts'

/** A log that this process writes, and what its consumers need. */
export interface ConsumedLog {
  readonly id: number
  readonly generation: number
  readonly journal: Journal
  readonly position: SinkPositionStore
  readonly columnarMark: () => KnownMark
  /** How many partitions there are. */
  readonly count: number
  /** Whether other processes own some of them, and relay their part of the outbox. */
  readonly isShared: boolean
  /** Called after each commit of run statistics with usage. */
  readonly onUsage: () => void
  /** How long a stop waits for the last rows to be loaded; the next owner or start loads the rest. */
  readonly lastLoadMs: () => number
}

export interface Consumers extends OwnedPartition {
  readonly sink: Sink
  readonly ids: EventIdIndex
}

/**
 * Starts the sink and the run statistics, which consume a log, and the outbox relay, which appends to it.
 * @param opened gets how they are stopped
 */
export async function startConsumers(
  { config, sql, columnar, log, loops, metrics }: ServiceContext,
  consumed: ConsumedLog,
  opened: AsyncDisposableStack,
): Promise<Consumers> {
  const { id, generation, journal, position, columnarMark, count, isShared, onUsage, lastLoadMs } = consumed
  const sink = new Sink({
    journal,
    client: columnar,
    clear: (afterSeq, throughSeq, signal) => clearRows(columnar, journal, { afterSeq, throughSeq }, signal),
    position,
    log,
    loops,
    onLoaded: metrics.sinkLoaded,
    intervalMs: loadIntervalMs(count),
  })
  opened.defer(() => sink.stop(lastLoadMs()))
  const relay = startOutboxRelay({ sql, journal, partition: isShared ? id : undefined, log, loops })
  opened.defer(() => relay.stop())
  const prices = createPrices(config.hosted.modelPrices)
  const statistics = await startRunStatistics({ sql, journal, log, loops, prices, onUsage })
  opened.defer(() => statistics.stop())
  const ids = new EventIdIndex(createEventIdSource({ loading: sink, client: columnar, columnarMark }))
  return { id, generation, journal, sink, relay, statistics, ids }
}

/** Starts the loop that shows changes of usage. @returns a function to call after each commit of run statistics with usage */
export function startUsage({ sql, log, loops, teardown }: ServiceContext, onChange: () => void): () => void {
  const usage = startUsageChanges({ sql, log, loops, onChange })
  teardown.add('run usage', () => usage.stop())
  return usage.poke
}

/** Starts the hub, which delivers a log to open feeds. */
export function openFeedSource(
  { config, columnar, log, loops, ring }: PipelineContext,
  journal: JournalReader,
  retentionWatermarks: RetentionWatermarks,
  life: SourceLifetime,
): FeedSource {
  const stored = createHistory({ columnar, epoch: journal.epoch })
  const history = withinRetention(withGaps(stored, journal), retentionWatermarks)
  const hub = new Hub({
    ...{ journal, history, log, loops },
    filtersPerWorkspace: config.feeds.filtersPerWorkspace,
    areRevocationsKnown: () => ring.areRevocationsKnown(),
  })
  return { journal, hub, retentionWatermarkOf: (workspaceId) => retentionWatermarks.known(workspaceId), ...life }
}
