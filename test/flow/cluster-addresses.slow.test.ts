import { expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { startCluster, stateOf } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { newTenant } from '../support/feeds.ts'
import { hasNats } from '../support/nats.ts'
import { atEnd } from '../support/teardown.ts'

const WORKSPACES = 8

test.skipIf(!hasNats)(
  'an INSTANCE_URL that leads to another service: it gets no call, no key, and no answer of it is believed',
  async () => {
    const got: { method: string; path: string; authorization: string | null }[] = []
    const foreign = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        const { pathname } = new URL(request.url)
        got.push({ method: request.method, path: pathname, authorization: request.headers.get('authorization') })
        return Response.json({ data: { accepted: 1, duplicates: 0, first_seq: 1, last_seq: 1 }, error: null })
      },
    })
    atEnd(() => foreign.stop(true))
    const cluster = await startCluster({
      nodes: 2,
      instancePortOf: (node, port) => (node === 1 ? (foreign.port ?? 0) : port),
    })
    const [node, misled] = cluster.nodes
    await eventually(async () => {
      const { nodes, partitions } = await stateOf(node!)
      expect(new Set(partitions.map(({ owner }) => owner))).toEqual(
        new Set(nodes.map(({ instance_id }) => instance_id)),
      )
    })
    const statuses = new Set<number>()
    // One after the other, because each goes to the partition that has the fewest workspaces.
    for (let n = 0; n < WORKSPACES; n++) {
      const { api } = await newTenant(node!)
      const { agentId, agentKey } = await newAgent(api)
      const { data } = await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
      const events = { run_id: data.run_id, events: [{ type: 'e' }] }
      statuses.add((await api('POST', '/api/ingest/v1/events', events, { key: agentKey })).status)
    }
    expect([...statuses].sort()).toEqual([200, 503])
    expect(
      got.filter(
        ({ method, path, authorization }) => method !== 'GET' || path !== '/internal/node' || authorization !== null,
      ),
    ).toEqual([])
    expect(node!.output().stderr + node!.output().stdout).toContain('check its INSTANCE_URL')
    // What the misled node sends to others arrives.
    expect((await misled!.api('GET', '/readyz')).status).toBe(200)
    await cluster.stop()
  },
)
