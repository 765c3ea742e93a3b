import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Penalties } from '../../analytics/caps.ts'
import type { Clock } from '../../base/clock.ts'
import type { DataDir } from '../../base/data-dir.ts'
import type { Log } from '../../base/log.ts'
import type { Loops } from '../../base/loops.ts'
import type { MetricsText } from '../../base/metrics.ts'
import type { Progress } from '../../base/progress.ts'
import { StartError } from '../../base/start-error.ts'
import type { Teardown } from '../../base/teardown.ts'
import type { Config } from '../../config/config.ts'
import { createPrices } from '../../conventions/prices.ts'
import { EventIdIndex } from '../../events/id-index.ts'
import { createEventIdSource, type KnownMark } from '../../events/id-source.ts'
import type { Journal, JournalReader } from '../../journal/journal.ts'
import { type LocalJournal, openLocalJournal } from '../../journal/local/journal.ts'
import { startOutboxRelay } from '../../journal/outbox-relay.ts'
import { decideStart, lastStoredSeq } from '../../journal/start.ts'
import { type Forwarder, noForwarding } from '../../keys/forward.ts'
import type { KeyRing } from '../../keys/key-ring.ts'
import { withGaps } from '../../live/gaps.ts'
import { createHistory } from '../../live/history.ts'
import { Hub } from '../../live/hub.ts'
import type { FeedSource, OwnedPartition, Partitions } from '../../partitions/partition.ts'
import type { Peers } from '../../partitions/peers.ts'
import { describeSingle } from '../../partitions/shared/describe.ts'
import type { Cluster } from '../../partitions/shared/schema.ts'
import { onePartition } from '../../partitions/single.ts'
import type { Sql } from '../../postgres/connect.ts'
import { RetentionFloors, withinRetention } from '../../retention/retention-floors.ts'
import { startRunStatistics } from '../../runs/statistics.ts'
import { startUsageChanges } from '../../runs/usage-changes.ts'
import { SinkPositionFile, type SinkPositionStore } from '../../sink/position.ts'
import { Sink } from '../../sink/sink.ts'
import { clearRows } from '../../store-marks/columnar-marks.ts'
import { JOURNAL_NAME } from '../../store-marks/mark-file.ts'
import { type Incident, StoreMarks } from '../../store-marks/store-marks.ts'
import type { PrivateRoutes } from '../ops/listen.ts'
import type { ServiceMetrics } from '../ops/service-metrics.ts'
import type { Stores } from '../stores.ts'

/** The configuration and resources that all parts of the service share. */
export interface ServiceContext extends Stores {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly progress: Progress
  readonly metrics: ServiceMetrics
  readonly loops: Loops
  readonly teardown: Teardown
  readonly dataDir: DataDir
  /** Workspaces whose queries are refused temporarily. */
  readonly penalties: Penalties
}

/** What a pipeline needs. */
export interface PipelineContext extends ServiceContext {
  readonly ring: Pick<KeyRing, 'areRevocationsKnown'>
}

/** The journal with everything that reads it. */
export interface Pipeline {
  readonly partitions: Partitions
  readonly forwarder: Forwarder
  /** The other processes that share the partitions; undefined in a process that works alone. */
  readonly peers?: Peers
  readonly retentionFloors: Pick<RetentionFloors, 'raise'>
  /** Call after each commit that wrote to the outbox. Cheap. */
  readonly onChange: () => void
  /** Stores that have gone back to an earlier state. */
  readonly incidents: () => readonly Incident[]
  /** Resolves when Postgres has gone back: memory then holds a later state. */
  readonly outdated: Promise<void>
  /** Describes the nodes and partitions. */
  readonly cluster: () => Promise<Cluster>
  /** Lets this node own partitions, once it can be reached at `url`. */
  join(url: string): Promise<void>
  /** Gives its partitions up. */
  leave(): Promise<void>
  /** What `GET /metrics` answers, where that is not about this process alone. */
  readonly metrics?: MetricsText
  /** Routes for other processes of this machine. */
  readonly privateRoutes?: PrivateRoutes
  /** How many nodes share the budgets of keys. */
  readonly nodes: () => number
  /** What a backup stops while it takes a snapshot; undefined where this process cannot stop everything. */
  readonly snapshot?: { readonly journal: LocalJournal; readonly sink: Sink }
}

