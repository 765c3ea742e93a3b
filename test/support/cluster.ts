import { freshColumnarDatabase } from './columnar.ts'
import { eventually } from './eventually.ts'
import { type NatsServer, natsCluster, natsServer } from './nats.ts'
import { freshDatabase } from './postgres.ts'
import { freePort, OPERATOR_TOKEN, type SpawnedService, spawnService } from './service.ts'
import { temporaryDirectory } from './teardown.ts'

export interface ClusterOptions {
  readonly nodes?: number
  /** One, or three that keep three copies. */
  readonly natsServers?: 1 | 3
  /** A database of the test's own; by default one of the shared server, which does not survive a kill. */
  readonly databaseUrl?: string
  /** Further variables of every node. */
  readonly env?: Record<string, string>
  /** The port at which a node reaches the only NATS server; by default its own. */
  readonly natsPortOf?: (node: number, port: number) => number | Promise<number>
  /** The port at which the other nodes reach a node; by default its own. */
  readonly instancePortOf?: (node: number, port: number) => number | Promise<number>
}

/** Several nodes as processes on loopback, with real NATS servers, one Postgres and one ClickHouse. */
export interface TestCluster {
  readonly nodes: SpawnedService[]
  readonly nats: readonly NatsServer[]
  readonly workspaceKey: string
  readonly urls: readonly string[]
  readonly databaseUrl: string
  /** Starts a node again after it has ended, at the same address. */
  restart(index: number): Promise<SpawnedService>
  /** Stops the nodes and the NATS servers before the end of the tests. */
  stop(): Promise<void>
}

export const CLUSTER_SECRET = 'a-secret-of-the-test-cluster'

export async function startCluster({
  nodes = 3,
  natsServers = 1,
  databaseUrl: given,
  env = {},
  natsPortOf = (_, port) => port,
  instancePortOf = (_, port) => port,
}: ClusterOptions = {}): Promise<TestCluster> {
  const nats = natsServers === 1 ? [await natsServer()] : await natsCluster()
  const [databaseUrl, { url: clickhouseUrl }] = await Promise.all([
    given ?? freshDatabase().then(({ url }) => url),
    freshColumnarDatabase(),
  ])
  const shared = {
    DATABASE_URL: databaseUrl,
    CLICKHOUSE_URL: clickhouseUrl,
    CLUSTER_SECRET,
    JOURNAL_PARTITIONS: '6',
    JOURNAL_MAX_BYTES: `${256 << 20}`,
    JOURNAL_KEEP_BYTES: `${32 << 20}`,
    ...env,
  }
  const own = await Promise.all(
    Array.from({ length: nodes }, async (_, node) => {
      const ports = await Promise.all(nats.map(({ port }) => natsPortOf(node, port)))
      const NATS_URL = ports.map((port) => `nats://127.0.0.1:${port}`).join(',')
      const port = freePort()
      const INSTANCE_URL = `http://127.0.0.1:${await instancePortOf(node, port)}`
      return { DATA_DIR: await temporaryDirectory(), PORT: String(port), NATS_URL, INSTANCE_URL }
    }),
  )
  // The first one creates the workspace.
  const first = await spawnService({ ...shared, ...own[0] })
  const { workspaceKey } = first
  const start = (index: number) => spawnService({ ...shared, ...own[index], BOOTSTRAP_WORKSPACE_KEY: workspaceKey })
  const all = [first, ...(await Promise.all(own.slice(1).map((_, index) => start(index + 1))))]
  return {
    nodes: all,
    nats,
    workspaceKey,
    urls: all.map(({ url }) => url),
    databaseUrl,
    async restart(index) {
      all[index] = await start(index)
      return all[index]
    },
    async stop() {
      for (const node of all) node.kill('SIGTERM')
      await Promise.all(all.map(({ exited }) => exited))
      for (const server of nats) await server.kill()
    },
  }
}

export interface ClusterState {
  readonly nodes: readonly { instance_id: string; url: string; alive: boolean; is_this: boolean }[]
  readonly partitions: readonly {
    partition: number
    owner: string | null
    generation: number
    epoch: string
    end_seq: number
    lag: number
  }[]
}

/** What a node says about the cluster. */
export async function stateOf(node: Pick<SpawnedService, 'api'>): Promise<ClusterState> {
  const { data, text } = await node.api('GET', '/api/v1/cluster', undefined, { key: OPERATOR_TOKEN })
  if (data === null) throw new Error(text)
  return data
}

/** Waits until the live nodes own all partitions, evenly. */
export function ownedEvenly(node: Pick<SpawnedService, 'api'>, nodes: number): Promise<ClusterState> {
  return eventually(async () => {
    const state = await stateOf(node)
    const live = state.nodes.filter(({ alive }) => alive)
    const counts = live.map(({ instance_id }) => state.partitions.filter(({ owner }) => owner === instance_id).length)
    const isEven = Math.max(...counts) - Math.min(...counts) <= 1
    const isOwned = counts.reduce((sum, count) => sum + count, 0) === state.partitions.length
    if (live.length !== nodes || !isEven || !isOwned) throw new Error(`not owned evenly: ${JSON.stringify(state)}`)
    return state
  })
}
