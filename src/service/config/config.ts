import { resolve } from 'node:path'
import { type PriceTable, parseModelPrices } from '../../base/conventions/prices.ts'
import { parseProxyRanges } from '../../base/http/client-address.ts'
import { LIMITS, type LimitBounds, type Limits } from '../../base/limits.ts'
import { LOG_LEVELS } from '../../base/log.ts'
import type { HostedConfig } from '../../hosted/run/context.ts'
import { parseEgressAllow } from '../../outbound/egress/allow-list.ts'
import { DEFAULT_QUERY_CAPS, type QueryCaps } from '../../sql/analytics/query-caps.ts'
import { parseSecretsKey } from '../../tenants/secrets/vault.ts'
import { readPeople, readPublicUrl } from './people.ts'
import { ConfigReader } from './reader.ts'

const MIB = 1024 * 1024
const GIB = 1024 * MIB

/** A connection is silent while a query runs, and Bun closes it after 255 s at most. */
const QUERY_SECONDS_MAX = 240
const RATE_MAX = 1_000_000_000
/** Fits a few segments: with less, events would be refused although ClickHouse keeps up. */
const JOURNAL_BYTES_MIN = 128 * MIB

/** The configuration from the environment, parsed once. Nothing else in the service reads `process.env`. */
export type Config = ReturnType<typeof parseConfig>

/** The configuration of this process (docs/operations.md#configuration). @throws ConfigError */
export function readConfig({ isTerminal = false }: { readonly isTerminal?: boolean } = {}): Config {
  // On a terminal, a log line for each step would be clutter.
  return parseConfig(isTerminal ? { ...process.env, LOG_LEVEL: process.env.LOG_LEVEL || 'warn' } : process.env)
}

/**
 * @param env an empty variable is the same as an unset one
 * @param cwd the base of a relative `DATA_DIR`
 * @throws ConfigError that lists all problems, never the value of a secret
 */
export function parseConfig(env: Readonly<Record<string, string | undefined>>, cwd = process.cwd()) {
  const read = new ConfigReader(env)
  const limits = readLimits(read)
  const start = readStart(read)
  const config = {
    ...start,
    /** Absolute. Contains the lock, the journal and the embedded stores. */
    dataDir: resolve(cwd, read.text('DATA_DIR') ?? './data'),
    ...readStores(read),
    limits,
    ...readBounds(read),
    /** Maximum bytes of request bodies in flight: the half that one workspace may use fits the largest body, compressed and decompressed. */
    bodyBytesInFlight: Math.max(512 * MIB, 4 * limits.body_bytes),
    /** Origins whose web pages may open feeds; undefined: any. */
    feedOrigins: read.origins('FEED_ORIGINS'),
    feeds: readFeeds(read),
    hosted: readHosted(read),
    /** Undefined: people open the page with keys. */
    people: readPeople(read, start),
    /** Undefined: this process keeps its journal in `dataDir`. */
    cluster: readCluster(read),
  }
  read.finish()
  return Object.freeze(config)
}

function readStart(read: ConfigReader) {
  return {
    port: read.integer('PORT', 3000, 0, 65_535),
    host: read.matching('HOST', /^[\w.:-]+$/, 'a host name or an address') ?? '127.0.0.1',
    /** The origin at which people reach the page; undefined if it is not set. */
    publicUrl: readPublicUrl(read),
    /** Processes of this machine that share the work (docs/architecture.md#several-processes-on-one-machine). */
    workers: readWorkers(read),
    /** Partitions of the journal, where several processes share it. Used at the first start only. */
    partitions: read.integer('JOURNAL_PARTITIONS', 12, 1, 1_024),
    bootstrapWorkspaceKey: read.workspaceKey('BOOTSTRAP_WORKSPACE_KEY'),
    operatorToken: read.matching(
      'OPERATOR_TOKEN',
      /^(?!svc_)[!-~]{16,}$/,
      'at least 16 characters of printable ASCII that do not begin with svc_',
    ),
    /** Proxies whose `X-Forwarded-For` is trusted. */
    trustedProxies: read.parsed('TRUSTED_PROXIES', parseProxyRanges) ?? [],
    logLevel: read.oneOf('LOG_LEVEL', LOG_LEVELS, 'info'),
  }
}