/** How long a stop waits for the last rows to be loaded. */
export const LAST_LOAD_MS = 1_500

/** The log of an embedded service: its readers see an append before its caller does. */
const ALWAYS_OPEN = { retain: () => () => {}, mayLag: false, refresh: async () => {} }

/** Starts a journal in local files, which is one partition, and its consumers. */
export async function startLocalPipeline(context: PipelineContext, intervalMs: number | undefined): Promise<Pipeline> {
  const { sql, teardown } = context
  await refuseOtherWriters(sql)
  const { journalMaxBytes: maxBytes, journalKeepBytes: keepBytes } = context.config
  const storedSeq = () => lastStoredSeq(context.columnar)
  const { dir, journal, storeMarks } = await openLocalLog(context, {
    ...{ name: JOURNAL_NAME, maxBytes, keepBytes, storedSeq, intervalMs },
  })
  teardown.add('journal', () => journal.close())
  const usage = startUsage(context, () => owned.relay.wake())
  const owned = await startConsumers(context, {
    id: 0,
    generation: 0,
    journal,
    position: await SinkPositionFile.open(dir),
    columnarMark: () => storeMarks.columnarMark(),
    onUsage: usage,
    isOneOfMany: false,
  })
  teardown.add('consumers of the journal', () => owned.stop(LAST_LOAD_MS))
  const outdated = Promise.withResolvers<void>()
  const retentionFloors = await startStoreMarks(context, { journal, storeMarks, owned }, outdated.resolve)
  teardown.add('store marks', () => storeMarks.stop())
  const feeds = openFeedSource(context, journal, retentionFloors, ALWAYS_OPEN)
  teardown.add('live feeds', () => feeds.hub.stop())
  let url = ''
  const now = new Date(context.clock.now())
  const { instanceId } = context.dataDir
  const node = { instanceId, version: packageJson.version, startedAt: now, isAlive: true }
  return {
    partitions: onePartition(owned, feeds),
    forwarder: noForwarding,
    retentionFloors,
    onChange: () => owned.relay.wake(),
    incidents: () => storeMarks.incidents,
    outdated: outdated.promise,
    cluster: async () => describeSingle({ ...node, url }, owned),
    async join(at) {
      url = at
    },
    leave: async () => {},
    nodes: () => 1,
    snapshot: { journal, sink: owned.sink },
  }
}

/** @throws StartError when the workspaces of this database belong to the partitions of another service */
async function refuseOtherWriters(sql: Sql): Promise<void> {
  const found = await sql`select from journal_partitions where home is not null limit 1`
  if (found.length > 0)
    throw new StartError('several processes write the journal of this database: set WORKERS as before')
}

/** A journal in local files. */
export interface LocalLogOptions {
  /** Its directory in `DATA_DIR`. */
  readonly name: string
  readonly maxBytes: number
  readonly keepBytes: number
  /** The highest position that other stores have of it, if its files are empty. */
  readonly storedSeq: () => Promise<number>
  /** See {@link StoreMarks}. */
  readonly intervalMs?: number | undefined
}

export interface LocalLog {
  readonly dir: string
  readonly journal: LocalJournal
  readonly storeMarks: StoreMarks
}

/** Compares the stores, then opens the journal, whose positions continue after every position that a store has seen. */
export async function openLocalLog(context: ServiceContext, options: LocalLogOptions): Promise<LocalLog> {
  const { config, sql, columnar, clock, log, loops, metrics, progress } = context
  const { name, maxBytes, keepBytes, intervalMs, storedSeq } = options
  const { dataDir } = config
  const dir = join(dataDir, name)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const onSetBack = metrics.storeSetBack
  const storeMarks = await StoreMarks.open({
    ...{ sql, columnar, dataDir, name, intervalMs, clock, log, loops, onSetBack },
  })
  const journal = await progress.during('opening the journal', () =>
    openLocalJournal({
      dir,
      maxBytes,
      keepBytes,
      decideStart: (found) =>
        decideStart(found, { sinkPosition: () => SinkPositionFile.read(dir), sql, storedSeq, storeMarks }),
      clock,
      log,
      onCommit: metrics.journalCommitted,
    }),
  )
  return { dir, journal, storeMarks }
}

