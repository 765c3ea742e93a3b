import { expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { LiveStream } from '../support/feeds.ts'
import { COST_USD, exportsOf, type RecordedRun, recordedRun } from '../support/otel-runs.ts'
import { attributesOf, randomHex, START_MS, sendExport, span, tracesOf } from '../support/otlp.ts'
import { seededRandom } from '../support/random.ts'
import { rowsInSql, startTestService, type TestService } from '../support/service.ts'

const RUNS = 2_000
const SPANS_PER_EXPORT = 512
const AT_ONCE = 4

async function sendAll(service: TestService, exports: readonly Uint8Array[]): Promise<(number | null)[]> {
  const left = [...exports]
  const lastSeqs: (number | null)[] = []
  const send = async () => {
    for (let data = left.pop(); data !== undefined; data = left.pop()) {
      const { status, body, lastSeq } = await sendExport(service, 'traces', data)
      expect([status, body]).toEqual([200, {}])
      lastSeqs.push(lastSeq)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, send))
  return lastSeqs
}

function sum(runs: readonly RecordedRun[], of: (run: RecordedRun) => number): number {
  return runs.reduce((total, run) => total + of(run), 0)
}

function shuffled<T>(items: readonly T[], random: ReturnType<typeof seededRandom>): T[] {
  return items
    .map((item) => ({ item, key: random.next() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item)
}

test('SQL has the right sums over 2,000 recorded runs; sending them again changes nothing', async () => {
  const random = seededRandom('recorded runs')
  const service = await startTestService({
    RATE_LIMIT_EVENTS_PER_SECOND: '0',
    RATE_LIMIT_INGEST_REQUESTS_PER_MINUTE: '0',
  })
  const runs = Array.from({ length: RUNS }, () => recordedRun(random))
  const spans = runs.flatMap((run) => run.spans)
  // Shuffled: the spans of a run are spread over exports, children before and after their parents.
  const first = await sendAll(service, exportsOf(shuffled(spans, random), SPANS_PER_EXPORT, 'recorded'))

  const expected = {
    runs: RUNS,
    failed: runs.filter(({ failed }) => failed).length,
    input_tokens: sum(runs, ({ inputTokens }) => inputTokens),
    output_tokens: sum(runs, ({ outputTokens }) => outputTokens),
    cost_usd: sum(runs, ({ modelCalls }) => modelCalls) * COST_USD,
  }
  const sums = `select count() as runs, countIf(status = 'failed') as failed, sum(input_tokens) as input_tokens,
    sum(output_tokens) as output_tokens, sum(cost_usd) as cost_usd from runs where status != 'running'`
  const summed = async () => expect(await rowsInSql(service.api, sums)).toMatchObject([expected])
  // The ends of runs and the sums of their tokens trail the events.
  await eventually(summed, { intervalMs: 200 })
  const stored = `select (select count() from events) as events, (select count() from tasks) as tasks,
    (select sum(toFloat64(payload.gen_ai.usage.input_tokens)) from events where type = 'llm.call') as input_tokens,
    (select max(seq) from events) as last_event, (select max(updated_at) from tasks) as last_task`
  const before = await rowsInSql(service.api, stored, { wait_for: Math.max(...first.map((seq) => seq ?? 0)) })
  expect(before).toMatchObject([{ events: spans.length, tasks: spans.length }])

  const feed = await LiveStream.open(service, '/api/v1/stream')
  for (let i = 0; i < 2; i++) {
    const again = await sendAll(service, exportsOf(shuffled(spans, random), SPANS_PER_EXPORT, 'recorded'))
    expect(again.every((seq) => seq === null)).toBe(true)
  }
  expect(await rowsInSql(service.api, stored)).toEqual(before)
  await summed()
  // Anything that the repeats had written would reach the feed before this span.
  await sendExport(service, 'traces', tracesOf([span({ name: 'other' })], { 'service.name': 'another' }))
  await feed.until(() => feed.items.some(({ kind }) => kind === 'task'))
  expect(feed.items.every(({ task, run }) => task?.name !== 'chat a-model' && run?.agent_name !== 'recorded')).toBe(
    true,
  )
  expect(feed.items.filter(({ kind }) => kind === 'task')).toHaveLength(1)
  await feed.close()
  await service.stop()
})

test('unfinished spans are running tasks in feeds and the API, and complete when they are sent with an end', async () => {
  const service = await startTestService()
  const feed = await LiveStream.open(service, '/api/v1/stream')
  const traceId = randomHex(16)
  const root = span({ traceId, name: 'invoke_agent live', attributes: attributesOf({ 'input.value': 'go' }) })
  const tool = span({ traceId, parentSpanId: root.spanId, name: 'execute_tool slow' })
  const underWay = tracesOf([
    { ...root, endTimeUnixNano: '0' },
    { ...tool, endTimeUnixNano: '0' },
  ])
  for (let i = 0; i < 3; i++) expect((await sendExport(service, 'traces', underWay)).body).toEqual({})
  const [run] = (await service.api('GET', `/api/v1/runs?external_run_id=${traceId}`)).data.items
  expect(run).toMatchObject({ status: 'running', started_at: new Date(START_MS).toISOString() })
  const tasks = async () => {
    const { data } = await service.api('GET', `/api/v1/runs/${run.run_id}/tasks`)
    return Object.fromEntries(data.items.map((task: { name: string }) => [task.name, task]))
  }
  const started = { status: 'running', started_at: new Date(START_MS).toISOString(), completed_at: null }
  expect(await tasks()).toMatchObject({ 'invoke_agent live': started, 'execute_tool slow': started })
  await feed.until(() => feed.items.filter(({ kind }) => kind === 'task').length >= 2)

  const ended = tracesOf([root, tool])
  await sendExport(service, 'traces', ended)
  // A late report of the start changes nothing.
  await sendExport(service, 'traces', underWay)
  await sendExport(service, 'traces', ended)
  const completed = { status: 'completed', completed_at: new Date(START_MS + 250).toISOString() }
  expect(await tasks()).toMatchObject({ 'invoke_agent live': completed, 'execute_tool slow': completed })
  await feed.until(() => feed.items.some(({ run: row }) => row?.status === 'completed'))
  const seen = feed.items.filter(({ kind }) => kind === 'task').map(({ task }) => `${task!.name} ${task!.status}`)
  expect(seen.sort()).toEqual([
    'execute_tool slow completed',
    'execute_tool slow running',
    'invoke_agent live completed',
    'invoke_agent live running',
  ])
  await feed.close()
  await service.stop()
})
