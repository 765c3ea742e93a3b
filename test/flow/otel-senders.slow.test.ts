import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { startModelServer } from '../support/model-server.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Real programs with OpenTelemetry from npm, pointed at the service by environment variables only. */

const PROGRAM = join(import.meta.dir, '..', 'support', 'otel-program.ts')
let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

/** @returns what the program printed as errors */
async function send(name: string, env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn([process.execPath, PROGRAM, name], {
    env: {
      PATH: process.env.PATH ?? '',
      OTEL_EXPORTER_OTLP_ENDPOINT: `${service.url}/otlp`,
      OTEL_EXPORTER_OTLP_HEADERS: `x-api-key=${service.workspaceKey}`,
      OTEL_SERVICE_NAME: name,
      OTEL_METRICS_EXPORTER: 'none',
      ...env,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const printed = await new Response(child.stderr).text()
  expect(await child.exited, printed).toBe(0)
  return printed
}

interface Ended {
  readonly agent_id: string
  readonly completed_at: string | null
  readonly usage: { readonly total_tokens: number }
}

/** Runs a program, and waits until its run has ended and its tokens are counted; returns it with its tasks and events. */
async function reportOf(program: string, env: Record<string, string> = {}, agentName = program) {
  const printed = await send(program, env)
  const agents = (await service.api('GET', '/api/v1/agents?limit=200')).data.items
  const agent = agents.find(({ name }: { name: string }) => name === agentName)
  const run = await eventually(async () => {
    const runs = (await service.api('GET', '/api/v1/runs?limit=200&include=input,output')).data.items
    const isWanted = ({ agent_id, completed_at, usage }: Ended) =>
      agent_id === agent?.agent_id && completed_at !== null && usage.total_tokens > 0
    const seen = () => JSON.stringify({ agents, runs, printed }, null, 1)
    return runs.find(isWanted) ?? Promise.reject(new Error(`no ended run of ${agentName} with tokens: ${seen()}`))
  })
  const tasks = (await service.api('GET', `/api/v1/runs/${run.run_id}/tasks`)).data.items
  const events = (await service.api('GET', `/api/v1/runs/${run.run_id}/events`)).data.items
  return { run, tasks, events }
}

interface Named {
  readonly id: string
  readonly name: string
  readonly parent_task_id: string | null
  readonly status: string
}

/** Each task as `parent > name`. */
function tree(tasks: readonly Named[]): string[] {
  const names = new Map(tasks.map(({ id, name }) => [id, name]))
  return tasks.map(({ name, parent_task_id: parent }) => `${parent && (names.get(parent) ?? '?')} > ${name}`).sort()
}

interface Typed {
  readonly type: string
  readonly level: string
  readonly payload: Record<string, unknown>
}

function modelCalls(events: readonly Typed[]) {
  return events
    .filter(({ type }) => type === 'llm.call')
    .map(({ payload }) => [payload['gen_ai.usage.input_tokens'], payload['gen_ai.usage.output_tokens']])
}

describe('@opentelemetry/sdk-node', () => {
  for (const protocol of ['http/protobuf', 'http/json']) {
    test(`with ${protocol}: the run, its tree, its exception and its log record`, async () => {
      const fresh = await startTestService()
      const shared = service
      service = fresh
      // The service has the agent's name, because the log records of the trace may arrive before its spans.
      const env = { OTEL_EXPORTER_OTLP_PROTOCOL: protocol, OTEL_SERVICE_NAME: 'planner' }
      const { run, tasks, events } = await reportOf('manual', env, 'planner')
      service = shared
      await fresh.stop()
      expect(run).toMatchObject({ status: 'completed', input: { messages: [{ content: 'Where is my order?' }] } })
      expect(tree(tasks)).toEqual([
        'invoke_agent planner > chat gpt-5-mini',
        'invoke_agent planner > execute_tool get_order',
        'null > invoke_agent planner',
      ])
      expect(tasks.find(({ name }: Named) => name.startsWith('execute_tool'))).toMatchObject({
        status: 'failed',
        error_message: 'no such order',
      })
      expect(events.map(({ type, level }: Typed) => `${type} ${level}`).sort()).toEqual([
        'exception error',
        'llm.call info',
        'log info',
        'span info',
        'tool.call.finished error',
      ])
      expect(modelCalls(events)).toEqual([[120, 30]])
      expect(run.usage).toMatchObject({ input_tokens: 120, output_tokens: 30 })
      expect(run.cost_usd).toBeGreaterThan(0)
      expect(events.find(({ type }: Typed) => type === 'log')).toMatchObject({
        payload: { body: 'asked the model', attempt: 1 },
      })
    })
  }

  test('the agent is named by the root span rather than by the service', async () => {
    const { run } = await reportOf('manual', { OTEL_LOGS_EXPORTER: 'none' }, 'planner')
    expect(run.metadata.resource).toMatchObject({ 'service.name': 'manual' })
  })
})

test('the Vercel AI SDK: a tree of model and tool calls, with the tokens counted once', async () => {
  const { run, tasks, events } = await reportOf('vercel')
  expect(run).toMatchObject({
    status: 'completed',
    input: { messages: [{ role: 'user', parts: [{ content: 'What is the weather in Rome?' }] }] },
    output: { messages: [{ role: 'assistant', parts: [{ content: 'It is sunny.' }, {}, {}] }] },
  })
  expect(tree(tasks)).toEqual([
    'invoke_agent m-1 > step 1',
    'invoke_agent m-1 > step 2',
    'null > invoke_agent m-1',
    'step 1 > chat m-1',
    'step 1 > execute_tool weather',
    'step 2 > chat m-1',
  ])
  expect(modelCalls(events)).toEqual([
    [50, 7],
    [50, 7],
  ])
  expect(run.usage).toMatchObject({ input_tokens: 100, output_tokens: 14 })
  expect(tasks.find(({ name }: Named) => name === 'execute_tool weather')).toMatchObject({
    input: { city: 'Rome' },
    output: { sky: 'sunny' },
  })
})

for (const name of ['openinference', 'traceloop']) {
  test(`openai instrumented by ${name}: one model call with its tokens and messages`, async () => {
    const model = startModelServer({ text: 'Hello', usage: [11, 3] })
    const { run, tasks, events } = await reportOf(name, { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: model.url })
    await model.stop()
    expect(run.status).toBe('completed')
    expect(tasks).toHaveLength(1)
    expect(JSON.stringify(run.input)).toContain('Say hello.')
    expect(JSON.stringify(run.output)).toContain('Hello')
    expect(modelCalls(events)).toEqual([[11, 3]])
    expect(run.usage).toMatchObject({ input_tokens: 11, output_tokens: 3 })
    expect(run.cost_usd).toBeGreaterThan(0)
  })
}

test('LangChain: the chain with its model call and a failed tool', async () => {
  const { run, tasks, events } = await reportOf('langchain')
  expect(run).toMatchObject({
    status: 'completed',
    input: { text: 'What is the weather in Rome?' },
    output: { text: 'It is sunny.' },
    usage: { input_tokens: 40, output_tokens: 6 },
  })
  expect(tree(tasks)).toEqual(['forecast > Scripted', 'forecast > weather', 'null > forecast'])
  expect(tasks.find(({ name }: Named) => name === 'weather')).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('no such city'),
  })
  expect(modelCalls(events)).toEqual([[40, 6]])
})

for (const name of ['logs-protobuf', 'logs-json']) {
  test(`log records without traces, ${name}: events of the run of their session`, async () => {
    await send(name)
    const runs = await service.api('GET', `/api/v1/runs?external_run_id=${name}`)
    expect(runs.data.items).toMatchObject([{ status: 'running', session_id: name }])
    const { data } = await service.api('GET', `/api/v1/runs/${runs.data.items[0].run_id}/events`)
    expect(data.items).toMatchObject([
      { type: 'tool_result', level: 'error', payload: { body: { ok: false }, 'tool.name': 'edit' } },
      { type: 'api_request', level: 'info', payload: { body: 'asked' } },
    ])
  })
}
