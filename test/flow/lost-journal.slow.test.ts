import { expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { newAgent } from '../support/api.ts'
import { startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { hasNats, natsConnection } from '../support/nats.ts'
import { allInSql, dataOf, OPERATOR_TOKEN, startTestService, type TestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'

test('a lost journal restarts above the positions in ClickHouse, so that newer states still win', async () => {
  const DATA_DIR = await temporaryDirectory()
  const first = await startTestService({ DATA_DIR })
  const { agentId, agentKey } = await newAgent(first.api)
  const started = await first.api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
  const { run_id } = started.data
  const events = Array.from({ length: 50 }, () => ({ type: 'a' }))
  const sent = await first.api('POST', '/api/ingest/v1/events', { run_id, events }, { key: agentKey })
  await eventually(async () => (await statusesIn(first))[0] === 'running')
  await first.stop()

  fs.rmSync(join(DATA_DIR, 'journal'), { recursive: true })
  const second = await startTestService({
    DATA_DIR,
    DATABASE_URL: first.databaseUrl,
    CLICKHOUSE_URL: first.clickhouseUrl,
    BOOTSTRAP_WORKSPACE_KEY: first.workspaceKey,
  })
  await second.api('POST', '/api/ingest/v1/run/complete', { run_id }, { key: agentKey })
  const more = await second.api('POST', '/api/ingest/v1/events', { run_id, events: [{ type: 'b' }] }, { key: agentKey })
  expect(more.data.first_seq).toBeGreaterThan(sent.data.last_seq)
  await eventually(async () => (await statusesIn(second))[0] === 'completed')
  await second.stop()
})

test('scores keep their positions when the directory of the journal is a new one: a correction wins', async () => {
  const first = await startTestService()
  const { agentId, agentKey: key } = await newAgent(first.api)
  const { data } = await first.api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key })
  const scores = (value: number) =>
    Array.from({ length: 20 }, (_, n) => ({ id: `s${n}`, run_id: data.run_id, name: 'quality', value }))
  await eventually(async () => {
    const { status } = await first.api('POST', '/api/ingest/v1/scores', { scores: scores(1) }, { key })
    return status === 200
  })
  await allInSql(first.api)
  await first.stop()
  const second = await startTestService({ ...dataOf(first), DATA_DIR: await temporaryDirectory() })
  await second.api('POST', '/api/ingest/v1/scores', { scores: scores(2).slice(-1) }, { key })
  await allInSql(second.api)
  const query = "select value from scores where score_id = 's19'"
  expect((await second.api('POST', '/api/v1/query', { query })).data.rows).toEqual([{ value: 2 }])
  await second.stop()
})

test.skipIf(!hasNats)(
  'a stream that was lost begins a new epoch: readiness and a metric tell it, and loading goes on',
  async () => {
    const cluster = await startCluster({ nodes: 1, env: { JOURNAL_PARTITIONS: '1' } })
    const { api } = cluster.nodes[0]!
    const { agentId, agentKey: key } = await newAgent(api)
    const report = () =>
      eventually(async () => {
        const { data } = await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key })
        if (data?.run_id === undefined) return false
        const body = { run_id: data.run_id, events: [{ type: 'mark' }] }
        const sent = await api('POST', '/api/ingest/v1/events', body, { key })
        return sent.status === 200 && data.run_id
      })
    await report()
    await allInSql(api)
    expect((await api('GET', '/readyz')).data).toMatchObject({ status: 'ready', set_back: [] })
    const manager = await jetstreamManager(await natsConnection(cluster.nats))
    await manager.streams.delete('journal_0')
    const run = await report()
    await allInSql(api)
    const query = `select count() as n from events where run_id = '${run}'`
    expect((await api('POST', '/api/v1/query', { query })).data.rows).toEqual([{ n: 1 }])
    expect((await api('GET', '/readyz')).data).toMatchObject({ status: 'degraded', set_back: [{ store: 'journal' }] })
    const { text } = await api('GET', '/metrics', undefined, { key: OPERATOR_TOKEN })
    expect(text).toMatch(/store_set_back_total\{store="journal"\} [1-9]/)
    await cluster.stop()
  },
)

async function statusesIn({ api }: TestService): Promise<string[]> {
  const { data } = await api('POST', '/api/v1/query', { query: 'select status from runs' })
  return data.rows.map((row: { status: string }) => row.status)
}
