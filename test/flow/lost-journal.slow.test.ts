import { expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { allInSql, dataOf, startTestService, type TestService } from '../support/service.ts'
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

async function statusesIn({ api }: TestService): Promise<string[]> {
  const { data } = await api('POST', '/api/v1/query', { query: 'select status from runs' })
  return data.rows.map((row: { status: string }) => row.status)
}
