import type { NatsConnection } from '@nats-io/transport-node'
import { NIL_UUID } from '../../base/ids.ts'
import { lastTick } from '../../sql/alerts/rows.ts'
import { type Gap, newEpoch } from '../../stores/journal/journal.ts'
import { connectNats, watchConnection } from '../../stores/journal/nats/connect.ts'
import { openNatsJournal } from '../../stores/journal/nats/journal.ts'
import { openNatsReader } from '../../stores/journal/nats/reader.ts'
import { isOldNats } from '../../stores/journal/nats/version.ts'
import { type FoundJournal, lastCountedSeq, type StartDecision } from '../../stores/journal/start.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import { ClusterSinkPosition } from '../../tenants/partitions/shared/positions.ts'
import type { Signal, SignalBus } from '../../tenants/partitions/shared/signals.ts'
import type { ClaimedRow, PartitionRow, PartitionStore } from '../../tenants/partitions/shared/tables.ts'
import type { Config } from '../config/config.ts'
import { earliestTime } from '../retention/retention-clock.ts'
import { highestSeq } from '../store-marks/columnar-marks.ts'
import { FoundGaps } from '../store-marks/found-gaps.ts'
import { noteGap } from '../store-marks/gaps.ts'
import type { Incident } from '../store-marks/store-marks.ts'
import type { ServiceContext } from './context.ts'
import type { Pipeline, PipelineContext } from './pipeline.ts'
import { openTables, partitionLimits, startSharedPipeline } from './shared.ts'
import type { PartitionLog } from './topology.ts'

const SIGNAL_PREFIX = 'journal.signal.'
/** In a cluster no marks are stored in ClickHouse: how far a partition is loaded is stored in Postgres. */
const NO_MARK = { journal: NIL_UUID, beat: 0 }

/** Joins the cluster: the journal's partitions are replicated by NATS JetStream, and this node owns a share of them. */
export async function startClusterPipeline(
  context: PipelineContext,
  config: NonNullable<Config['cluster']>,
): Promise<Pipeline> {
  const { columnar, log, progress, teardown } = context
  const nc = await progress.during('connecting to NATS', () => connectNats(config.natsUrls))
  teardown.add('NATS', () => nc.close())
  const version = nc.info?.version ?? ''
  if (isOldNats(version))
    log.warn('NATS is older than 2.10: it can lose acknowledged messages when a server is killed', { version })
  const tables = openTables(context)
  const { partitions } = tables
  const count = await partitions.create({
    count: context.config.partitions,
    home: null,
    epochOf: newEpoch,
    highestSeq: () => highestSeq(columnar),
  })
  const incidents: Incident[] = []
  const nats = { incidents, nc, replicas: config.natsReplicas, partitions, ...partitionLimits(context.config, count) }
  return startSharedPipeline(context, {
    count,
    isShared: true,
    tables,
    bus: natsSignals(nc),
    secret: config.secret,
    isConnected: watchConnection(nc),
    urlOf: (listeningAt) => config.instanceUrl ?? listeningAt,
    openLog: (claimed, opened, onLost) => openNatsLog(context, { ...nats, claimed, onLost }, opened),
    async openReader(partition, onEpoch) {
      const row = (await partitions.all())[partition]
      return openNatsReader({ ...streamOf(nc, row), onEpoch, log })
    },
    incidents: () => incidents,
    outdated: new Promise(() => {}),
  })
}

interface NatsLogOptions {
  readonly nc: NatsConnection
  readonly replicas: number
  readonly partitions: PartitionStore
  readonly maxBytes: number
  readonly keepBytes: number
  readonly claimed: ClaimedRow
  readonly onLost: (reason: string) => void
  /** Gets an entry when a partition begins a new epoch. */
  readonly incidents: Incident[]
}

/** Opens the stream of a partition that this node has claimed. */
async function openNatsLog(
  { sql, columnar, clock, log, metrics }: ServiceContext,
  { nc, partitions, claimed, incidents, ...options }: NatsLogOptions,
  opened: AsyncDisposableStack,
): Promise<PartitionLog> {
  const { partition, generation } = claimed
  const store = async ({ afterSeq, throughSeq, loadedSeq }: Gap, all: readonly Gap[]) => {
    const lost = { epoch: claimed.epoch, afterSeq: Math.max(afterSeq, loadedSeq), throughSeq, reason: 'journal' }
    await Promise.all([partitions.setGaps(claimed, all), noteGap({ sql, columnar, now: clock.now() }, lost)])
  }
  const gaps = new FoundGaps({ store, partition, log })
  opened.defer(() => gaps.stop())
  const journal = await openNatsJournal({
    ...streamOf(nc, claimed),
    ...options,
    generation,
    decideStart: (found) => decideStart(sql, found, claimed),
    async beginEpoch(firstSeq) {
      const epoch = { epoch: newEpoch(), firstSeq }
      await partitions.beginEpoch(claimed, [...claimed.epochs, epoch])
      const detail = `partition ${partition} begins a new epoch at position ${firstSeq}: its stream has lost its newest rows`
      incidents.push({ store: 'journal', noticedAt: clock.now(), detail })
      metrics.storeSetBack('journal')
      log.error(`cluster: ${detail}`, { partition, epoch: epoch.epoch, before: claimed.epoch })
      return epoch
    },
    onGap: (...found) => gaps.add(...found),
    clock,
    earliest: await earliestTime(sql, clock),
    log,
    onCommit: metrics.journalCommitted,
  })
  opened.defer(() => journal.close())
  const position = new ClusterSinkPosition(partitions, claimed)
  return { journal, position, columnarMark: () => NO_MARK }
}

/**
 * Decides where the positions of a partition continue: after every position that any process is known to have seen. A log
 * that ends earlier has lost rows or was set back, so it begins a new epoch, and so does one whose newest messages are lost.
 */
async function decideStart(
  sql: Sql,
  { epoch, endSeq, isEndLost = false }: FoundJournal,
  { position: { loadedSeq, inFlightSeq }, endSeq: reportedSeq }: PartitionRow,
): Promise<StartDecision> {
  const afterSeq = Math.max(loadedSeq, inFlightSeq, reportedSeq, await lastCountedSeq(sql, epoch))
  return { afterSeq, loadedSeq, newEpoch: afterSeq > endSeq || isEndLost, decidedMs: await lastTick(sql) }
}

function streamOf(nc: NatsConnection, { partition, sealKey, epochs, gaps }: PartitionRow) {
  return { nc, stream: `journal_${partition}`, subject: `journal.${partition}`, sealKey, epochs, gaps }
}

/** Signals as plain NATS messages, which are not stored. */
function natsSignals(nc: NatsConnection): SignalBus {
  return {
    publish(signal) {
      if (nc.isClosed()) return
      nc.publish(SIGNAL_PREFIX + signal)
    },
    listen(listener) {
      nc.subscribe(`${SIGNAL_PREFIX}*`, {
        callback: (error, { subject }) => {
          if (error === null) listener(subject.slice(SIGNAL_PREFIX.length) as Signal)
        },
      })
    },
  }
}
