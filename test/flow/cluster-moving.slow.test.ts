import { describe, expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { hasNats } from '../support/nats.ts'
import { startTestService } from '../support/service.ts'

/** A service with a local journal becomes a cluster on the same Postgres and ClickHouse. */

describe.skipIf(!hasNats)('moving from one machine', () => {
  test('earlier runs go on in the cluster: SQL shows their newest state, and a repeated report is recognised', async () => {
    const single = await startTestService()
    const { workspaceKey, databaseUrl, clickhouseUrl } = single
    const { agentId, agentKey } = await newAgent(single.api)
    const key = { key: agentKey }
    const started = await single.api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, key)
    const { run_id } = started.data
    const reported = {
      run_id,
      events: Array.from({ length: 50 }, (_, n) => ({ id: `e${n}`, type: 'before', payload: { n } })),
    }
    const before = await single.api('POST', '/api/ingest/v1/events', reported, key)
    const task = { id: crypto.randomUUID(), name: 'look', status: 'running' }
    await single.api('POST', '/api/ingest/v1/tasks', { run_id, task }, key)
    const query = (text: string, more: object = {}) => ({ query: text, params: { run: run_id }, ...more })
    const states =
      'select status from runs where run_id = {run:UUID} union all select status from tasks where run_id = {run:UUID}'
    await eventually(async () => (await single.api('POST', '/api/v1/query', query(states))).data.rows.length === 2)
    await single.stop()

    const { nodes } = await startCluster({
      nodes: 1,
      databaseUrl,
      env: { CLICKHOUSE_URL: clickhouseUrl, BOOTSTRAP_WORKSPACE_KEY: workspaceKey },
    })
    const [node] = nodes
    const events = { run_id, events: [{ type: 'after' }] }
    const after = await node.api('POST', '/api/ingest/v1/events', events, key)
    expect(after.data.first_seq).toBeGreaterThan(before.data.last_seq)
    // A client that has seen no answer repeats its report.
    const repeated = await node.api('POST', '/api/ingest/v1/events', reported, key)
    expect(repeated.data).toMatchObject({ accepted: 0, duplicates: 50 })
    await node.api('POST', '/api/ingest/v1/tasks', { run_id, task: { ...task, status: 'completed' } }, key)
    await node.api('POST', '/api/ingest/v1/run/complete', { run_id, output: {} }, key)
    await eventually(async () => {
      const { data } = await node.api('POST', '/api/v1/query', query(states))
      return JSON.stringify(data?.rows) === '[{"status":"completed"},{"status":"completed"}]'
    })
    const text = 'select type, count() as n from events where run_id = {run:UUID} group by type order by min(seq)'
    const { data } = await node.api('POST', '/api/v1/query', query(text, { wait_for: after.data.last_seq }))
    expect(data.rows).toEqual([
      { type: 'before', n: 50 },
      { type: 'after', n: 1 },
    ])
  })
})