function readStores(read: ConfigReader) {
  return {
    /** Undefined: embedded Postgres in `dataDir`. */
    databaseUrl: read.url('DATABASE_URL', ['postgres:', 'postgresql:']),
    /** Undefined: embedded ClickHouse in `dataDir`. */
    clickhouseUrl: read.url('CLICKHOUSE_URL', ['http:', 'https:']),
    /** The cluster on whose servers tables are replicated; undefined: a single server, or a managed service. */
    clickhouseCluster: readClickHouseCluster(read),
    /** The journal refuses appends (503) when more bytes than this are not yet loaded into ClickHouse. */
    journalMaxBytes: read.integer('JOURNAL_MAX_BYTES', 16 * GIB, JOURNAL_BYTES_MIN, 1024 * GIB),
    /** Bytes of loaded journal segments that are kept, for feeds that resume. */
    journalKeepBytes: read.integer('JOURNAL_KEEP_BYTES', GIB, 0, 1024 * GIB),
    /** How long events are kept; undefined: forever. A workspace may have a shorter limit of its own. */
    eventRetentionDays: read.days('EVENT_RETENTION_DAYS'),
  }
}

/** Limits of load and time. Values without a variable suit every deployment; tests use others. */
function readBounds(read: ConfigReader) {
  return {
    rateLimits: {
      ingestRequestsPerMinute: read.integer('RATE_LIMIT_INGEST_REQUESTS_PER_MINUTE', 60_000, 0, RATE_MAX),
      eventsPerSecond: read.integer('RATE_LIMIT_EVENTS_PER_SECOND', 100_000, 0, RATE_MAX),
      invokesPerMinute: read.integer('RATE_LIMIT_INVOKES_PER_MINUTE', 600, 0, RATE_MAX),
      readsPerMinute: read.integer('RATE_LIMIT_READS_PER_MINUTE', 3_000, 0, RATE_MAX),
      queriesPerMinute: read.integer('RATE_LIMIT_QUERIES_PER_MINUTE', 300, 0, RATE_MAX),
    },
    /** Failed attempts per address and minute; 0 means unlimited. `unknownKeys`: lookups of keys that do not exist. */
    guessing: { operatorTokensPerMinute: 10, unknownKeysPerMinute: 300 },
    queries: readQueryCaps(read),
    /** Maximum time for a request body to arrive. */
    bodyTimeoutMs: 30_000,
    /** A connection that is silent for this long is closed; a WebSocket after twice that without an answer to pings. */
    idleSeconds: 30,
  }
}

/** Bounds of live feeds. */
function readFeeds(read: ConfigReader) {
  return {
    /** Open feeds of all workspaces. */
    connections: read.integer('FEED_CONNECTIONS', 50_000, 1, 1_000_000),
    /** Whether the operator has set `connections`. */
    connectionsGiven: read.text('FEED_CONNECTIONS') !== undefined,
    connectionsPerWorkspace: read.integer('FEED_CONNECTIONS_PER_WORKSPACE', 10_000, 1, 1_000_000),
    /** Distinct filters of the open feeds of a workspace. */
    filtersPerWorkspace: 10_000,
    /** A feed whose queue has been full for this long is closed. */
    slowConsumerMs: 10_000,
    /** An event stream without activity sends a comment this often; clients are promised 10 s at most. */
    heartbeatMs: 8_000,
  }
}

function readHosted(read: ConfigReader): HostedConfig {
  return {
    openAiApiKey: read.matching('OPENAI_API_KEY', /^[!-~]+$/, 'printable ASCII without spaces'),
    openAiBaseUrl: read.url('OPENAI_BASE_URL', ['http:', 'https:']),
    modelPrices: read.parsed('MODEL_PRICES', pricesOf) ?? {},
    egressAllow: read.parsed('EGRESS_ALLOW', parseEgressAllow) ?? parseEgressAllow(''),
    secretsKey: read.parsed('SECRETS_KEY', parseSecretsKey),
    runsAtOnce: read.integer('HOSTED_RUNS_AT_ONCE', 1_000, 1, 100_000),
    runsAtOncePerWorkspace: 600,
    queuedRuns: 10_000,
    waitMs: 900_000,
    pauseMs: read.secondsOrNever('PAUSE_EXPIRES_SECONDS'),
  }
}

function readClickHouseCluster(read: ConfigReader): string | undefined {
  const name = read.matching(
    'CLICKHOUSE_CLUSTER',
    /^([\w.-]+|\{\w+\})$/,
    'the name of a cluster, or a macro such as {cluster}',
  )
  if (name !== undefined && read.text('CLICKHOUSE_URL') === undefined)
    read.problem('CLICKHOUSE_CLUSTER', 'needs CLICKHOUSE_URL: the embedded ClickHouse is a single server')
  return name
}

const CLUSTER_VARIABLES = ['CLUSTER_SECRET', 'INSTANCE_URL', 'NATS_REPLICAS']
const NATS_SERVERS_OF_A_QUORUM = 3
const WORKERS_MAX = 64

