import { beforeAll, describe, expect, test } from 'bun:test'
import { AgentVersionCopies } from '../../src/sql/analytics/agent-versions.ts'
import { ColumnarUnavailable } from '../../src/stores/clickhouse/client.ts'
import { newAgent } from '../support/api.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { newTenant } from '../support/feeds.ts'
import { freshDatabase } from '../support/postgres.ts'
import { rowsInSql, startTestService, type TestService } from '../support/service.ts'

/** Agents and their versions in SQL (docs/sql.md#tables). */

const { url, sql } = await freshDatabase()
const { client } = await freshColumnarDatabase()
let service: TestService
beforeAll(async () => {
  service = await startTestService({ DATABASE_URL: url })
})

const HOSTED = {
  name: 'helper "é"',
  runtime_type: 'hosted',
  model: 'm',
  prompt: 'You help {{WHOM}}.',
  tools: [{ type: 'http', name: 'pay', description: 'x', method: 'POST', url: 'https://a.example/', parameters: {} }],
  output_schema: { type: 'object', properties: { n: { type: 'integer' } } },
  input_schema: { type: 'object', required: ['n'] },
  expose: ['mcp'],
  temperature: 0.5,
  budget_usd: 1.5,
  metadata: { team: 'blue' },
}

describe('agents in SQL', () => {
  test('are as the last edit left them: every query sees the edits before it', async () => {
    const { api } = await newTenant(service)
    expect(await rowsInSql(api, 'SELECT * FROM agents')).toEqual([])
    const { data: agent } = await api('POST', '/api/v1/agents', HOSTED)
    const { data: other } = await api('POST', '/api/v1/agents', { name: 'external', stale_after_seconds: 60 })
    const { agent_id } = agent
    const { tools, ...rest } = agent
    const rows = await rowsInSql(api, 'SELECT * FROM agents ORDER BY created_at, name DESC')
    expect(rows).toEqual([
      { ...rest, tools: expect.any(String) },
      expect.objectContaining({
        agent_id: other.agent_id,
        name: 'external',
        model: null,
        expose: [],
        stale_after_seconds: 60,
      }),
    ])
    expect(JSON.parse(rows[0]!.tools as string)).toEqual(tools)
    const { data: edited } = await api('PATCH', `/api/v1/agents/${agent_id}`, { name: 'renamed', status: 'paused' })
    expect(await rowsInSql(api, "SELECT name, version, updated_at FROM agents WHERE status = 'paused'")).toEqual([
      { name: 'renamed', version: 2, updated_at: edited.updated_at },
    ])
    const active = "SELECT name FROM agents WHERE status = 'active' AND metadata.team IS NULL"
    expect(await rowsInSql(api, active)).toEqual([{ name: 'external' }])
    await api('DELETE', `/api/v1/agents/${agent_id}`)
    const archived = 'SELECT status, version, output_schema.properties.n.type AS type FROM agents WHERE agent_id = '
    expect(await rowsInSql(api, `${archived}'${agent_id}'`)).toEqual([
      { status: 'archived', version: 3, type: 'integer' },
    ])
  })

  test('have a row for each version, with what it changed and who made it', async () => {
    const { api } = await newTenant(service)
    const { data: agent } = await api('POST', '/api/v1/agents', HOSTED)
    const path = `/api/v1/agents/${agent.agent_id}`
    await rowsInSql(api, 'SELECT count() FROM agents')
    await api('PATCH', path, { prompt: 'Second.', temperature: 1 })
    await api('POST', `${path}/versions/1/restore`, {})
    const { data } = await api('GET', `${path}/versions`)
    const rows = await rowsInSql(api, 'SELECT * FROM agent_versions ORDER BY version DESC')
    const shown = ({
      version,
      created_at,
      created_by,
      created_by_person,
      changes,
      restored_from,
    }: Record<string, unknown>) => ({
      ...{ version, created_at, created_by, created_by_person, changes, restored_from },
    })
    expect(rows.map(shown)).toEqual(data.items.map(shown))
    expect(rows.map(({ prompt, temperature }) => [prompt, temperature])).toEqual([
      [HOSTED.prompt, 0.5],
      ['Second.', 1],
      [HOSTED.prompt, 0.5],
    ])
    // No query has seen this version before it is archived.
    await api('PATCH', path, { prompt: 'Fourth.' })
    await api('DELETE', path)
    const [archived, before] = await rowsInSql(api, 'SELECT * FROM agent_versions ORDER BY version DESC LIMIT 2')
    expect(archived).toMatchObject({ version: 5, status: 'archived', changes: ['status'], restored_from: null })
    expect(before).toMatchObject({ version: 4, status: 'active', prompt: 'Fourth.' })
  })

  test('are copied completely when there are many, and again only where they changed', async () => {
    const { api } = await newTenant(service)
    const agents = await Promise.all(Array.from({ length: 40 }, () => newAgent(api)))
    const prompt = 'p'.repeat(400_000)
    for (const n of [1, 2, 3, 4]) {
      const { data } = await api('POST', '/api/v1/agents', { ...HOSTED, name: `hosted ${n}`, prompt })
      for (const edit of [1, 2, 3]) await api('PATCH', `/api/v1/agents/${data.agent_id}`, { description: `${edit}` })
    }
    const counts =
      'SELECT count() AS n, uniqExact(agent_id) AS agents, max(length(prompt)) AS longest FROM agent_versions'
    expect(await rowsInSql(api, counts)).toEqual([
      { n: agents.length + 16, agents: agents.length + 4, longest: 400_000 },
    ])
    const versions = 'SELECT version, count() AS n FROM agents GROUP BY version ORDER BY version'
    expect(await rowsInSql(api, versions)).toEqual([
      { version: 1, n: agents.length },
      { version: 4, n: 4 },
    ])
  })

  test('are those of the workspace only', async () => {
    const [ours, theirs] = await Promise.all([newTenant(service), newTenant(service)])
    await theirs.api('POST', '/api/v1/agents', { ...HOSTED, name: 'secret' })
    expect(await rowsInSql(theirs.api, 'SELECT name FROM agents')).toEqual([{ name: 'secret' }])
    const { data } = await ours.api('POST', '/api/v1/agents', { name: 'ours' })
    expect(await rowsInSql(ours.api, 'SELECT agent_id, name FROM agents')).toEqual([
      { agent_id: data.agent_id, name: 'ours' },
    ])
    expect(await rowsInSql(ours.api, 'SELECT count() AS n FROM agent_versions')).toEqual([{ n: 1 }])
    const bait = "SELECT count() AS n FROM agents WHERE throwIf(name = 'secret') = 0"
    expect(await rowsInSql(ours.api, bait)).toEqual([{ n: 1 }])
  })
})

