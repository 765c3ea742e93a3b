import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type CallOptions, newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { type HostedAgent, newHostedAgent, OutputReader, untilStatus } from '../support/hosted.ts'
import { type ModelServer, startModelServer } from '../support/model-server.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { usageRecord } from '../support/usage.ts'

/** Invoking a hosted agent and waiting for the run (docs/hosted-agents.md#invoke). */

let service: TestService
let model: ModelServer
let agent: HostedAgent

beforeAll(async () => {
  model = startModelServer()
  service = await startTestService({
    OPENAI_BASE_URL: model.url,
    MODEL_PRICES: JSON.stringify({ m: { input: 2, output: 10 } }),
  })
  agent = await newHostedAgent(service)
})

beforeEach(() => model.script({}))

/** The last model request. */
const asked = () => model.requests.at(-1)!.body
const runOf = async (runId: string) => (await service.api('GET', `/api/v1/runs/${runId}`)).data

describe('an invocation', () => {
  test('returns the output and usage of its run, and no session', async () => {
    model.script({ text: 'Good morning.', usage: [12, 3] })
    const { status, data, headers } = await agent.invoke({ input: { message: 'Hello' } })
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json')
    expect(data).toEqual({
      run_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      session_id: null,
      status: 'completed',
      output: { text: 'Good morning.' },
      usage: usageRecord(12, 3),
    })
  })

  test.each<[string, string | undefined, string]>([
    ['a message', '{"message":"Hi"}', 'Hi'],
    ['an empty message', '{"message":"","more":1}', ''],
    ['a message that is not a string', '{"message":{"a":1}}', '{"message":{"a":1}}'],
    ['no message', '{"b":1.50,"a":[null,"ü"]}', '{"b":1.50,"a":[null,"ü"]}'],
    ['nothing', undefined, '{}'],
  ])('with %s as input sends the model exactly that', async (_what, input, content) => {
    await service.api('POST', `/api/v1/agents/${agent.agentId}/invoke`, input ? `{"input":${input}}` : '{}')
    expect(asked().messages).toEqual([
      { role: 'system', content: 'You help.' },
      { role: 'user', content },
    ])
  })

  test('sends the settings of the agent to the model', async () => {
    const exact = await newHostedAgent(service, { model: 'gpt-x', temperature: 0.25, max_output_tokens: 77 })
    await exact.invoke()
    expect(asked()).toMatchObject({ model: 'gpt-x', temperature: 0.25 })
    expect(Object.values(asked())).toContain(77)
    expect(asked().tools).toBeUndefined()
    await agent.invoke()
    expect(asked().temperature).toBeUndefined()
  })

  test('has the settings of the agent at that moment, however often it was invoked before', async () => {
    const edited = await newHostedAgent(service, { prompt: 'You are {{NAME}}.' })
    const path = `/api/v1/agents/${edited.agentId}`
    const prompt = () => asked().messages[0]!.content
    await edited.invoke({ prompt_variables: { NAME: 'Ada' } })
    expect(prompt()).toBe('You are Ada.')
    await service.api('PATCH', path, { prompt: 'You are nobody.' })
    await edited.invoke()
    expect(prompt()).toBe('You are nobody.')
    await service.api('PATCH', path, { prompt: 'You are somebody.' })
    const { data } = await edited.invoke({ start_session: true })
    expect(prompt()).toBe('You are somebody.')
    expect(await runOf(data.run_id)).toMatchObject({ agent_version: 3, session_id: data.session_id })
    await service.api('PATCH', path, { status: 'paused' })
    expect((await edited.invoke()).status).toBe(400)
    await service.api('PATCH', path, { status: 'active' })
    expect((await edited.invoke()).status).toBe(200)
    await service.api('DELETE', path)
    expect((await edited.invoke()).status).toBe(404)
  })

  test('fills the placeholders of the prompt, and does not expand variable values', async () => {
    const greeter = await newHostedAgent(service, { prompt: 'You are {{NAME}} of {{ CO }}, {{NAME}}. {{no such}}' })
    await greeter.invoke({ prompt_variables: { NAME: '{{CO}} $& $1', CO: '', UNUSED: 'x' } })
    expect(asked().messages[0]!.content).toBe('You are {{CO}} $& $1 of , {{CO}} $& $1. {{no such}}')
  })

  test("sends the caller's history to the model and does not store it", async () => {
    const history = [
      { role: 'user', content: 'My name is Ada.' },
      { role: 'assistant', content: 'Hello Ada.' },
      { role: 'assistant', content: '' },
    ]
    const { data } = await agent.invoke({ history, input: { message: 'Who am I?' } })
    expect(asked().messages.slice(1)).toEqual([...history, { role: 'user', content: 'Who am I?' }])
    expect(data.session_id).toBeNull()
    await agent.invoke()
    expect(asked().messages).toHaveLength(2)
  })

  test('accepts any text, even what Postgres cannot store', async () => {
    const message = 'a\u0000b 🎉 \ud800'
    model.script({ text: 'c\u0000d 🎈' })
    const { data } = await agent.invoke({ input: { message } })
    expect(asked().messages[1]!.content).toBe('a\uFFFDb 🎉 \uFFFD')
    expect(data.output).toEqual({ text: 'c\uFFFDd 🎈' })
    expect((await runOf(data.run_id)).input).toEqual({ message })
  })
})

