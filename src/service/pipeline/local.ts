import packageJson from '../../../package.json' with { type: 'json' }
import { StartError } from '../../base/start-error.ts'
import type { OutboxRelay } from '../../stores/journal/outbox-relay.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import { noForwarding } from '../../tenants/keys/forward.ts'
import { onePartition } from '../../tenants/partitions/partition.ts'
import { describeSingle } from '../../tenants/partitions/shared/routes.ts'
import { highestSeq } from '../store-marks/columnar-marks.ts'
import { JOURNAL_NAME } from '../store-marks/mark-file.ts'
import { openFeedSource, openPartition, startUsage } from './consumers.ts'
import { openLogFiles } from './log-files.ts'
import type { Pipeline, PipelineContext } from './pipeline.ts'

/** The only partition, which no other process can claim. */
const ONLY = { partition: 0, generation: 0 }
/** The lifetime of the only feed source: always open, and up to date, because feeds read an append before its caller gets the answer. */
const ALWAYS_OPEN = { retain: () => () => {}, mayLag: false, refresh: async () => {} }

/** Starts a journal in local files, which is one partition, and its consumers. */
export async function startLocalPipeline(context: PipelineContext, intervalMs: number | undefined): Promise<Pipeline> {
  const { config, sql, columnar, teardown } = context
  await refuseOtherWriters(sql)
  const { journalMaxBytes: maxBytes, journalKeepBytes: keepBytes } = config
  const outdated = Promise.withResolvers<void>()
  const files = {
    name: JOURNAL_NAME,
    maxBytes,
    keepBytes,
    intervalMs,
    storedSeq: () => highestSeq(columnar),
    onPostgresBack: outdated.resolve,
  }
  let relay: OutboxRelay | undefined
  const onChange = () => relay?.wake()
  const topology = {
    count: 1,
    isShared: false,
    openLog: (_: typeof ONLY, opened: AsyncDisposableStack) => openLogFiles(context, files, opened),
  }
  const onUsage = startUsage(context, onChange)
  const owned = await openPartition(context, topology, ONLY, () => {}, onUsage)
  teardown.add('partition', () => owned.stop(false))
  relay = owned.relay
  const { log, sink } = owned
  const { journal, retentionFloors, storeMarks } = log
  const source = openFeedSource(context, journal, retentionFloors, ALWAYS_OPEN)
  teardown.add('live feeds', () => source.hub.stop())
  const startedAt = new Date(context.clock.now())
  const { instanceId } = context.dataDir
  const node = { instanceId, url: '', version: packageJson.version, startedAt, isAlive: true }
  return {
    partitions: onePartition(owned),
    feeds: { of: async () => source, opened: () => [source] },
    forwarder: noForwarding,
    retentionFloors,
    onChange,
    incidents: () => storeMarks.incidents,
    outdated: outdated.promise,
    cluster: async () => describeSingle(node, owned),
    async join(url) {
      node.url = url
    },
    leave: async () => {},
    nodes: () => 1,
    snapshot: { journal, sink },
  }
}

/** @throws StartError when the workspaces of this database belong to the partitions of another service */
async function refuseOtherWriters(sql: Sql): Promise<void> {
  const [found] = await sql<{ home: string | null }[]>`select home from journal_partitions limit 1`
  if (found === undefined) return
  throw new StartError(
    found.home === null
      ? 'the journal of this database is stored in the NATS servers of a cluster: set NATS_URL as for its other nodes, or use another database'
      : 'several processes write the journal of this database: set WORKERS as before',
  )
}