/** Handles stores that had gone back, and keeps comparing them. @returns the retention floors of the log */
export async function startStoreMarks(
  { sql }: ServiceContext,
  { journal, storeMarks, owned }: Pick<LocalLog, 'journal' | 'storeMarks'> & { readonly owned: StartedConsumers },
  onPostgresBack: () => void,
): Promise<RetentionFloors> {
  const retentionFloors = new RetentionFloors(sql, journal.epoch)
  await retentionFloors.load()
  const forgetColumnar = () => owned.ids.forgetFetched()
  await storeMarks.start({ journal, sink: owned.sink, retentionFloors, forgetColumnar, onPostgresBack })
  return retentionFloors
}

/** Starts the loop that shows changes of usage. @returns a function to call after each commit of run statistics with usage */
export function startUsage({ sql, log, loops, teardown }: ServiceContext, onChange: () => void): () => void {
  const usage = startUsageChanges({ sql, log, loops, onChange })
  teardown.add('run usage', () => usage.stop())
  return usage.wake
}

/** What {@link startConsumers} needs of a log that this process writes. */
export interface OwnedLog {
  readonly id: number
  readonly generation: number
  readonly journal: Journal
  readonly position: SinkPositionStore
  readonly columnarMark: () => KnownMark
  readonly onUsage: () => void
  /** Whether other partitions exist, with relays of their own. */
  readonly isOneOfMany: boolean
  /** Minimum time between two loads of the sink. */
  readonly loadIntervalMs?: number
}

export interface StartedConsumers extends OwnedPartition {
  readonly sink: Sink
  /** @param loadMs how long to wait for the last rows to be loaded; the next owner or start loads the rest */
  stop(loadMs: number): Promise<void>
}

/** Starts the sink and the run statistics, which consume a log, and the outbox relay, which appends to it. */
export async function startConsumers(context: ServiceContext, owned: OwnedLog): Promise<StartedConsumers> {
  const { config, sql, columnar, log, loops, metrics } = context
  const { id, generation, journal, position, columnarMark, onUsage, isOneOfMany, loadIntervalMs } = owned
  const sink = new Sink({
    journal,
    client: columnar,
    clear: (afterSeq, throughSeq, signal) => clearRows(columnar, journal, { afterSeq, throughSeq }, signal),
    position,
    log,
    loops,
    onLoaded: metrics.sinkLoaded,
    intervalMs: loadIntervalMs,
  })
  const relay = startOutboxRelay({ sql, journal, partition: isOneOfMany ? id : undefined, log, loops })
  const prices = createPrices(config.hosted.modelPrices)
  const statistics = await startRunStatistics({ sql, journal, log, loops, prices, onUsage })
  const ids = new EventIdIndex(createEventIdSource({ loading: sink, client: columnar, columnarMark }))
  return {
    ...{ id, generation, journal, sink, relay, statistics, ids },
    async stop(loadMs) {
      await statistics.stop()
      await relay.stop()
      await sink.stop(loadMs)
    },
  }
}

/** Starts the hub, which delivers a log to open feeds. */
export function openFeedSource(
  { config, columnar, log, loops, ring }: PipelineContext,
  journal: JournalReader,
  retentionFloors: RetentionFloors,
  life: Pick<FeedSource, 'retain' | 'mayLag' | 'refresh'>,
): FeedSource {
  const stored = createHistory({ columnar, epoch: journal.epoch })
  const history = withinRetention(withGaps(stored, journal), retentionFloors)
  const hub = new Hub({
    ...{ journal, history, log, loops },
    filtersPerWorkspace: config.feeds.filtersPerWorkspace,
    areRevocationsKnown: () => ring.areRevocationsKnown(),
  })
  return { journal, hub, retentionFloorOf: (workspaceId) => retentionFloors.known(workspaceId), ...life }
}
