import { beforeAll, describe, expect, test } from 'bun:test'
import type { Reporting } from '../crash/reporting.ts'
import { underLoad as loseUnderLoad } from '../crash/under-load.ts'
import { newAgent } from '../support/api.ts'
import { ownedEvenly, startCluster, stateOf, type TestCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { type Activity, LiveSocket } from '../support/feeds.ts'
import { hasNats } from '../support/nats.ts'
import { seededRandom } from '../support/random.ts'
import { OPERATOR_TOKEN, type SpawnedService } from '../support/service.ts'
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts'

/** Several nodes over NATS JetStream (docs/architecture.md#several-nodes), as processes, with real stores. */

const OPERATOR = { key: OPERATOR_TOKEN }

describe.skipIf(!hasNats)('three nodes', () => {
  let cluster: TestCluster
  let agentId: string
  let agentKey: string

  beforeAll(async () => {
    cluster = await startCluster()
    await ownedEvenly(cluster.nodes[0], 3)
    const agent = await newAgent(cluster.nodes[1].api)
    agentId = agent.agentId
    agentKey = agent.agentKey
  })

  const startRun = async (node: SpawnedService): Promise<string> => {
    const { data, text } = await node.api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
    if (data === null) throw new Error(text)
    return data.run_id
  }
  const report = (node: SpawnedService, run_id: string, events: object[], headers: Record<string, string> = {}) =>
    node.api('POST', '/api/ingest/v1/events', { run_id, events }, { key: agentKey, headers })

  test('the partitions are shared evenly, and every node says so', async () => {
    const states = await Promise.all(cluster.nodes.map((node) => ownedEvenly(node, 3)))
    for (const [index, { nodes, partitions }] of states.entries()) {
      expect(partitions.map(({ partition }) => partition)).toEqual([0, 1, 2, 3, 4, 5])
      expect(nodes.find(({ is_this }) => is_this)?.url).toBe(cluster.nodes[index].url)
    }
    const ready = await Promise.all(cluster.nodes.map(({ api }) => api('GET', '/readyz')))
    expect(ready.map(({ data }) => data.partitions.length)).toEqual([2, 2, 2])
  })

  test('any node takes reports, and any node has them at once', async () => {
    const run_id = await startRun(cluster.nodes[0])
    for (const [n, node] of cluster.nodes.entries()) {
      const { status, data } = await report(node, run_id, [{ type: 'step', payload: { n } }])
      expect([status, data.accepted]).toEqual([200, 1])
      for (const reader of cluster.nodes) {
        const page = await reader.api('GET', `/api/v1/runs/${run_id}/events`)
        expect(page.data.items.map(({ payload }: { payload: { n: number } }) => payload.n)).toEqual(
          Array.from({ length: n + 1 }, (_, i) => i),
        )
        const query = 'select count() as n from events where run_id = {run:UUID}'
        const answer = await reader.api('POST', '/api/v1/query', {
          query,
          params: { run: run_id },
          wait_for: data.last_seq,
        })
        expect(answer.data.rows).toEqual([{ n: n + 1 }])
      }
    }
  })

  test('an event id or an Idempotency-Key is one, whichever node gets it', async () => {
    const run_id = await startRun(cluster.nodes[0])
    const counts = []
    for (const node of cluster.nodes) {
      const named = await report(node, run_id, [{ id: 'same', type: 'step' }])
      const keyed = await report(node, run_id, [{ type: 'step' }], { 'idempotency-key': `key of ${run_id}` })
      counts.push([named.data.accepted, keyed.data.last_seq])
    }
    expect(counts.map(([accepted]) => accepted)).toEqual([1, 0, 0])
    expect(new Set(counts.map(([, seq]) => seq)).size).toBe(1)
    const { data } = await cluster.nodes[2].api('GET', `/api/v1/runs/${run_id}/events`)
    expect(data.items).toHaveLength(2)
  })

  test('feeds of all nodes show the same, and a cursor of one resumes at every other', async () => {
    const run_id = await startRun(cluster.nodes[0])
    const sockets = await Promise.all(
      cluster.nodes.map(({ url, workspaceKey }) => LiveSocket.open({ url, workspaceKey })),
    )
    for (const socket of sockets) await socket.subscribe('s', { filter: { kind: 'event', run_id } })
    for (let n = 0; n < 9; n++) await report(cluster.nodes[n % 3], run_id, [{ type: 'step', payload: { n } }])
    const numbersOf = (items: readonly Activity[]) => items.map(({ event }) => event?.payload.n)
    const all = Array.from({ length: 9 }, (_, n) => n)
    for (const socket of sockets) {
      await eventually(() => socket.items('s').length >= 9)
      expect(numbersOf(socket.items('s'))).toEqual(all)
    }
    const cursors = sockets.map((socket) => socket.items('s').map(({ cursor }) => cursor))
    expect(cursors[1]).toEqual(cursors[0])
    expect(cursors[2]).toEqual(cursors[0])
    for (const [index, socket] of sockets.entries()) {
      const answer = await socket.subscribe('resumed', { filter: { kind: 'event', run_id }, after: cursors[index][4] })
      expect(answer.recovered).toBe(true)
      await eventually(() => socket.items('resumed').length >= 4)
      expect(numbersOf(socket.items('resumed'))).toEqual(all.slice(5))
    }
    // The newest position, from another node, a moment after it was acknowledged.
    const { data } = await report(cluster.nodes[0], run_id, [{ type: 'step', payload: { n: 9 } }])
    const answers = await Promise.all(
      sockets.map((socket) => socket.subscribe('newest', { filter: { run_id }, after: String(data.last_seq) })),
    )
    expect(answers.map(({ recovered }) => recovered)).toEqual([true, true, true])
  })

  test('changes of runs reach the feeds of other nodes in order', async () => {
    const socket = await LiveSocket.open({ url: cluster.nodes[2].url, workspaceKey: cluster.workspaceKey })
    await socket.subscribe('s', { filter: { agent_id: agentId } })
    const run_id = await startRun(cluster.nodes[0])
    await report(cluster.nodes[1], run_id, [{ type: 'step' }])
    await cluster.nodes[1].api('POST', '/api/ingest/v1/run/complete', { run_id }, { key: agentKey })
    const statuses = () =>
      socket.items('s').flatMap((item) => (item.run_id === run_id && item.kind === 'run' ? item.run?.status : []))
    await eventually(() => statuses().includes('completed'))
    expect(statuses()[0]).toBe('running')
  })

  test('a revoked key is dead on every node, and its feeds end', async () => {
    const { data } = await cluster.nodes[0].api('POST', '/api/v1/keys', { name: 'k' })
    const sockets = await Promise.all(cluster.nodes.map(({ url }) => LiveSocket.open({ url, workspaceKey: data.key })))
    await cluster.nodes[1].api('POST', `/api/v1/keys/${data.key_id}/revoke`, {})
    const answers = await Promise.all(
      cluster.nodes.map(({ api }) => api('GET', '/api/v1/runs', undefined, { key: data.key })),
    )
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401])
    for (const socket of sockets) await eventually(() => socket.closed?.code === 4001)
  })

  test('a key revoked while a node is paused is dead there as soon as the node continues', async () => {
    const [node, , paused] = cluster.nodes
    const { data } = await node.api('POST', '/api/v1/keys', { name: 'k' })
    const ask = () => paused.api('GET', '/api/v1/runs', undefined, { key: data.key })
    expect((await ask()).status).toBe(200)
    const run_id = await startRun(node)
    const socket = await LiveSocket.open({ url: paused.url, workspaceKey: data.key })
    await socket.subscribe('s', { filter: { run_id, kind: 'event' } })
    paused.kill('SIGSTOP')
    try {
      // The node cannot confirm it, so this waits until its lease is over.
      const revoked = await node.api('POST', `/api/v1/keys/${data.key_id}/revoke`, {})
      expect([revoked.status, revoked.data?.status]).toEqual([200, 'revoked'])
      const reported = await eventually(async () => {
        const answer = await report(node, run_id, [{ type: 'step' }])
        return answer.status === 200 && answer
      })
      expect(reported.data.accepted).toBe(1)
      // They arrive while it is paused, so they are the first that it reads.
      const asked = Promise.all([ask(), ask()])
      await Bun.sleep(100)
      paused.kill('SIGCONT')
      expect((await asked).map(({ status }) => status)).toEqual([401, 401])
    } finally {
      paused.kill('SIGCONT')
    }
    expect((await socket.untilClosed()).code).toBe(4001)
    expect(socket.items('s')).toEqual([])
    await ownedEvenly(node, 3)
  })

  test('nobody but a node can name the caller of a request', async () => {
    const run_id = await startRun(cluster.nodes[0])
    const claim = Buffer.from(JSON.stringify({ caller: {}, bodyDigest: '', at: Date.now() })).toString('base64url')
    for (const forged of ['x', `${claim}.x`, `${claim}.${'A'.repeat(43)}`]) {
      const { status } = await report(cluster.nodes[0], run_id, [{ type: 'step' }], { 'x-cluster-forwarded': forged })
      expect(status).toBe(401)
    }
  })

  test('erasing a workspace through any node deletes it from the log that another one writes', async () => {
    const [node, other] = cluster.nodes
    const made = await node.api('POST', '/api/v1/workspaces', { name: 'w' }, OPERATOR)
    const { workspace_id, key } = made.data
    const as = { key }
    const agent = await node.api('POST', '/api/v1/agents', { name: 'a' }, as)
    const agentsKey = await node.api('POST', `/api/v1/agents/${agent.data.agent_id}/keys`, {}, as)
    const by = { key: agentsKey.data.key }
    const run = await node.api('POST', '/api/ingest/v1/run/start', { agent_id: agent.data.agent_id }, by)
    const events = Array.from({ length: 50 }, () => ({ type: 'step' }))
    await other.api('POST', '/api/ingest/v1/events', { run_id: run.data.run_id, events }, by)
    const erased = await Promise.all(
      cluster.nodes.map(({ api }) => api('DELETE', `/api/v1/workspaces/${workspace_id}`, undefined, OPERATOR)),
    )
    expect(erased.map(({ status, data }) => [status, data?.deleted.events])).toEqual(cluster.nodes.map(() => [200, 50]))
  })
})

