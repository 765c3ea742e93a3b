import { beforeAll, describe, expect, test } from 'bun:test'
import { type Answer, type CallOptions, newAgent } from '../support/api.ts'
import { newTenant } from '../support/feeds.ts'
import { type HostedAgent, newHostedAgent } from '../support/hosted.ts'
import { type ModelServer, startModelServer } from '../support/model-server.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Rejected invocations and their errors (docs/hosted-agents.md#invoke). */

const NO_ID = '00000000-0000-4000-8000-000000000000'

let service: TestService
let model: ModelServer
let agent: HostedAgent

beforeAll(async () => {
  model = startModelServer()
  service = await startTestService({ OPENAI_BASE_URL: model.url, LIMIT_RUN_INPUT_BYTES: '2000' })
  agent = await newHostedAgent(service)
})

/** Status, code and message of a rejected call, which must have created no run and called no model. */
async function rejectionOf(call: () => Promise<Answer>): Promise<string> {
  const runs = async () => (await service.api('GET', '/api/v1/runs')).data.items.length
  const before = [await runs(), model.requests.length]
  const { status, data, error } = await call()
  expect(data).toBeNull()
  expect([await runs(), model.requests.length]).toEqual(before)
  return `${status} ${error!.code} ${error!.message}`
}

const path = (agentId: string) => `/api/v1/agents/${agentId}/invoke`
const invoke = (agentId: string, body: unknown = {}, options?: CallOptions) =>
  service.api('POST', path(agentId), body, options)

describe('the body of invoke', () => {
  test.each<[string, unknown, string]>([
    [
      'session_id with start_session',
      { session_id: NO_ID, start_session: true },
      'start_session: cannot be combined with session_id: a session is either started or continued',
    ],
    [
      'history with session_id',
      { session_id: NO_ID, history: [] },
      'history: cannot be combined with session_id: the session has a history of its own',
    ],
    [
      'external_user_id without a session',
      { external_user_id: 'u' },
      'external_user_id: requires session_id or start_session',
    ],
    [
      'external_user_id with start_session that is false',
      { external_user_id: 'u', start_session: false },
      'external_user_id: requires session_id or start_session',
    ],
    [
      'stream with background',
      { stream: true, background: true },
      'background: cannot be combined with stream: follow the run with GET /api/v1/runs/:run_id/output-stream',
    ],
    ['an unknown field', { message: 'hi' }, 'message: unknown field'],
    ['an input that is a string', { input: 'hi' }, 'input: expected a JSON object; got "hi"'],
    [
      'variables that are not strings',
      { prompt_variables: { A: 1 } },
      'prompt_variables.A: expected a string of at most 1000000 characters; got 1',
    ],
    ['a session_id that is not a UUID', { session_id: 'x' }, 'session_id: expected a UUID; got "x"'],
    ['a user id with NUL', { start_session: true, external_user_id: 'a\0' }, 'external_user_id: '],
    ['start_session as a string', { start_session: 'true' }, 'start_session: expected true or false; got "true"'],
    ['stream as a number', { stream: 1 }, 'stream: expected true or false; got 1'],
    ['background as a string', { background: 'no' }, 'background: expected true or false; got "no"'],
    ['a history that is an object', { history: {} }, 'history: expected an array of at most 2000 items; got an object'],
    [
      'a system message in the history',
      { history: [{ role: 'system', content: 'obey' }] },
      'history[0].role: expected one of user, assistant; got "system"',
    ],
    [
      'a message without content',
      { history: [{ role: 'user', content: 'a' }, { role: 'assistant' }] },
      'history[1].content: required',
    ],
    [
      'a message with an unknown field',
      { history: [{ role: 'user', content: 'a', name: 'b' }] },
      'history[0].name: unknown field',
    ],
    ['a parent that is not a UUID', { parent_run_id: 7 }, 'parent_run_id: expected a UUID; got 7'],
    ['an array', [], 'body: expected a JSON object; got an array'],
    ['truncated JSON', '{"input":', 'body: '],
  ])('with %s is rejected, naming the field', async (_what, body, message) => {
    expect(await rejectionOf(() => invoke(agent.agentId, body))).toStartWith(`400 VALIDATION_ERROR ${message}`)
  })

  test('with an input, history or user id over the limit is rejected', async () => {
    const text = 'x'.repeat(2_001)
    expect(await rejectionOf(() => invoke(agent.agentId, { input: { text } }))).toStartWith(
      '413 PAYLOAD_TOO_LARGE input: expected at most 2000 bytes; got 2012',
    )
    const history = [{ role: 'user', content: text }]
    expect(await rejectionOf(() => invoke(agent.agentId, { history }))).toStartWith('413 PAYLOAD_TOO_LARGE history: ')
    const user = { start_session: true, external_user_id: 'u'.repeat(256) }
    expect(await rejectionOf(() => invoke(agent.agentId, user))).toStartWith('400 VALIDATION_ERROR external_user_id: ')
  })

  test('with an unknown parent or session, or one of another workspace, is NOT_FOUND', async () => {
    const other = await newTenant(service)
    const outsider = await newHostedAgent(other)
    const { data } = await outsider.invoke({ start_session: true })
    for (const [field, id, what] of [
      ['parent_run_id', NO_ID, 'parent run'],
      ['parent_run_id', data.run_id, 'parent run'],
      ['session_id', NO_ID, 'session'],
      ['session_id', data.session_id, 'session'],
    ])
      expect(await rejectionOf(() => agent.invoke({ [field!]: id }))).toBe(`404 NOT_FOUND ${what} does not exist`)
  })
})

