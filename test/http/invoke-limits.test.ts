import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { newHostedAgent } from '../support/hosted.ts'
import { bySteps, type ModelServer, startModelServer, type Turn } from '../support/model-server.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { usageRecord } from '../support/usage.ts'

/**
 * Run limits, invalid model output and provider errors (docs/hosted-agents.md#outcomes and
 * docs/hosted-agents.md#invoke).
 */

const API_KEY = 'sk-this-is-the-key-of-the-tests'

let service: TestService
let model: ModelServer

beforeAll(async () => {
  model = startModelServer()
  service = await startTestService({
    OPENAI_API_KEY: API_KEY,
    OPENAI_BASE_URL: model.url,
    MODEL_PRICES: JSON.stringify({
      m: { input: 1_000, output: 1_000 },
      dear: { input: 10_000, output: 10_000 },
      caching: { input: 1_000, output: 1_000, cache_read: 100 },
    }),
    LIMIT_RUN_OUTPUT_BYTES: '5000',
  })
})

beforeEach(() => model.script({}))

/** Invokes an agent with these settings and expects the run record to match the response. */
async function outcomeOf(settings: object, script: Parameters<ModelServer['script']>[0], body: object = {}) {
  model.script(script)
  const before = model.requests.length
  const agent = await newHostedAgent(service, settings)
  const { status, data } = await agent.invoke(body)
  expect(status).toBe(200)
  const run = (await service.api('GET', `/api/v1/runs/${data.run_id}`)).data
  for (const field of ['status', 'output', 'usage'] as const) expect(run[field]).toEqual(data[field])
  if (data.status !== 'completed') {
    expect(data.output).toBeNull()
    expect([run.error_message, run.error_detail]).toEqual([data.error_message, data.error_detail])
  }
  expect(JSON.stringify(run)).not.toContain(API_KEY)
  return { data, run, requests: model.requests.slice(before).map(({ body }) => body) }
}

describe('an agent with an output_schema', () => {
  const output_schema = {
    type: 'object',
    properties: { city: { type: 'string' }, people: { type: 'integer', minimum: 0 } },
    required: ['city', 'people'],
    additionalProperties: false,
  }

  test('returns the object the model wrote, and requests structured output', async () => {
    const { data, requests } = await outcomeOf({ output_schema }, { text: '{"city":"Lima","people":10000000}' })
    expect(data).toMatchObject({ status: 'completed', output: { city: 'Lima', people: 10_000_000 } })
    expect(requests[0]).toMatchObject({ response_format: { type: 'json_schema' } })
    expect(requests).toHaveLength(1)
  })

  test('lets the model repair invalid output, telling it the problem', async () => {
    const turns: Turn[] = [{ text: '{"city":"Lima"}' }, { text: 'Lima!' }, { text: '{"city":"Lima","people":1}' }]
    const { data, requests } = await outcomeOf({ output_schema }, turns)
    expect(data).toMatchObject({ status: 'completed', output: { city: 'Lima', people: 1 } })
    expect(data.usage).toEqual(usageRecord(30, 15))
    expect(requests).toHaveLength(3)
    const [said, remark, again] = requests[2]!.messages.slice(-4)
    expect(said).toEqual({ role: 'assistant', content: '{"city":"Lima"}' })
    expect(remark!.role).toBe('user')
    expect(remark!.content).toMatch(
      /^This does not match the JSON Schema of the output: .*people.*corrected JSON only\.$/,
    )
    expect(again!.content).toBe('Lima!')
  })

  test('fails as output_invalid after two failed repairs, and reports the problem', async () => {
    const { data, requests } = await outcomeOf({ output_schema }, { text: '{"city":"Lima","people":-1}' })
    expect(data).toMatchObject({ status: 'failed', error_detail: { reason: 'output_invalid' } })
    expect(data.error_message).toMatch(/^the output of the model does not match output_schema: people: /)
    expect(requests).toHaveLength(3)
  })

  test('accepts only an object, whatever the schema allows', async () => {
    const turns: Turn[] = [{ text: '[1]' }, { text: '"a"' }, { text: '{"a":[]}' }]
    const { data } = await outcomeOf({ output_schema: { description: 'anything' } }, turns)
    expect(data).toMatchObject({ status: 'completed', output: { a: [] } })
  })

  test('stores the output in the session as the model wrote it', async () => {
    const { data } = await outcomeOf(
      { output_schema },
      { text: ' {"city": "Lima", "people": 2}\n' },
      { start_session: true },
    )
    const { items } = (await service.api('GET', `/api/v1/sessions/${data.session_id}/messages`)).data
    expect(JSON.parse(items[1].content)).toEqual({ city: 'Lima', people: 2 })
  })
})

