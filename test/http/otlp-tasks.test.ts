import { beforeAll, expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { attributesOf, inProtobuf, randomHex, START_MS, sendExport, span, tracesOf } from '../support/otlp.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** `GET /api/v1/runs/:run_id/tasks` of runs that OpenTelemetry reports: these tasks are read from ClickHouse. */

const SPANS = 450

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

interface Task {
  readonly id: string
  readonly name: string
  readonly created_at: string
}

async function runIdOf(traceId: string, key?: string): Promise<string> {
  const { data } = await service.api('GET', `/api/v1/runs?external_run_id=${traceId}`, undefined, { key })
  return data.items[0].run_id
}

async function pagesOf(runId: string, query: string): Promise<Task[][]> {
  const pages: Task[][] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const path = `/api/v1/runs/${runId}/tasks?${query}${cursor && `&cursor=${cursor}`}`
    const { status, data } = await service.api('GET', path)
    expect(status).toBe(200)
    pages.push(data.items)
    cursor = data.next_cursor
  }
  return pages
}

test('pages list each task once, newest first', async () => {
  const traceId = randomHex(16)
  const spans = Array.from({ length: SPANS }, (_, i) => span({ traceId, name: `span ${i}` }))
  for (const part of [spans.slice(0, 200), spans.slice(200)]) {
    await sendExport(service, 'traces', inProtobuf(tracesOf(part)))
  }
  const pages = await pagesOf(await runIdOf(traceId), 'limit=100')
  expect(pages.map((page) => page.length)).toEqual([100, 100, 100, 100, 50])
  const tasks = pages.flat()
  expect(new Set(tasks.map(({ name }) => name)).size).toBe(SPANS)
  const times = tasks.map(({ created_at }) => created_at)
  expect(times).toEqual(times.toSorted().reverse())
})

test('a page ends early when its tasks are large', async () => {
  const traceId = randomHex(16)
  const text = 'x'.repeat(2_500_000)
  for (let i = 0; i < 5; i++) {
    const attributes = attributesOf({ 'input.value': text })
    await sendExport(service, 'traces', inProtobuf(tracesOf([span({ traceId, name: `${i}`, attributes })])))
  }
  const pages = await pagesOf(await runIdOf(traceId), 'limit=50')
  expect(pages.length).toBeGreaterThan(1)
  expect(pages.flat().map(({ name }) => name)).toEqual(['4', '3', '2', '1', '0'])
})

test('an invalid cursor is rejected', async () => {
  const traceId = randomHex(16)
  await sendExport(service, 'traces', tracesOf([span({ traceId })]))
  const { status, error } = await service.api('GET', `/api/v1/runs/${await runIdOf(traceId)}/tasks?cursor=nonsense`)
  expect([status, error?.code]).toEqual([400, 'VALIDATION_ERROR'])
})

test('a task reported through the API is listed, too', async () => {
  const { agentKey } = await newAgent(service.api)
  const traceId = randomHex(16)
  await sendExport(service, 'traces', tracesOf([span({ traceId, name: 'a span' })]), { key: agentKey })
  const runId = await runIdOf(traceId, agentKey)
  const task = { id: crypto.randomUUID(), name: 'by hand', status: 'running', input: { n: 12 } }
  const started_at = new Date(START_MS).toISOString()
  const report = { run_id: runId, task: { ...task, started_at } }
  expect((await service.api('POST', '/api/ingest/v1/tasks', report, { key: agentKey })).status).toBe(200)
  const { data } = await service.api('GET', `/api/v1/runs/${runId}/tasks`)
  expect(data.items.map(({ name }: Task) => name).sort()).toEqual(['a span', 'by hand'])
  expect(data.items.find(({ name }: Task) => name === 'by hand')).toMatchObject({
    ...task,
    started_at,
    completed_at: null,
  })
})

test('an agent key cannot read the tasks of another agent', async () => {
  const { agentKey } = await newAgent(service.api)
  const traceId = randomHex(16)
  await sendExport(service, 'traces', tracesOf([span({ traceId })]))
  const path = `/api/v1/runs/${await runIdOf(traceId)}/tasks`
  expect((await service.api('GET', path, undefined, { key: agentKey })).status).toBe(403)
})