describe('the record of a run', () => {
  test('has usage, cost, agent version and ordered times', async () => {
    const edited = await newHostedAgent(service)
    await service.api('PATCH', `/api/v1/agents/${edited.agentId}`, { prompt: 'You help a lot.' })
    model.script({ text: 'Done.', usage: [1_000, 200] })
    const { data } = await edited.invoke({ input: { message: 'Go', n: 1 } })
    const run = await runOf(data.run_id)
    expect(run).toMatchObject({
      run_id: data.run_id,
      agent_id: edited.agentId,
      agent_version: 2,
      status: 'completed',
      trigger_type: 'sdk',
      input: { message: 'Go', n: 1 },
      output: { text: 'Done.' },
      error_message: null,
      error_detail: null,
      parent_run_id: null,
      session_id: null,
      external_user_id: null,
      usage: usageRecord(1_000, 200),
      cost_usd: 0.004,
      pending: null,
    })
    expect(Date.parse(run.created_at)).toBeLessThanOrEqual(Date.parse(run.started_at))
    expect(Date.parse(run.started_at)).toBeLessThanOrEqual(Date.parse(run.completed_at))
  })

  test('names its parent run, hosted or reported, which lists it as a child', async () => {
    const { agentId, agentKey } = await newAgent(service.api)
    const start = await service.api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
    const parent = await agent.invoke()
    for (const { data } of [start, parent]) {
      const child = await agent.invoke({ parent_run_id: data.run_id.toUpperCase() })
      expect((await runOf(child.data.run_id)).parent_run_id).toBe(data.run_id)
      const listed = await service.api('GET', `/api/v1/runs/${data.run_id}/children`)
      expect(listed.data.items.map((each: { run_id: string }) => each.run_id)).toEqual([child.data.run_id])
    }
  })

  test('is not affected by an edit of the agent while it runs', async () => {
    const edited = await newHostedAgent(service, { allow_input_requests: true })
    model.script({ delayMs: 150, text: 'Old.' })
    const running = edited.invoke()
    await eventually(() => model.open > 0)
    await service.api('PATCH', `/api/v1/agents/${edited.agentId}`, { prompt: 'New.', model: 'm2' })
    const { data } = await running
    expect(asked()).toMatchObject({ model: 'm', messages: [{ content: 'You help.' }, {}] })
    expect(await runOf(data.run_id)).toMatchObject({ agent_version: 1, output: { text: 'Old.' } })
  })
})

describe('in the background', () => {
  test('returns immediately as queued; the run record has the output later', async () => {
    model.script({ delayMs: 100, text: 'Later.' })
    const { status, data } = await agent.invoke({ background: true })
    expect(status).toBe(202)
    expect(data).toEqual({ run_id: data.run_id, session_id: null, status: 'queued', output: null })
    const run = await untilStatus(service, data.run_id, 'completed')
    expect(run.output).toEqual({ text: 'Later.' })
  })

  test('a failure is in the run record', async () => {
    model.script({ status: 401 })
    const { data } = await agent.invoke({ background: true })
    const run = await untilStatus(service, data.run_id, 'failed')
    expect(run.error_detail).toMatchObject({ reason: 'model_failed' })
  })
})

describe('a caller', () => {
  test('that disconnects does not stop its run', async () => {
    const gone = await newHostedAgent(service)
    model.script({ delayMs: 200, text: 'Still here.' })
    const leaving = new AbortController()
    const call = gone.invoke({}, { signal: leaving.signal }).catch((error) => error.name)
    await eventually(() => model.open > 0)
    leaving.abort()
    expect(await call).toBe('AbortError')
    const [{ run_id }] = (await service.api('GET', `/api/v1/runs?agent_id=${gone.agentId}`)).data.items
    expect((await untilStatus(service, run_id, 'completed')).output).toEqual({ text: 'Still here.' })
    expect(model.aborted).toBe(0)
  })

  test('that waits longer than its caller may gets 202 while the run continues', async () => {
    const impatient = await startTestService({ OPENAI_BASE_URL: model.url }, { bounds: { hosted: { waitMs: 1_000 } } })
    const hosted = await newHostedAgent(impatient)
    model.script({ delayMs: 1_300 })
    const { status, data } = await hosted.invoke()
    expect(status).toBe(202)
    expect(data).toEqual({ run_id: data.run_id, session_id: null, status: 'running', output: null })
    await untilStatus(impatient, data.run_id, 'completed')
    await impatient.stop()
  })
})

