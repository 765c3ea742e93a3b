import { createApi } from '../support/api.ts'
import { ownedEvenly, startCluster, stateOf, type TestCluster } from '../support/cluster.ts'
import { LiveSocket } from '../support/feeds.ts'
import { hasNats } from '../support/nats.ts'
import { UNLIMITED } from '../support/service.ts'
import { compare } from './compare.ts'
import type { Bench } from './parts.ts'
import { ms, percentile } from './report.ts'
import { type BenchService, benchServiceOf, eventsLoad } from './servers.ts'

const EVENTS_PER_CALL = 100
const CONNECTIONS = 64
const ONE_COPY_TARGET = 0.4
const THREE_COPIES_TARGET = 0.25
const FORWARDED_TARGET = 0.7
const FEED_CALLS = 500
const FEED_INTERVAL_MS = 10

/**
 * Reporting through NATS JetStream compared with the journal in local files, through another node compared with the owner,
 * and the delay of a feed on a node that does not own the partition.
 */
export async function measureCluster(bench: Bench): Promise<void> {
  const { report } = bench
  report.heading('cluster: three nodes over NATS JetStream')
  if (!hasNats) return report.line('not measured: nats-server is not installed')
  await measureCopies(bench, 1, ONE_COPY_TARGET)
  await measureCopies(bench, 3, THREE_COPIES_TARGET)
}

async function measureCopies(bench: Bench, copies: 1 | 3, target: number): Promise<void> {
  const { service, rounds, report, seconds } = bench
  const cluster = await startCluster({ natsServers: copies, env: { ...UNLIMITED, LOG_LEVEL: 'error' } })
  await ownedEvenly(cluster.nodes[0], cluster.nodes.length)
  const { owner, other } = await nodesOf(cluster)
  const load = (of: BenchService, port: number) =>
    eventsLoad(of, port, EVENTS_PER_CALL, { connections: CONNECTIONS, seconds })
  const ofOwner = { service: owner, report, rounds }
  const shown = `${copies} ${copies === 1 ? 'copy' : 'copies'}`
  await compare(ofOwner, {
    name: `cluster: ${shown} of the log`,
    ...{ target, eventsPerCall: EVENTS_PER_CALL, ours: load(owner, owner.port) },
    baseline: { name: 'local files', load: load(service, service.port) },
  })
  if (copies === 1)
    await compare(ofOwner, {
      name: 'cluster: through another node',
      ...{ target: FORWARDED_TARGET, eventsPerCall: EVENTS_PER_CALL, ours: load(owner, other.port) },
      baseline: { name: 'owner', load: load(owner, owner.port) },
    })
  await measureFeed(bench, cluster, owner, other, shown)
  await cluster.stop()
}

/** The node that owns the partition of the first workspace, and one that does not. */
async function nodesOf({ nodes }: TestCluster): Promise<{ owner: BenchService; other: BenchService }> {
  const state = await stateOf(nodes[0])
  const ownerId = state.partitions[0].owner
  const url = state.nodes.find(({ instance_id }) => instance_id === ownerId)?.url
  const owner = nodes.find((node) => node.url === url)!
  const other = nodes.find((node) => node.url !== url)!
  const bench = await benchServiceOf(owner)
  return { owner: bench, other: { ...bench, port: Number(new URL(other.url).port) } }
}

/** From the call at the owner to the message at another node's subscriber. */
async function measureFeed(
  { report }: Bench,
  { workspaceKey }: TestCluster,
  owner: BenchService,
  other: BenchService,
  shown: string,
): Promise<void> {
  const [{ key, runIds }] = owner.agents
  const url = `http://127.0.0.1:${other.port}`
  const socket = await LiveSocket.open({ url, workspaceKey })
  await socket.subscribe('s', { filter: { kind: 'event', run_id: runIds[0] } })
  const api = createApi(`http://127.0.0.1:${owner.port}`, key)
  const delays: number[] = []
  for (let n = 0; n < FEED_CALLS; n++) {
    const startedAt = performance.now()
    await api('POST', '/api/ingest/v1/events', { run_id: runIds[0], events: [{ type: 'step', payload: { n } }] })
    await socket.until(() => socket.items('s').length > n)
    delays.push(performance.now() - startedAt)
    await Bun.sleep(FEED_INTERVAL_MS)
  }
  const figures = `p50 ${ms(percentile(delays, 0.5))}, p99 ${ms(percentile(delays, 0.99))}`
  report.line(`feed on another node, ${shown}: from the call to the subscriber ${figures}`)
}
