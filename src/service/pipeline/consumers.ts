import { ClaimIndex, eventBoundsOf, SCORE_BOUNDS } from '../../activity/claims/claim-index.ts'
import { createClaimSource, EVENT_IDS, SCORE_IDS } from '../../activity/claims/claim-source.ts'
import { RunCounts } from '../../activity/runs/counts.ts'
import { startRecounts } from '../../activity/runs/recount.ts'
import { startRunStatistics } from '../../activity/runs/statistics.ts'
import { startUsageChanges } from '../../activity/runs/usage-changes.ts'
import { createPrices } from '../../base/conventions/prices.ts'
import type { FeedSource } from '../../feeds/live/feed-source.ts'
import { createHistory, withGaps } from '../../feeds/live/history.ts'
import { Hub } from '../../feeds/live/hub.ts'
import { createSessionLookUp } from '../../feeds/live/run-sessions.ts'
import type { JournalReader } from '../../stores/journal/journal.ts'
import { startOutboxRelay } from '../../stores/journal/outbox-relay.ts'
import { RelayedRows } from '../../stores/journal/outbox-rows.ts'
import { loadIntervalMs, Sink, tokenMs } from '../../stores/sink/sink.ts'
import type { SourceLifetime } from '../../tenants/partitions/partition.ts'
import { refuseErased } from '../retention/erase-activity.ts'
import { type RetentionFloors, withinRetention } from '../retention/retention-floors.ts'
import { clearRows } from '../store-marks/columnar-marks.ts'
import type { ServiceContext } from './context.ts'
import type { PipelineContext } from './pipeline.ts'
import type { AnyClaim, Consumers, PartitionLog, Topology } from './topology.ts'

/** How long a stop waits for the last rows to be loaded; the next owner or start loads the rest. */
const LAST_LOAD_MS = 1_500

/** An open partition, with its log. */
interface OpenedPartition<Log> extends Consumers {
  readonly log: Log
  /** Completes accepted appends and stops. @param isLost whether another process may own the partition already */
  stop(isLost: boolean): Promise<void>
}

/**
 * Opens the log of a partition and starts the sink and the run statistics, which consume it, and the outbox relay, which
 * appends to it. A failure closes everything that was opened.
 * @param onUsage called after each commit of run statistics with usage
 */
export async function openPartition<Log extends PartitionLog, Claimed extends AnyClaim>(
  { config, sql, columnar, log, loops, metrics }: ServiceContext,
  topology: Topology<Log, Claimed>,
  claimed: Claimed,
  onLost: (reason: string) => void,
  onUsage: () => void,
): Promise<OpenedPartition<Log>> {
  await using opened = new AsyncDisposableStack()
  const { partition: id, generation } = claimed
  const { setAside } = metrics
  const { count, isShared } = topology
  const partitionLog = await topology.openLog(claimed, opened, onLost)
  const { journal, position, columnarMark } = partitionLog
  await refuseErased(sql, { id, journal })
  const sink = new Sink({
    journal,
    client: columnar,
    clear: (afterSeq, throughSeq, ...rest) => clearRows(columnar, journal, { afterSeq, throughSeq }, ...rest),
    position,
    log,
    loops,
    onLoaded: metrics.sinkLoaded,
    intervalMs: loadIntervalMs(count),
    tokenMs: isShared ? tokenMs(count) : undefined,
  })
  let lastLoadMs = 0
  opened.defer(() => sink.stop(lastLoadMs))
  const relay = startOutboxRelay({
    rows: new RelayedRows(sql, isShared ? id : undefined),
    journal,
    log,
    loops,
    setAside,
  })
  opened.defer(() => relay.stop())
  const prices = createPrices(config.hosted.modelPrices)
  const statistics = await startRunStatistics({
    counts: new RunCounts(sql),
    journal,
    log,
    loops,
    prices,
    setAside,
    onUsage,
  })
  opened.defer(() => statistics.stop())
  opened.defer(startRecounts({ sql, columnar, loading: sink, partition: id, prices, log, loops, onUsage }))
  const stored = { journal, loading: sink, client: columnar, columnarMark }
  const ids = new ClaimIndex(createClaimSource(EVENT_IDS, stored), eventBoundsOf(count))
  const scoreIds = new ClaimIndex(createClaimSource(SCORE_IDS, stored), SCORE_BOUNDS)
  const consumers: Consumers = { id, generation, journal, sink, relay, statistics, ids, scoreIds }
  await partitionLog.watch?.(consumers, opened)
  const resources = opened.move()
  return {
    ...consumers,
    log: partitionLog,
    stop(isLost) {
      lastLoadMs = isLost ? 0 : LAST_LOAD_MS
      return resources.disposeAsync()
    },
  }
}

/** Starts the loop that writes changes of usage to the outbox. @returns a function to call after each commit of run statistics with usage */
export function startUsage({ sql, log, loops, metrics, teardown }: ServiceContext, onChange: () => void): () => void {
  const usage = startUsageChanges({ sql, log, loops, setAside: metrics.setAside, onChange })
  teardown.add('run usage', () => usage.stop())
  return usage.wake
}

/** Starts the hub, which delivers a log to open feeds. */
export function openFeedSource(
  { config, sql, columnar, log, loops, ring }: PipelineContext,
  journal: JournalReader,
  retentionFloors: RetentionFloors,
  life: SourceLifetime,
): FeedSource {
  const lookUpSessions = createSessionLookUp(sql)
  const stored = createHistory({ columnar, epoch: journal.epoch, lookUpSessions })
  const history = withinRetention(withGaps(stored, journal), retentionFloors)
  const hub = new Hub({
    journal,
    history,
    lookUpSessions,
    log,
    loops,
    filtersPerWorkspace: config.feeds.filtersPerWorkspace,
    areRevocationsKnown: () => ring.areRevocationsKnown(),
  })
  return { journal, hub, retentionFloorOf: (workspaceId) => retentionFloors.known(workspaceId), ...life }
}
