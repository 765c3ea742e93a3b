import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { startModelServer } from '../support/model-server.ts'
import { rowsInSql, startTestService, type TestService } from '../support/service.ts'

/** A real program with the OpenAI Agents SDK, whose exporter is pointed at the service by address and key only. */

const PROGRAM = join(import.meta.dir, '..', 'support', 'openai-agents-program.ts')
const USAGE = [1_000, 100] as const
let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

interface SentSpan {
  readonly id: string
  readonly trace_id: string
  readonly parent_id: string | null
  readonly span_data: { readonly type: string }
}

/** Runs the program. @returns the spans as the SDK has them */
async function send(env: Record<string, string> = {}): Promise<SentSpan[]> {
  const model = startModelServer([
    { toolCalls: [{ name: 'transfer_to_Support', arguments: {} }], usage: USAGE },
    { toolCalls: [{ name: 'search', arguments: { query: 'A-1' } }], usage: USAGE },
    { toolCalls: [{ name: 'search', arguments: { query: 'broken' } }], usage: USAGE },
    { text: 'It is on its way.', usage: USAGE },
  ])
  const child = Bun.spawn([process.execPath, PROGRAM], {
    env: {
      PATH: process.env.PATH ?? '',
      OPENAI_API_KEY: 'of-the-model',
      OPENAI_BASE_URL: model.url,
      TRACES_ENDPOINT: `${service.url}/openai/v1/traces/ingest`,
      TRACES_KEY: service.workspaceKey,
      ...env,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, problems] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  expect(await child.exited, problems).toBe(0)
  expect(problems).not.toContain('racing')
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

const rowsOf = (query: string, params: object) => rowsInSql(service.api, query, { params })

test('a handoff, tools and model calls of the SDK are rows with ids, names, parents, tokens and cost, sent twice or not', async () => {
  const twice: Record<string, string> = { SEND_TWICE: 'yes' }
  for (const env of [{}, twice]) {
    const spans = await send(env)
    const trace = spans[0]?.trace_id ?? ''
    expect(trace).toMatch(/^trace_[0-9a-f]{32}$/)
    const run = await eventually(async () => {
      const [row] = await rowsOf(
        `SELECT r.run_id AS run_id, r.session_id AS session_id, r.input_tokens AS input_tokens, r.output_tokens AS output_tokens,
           r.cost_usd AS cost_usd, r.metadata AS metadata, a.name AS agent
         FROM runs AS r JOIN agents AS a ON a.agent_id = r.agent_id
         WHERE r.external_run_id = {trace:String} AND r.status = 'completed' AND r.output_tokens > 0`,
        { trace },
      )
      return row ?? false
    })
    expect(run).toMatchObject({
      ...{ agent: 'Orders', session_id: 'conversation-9', metadata: { metadata: { tenant: 'acme' } } },
      cost_usd: 4 * ((1_000 * 0.25 + 100 * 2) / 1e6),
    })
    expect([Number(run.input_tokens), Number(run.output_tokens)]).toEqual([4_000, 400])
    const events = await rowsOf(
      `SELECT type, level, payload.span_id::String AS span, ifNull(payload.parent_span_id::String, '') AS parent,
         payload.span_type::String AS kind, payload.name::String AS name
       FROM events WHERE run_id = {run:UUID}`,
      { run: run.run_id },
    )
    const sent = spans.map(({ id, parent_id }) => [id, parent_id ?? ''])
    const stored = events.map(({ span, parent }: Record<string, string>) => [span, parent])
    expect(stored.sort()).toEqual(sent.sort())
    const names = events.map(({ type, level, name }: Record<string, string>) => `${type} ${level} ${name}`)
    const counts = Object.fromEntries(Map.groupBy(names as string[], (name) => name))
    expect(Object.fromEntries(Object.entries(counts).map(([name, all]) => [name, all?.length]))).toMatchObject({
      'llm.call info generation gpt-5-mini': 4,
      'span info handoff to Support': 1,
      'span info Triage': 1,
      'span info Support': 1,
      'tool.call.finished info search': 1,
      'tool.call.finished error search': 1,
    })
    const [call] = await rowsOf(
      `SELECT payload.gen_ai.output.messages AS messages, payload.gen_ai.response.finish_reasons AS reasons
       FROM events WHERE run_id = {run:UUID} AND payload.gen_ai.response.finish_reasons::String LIKE '%stop%'`,
      { run: run.run_id },
    )
    expect(JSON.stringify(call)).toContain('It is on its way.')
    const [tasks] = await rowsOf(
      `SELECT count() AS tasks, uniqExact(task_id) AS ids, countIf(status = 'failed') AS failed,
         countIf(parent_task_id IS NULL) AS roots
       FROM tasks WHERE run_id = {run:UUID}`,
      { run: run.run_id },
    )
    const figures = [tasks.tasks, tasks.ids, tasks.failed, tasks.roots].map(Number)
    expect(figures).toEqual([spans.length, spans.length, 1, spans.filter(({ parent_id }) => parent_id === null).length])
  }
})