describe('a copy of agents to ClickHouse', () => {
  const SIGNAL = new AbortController().signal
  type Insert = typeof client.insertNative
  const copiesWith = (insertNative: Insert, copyTimeoutMs?: number) =>
    new AgentVersionCopies({
      sql,
      columnar: { query: client.query, insertNative },
      ...(copyTimeoutMs !== undefined && { copyTimeoutMs }),
    })

  test('has few of those that are long, however well Postgres has compressed them', async () => {
    const { api, workspaceId } = await newTenant(service)
    for (let n = 0; n < 5; n++)
      await api('POST', '/api/v1/agents', { name: `${n}`, metadata: { a: 'x'.repeat(n === 0 ? 1 : 3 << 20) } })
    const copied: number[] = []
    const insert: Insert = async (_table, blocks) => {
      copied.push(Math.round(blocks.reduce((bytes, { length }) => bytes + length, 0) / (3 << 20)))
    }
    await copiesWith(insert).update(workspaceId, SIGNAL)
    expect(copied).toEqual([2, 2])
  })

  test('that ClickHouse does not take in time can be tried again', async () => {
    const { api, workspaceId } = await newTenant(service)
    await api('POST', '/api/v1/agents', { name: 'any' })
    const insert: Insert = (_table, _blocks, _token, signal) =>
      new Promise((_, reject) => signal!.addEventListener('abort', () => reject(signal!.reason)))
    const error: unknown = await copiesWith(insert, 10)
      .update(workspaceId, SIGNAL)
      .catch((failure: unknown) => failure)
    expect(error).toBeInstanceOf(ColumnarUnavailable)
  })
})
