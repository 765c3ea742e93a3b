import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Penalties } from './analytics/caps.ts'
import type { Clock } from './clock.ts'
import { type Sink, startSink } from './columnar/sink.ts'
import type { Config } from './config.ts'
import { EventIdIndex } from './events/id-index.ts'
import { createEventIdSource } from './events/id-source.ts'
import { type LocalJournal, openLocalJournal } from './journal/local/journal.ts'
import { startOutboxRelay } from './journal/outbox-relay.ts'
import { decideStart } from './journal/start.ts'
import type { KeyRing } from './keys/key-ring.ts'
import { Connections } from './live/connections.ts'
import { withGaps } from './live/gaps.ts'
import { createHistory } from './live/history.ts'
import { Hub } from './live/hub.ts'
import type { Log } from './log.ts'
import { createPrices } from './model/prices.ts'
import type { DataDir } from './ops/data-dir.ts'
import { readOpenFilesLimit, withinOpenFiles } from './ops/open-files.ts'
import type { Progress } from './ops/progress.ts'
import type { ServiceMetrics } from './ops/service-metrics.ts'
import type { Loops } from './ops/supervise.ts'
import type { Teardown } from './ops/teardown.ts'
import { RetentionWatermarks, withinRetention } from './retention/retention-watermarks.ts'
import { createRunDirectory, type RunDirectory } from './runs/directory.ts'
import { startRunStatistics } from './runs/statistics.ts'
import { startUsageChanges } from './runs/usage-changes.ts'
import type { Stores } from './stores.ts'
import { clearRows } from './watermarks/columnar-marks.ts'
import { Watermarks } from './watermarks/watermarks.ts'

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

/** The journal, and its comparison with the other stores. */
export interface OpenedJournal {
  readonly dir: string
  readonly journal: LocalJournal
  readonly watermarks: Watermarks
}

/** How long a stop waits for the last rows to be loaded; the rest is loaded after the next start. */
const LAST_LOAD_MS = 1_500

/** Compares the stores, then opens the journal, whose positions continue after every position that a store has seen. */
export async function openJournal(context: ServiceContext, intervalMs: number | undefined): Promise<OpenedJournal> {
  const { config, sql, columnar, clock, log, loops, metrics, progress, teardown } = context
  const { dataDir, journalMaxBytes: maxBytes, journalKeepBytes: keepBytes } = config
  const dir = join(dataDir, 'journal')
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const watermarks = await Watermarks.open({
    sql,
    columnar,
    dataDir,
    journalDir: dir,
    intervalMs,
    clock,
    log,
    loops,
    onSetBack: metrics.storeSetBack,
  })
  const journal = await progress.during('opening the journal', () =>
    openLocalJournal({
      dir,
      maxBytes,
      keepBytes,
      decideStart: (found) => decideStart(found, { dir, sql, columnar, watermarks }),
      clock,
      log,
      onCommit: metrics.journalCommitted,
    }),
  )
  teardown.add('journal', () => journal.close())
  return { dir, journal, watermarks }
}

export type Consumers = Awaited<ReturnType<typeof startConsumers>>

/** Starts the sink and the run statistics, which consume the journal, and the outbox relay, which appends to it. */
export async function startConsumers(context: ServiceContext, { dir, journal }: OpenedJournal) {
  const { config, sql, columnar, log, loops, metrics, teardown } = context
  const sink = await startSink({
    journal,
    client: columnar,
    clear: (afterSeq, throughSeq, signal) => clearRows(columnar, journal, { afterSeq, throughSeq }, signal),
    dir,
    log,
    loops,
    onLoaded: metrics.sinkLoaded,
  })
  teardown.add('sink', () => sink.stop(LAST_LOAD_MS))
  const relay = startOutboxRelay({ sql, journal, log, loops })
  teardown.add('outbox relay', () => relay.stop())
  const usage = startUsageChanges({ sql, log, loops, onChange: relay.poke })
  teardown.add('run usage', () => usage.stop())
  const prices = createPrices(config.hosted.modelPrices)
  const statistics = await startRunStatistics({ sql, journal, log, loops, prices, onUsage: usage.poke })
  teardown.add('run statistics', () => statistics.stop())
  return { sink, statistics, relay }
}

/** Indexes in memory of what the stores hold. */
export interface Indexes {
  readonly directory: RunDirectory
  readonly ids: EventIdIndex
  readonly retentionWatermarks: RetentionWatermarks
}

/** Creates the indexes and starts the comparison of the stores: a store that goes back makes indexes outdated. */
export async function startIndexes(
  { sql, columnar, teardown }: ServiceContext,
  { journal, watermarks }: OpenedJournal,
  sink: Sink,
  onPostgresBack: () => void,
): Promise<Indexes> {
  const directory = createRunDirectory({ sql })
  const ids = new EventIdIndex(createEventIdSource({ journal, progress: sink, client: columnar, watermarks }))
  directory.onRunStarted((run) => ids.runStarted(run))
  const retentionWatermarks = new RetentionWatermarks(sql, journal.epoch)
  await retentionWatermarks.load()
  const forgetColumnar = () => ids.forgetFetched()
  await watermarks.start({ journal, sink, retentionWatermarks, forgetColumnar, onPostgresBack })
  teardown.add('watermarks', () => watermarks.stop())
  return { directory, ids, retentionWatermarks }
}

export type Feeds = ReturnType<typeof startFeeds>

/** Starts the hub, which delivers the journal to open feeds. */
export function startFeeds(
  { config, columnar, log, loops, teardown }: ServiceContext,
  { journal }: OpenedJournal,
  retentionWatermarks: RetentionWatermarks,
  ring: KeyRing,
) {
  const stored = createHistory({ columnar, epoch: journal.epoch })
  const history = withinRetention(withGaps(stored, journal), retentionWatermarks)
  const hub = new Hub({ journal, history, log, loops, filtersPerWorkspace: config.feeds.filtersPerWorkspace })
  teardown.add('live feeds', () => hub.stop())
  const limits = withinOpenFiles(config.feeds, readOpenFilesLimit(), log)
  return { hub, connections: new Connections({ ring, limits, log, loops }) }
}