describe('a run fails', () => {
  test('when it reaches max_steps without finishing', async () => {
    const { data, requests } = await outcomeOf({ max_steps: 3 }, { toolCalls: [{ name: 'none', arguments: {} }] })
    expect(data).toMatchObject({
      status: 'failed',
      error_message: 'the run has used its 3 steps (max_steps) and is not finished',
      error_detail: { reason: 'max_steps' },
    })
    expect(requests).toHaveLength(3)
  })

  test('when a model call exceeds budget_usd, even if the run would be complete', async () => {
    const { data, run } = await outcomeOf({ budget_usd: 0.01 }, { text: 'Dear.', usage: [9, 2] })
    expect(data).toMatchObject({
      status: 'failed',
      error_message: 'the run has exceeded its budget of 0.01 USD (budget_usd)',
      error_detail: { reason: 'budget_exceeded', budget_usd: 0.01 },
    })
    expect(data.error_detail.spent_usd).toBeCloseTo(0.011)
    expect(run.cost_usd).toBeCloseTo(0.011)
  })

  test('before a model call that is certain to exceed budget_usd', async () => {
    const turn = { toolCalls: [{ name: 'none', arguments: {} }], usage: [5, 1] } as const
    const { data, run, requests } = await outcomeOf({ budget_usd: 0.01 }, turn)
    expect(data.error_message).toBe('the run would exceed its budget of 0.01 USD (budget_usd)')
    expect(requests).toHaveLength(1)
    expect(run.cost_usd).toBeCloseTo(0.006)
  })

  test('only at the price of cached tokens, before a call or after it', async () => {
    const turn = { toolCalls: [{ name: 'none', arguments: {} }], usage: [50, 1, 48] } as const
    const { data, run, requests } = await outcomeOf({ model: 'caching', budget_usd: 0.03 }, turn)
    // A call costs 2 * 0.001 + 48 * 0.0001 + 1 * 0.001 = 0.0078, the next at least 3 * 0.001 + 48 * 0.0001 = 0.0078.
    expect(data.error_message).toBe('the run would exceed its budget of 0.03 USD (budget_usd)')
    expect(requests).toHaveLength(3)
    expect(run.cost_usd).toBeCloseTo(0.0234)
    expect(run.usage).toEqual(usageRecord(150, 3, { cache_read_tokens: 144 }))
    const path = `/api/v1/runs/${run.run_id}/events?type=llm.call`
    const call = await eventually(async () => (await service.api('GET', path)).data.items[0] ?? false)
    expect(call.payload).toMatchObject({ 'gen_ai.usage.cache_read.input_tokens': 48, cost_usd: 0.0078 })
  })

  test('when a model of unknown price exceeds the budget at the highest known price', async () => {
    const turn = { toolCalls: [{ name: 'none', arguments: {} }], usage: [10, 0] } as const
    const { data, run, requests } = await outcomeOf({ model: 'unknown', budget_usd: 0.45 }, turn)
    expect(data.error_detail).toMatchObject({ reason: 'budget_exceeded' })
    expect(requests).toHaveLength(4)
    expect(run.cost_usd).toBe(0)
  })

  test('when its output exceeds the limit', async () => {
    const { data } = await outcomeOf({}, { text: 'x'.repeat(5_001) })
    expect(data).toMatchObject({ status: 'failed', error_detail: { reason: 'output_too_large' } })
    expect(data.error_message).toContain('5000 bytes')
  })

  test('when the model refuses, with the refusal message', async () => {
    const { data } = await outcomeOf({}, { refusal: 'I would rather not.' })
    expect(data).toMatchObject({
      status: 'failed',
      error_message: 'the model refused: I would rather not.',
      error_detail: { reason: 'refused' },
    })
    const shaped = await outcomeOf({ output_schema: { type: 'object' } }, { refusal: 'No.' })
    expect(shaped.data.error_detail).toEqual({ reason: 'refused' })
    expect(shaped.requests).toHaveLength(1)
  })
})

test('a run over timeout_seconds is timed_out, and its model call is aborted', async () => {
  const aborted = model.aborted
  const { data } = await outcomeOf({ timeout_seconds: 1 }, { hangs: true })
  expect(data).toMatchObject({
    status: 'timed_out',
    error_message: 'the run has taken longer than 1 s (timeout_seconds)',
    error_detail: { reason: 'timeout' },
  })
  expect(model.aborted).toBe(aborted + 1)
})

describe('the provider error is reported', () => {
  test.each<[string, string, string, object]>([
    [
      'without the API key',
      JSON.stringify({ error: { message: `Incorrect API key provided: ${API_KEY}.`, code: 'a_code' } }),
      'the model provider answered 401: Incorrect API key provided: •••. (a_code)',
      { status: 401, code: 'a_code' },
    ],
    [
      'without text that Postgres cannot store',
      JSON.stringify({ error: { message: 'a\0b \ud800', code: 'c\0d' } }),
      'the model provider answered 401: a\uFFFDb \uFFFD (c\uFFFDd)',
      { status: 401, code: 'c\0d' },
    ],
  ])('%s', async (_what, body, message, provider) => {
    const { data } = await outcomeOf({}, { status: 401, body })
    expect(data).toMatchObject({ status: 'failed', error_message: message })
    expect(data.error_detail).toEqual({ reason: 'model_failed', provider })
  })
})

test('a temporary provider error is retried, and only the answer is counted', async () => {
  const later = { status: 429, headers: { 'retry-after': '0' } }
  const { data, requests } = await outcomeOf({}, [later, { cutAfter: 1 }, { text: 'At last.' }])
  expect(data).toMatchObject({ status: 'completed', output: { text: 'At last.' } })
  expect(requests).toHaveLength(3)
  expect(data.usage.input_tokens).toBe(10)
})

test('adds up the usage of all steps, and counts zero when the provider reports none', async () => {
  const call = { toolCalls: [{ name: 'none', arguments: {} }] }
  const counted = await outcomeOf(
    {},
    bySteps([{ ...call, usage: [7, 1] }, { ...call, usage: [8, 2] }, { usage: [9, 3] }]),
  )
  expect(counted.data.usage).toEqual(usageRecord(24, 6))
  expect(counted.run.cost_usd).toBeCloseTo(0.03)
  const uncounted = await outcomeOf({}, { usage: null })
  expect(uncounted.data.usage).toEqual(usageRecord(0, 0))
})
