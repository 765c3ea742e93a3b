import type { ObserveRequest } from '../../base/http/envelope.ts'
import type { LoopState, Loops } from '../../base/loops.ts'
import { type CounterCell, type HistogramCell, Metrics } from '../../base/metrics.ts'
import { SetAside } from '../../base/set-aside.ts'
import type { FeedSource } from '../../feeds/live/feed-source.ts'
import type { Hub } from '../../feeds/live/hub.ts'
import type { Feeds, OwnedPartition, Partitions } from '../../tenants/partitions/partition.ts'

const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const COMMIT_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1]
const LAG_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.25, 0.5, 1, 2.5]
const LOAD_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** The components whose state is read on each scrape. */
interface Observed {
  readonly partitions: Pick<Partitions, 'isOnlyOne' | 'owned'>
  readonly feeds: Feeds<FeedSource>
  readonly loops: Pick<Loops, 'states'>
  readonly connections: { readonly size: number; readonly queuedBytes: number }
}

export type ServiceMetrics = ReturnType<typeof createServiceMetrics>

/**
 * The metrics of the service (docs/api.md#calls-without-a-key): functions that components call when something happens,
 * and the registry for `GET /metrics`.
 */
export function createServiceMetrics() {
  const registry = new Metrics()
  const rss = () => process.memoryUsage.rss()
  registry.gauge('process_resident_memory_bytes', 'Resident memory of the service process, without its stores.', rss)
  registry.gauge('process_uptime_seconds', 'Seconds since the service started.', () => process.uptime())
  const requests = registry.counter('http_requests_total', 'Answered requests.', ['method', 'route', 'status'])
  const requestHelp = 'Time from request to response.'
  const requestSeconds = registry.histogram('http_request_seconds', requestHelp, REQUEST_SECONDS, ['route'])
  const counted = (name: string, help: string) => registry.counter(name, help).at()
  const timed = (name: string, help: string, buckets: readonly number[]) => registry.histogram(name, help, buckets).at()
  const accepted = counted('events_accepted_total', 'Events made durable and acknowledged.')
  const duplicates = counted('events_duplicate_total', 'Events ignored because their id was already known.')
  const scored = counted('scores_accepted_total', 'Scores made durable and acknowledged.')
  const repeated = counted('scores_duplicate_total', 'Scores ignored because they repeat the latest one of their id.')
  const commitHelp = 'Duration of a journal write, including its sync.'
  const commitSeconds = timed('journal_commit_seconds', commitHelp, COMMIT_SECONDS)
  const written = counted('journal_written_bytes_total', 'Bytes made durable by the journal.')
  const sinkRows = counted('sink_rows_total', 'Journal rows loaded into ClickHouse.')
  const sinkSeconds = timed('sink_load_seconds', 'Duration of a load into ClickHouse.', LOAD_SECONDS)
  const setBackHelp = 'Times that a store was found to have gone back to an earlier state.'
  const setBack = registry.counter('store_set_back_total', setBackHelp, ['store'])
  for (const store of ['postgres', 'journal', 'clickhouse']) setBack.at(store)
  const lag = timed('event_loop_lag_seconds', 'Event loop delay.', LAG_SECONDS)

  /** The cells of each route: finding them by their labels on every request would be slow. */
  const cells = new Map<string, { seconds: HistogramCell; answers: Map<number, Map<string, CounterCell>> }>()
  const requestAnswered: ObserveRequest = (method, route, status, seconds) => {
    const ofRoute = getOrCreate(cells, route, () => ({ seconds: requestSeconds.at(route), answers: new Map() }))
    const ofStatus = getOrCreate(ofRoute.answers, status, () => new Map<string, CounterCell>())
    getOrCreate(ofStatus, method, () => requests.at(method, route, String(status))).value++
    ofRoute.seconds.observe(seconds)
  }
  return {
    registry,
    requestAnswered,
    eventsTaken(acceptedCount: number, duplicateCount: number) {
      accepted.value += acceptedCount
      duplicates.value += duplicateCount
    },
    scoresTaken(acceptedCount: number, duplicateCount: number) {
      scored.value += acceptedCount
      repeated.value += duplicateCount
    },
    journalCommitted(milliseconds: number, bytes: number) {
      commitSeconds.observe(milliseconds / 1000)
      written.value += bytes
    },
    sinkLoaded(rows: number, milliseconds: number) {
      sinkRows.value += rows
      sinkSeconds.observe(milliseconds / 1000)
    },
    setAside: new SetAside(registry),
    storeSetBack: (store: string) => setBack.at(store).value++,
    loopLagged: (seconds: number) => lag.observe(seconds),
    observe: (observed: Observed) => addGauges(registry, observed),
  }
}

