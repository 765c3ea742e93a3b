import { beforeAll, expect, test } from 'bun:test'
import { newAgent, pagesOf } from '../support/api.ts'
import {
  attributesOf,
  eventsOf,
  inProtobuf,
  logsOf,
  randomHex,
  runsOf,
  START_MS,
  sendExport,
  span,
  tasksOf,
  tracesOf,
} from '../support/otlp.ts'
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

const tasksPath = async (traceId: string) => `/api/v1/runs/${(await runsOf(service, traceId))[0].run_id}/tasks`

async function taskPages(traceId: string, limit: number): Promise<Task[][]> {
  const path = await tasksPath(traceId)
  return pagesOf((cursor) => service.api('GET', `${path}?limit=${limit}${cursor}`))
}

test('pages list each task once, newest first', async () => {
  const traceId = randomHex(16)
  const spans = Array.from({ length: SPANS }, (_, i) => span({ traceId, name: `span ${i}` }))
  for (const part of [spans.slice(0, 200), spans.slice(200)]) {
    await sendExport(service, 'traces', inProtobuf(tracesOf(part)))
  }
  const pages = await taskPages(traceId, 100)
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
  const pages = await taskPages(traceId, 50)
  expect(pages.length).toBeGreaterThan(1)
  expect(pages.flat().map(({ name }) => name)).toEqual(['4', '3', '2', '1', '0'])
})

test('an invalid cursor is rejected', async () => {
  const traceId = randomHex(16)
  await sendExport(service, 'traces', tracesOf([span({ traceId })]))
  const { status, error } = await service.api('GET', `${await tasksPath(traceId)}?cursor=nonsense`)
  expect([status, error?.code]).toEqual([400, 'VALIDATION_ERROR'])
})

test('a task reported through the API is listed, too', async () => {
  const { agentKey } = await newAgent(service.api)
  const traceId = randomHex(16)
  await sendExport(service, 'traces', tracesOf([span({ traceId, name: 'a span' })]), { key: agentKey })
  const [{ run_id }] = await runsOf(service, traceId)
  const task = { id: crypto.randomUUID(), name: 'by hand', status: 'running', input: { n: 12 } }
  const started_at = new Date(START_MS).toISOString()
  const report = { run_id, task: { ...task, started_at } }
  expect((await service.api('POST', '/api/ingest/v1/tasks', report, { key: agentKey })).status).toBe(200)
  const tasks = await tasksOf(service, traceId)
  expect(tasks.map(({ name }: Task) => name).sort()).toEqual(['a span', 'by hand'])
  expect(tasks.find(({ name }: Task) => name === 'by hand')).toMatchObject({
    ...task,
    started_at,
    completed_at: null,
  })
})

test('events carry the task of their span: the event of its end, span events and log records', async () => {
  const traceId = randomHex(16)
  const events = [{ timeUnixNano: `${START_MS + 9}000000`, name: 'a note' }]
  const root = span({ traceId, name: 'root' })
  const inner = span({ traceId, name: 'inner', parentSpanId: root.spanId, events })
  await sendExport(service, 'traces', inProtobuf(tracesOf([root, inner])))
  const record = { timeUnixNano: `${START_MS + 10}000000`, body: { stringValue: 'a line' }, traceId }
  await sendExport(service, 'logs', inProtobuf(logsOf([{ ...record, spanId: inner.spanId }, record])))
  const names = new Map((await tasksOf(service, traceId)).map(({ id, name }: Task) => [id, name]))
  const stored: { readonly type: string; readonly task_id?: string }[] = await eventsOf(service, traceId)
  const tasks = stored.map(({ type, task_id }) => `${type} of ${task_id === undefined ? 'none' : names.get(task_id)}`)
  expect(tasks.sort()).toEqual(['a note of inner', 'log of inner', 'log of none', 'span of inner', 'span of root'])
})

test('an agent key cannot read the tasks of another agent', async () => {
  const { agentKey } = await newAgent(service.api)
  const traceId = randomHex(16)
  await sendExport(service, 'traces', tracesOf([span({ traceId })]))
  expect((await service.api('GET', await tasksPath(traceId), undefined, { key: agentKey })).status).toBe(403)
})
