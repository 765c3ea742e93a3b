import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { rowsInSql, startTestService, type TestService } from '../support/service.ts'

/** Real programs with the SDKs of Langfuse from npm, pointed at the service by environment variables only. */

const PROGRAM = join(import.meta.dir, '..', 'support', 'langfuse-program.ts')
let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

/** @returns the id of the trace, and every batch that the program sent */
async function send(name: string): Promise<{ traceId: string; requests: Recorded[] }> {
  const requests: Recorded[] = []
  // Records what the program sends, so that it can be sent again.
  const proxy = Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const { method } = request
      const body = method === 'GET' ? undefined : await request.bytes()
      const headers = Object.fromEntries(
        ['authorization', 'content-type', 'content-encoding'].flatMap((header) => {
          const value = request.headers.get(header)
          return value === null ? [] : [[header, value]]
        }),
      )
      const recorded = { method, pathname, body, headers }
      const response = await sendRecorded(recorded)
      if (method === 'POST') requests.push(recorded)
      return new Response(await response.bytes(), {
        status: response.status,
        headers: { 'content-type': 'application/json' },
      })
    },
  })
  const url = `http://127.0.0.1:${proxy.port}`
  const child = Bun.spawn([process.execPath, PROGRAM, name, name], {
    env: {
      PATH: process.env.PATH ?? '',
      ...{ LANGFUSE_BASE_URL: url, LANGFUSE_BASEURL: url },
      ...{ LANGFUSE_PUBLIC_KEY: 'pk-lf-x', LANGFUSE_SECRET_KEY: service.workspaceKey },
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [printed, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  expect(await child.exited, errors).toBe(0)
  await proxy.stop(true)
  return { traceId: printed.trim().split('\n').at(-1) ?? '', requests }
}

interface Recorded {
  readonly method: string
  readonly pathname: string
  readonly body: Uint8Array<ArrayBuffer> | undefined
  readonly headers: Record<string, string>
}

function sendRecorded({ method, pathname, body, headers }: Recorded): Promise<Response> {
  return fetch(`${service.url}${pathname}`, { method, headers, ...(body !== undefined && { body }) })
}

const rowsOf = (query: string, params: object) => rowsInSql(service.api, query, { params })

/** The run of a trace, once its tokens are counted, with its tasks and events, in SQL. */
async function inSql(traceId: string, hasTokens = true) {
  const run = await eventually(async () => {
    const rows = await rowsOf(
      `select toString(run_id) as id, status, session_id, external_user_id, tags, input_tokens, output_tokens, cost_usd, agent_name,
         toString(input) as input, toString(output) as output
       from runs where external_run_id = {trace:String}`,
      { trace: traceId },
    )
    const [row] = rows
    return row !== undefined && row.status !== 'running' && (!hasTokens || row.input_tokens > 0) && row
  })
  const params = { run: run.id }
  const tasks = await rowsOf(
    `select t.name as name, p.name as parent, t.status as status, t.error_message as error_message from tasks t
     left join tasks p on p.task_id = t.parent_task_id and p.run_id = t.run_id
     where t.run_id = {run:UUID} order by name`,
    params,
  )
  const events = await rowsOf(
    `select type, level, toString(task_id) as task, toString(payload) as payload from events where run_id = {run:UUID} order by seq`,
    params,
  )
  const scores = await rowsOf(
    `select name, value, label, comment, source from scores where run_id = {run:UUID} order by name`,
    params,
  )
  return { run, tasks, events, scores }
}

async function expectRepeatsToChangeNothing(traceId: string, requests: readonly Recorded[], hasTokens = true) {
  const before = await inSql(traceId, hasTokens)
  for (const request of requests) expect((await sendRecorded(request)).status).toBeLessThan(300)
  expect(await inSql(traceId, hasTokens)).toEqual(before)
}

const tree = (tasks: readonly { name: string; parent: string | null }[]) =>
  tasks.map(({ name, parent }) => `${parent || null} > ${name}`).sort()

test('langfuse 3: spans, generations, events, scores and updates, flushed at exit', async () => {
  const { traceId, requests } = await send('v3')
  const { run, tasks, events, scores } = await inSql(traceId)
  expect(run).toMatchObject({
    status: 'completed',
    session_id: 's-1',
    external_user_id: 'u-1',
    tags: ['x'],
  })
  expect([run.input_tokens, run.output_tokens, run.cost_usd]).toEqual([120, 30, 0.5])
  expect(tree(tasks)).toEqual(['null > plan', 'plan > fetch', 'plan > llm', 'plan > noticed'])
  expect(tasks.find(({ name }: { name: string }) => name === 'fetch')).toMatchObject({
    ...{ status: 'failed', error_message: 'no such order' },
  })
  const types = events.map(({ type }: { type: string }) => type).filter((type: string) => !type.endsWith('.updated'))
  expect(types.sort()).toEqual(['llm.call', 'noticed', 'span', 'span'])
  expect(scores).toMatchObject([
    { name: 'grade', value: null, label: 'good', comment: 'as it was asked', source: 'api' },
    { name: 'helpful', value: 1, label: null },
  ])
  await expectRepeatsToChangeNothing(traceId, requests)
})

test('@langfuse/tracing and @langfuse/otel: observations over OpenTelemetry', async () => {
  const { traceId, requests } = await send('otel')
  expect(requests.map(({ pathname }) => pathname)).toContain('/api/public/otel/v1/traces')
  const { run, tasks, events, scores } = await inSql(traceId)
  expect(run).toMatchObject({ status: 'completed', session_id: 's-1', external_user_id: 'u-1', tags: ['x'] })
  expect([run.input_tokens, run.output_tokens, run.cost_usd]).toEqual([120, 30, 0.5])
  expect(JSON.parse(run.output)).toEqual({ done: true })
  expect(tree(tasks)).toEqual(['null > plan', 'plan > fetch', 'plan > llm'])
  expect(tasks.find(({ name }: { name: string }) => name === 'fetch')).toMatchObject({
    ...{ status: 'failed', error_message: 'no such order' },
  })
  expect(events.map(({ type }: { type: string }) => type).sort()).toEqual(['llm.call', 'span', 'tool.call.finished'])
  expect(scores).toMatchObject([{ name: 'grade', label: 'good' }])
  await expectRepeatsToChangeNothing(traceId, requests)
})

test('langfuse-langchain: a chain with a model call', async () => {
  const { traceId, requests } = await send('langchain')
  const { run, tasks, events } = await inSql(traceId, false)
  expect(run).toMatchObject({ status: 'completed', session_id: 's-1', external_user_id: 'u-1', tags: ['x'] })
  expect(tree(tasks)).toEqual(['langchain > FakeListChatModel', 'null > langchain'])
  expect(events.filter(({ type }: { type: string }) => type === 'llm.call')).toHaveLength(1)
  await expectRepeatsToChangeNothing(traceId, requests, false)
})
