import { beforeAll, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { LiveSocket, newReporter, newTenant, type Reporter } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let agent: Reporter

beforeAll(async () => {
  service = await startTestService()
  agent = await newReporter(service.api)
})

const edit = (runId: string, body: unknown, key?: string) =>
  service.api('PATCH', `/api/v1/runs/${runId}`, body, key === undefined ? {} : { key })

test('replaces tags and metadata of live and ended runs; the list, feeds and SQL show it', async () => {
  const run_id = await agent.start({ tags: ['a'], metadata: { n: 1 } })
  const socket = await LiveSocket.open(service)
  await socket.subscribe('runs', { filter: { kind: 'run', run_id } })
  const first = await edit(run_id.toUpperCase(), { tags: ['b', 'c'] })
  expect(first.data).toMatchObject({ run_id, status: 'running', tags: ['b', 'c'], metadata: { n: 1 } })
  await service.api('POST', '/api/ingest/v1/run/complete', { run_id, output: { ok: true } }, { key: agent.agentKey })
  const { data } = await edit(run_id, { metadata: { big: 12345 } }, agent.agentKey)
  expect(data).toMatchObject({ status: 'completed', tags: ['b', 'c'], metadata: { big: 12345 }, output: { ok: true } })
  expect((await service.api('GET', `/api/v1/runs/${run_id}`)).data).toEqual(data)
  expect((await service.api('GET', '/api/v1/runs?tag=c')).data.items).toMatchObject([
    { run_id, metadata: { big: 12345 } },
  ])
  const shown = () => socket.items('runs').map(({ run }) => [run?.status, run?.tags, run?.metadata])
  await eventually(() => Bun.deepEquals(shown().at(-1)?.[2], { big: 12345 }))
  // The start may be among them, too.
  expect(shown().slice(-3)).toEqual([
    ['running', ['b', 'c'], { n: 1 }],
    ['completed', ['b', 'c'], { n: 1 }],
    ['completed', ['b', 'c'], { big: 12345 }],
  ])
  await eventually(async () => {
    const query = 'select tags, metadata.big::Int64 as big, status from runs where run_id = {run:UUID}'
    const answer = await service.api('POST', '/api/v1/query', { query, params: { run: run_id } })
    return JSON.stringify(answer.data.rows) === '[{"tags":["b","c"],"big":12345,"status":"completed"}]'
  })
  await socket.close()
})

test('an empty edit changes nothing; a repeated start is still the same', async () => {
  const run_id = Bun.randomUUIDv7()
  const start = { agent_id: agent.agentId, run_id, tags: ['a'] }
  const again = () => service.api('POST', '/api/ingest/v1/run/start', start, { key: agent.agentKey })
  await again()
  const before = (await service.api('GET', `/api/v1/runs/${run_id}`)).data
  expect((await edit(run_id, {})).data).toEqual(before)
  await edit(run_id, { tags: [] })
  expect((await again()).data).toEqual({ run_id })
})

test('keys of other agents and workspaces, unknown members and too many tags are refused', async () => {
  const run_id = await agent.start()
  const sibling = await newReporter(service.api)
  const tenant = await newTenant(service)
  const codes = async (body: unknown, key?: string) => {
    const { status, error } = await edit(run_id, body, key)
    return [status, error?.code, error?.reason, error?.param]
  }
  expect(await codes({ tags: ['x'] }, sibling.agentKey)).toEqual([403, 'FORBIDDEN', 'wrong_agent', undefined])
  const { status } = await tenant.api('PATCH', `/api/v1/runs/${run_id}`, { tags: ['x'] })
  expect(status).toBe(404)
  expect(await codes({ input: {} })).toEqual([400, 'VALIDATION_ERROR', undefined, 'input'])
  expect(await codes({ tags: Array(21).fill('t') })).toEqual([400, 'VALIDATION_ERROR', undefined, 'tags'])
  expect((await service.api('GET', `/api/v1/runs/${run_id}`)).data.tags).toEqual([])
})
