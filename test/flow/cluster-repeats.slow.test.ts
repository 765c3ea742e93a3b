import { expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { ownedEvenly, startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { hasNats } from '../support/nats.ts'

/** Calls that are repeated while their first attempt is still being stored. */
test.skipIf(!hasNats)(
  'a repeat is acknowledged only when the original is stored, however close they come',
  async () => {
    const cluster = await startCluster({ nodes: 1 })
    const [node] = cluster.nodes
    const [nats] = cluster.nats
    await ownedEvenly(node, 1)
    const { agentId, agentKey } = await newAgent(node.api)
    const report = (path: string, body: object) => node.api('POST', `/api/ingest/v1/${path}`, body, { key: agentKey })
    const { data: started } = await report('run/start', { agent_id: agentId })
    const { run_id } = started
    const events = [
      { id: 'a', type: 'step' },
      { id: 'b', type: 'step' },
    ]
    const send = () => report('events', { run_id, events })

    nats.pause()
    const answers = await Promise.all([send(), send(), send()])
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503])
    nats.resume()
    // Whether the first attempt was stored is open until now; either way it counts once.
    const { data } = await eventually(async () => {
      const answer = await send()
      return answer.status === 200 && answer
    })
    expect(data.accepted + data.duplicates).toBe(2)
    await eventually(async () => {
      const query = 'select count() as n from events where run_id = {run:UUID}'
      const { data: found } = await node.api('POST', '/api/v1/query', { query, params: { run: run_id } })
      expect(found.rows).toEqual([{ n: 2 }])
    })
    await cluster.stop()
  },
)