describe.skipIf(!hasNats)('losses', () => {
  const random = seededRandom('losses of a cluster')

  const underLoad = async (cluster: TestCluster, lose: (reporting: Reporting) => Promise<void>) => {
    const { nodes, urls, workspaceKey } = cluster
    await ownedEvenly(nodes[0], nodes.length)
    await loseUnderLoad({ api: () => nodes[0].api, urls, workspaceKey, random }, lose)
  }

  test('a node that is killed is replaced within seconds, and nothing is lost, doubled or swapped', async () => {
    const cluster = await startCluster()
    await underLoad(cluster, async () => {
      const [victim] = cluster.nodes.splice(2, 1)
      const { nodes } = await stateOf(victim)
      const { instance_id } = nodes.find(({ is_this }) => is_this)!
      victim.kill('SIGKILL')
      const state = await ownedEvenly(cluster.nodes[0], 2)
      expect(state.partitions.map(({ owner }) => owner)).not.toContain(instance_id)
    })
  })

  test('a node that stops in order hands its partitions over, and one that joins gets its share', async () => {
    const cluster = await startCluster()
    await underLoad(cluster, async () => {
      cluster.nodes[1].kill('SIGTERM')
      expect(await cluster.nodes[1].exited).toBe(0)
      await ownedEvenly(cluster.nodes[0], 2)
      await cluster.restart(1)
      await ownedEvenly(cluster.nodes[0], 3)
    })
  })

  test('a node that is paused for longer than its lease writes nothing when it comes back', async () => {
    const cluster = await startCluster()
    await underLoad(cluster, async (reporting) => {
      const victim = cluster.nodes[1]
      const { nodes } = await stateOf(victim)
      const { instance_id } = nodes.find(({ is_this }) => is_this)!
      victim.kill('SIGSTOP')
      await eventually(async () => {
        const { partitions } = await stateOf(cluster.nodes[0])
        return partitions.every(({ owner }) => owner !== null && owner !== instance_id)
      })
      const during = reporting.eventCount
      await eventually(() => reporting.eventCount > during + 50)
      victim.kill('SIGCONT')
      await ownedEvenly(cluster.nodes[0], 3)
    })
  })

  test('a node that cannot reach NATS leaves its partitions to the others, and gets its share once it can', async () => {
    let proxy: TcpProxy | undefined
    const natsPortOf = async (node: number, port: number) => {
      if (node !== 1) return port
      proxy = await tcpProxy({ port })
      return proxy.port
    }
    const cluster = await startCluster({ natsPortOf })
    await underLoad(cluster, async (reporting) => {
      const { nodes } = await stateOf(cluster.nodes[1])
      const { instance_id } = nodes.find(({ is_this }) => is_this)!
      proxy?.cut()
      await eventually(async () => {
        const { partitions } = await stateOf(cluster.nodes[0])
        return partitions.every(({ owner }) => owner !== null && owner !== instance_id)
      })
      const during = reporting.eventCount
      await eventually(() => reporting.eventCount > during + 50)
      proxy?.heal()
      await ownedEvenly(cluster.nodes[0], 3)
    })
  })

  test('of three NATS servers, one may be killed', async () => {
    const cluster = await startCluster({ natsServers: 3 })
    await underLoad(cluster, async (reporting) => {
      const server = random.pick(cluster.nats)
      await server.kill()
      const during = reporting.eventCount
      await eventually(() => reporting.eventCount > during + 50)
      await server.start()
    })
  })
})