/** What a node of a cluster needs (docs/architecture.md#several-nodes). Several machines share external stores, so these must be given. */
function readCluster(read: ConfigReader) {
  const natsUrls = read.urls('NATS_URL', ['nats:', 'tls:'])
  if (natsUrls === undefined) {
    for (const name of CLUSTER_VARIABLES) if (read.text(name) !== undefined) read.problem(name, 'needs NATS_URL')
    return undefined
  }
  for (const name of ['DATABASE_URL', 'CLICKHOUSE_URL', 'CLUSTER_SECRET'])
    if (read.text(name) === undefined) read.problem(name, 'must be set together with NATS_URL: all nodes share it')
  return {
    /** NATS servers with JetStream. Contain credentials. */
    natsUrls,
    /** Shared by all nodes: signs what they send each other, and encrypts secrets unless `secretsKey` is set. */
    secret: read.matching('CLUSTER_SECRET', /^[!-~]{16,}$/, 'at least 16 characters of printable ASCII') ?? '',
    /** The URL at which other nodes reach this one; undefined: the one at which it listens. */
    instanceUrl: read.url('INSTANCE_URL', ['http:', 'https:'])?.replace(/\/+$/, ''),
    /** Copies of each partition's log. */
    natsReplicas: read.integer('NATS_REPLICAS', natsUrls.length >= NATS_SERVERS_OF_A_QUORUM ? 3 : 1, 1, 5),
  }
}

function readWorkers(read: ConfigReader): number {
  const workers = read.integer('WORKERS', 1, 1, WORKERS_MAX)
  if (workers > 1 && read.text('NATS_URL') !== undefined)
    read.problem('WORKERS', 'cannot be set together with NATS_URL: start more nodes instead')
  if (
    read.text('JOURNAL_PARTITIONS') !== undefined &&
    read.text('WORKERS') === undefined &&
    read.text('NATS_URL') === undefined
  )
    read.problem('JOURNAL_PARTITIONS', 'needs WORKERS or NATS_URL')
  return workers
}

/** @throws Error whose message continues after the name of the variable */
function pricesOf(text: string): PriceTable {
  const parsed = parseModelPrices(text)
  if ('problem' in parsed) throw new Error(parsed.problem)
  return parsed.prices
}

/** Limits of parts of a body are capped at the limit of the body. An OTLP export is a body with its own limit. */
function readLimits(read: ConfigReader): Limits {
  const limits: Record<string, number> = {}
  for (const [name, [fallback, min, max]] of Object.entries<LimitBounds>(LIMITS)) {
    const variable = `LIMIT_${name.toUpperCase()}`
    const value = min === undefined || max === undefined ? fallback : read.integer(variable, fallback, min, max)
    const bodyBytes = limits.body_bytes ?? value
    const isPart = name.endsWith('_bytes') && name !== 'otlp_bytes'
    if (isPart && value > bodyBytes && read.text(variable) !== undefined) {
      read.problem(variable, `is more than LIMIT_BODY_BYTES (${bodyBytes})`)
    }
    limits[name] = isPart ? Math.min(value, bodyBytes) : value
  }
  return Object.freeze(limits) as Record<keyof Limits, number>
}

/** All caps are set by one variable: `{"seconds": 30, "rows": 50000}`. */
function readQueryCaps(read: ConfigReader): QueryCaps {
  const bounds = Object.entries(QUERY_CAP_BOUNDS) as [keyof QueryCaps, readonly [number, number]][]
  const members = bounds.map(([cap, [min, max]]) => [memberOf(cap), [DEFAULT_QUERY_CAPS[cap], min, max]] as const)
  const caps = read.integers('QUERY_CAPS', Object.fromEntries(members))
  return Object.fromEntries(bounds.map(([cap]) => [cap, caps[memberOf(cap)]])) as Record<keyof QueryCaps, number>
}

const QUERY_CAP_BOUNDS: Readonly<Record<keyof QueryCaps, readonly [min: number, max: number]>> = {
  atOnce: [1, 100],
  seconds: [1, QUERY_SECONDS_MAX],
  memoryBytes: [16 * MIB, 1024 * GIB],
  rows: [1, 1_000_000],
  resultBytes: [64 * 1024, 256 * MIB],
  streamBytes: [MIB, 1024 * GIB],
  streamSeconds: [1, 86_400],
  penaltySeconds: [0, 3_600],
}

/** `streamBytes` is the member `stream_bytes`. */
function memberOf(cap: string): string {
  return cap.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
