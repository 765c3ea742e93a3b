import { describe, expect, test } from 'bun:test'
import type { Reporting } from '../crash/reporting.ts'
import { underLoad as loseUnderLoad } from '../crash/under-load.ts'
import { ownedEvenly, startCluster, stateOf, type TestCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { LiveSocket } from '../support/feeds.ts'
import { hasNats } from '../support/nats.ts'
import { seededRandom } from '../support/random.ts'
import type { SpawnedService } from '../support/service.ts'
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts'
import { newAgentClient, sharedPartitionTests } from './shared-partitions.ts'

/** Several nodes over NATS JetStream (docs/architecture.md#several-nodes), as processes, with real stores. */

describe.skipIf(!hasNats)('three nodes', () => {
  let cluster: TestCluster

  sharedPartitionTests(async () => {
    cluster = await startCluster({ env: { EGRESS_ALLOW: '127.0.0.1' } })
    await ownedEvenly(cluster.nodes[0], 3)
    const { nodes, urls: feedUrls, workspaceKey } = cluster
    return { apis: nodes.map(({ api }) => api), feedUrls, workspaceKey }
  })

  test('the partitions are shared evenly, and every node says so', async () => {
    const states = await Promise.all(cluster.nodes.map((node) => ownedEvenly(node, 3)))
    for (const [index, { nodes, partitions }] of states.entries()) {
      expect(partitions.map(({ partition }) => partition)).toEqual([0, 1, 2, 3, 4, 5])
      expect(nodes.find(({ is_this }) => is_this)?.url).toBe(cluster.nodes[index].url)
    }
    const ready = await Promise.all(cluster.nodes.map(({ api }) => api('GET', '/readyz')))
    expect(ready.map(({ data }) => data.partitions.length)).toEqual([2, 2, 2])
  })

  test('a key revoked while a node is paused is dead there as soon as the node continues', async () => {
    const [node, , paused] = cluster.nodes
    const { data } = await node.api('POST', '/api/v1/keys', { name: 'k' })
    const ask = () => paused.api('GET', '/api/v1/runs', undefined, { key: data.key })
    expect((await ask()).status).toBe(200)
    const agent = await newAgentClient(node.api)
    const run_id = await agent.startRun(node.api)
    const socket = await LiveSocket.open({ url: paused.url, workspaceKey: data.key })
    await socket.subscribe('s', { filter: { run_id, kind: 'event' } })
    paused.kill('SIGSTOP')
    try {
      // The node cannot confirm it, so this waits until its lease is over.
      const revoked = await node.api('POST', `/api/v1/keys/${data.key_id}/revoke`, {})
      expect([revoked.status, revoked.data?.status]).toEqual([200, 'revoked'])
      const reported = await eventually(async () => {
        const answer = await agent.report(node.api, run_id, [{ type: 'step' }])
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
})

async function instanceOf(node: SpawnedService): Promise<string> {
  const { nodes } = await stateOf(node)
  return nodes.find(({ is_this }) => is_this)!.instance_id
}

/** Waits until other nodes own all partitions of this one. */
async function replaced(node: SpawnedService, instanceId: string): Promise<void> {
  await eventually(async () => {
    const { partitions } = await stateOf(node)
    return partitions.every(({ owner }) => owner !== null && owner !== instanceId)
  })
}

async function goesOn(reporting: Reporting): Promise<void> {
  const before = reporting.eventCount
  await eventually(() => reporting.eventCount > before + 50)
}

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
      const instance_id = await instanceOf(victim)
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
      const instance_id = await instanceOf(victim)
      victim.kill('SIGSTOP')
      await replaced(cluster.nodes[0], instance_id)
      await goesOn(reporting)
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
      const instance_id = await instanceOf(cluster.nodes[1])
      proxy?.cut()
      await replaced(cluster.nodes[0], instance_id)
      await goesOn(reporting)
      proxy?.heal()
      await ownedEvenly(cluster.nodes[0], 3)
    })
  })

  test('of three NATS servers, one may be killed', async () => {
    const cluster = await startCluster({ natsServers: 3 })
    await underLoad(cluster, async (reporting) => {
      const server = random.pick(cluster.nats)
      await server.kill()
      await goesOn(reporting)
      await server.start()
    })
  })
})