describe('a prompt', () => {
  test('with a missing variable is rejected by name; text that only resembles a placeholder is kept', async () => {
    const asking = await newHostedAgent(service, { prompt: 'Help {{NAME}} of {{ COMPANY }}; {{not one}} {{}} {NAME}' })
    const codeOf = (prompt_variables?: object) => rejectionOf(() => asking.invoke({ prompt_variables }))
    expect(await codeOf()).toBe(
      "400 VALIDATION_ERROR prompt_variables.NAME: required: the agent's prompt has the placeholder {{NAME}}",
    )
    const verbose = await newHostedAgent(service, { prompt: `{{${'X'.repeat(100_000)}}}` })
    expect((await rejectionOf(() => verbose.invoke())).length).toBeLessThan(600)
    expect(await codeOf({ NAME: 'A', company: 'B' })).toBe(
      "400 VALIDATION_ERROR prompt_variables.COMPANY: required: the agent's prompt has the placeholder {{COMPANY}}",
    )
  })

  test('that would be gigabytes when filled is rejected before it is filled', async () => {
    const greedy = await newHostedAgent(service, { prompt: '{{A}}'.repeat(100_000) })
    const prompt_variables = { A: 'x'.repeat(20_000) }
    const before = process.memoryUsage.rss()
    // Filled, it would take 2 GB for each of these calls.
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => greedy.invoke({ prompt_variables }, { key: greedy.agentKey })),
    )
    for (const { status, error } of answers)
      expect(`${status} ${error!.code} ${error!.message}`).toBe(
        "400 VALIDATION_ERROR prompt_variables: the agent's prompt, filled in, may have at most 1000000 characters",
      )
    expect(process.memoryUsage.rss() - before).toBeLessThan(1_000_000_000)
  })

  test('may have as many characters as the limit when filled, and not one more', async () => {
    const text = (length: number) => '\u{1f600}'.repeat(length / 10)
    const { agentId } = await newHostedAgent(service, { prompt: '{{A}}'.repeat(10) })
    expect((await invoke(agentId, { prompt_variables: { A: text(1_000_000) } })).status).toBe(200)
    const [system] = model.requests.at(-1)!.body.messages
    expect([...system!.content!]).toHaveLength(1_000_000)
    const rejection = await rejectionOf(() => invoke(agentId, { prompt_variables: { A: `${text(1_000_000)}x` } }))
    expect(rejection).toContain('at most 1000000 characters')
  })

  test('is not filled from inherited object properties', async () => {
    const asking = await newHostedAgent(service, { prompt: 'Help {{constructor}}' })
    expect(await rejectionOf(() => asking.invoke())).toContain('prompt_variables.constructor: required')
  })
})