describe('a call with an Idempotency-Key', () => {
  const keyed = (): CallOptions => ({ headers: { 'idempotency-key': crypto.randomUUID() } })

  test('that is retried replays the first response without calling the model again', async () => {
    for (const body of [{ input: { n: 1 } }, { background: true }, { start_session: true }]) {
      const options = keyed()
      const first = await agent.invoke(body, options)
      const count = model.requests.length
      const second = await agent.invoke(body, options)
      expect([second.status, second.text]).toEqual([first.status, first.text])
      expect(second.headers.get('idempotent-replayed')).toBe('true')
      expect((await agent.invoke({ input: { n: 2 } }, options)).error!.code).toBe('CONFLICT')
      if (body.background !== true) expect(model.requests).toHaveLength(count)
    }
  })

  test('that is retried while the first is running is CONFLICT, and creates one run', async () => {
    model.script({ delayMs: 150 })
    const alone = await newHostedAgent(service)
    const options = keyed()
    const first = alone.invoke({}, options)
    await eventually(() => model.open > 0)
    const second = await alone.invoke({}, options)
    expect(second.error).toMatchObject({ code: 'CONFLICT', message: expect.stringContaining('still running') })
    expect(second.headers.get('retry-after')).not.toBeNull()
    await first
    expect((await service.api('GET', `/api/v1/runs?agent_id=${alone.agentId}`)).data.items).toHaveLength(1)
  })

  test('and a stream that is retried streams the same run from the beginning, finished or not', async () => {
    model.script({ text: ['a', 'b', 'c', 'd'], intervalMs: 60 })
    const options = keyed()
    const count = model.requests.length
    const first = await agent.stream({}, options)
    await first.until(() => first.textOf().length >= 1)
    const second = await agent.stream({}, options)
    await first.all()
    const third = await agent.stream({}, options)
    for (const reader of [first, second, third]) {
      const frames = await reader.all()
      expect(reader.textOf()).toBe('abcd')
      expect(frames.at(-1)).toEqual(first.frames.at(-1)!)
      expect(new Set(frames.map(({ data }) => data.run_id))).toEqual(new Set([await first.runId()]))
    }
    expect(model.requests).toHaveLength(count + 1)
  })
})

describe('cancelling', () => {
  const cancel = (runId: string, body: object = {}, options: CallOptions = {}) =>
    service.api('POST', `/api/v1/runs/${runId}/cancel`, body, options)

  test('aborts the model call, and ends waiting calls and streams', async () => {
    model.script({ hangs: true })
    const alone = await newHostedAgent(service)
    const before = model.aborted
    const waiting = alone.invoke()
    const [run] = await eventually(async () => {
      const { items } = (await service.api('GET', `/api/v1/runs?agent_id=${alone.agentId}`)).data
      return model.open > 0 && items.length > 0 && items
    })
    const stream = await OutputReader.ofRun(service, run.run_id)
    const cancelled = await cancel(run.run_id, { reason: 'not needed' }, { key: alone.agentKey })
    expect(cancelled.data).toMatchObject({ run_id: run.run_id, status: 'cancelled', already: false })
    expect((await waiting).data).toMatchObject({
      run_id: run.run_id,
      status: 'cancelled',
      output: null,
      error_message: 'not needed',
      error_detail: null,
    })
    expect((await waiting).status).toBe(200)
    expect((await stream.all()).at(-1)).toMatchObject({
      event: 'error',
      data: { code: 'cancelled', message: 'not needed', status: 'cancelled' },
    })
    await eventually(() => model.aborted === before + 1)
    expect((await cancel(run.run_id)).data).toMatchObject({ status: 'cancelled', already: true })
  })

  test('an ended run is CONFLICT, naming its status', async () => {
    const { data } = await agent.invoke()
    const { status, error } = await cancel(data.run_id)
    expect([status, error!.code]).toEqual([409, 'CONFLICT'])
    expect(error!.message).toContain('completed')
  })
})

describe('slots', () => {
  test('limit concurrent runs; the others are queued, run in order, and can be cancelled in the queue', async () => {
    const env = { OPENAI_BASE_URL: model.url, HOSTED_RUNS_AT_ONCE: '1' }
    const narrow = await startTestService(env, { bounds: { hosted: { queuedRuns: 3 } } })
    const hosted = await newHostedAgent(narrow)
    const gate = Promise.withResolvers<void>()
    model.script(async () => {
      await gate.promise
      return {}
    })
    const ids: string[] = []
    for (let i = 0; i < 4; i++)
      ids.push((await hosted.invoke({ background: true, input: { message: `${i}` } })).data.run_id)
    const { status, error, headers } = await hosted.invoke()
    expect([status, error!.code]).toEqual([429, 'RATE_LIMITED'])
    expect(error!.message).toContain('3 runs of this workspace are already queued')
    expect(headers.get('retry-after')).toBe('5')
    const stateOf = async (id: string) => (await narrow.api('GET', `/api/v1/runs/${id}`)).data
    expect(await stateOf(ids[1]!)).toMatchObject({ status: 'queued', started_at: null, pending: null })
    await narrow.api('POST', `/api/v1/runs/${ids[2]}/cancel`, {})
    expect(await stateOf(ids[2]!)).toMatchObject({ status: 'cancelled', started_at: null })
    const from = model.requests.length - 1
    gate.resolve()
    for (const id of [ids[0]!, ids[1]!, ids[3]!]) await untilStatus(narrow, id, 'completed')
    expect(model.requests.slice(from).map(({ body }) => body.messages[1]!.content)).toEqual(['0', '1', '3'])
    await narrow.stop()
  })
})