/** The sum over the hubs of this process. */
export function sumOfHubs(feeds: Feeds<FeedSource>, measure: (hub: Hub) => number): number {
  return feeds.opened().reduce((sum, { hub }) => sum + measure(hub), 0)
}

/** Adds the gauges of the parts that have started. */
function addGauges(registry: Metrics, { partitions, feeds, loops, connections }: Observed): void {
  const perLoop = (name: string, help: string, measure: (state: LoopState) => number) =>
    registry.gauges(name, help, 'loop', () => loops.states().map((state) => [state.name, measure(state)]))
  const failingHelp = 'Seconds since each background loop began to fail; 0 while it works.'
  perLoop('loop_failing_seconds', failingHelp, ({ failingMs }) => failingMs / 1000)
  perLoop(
    'loop_failures',
    'Failed rounds of each background loop since the service started.',
    (state) => state.failures,
  )
  for (const [name, help, measure] of PARTITION_GAUGES) {
    // A service with one partition has no label.
    if (partitions.isOnlyOne) registry.gauge(name, help, () => measure(partitions.owned()[0]))
    else
      registry.gauges(name, help, 'partition', () =>
        partitions.owned().map((owned) => [String(owned.id), measure(owned)]),
      )
  }
  registry.gauge('feed_connections', 'Open feeds.', () => connections.size)
  registry.gauge('feed_queued_bytes', 'Bytes queued for clients of open feeds.', () => connections.queuedBytes)
  for (const [name, help, measure] of HUB_GAUGES) registry.gauge(name, help, () => sumOfHubs(feeds, measure))
}

type Gauge<Of> = readonly [name: string, help: string, measure: (of: Of) => number]

const PARTITION_GAUGES: readonly Gauge<OwnedPartition>[] = [
  [
    'journal_gap_rows',
    'Missing journal rows: assigned positions without a row.',
    ({ journal }) => journal.gaps.reduce((sum, { afterSeq, throughSeq }) => sum + throughSeq - afterSeq, 0),
  ],
  ['journal_generation', 'How often the partition was claimed.', ({ generation }) => generation],
  ['journal_end_seq', 'Position of the last durable row.', ({ journal }) => journal.endSeq],
  ['journal_disk_bytes', 'Size of the journal on disk.', ({ journal }) => journal.bytes],
  ['journal_backlog_bytes', 'Journal bytes not yet consumed.', ({ journal }) => journal.backlogBytes],
  [
    'sink_lag_rows',
    'Journal rows not yet loaded into ClickHouse.',
    ({ journal, sink }) => journal.endSeq - sink.loadedSeq(),
  ],
  ['run_statistics_lag_rows', 'Journal rows not yet counted in run statistics.', ({ statistics }) => statistics.lag()],
]

const HUB_GAUGES: readonly Gauge<Hub>[] = [
  ['feed_subscriptions', 'Subscriptions of open feeds.', (hub) => hub.counts().all],
  ['feed_subscriptions_behind', 'Subscriptions that are catching up.', (hub) => hub.counts().behind],
  ['feed_filters', 'Distinct filters of open feeds.', (hub) => hub.counts().filters],
  ['feed_lag_rows', 'Journal rows not yet delivered to live subscriptions.', (hub) => hub.lag()],
]

/** Like `Map.getOrInsertComputed`, which takes 9 ns where this takes 1 to 3; every request needs three. */
function getOrCreate<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  let value = map.get(key)
  if (value === undefined) {
    value = create()
    map.set(key, value)
  }
  return value
}