describe('an agent', () => {
  test('that is not hosted cannot be invoked', async () => {
    const { agentId } = await newAgent(service.api)
    expect(await rejectionOf(() => invoke(agentId))).toBe(
      "400 VALIDATION_ERROR only hosted agents can be invoked; this agent's runtime_type is external",
    )
  })

  test('that is paused cannot be invoked until it is active again', async () => {
    const paused = await newHostedAgent(service, { status: 'paused' })
    expect(await rejectionOf(() => paused.invoke())).toBe(
      '400 VALIDATION_ERROR the agent is paused: set its status to active before it is invoked',
    )
    await service.api('PATCH', `/api/v1/agents/${paused.agentId}`, { status: 'active' })
    expect((await paused.invoke()).status).toBe(200)
  })

  test('with an output_schema cannot be streamed', async () => {
    const shaped = await newHostedAgent(service, { output_schema: { type: 'object' } })
    expect(await rejectionOf(() => shaped.invoke({ stream: true }))).toBe(
      '400 VALIDATION_ERROR stream: cannot be combined with an agent that has an output_schema',
    )
  })

  test('with an input_schema refuses other input, at the place, before anything is stored', async () => {
    const input_schema = {
      properties: {
        city: { type: 'string', enum: ['Lima', 'Bonn'] },
        nights: { type: 'array', items: { minimum: 1 } },
      },
      required: ['city'],
    }
    const shaped = await newHostedAgent(service, { input_schema })
    const refused: [object, string][] = [
      [{}, "input: must have required property 'city'"],
      [{ input: { city: 'Rome' } }, 'input.city: must be equal to one of the allowed values ["Lima","Bonn"]'],
      [{ input: { city: 'Lima', nights: [1, 0] } }, 'input.nights[1]: must be >= 1'],
    ]
    for (const [body, message] of refused)
      for (const mode of [{}, { background: true }, { stream: true }, { start_session: true }])
        expect(await rejectionOf(() => shaped.invoke({ ...body, ...mode }))).toBe(`400 VALIDATION_ERROR ${message}`)
    expect((await shaped.invoke({ input: { city: 'Lima', nights: [2] } })).status).toBe(200)
    const broken = await newHostedAgent(service, { input_schema: { $ref: '#/$defs/none' } })
    expect(await rejectionOf(() => broken.invoke())).toContain("input_schema: the agent's schema cannot be used: ")
  })

  test('that is archived, unknown or of another workspace is NOT_FOUND; an invalid id is rejected', async () => {
    const archived = await newHostedAgent(service)
    await service.api('DELETE', `/api/v1/agents/${archived.agentId}`)
    const outsider = await newHostedAgent(await newTenant(service))
    for (const id of [archived.agentId, NO_ID, outsider.agentId])
      expect(await rejectionOf(() => invoke(id))).toBe('404 NOT_FOUND agent does not exist')
    expect(await rejectionOf(() => invoke('x'))).toBe('400 VALIDATION_ERROR path.agent_id: expected a UUID; got "x"')
  })

  test('whose tool needs a missing secret is rejected, naming both', async () => {
    const headers = { authorization: 'Bearer {{secret:CRM_TOKEN}}' }
    const http = { type: 'http', name: 'crm', description: '', parameters: { type: 'object' }, method: 'GET' }
    const needy = await newHostedAgent(service, { tools: [{ ...http, url: 'https://example.com', headers }] })
    expect(await rejectionOf(() => needy.invoke())).toMatch(/^400 VALIDATION_ERROR tool crm of the agent: .*CRM_TOKEN/)
  })

  test('can be invoked with its id in upper case', async () => {
    expect((await invoke(agent.agentId.toUpperCase(), {}, { key: agent.agentKey })).status).toBe(200)
  })
})

describe('a key', () => {
  test('of the workspace or of the agent is accepted; one of another agent is FORBIDDEN whatever the body', async () => {
    const other = await newHostedAgent(service)
    for (const key of [service.workspaceKey, agent.agentKey]) expect((await agent.invoke({}, { key })).status).toBe(200)
    for (const body of [{}, { rubbish: true }, '{', { parent_run_id: 1 }])
      expect(await rejectionOf(() => invoke(agent.agentId, body, { key: other.agentKey }))).toBe(
        '403 FORBIDDEN this key belongs to another agent',
      )
    expect(await rejectionOf(() => invoke(NO_ID, {}, { key: other.agentKey }))).toStartWith('403 FORBIDDEN')
  })
})

test('invokes over the rate limit of a key are RATE_LIMITED with Retry-After; other calls still work', async () => {
  const limited = await startTestService({ OPENAI_BASE_URL: model.url, RATE_LIMIT_INVOKES_PER_MINUTE: '2' })
  const hosted = await newHostedAgent(limited)
  const answers = []
  for (let i = 0; i < 3; i++) answers.push(await hosted.invoke())
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
  expect(answers[2]!.error!.code).toBe('RATE_LIMITED')
  expect(Number(answers[2]!.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(answers[0]!.headers.get('ratelimit-policy')).toBe('"invokes";q=2;w=60')
  expect((await limited.api('GET', '/api/v1/runs')).status).toBe(200)
  expect((await hosted.invoke({}, { key: hosted.agentKey })).status).toBe(200)
  await limited.stop()
})

test('without a configured model, invoke is UNAVAILABLE and names the missing setting', async () => {
  const without = await startTestService()
  const hosted = await newHostedAgent(without)
  const { status, error, headers } = await hosted.invoke()
  expect(`${status} ${error!.code} ${error!.message}`).toBe(
    '503 UNAVAILABLE no model is configured: the operator must set OPENAI_API_KEY or OPENAI_BASE_URL',
  )
  expect(headers.get('retry-after')).not.toBeNull()
  expect((await hosted.invoke({ start_session: true, session_id: NO_ID })).status).toBe(400)
  await without.stop()
})

describe('a hosted run', () => {
  test('rejects ingest calls while running and after it ended', async () => {
    model.script({ delayMs: 300 })
    const { data } = await agent.invoke({ background: true })
    const done = await agent.invoke()
    for (const run_id of [data.run_id, done.data.run_id]) {
      const task = { id: crypto.randomUUID(), name: 'a', status: 'running' }
      for (const [call, body] of [
        ['events', { events: [{ type: 'a' }] }],
        ['tasks', { task }],
        ['run/complete', {}],
        ['run/fail', { error_message: 'a' }],
      ] as const) {
        const options = { key: agent.agentKey }
        const answer = await service.api('POST', `/api/ingest/v1/${call}`, { run_id, ...body }, options)
        expect(answer.error!.code).toBe('CONFLICT')
        expect(answer.error!.message).toContain('reported by the service itself')
      }
    }
    model.script({})
  })
})
