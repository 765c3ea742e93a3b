import { beforeAll, expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { at, callLangfuse, event, sendBatch } from '../support/langfuse.ts'
import { eventsOf, runsOf, tasksOf } from '../support/otlp.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** What `/api/public` refuses: in the shapes of Langfuse, naming the place. */

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

const problemOf = async (response: Response) => {
  const { message, error, ...rest } = (await response.json()) as Record<string, unknown>
  expect(rest).toEqual({})
  return { status: response.status, error, message }
}

test.each([
  ['GET', '/v2/prompts/greeting?label=production'],
  ['GET', '/traces'],
  ['POST', '/dataset-items'],
  ['PATCH', '/media/abc'],
  ['DELETE', '/ingestion'],
])('%s %s is not found', async (method, path) => {
  const body = method === 'POST' ? {} : undefined
  const problem = await problemOf(await callLangfuse(service, method, path, { body }))
  expect(problem).toMatchObject({ status: 404, error: 'LangfuseNotFoundError' })
})

test('the SDKs find a healthy service, the workspace as project, and every file uploaded', async () => {
  expect(await (await callLangfuse(service, 'GET', '/health', { key: null })).json()).toMatchObject({ status: 'OK' })
  const projects = await (await callLangfuse(service, 'GET', '/projects')).json()
  expect(projects).toMatchObject({ data: [{ name: expect.any(String), metadata: {} }] })
  const media = {
    contentType: 'image/png',
    contentLength: 3,
    sha256Hash: 'ab+/ab+/ab+/ab+/ab+/ab+/ab+/ab+/ab+/ab+/abc=',
  }
  const answer = await callLangfuse(service, 'POST', '/media', { body: media })
  expect(await answer.json()).toEqual({ mediaId: 'ab-_ab-_ab-_ab-_ab-_ab', uploadUrl: null })
})

test('wrong keys, large and malformed bodies are refused as a whole', async () => {
  const send = async (body: unknown, key?: string) =>
    problemOf(await callLangfuse(service, 'POST', '/ingestion', { body, ...(key !== undefined && { key }) }))
  expect(await send({ batch: [] }, 'sk-lf-unknown')).toMatchObject({ status: 401, error: 'UnauthorizedError' })
  expect(await send(`{"batch":["${'x'.repeat(5_000_000)}"]}`)).toMatchObject({
    status: 413,
    error: 'PayloadTooLargeError',
  })
  expect(await send({ batch: Array.from({ length: 10_001 }, () => ({})) })).toMatchObject({ status: 413 })
  for (const [body, message] of [
    ['{"batch":[', 'body: not valid JSON'],
    ['{}', 'batch: required'],
    ['{"batch":{}}', 'batch: expected an array'],
    [`{"batch":[${'['.repeat(1_000)}${']'.repeat(1_000)}]}`, 'less nesting'],
  ] as const) {
    const problem = await send(body)
    expect(problem).toMatchObject({ status: 400, error: 'InvalidRequestError' })
    expect(problem.message).toContain(message)
  }
})

test('an event that is wrong is an error of its own; the others are stored', async () => {
  const traceId = crypto.randomUUID()
  const span = (body: object) => ({ id: crypto.randomUUID(), traceId, startTime: at(0), ...body })
  const wrong: [object, string][] = [
    [event('dataset-item-create', {}), 'type: expected one of'],
    [event('constructor', {}), 'type: expected one of'],
    [{ ...event('span-create', span({})), timestamp: 'yesterday' }, 'timestamp: expected an ISO 8601'],
    [event('span-create', span({ name: 7 })), 'body.name: expected a string; got 7'],
    [event('span-create', span({ endTime: 'soon' })), 'body.endTime: expected an ISO 8601 date-time; got "soon"'],
    [event('span-create', span({ level: 'loud' })), 'body.level: expected one of DEBUG'],
    [event('span-create', span({ traceId: null })), 'body.traceId: required'],
    [event('span-create', span({ traceId: 'a\0b' })), 'body.traceId: expected a string of 1 to 255'],
    [event('span-create', span({ id: '\ud800' })), 'body.id: expected a string of 1 to 255'],
    [event('span-create', span({ id: 'x'.repeat(256) })), 'body.id: expected a string of 1 to 255'],
    [event('span-update', span({ id: undefined })), 'body.id: required'],
    [event('observation-create', span({ type: 'THOUGHT' })), 'body.type: expected a type of observation'],
    [event('generation-create', span({ usageDetails: 'many' })), 'body.usageDetails: expected an object'],
    [
      event('generation-create', span({ usage: { promptTokens: 'many', unit: 'TOKENS' } })),
      'body.usage: expected a number as "promptTokens"; got {"promptTokens":"many"',
    ],
    [
      event('generation-create', span({ usageDetails: { input: '7' } })),
      'body.usageDetails: expected a number as "input"',
    ],
    [
      event('generation-create', span({ costDetails: { total: true } })),
      'body.costDetails: expected a number as "total"',
    ],
    [{ ...event('span-create', span({})), body: [] }, 'body: expected an object'],
    [{ ...event('span-create', span({})), id: 3 }, 'id: expected a non-empty string; got 3'],
  ]
  const good = [event('span-create', span({ name: 'good' })), event('sdk-log', { log: 'x' })]
  const { status, successes, errors } = await sendBatch(service, [good[0], ...wrong.map(([each]) => each), good[1], 7])
  expect([status, successes.map(({ id }) => id)]).toEqual([207, good.map(({ id }) => id)])
  expect(errors).toHaveLength(wrong.length + 1)
  wrong.forEach(([, message], index) => {
    expect(errors[index]).toMatchObject({ status: 400, error: 'InvalidRequestError' })
    expect(errors[index].message).toContain(message)
  })
  expect((await tasksOf(service, traceId)).map(({ name }: { name: string }) => name)).toEqual(['good'])
})

test('hostile texts and values are stored, cleaned where a store could not take them', async () => {
  const traceId = crypto.randomUUID()
  const id = crypto.randomUUID()
  const deep = JSON.parse(`${'['.repeat(100)}${']'.repeat(100)}`)
  const text = 'a\0b\ud800c'
  const { errors } = await sendBatch(service, [
    event('trace-create', {
      id: traceId,
      name: text,
      userId: text,
      tags: [text, 7],
      metadata: { deep, text },
      input: text,
    }),
    event('generation-create', {
      ...{
        id,
        traceId,
        name: text,
        startTime: at(0),
        endTime: at(1),
        model: text,
        level: 'ERROR',
        statusMessage: text,
      },
      ...{ input: { __proto__: 1, [text]: text }, output: 12345678901234567890n.toString(), metadata: deep },
      ...{ usage: { input: -1, output: 1e300, unit: 'TOKENS', note: 'free', cached: null }, costDetails: { total: 2 } },
    }),
  ])
  expect(errors).toEqual([])
  const [run] = await runsOf(service, traceId)
  expect(run).toMatchObject({ status: 'failed', external_user_id: 'a\ufffdb\ufffdc', tags: ['a\ufffdb\ufffdc'] })
  const [task] = await tasksOf(service, traceId)
  expect(task).toMatchObject({ name: 'a\ufffdb\ufffdc', status: 'failed', error_message: 'a\ufffdb\ufffdc' })
  const call = (await eventsOf(service, traceId)).find(({ type }: { type: string }) => type === 'llm.call')
  expect(call.payload.cost_usd).toBe(2)
  expect(call.payload['gen_ai.usage.input_tokens']).toBeUndefined()
})

test('values that are too large for an event are cut there; input and output are whole in the task', async () => {
  const traceId = crypto.randomUUID()
  const id = crypto.randomUUID()
  const long = 'é"'.repeat(400_000)
  const times = { startTime: at(0), endTime: at(1) }
  const span = event('span-create', { id, traceId, name: 'large', ...times, input: long, metadata: [long] })
  expect((await sendBatch(service, [span])).errors).toEqual([])
  expect((await tasksOf(service, traceId))[0].input).toEqual({ text: long })
  const [{ payload }] = await eventsOf(service, traceId)
  expect([payload.truncated, payload.name]).toEqual([['metadata'], 'large'])
  expect(JSON.stringify([long]).startsWith(payload.metadata)).toBe(true)
})

test('a score of its own is stored, and needs a trace', async () => {
  const traceId = crypto.randomUUID()
  const send = (body: unknown) => callLangfuse(service, 'POST', '/scores', { body })
  const answer = await send({ id: 'first', traceId, name: 'grade', value: 0.5, comment: 'half' })
  expect([answer.status, await answer.json()]).toEqual([200, { id: 'first' }])
  const [{ run_id }] = await runsOf(service, traceId)
  const { items } = (await service.api('GET', `/api/v1/runs/${run_id}/scores`)).data
  expect(items).toMatchObject([{ id: 'first', name: 'grade', value: 0.5, comment: 'half', source: 'api' }])
  expect(await problemOf(await send({ sessionId: 's', name: 'n', value: 1 }))).toMatchObject({
    ...{ status: 400, error: 'InvalidRequestError', message: expect.stringContaining('body.traceId: required') },
  })
  expect(await problemOf(await send({ traceId, name: 7, value: 1 }))).toMatchObject({
    ...{ status: 400, message: expect.stringContaining('body.name') },
  })
  expect((await send({ traceId, comment: 'x'.repeat(300_000) })).status).toBe(413)
})

test('an agent key reports only for its agent, and a revoked key nothing', async () => {
  const { agentId, agentKey } = await newAgent(service.api)
  const traceId = crypto.randomUUID()
  await sendBatch(service, [event('trace-create', { id: traceId, name: 'some other agent' })], agentKey)
  expect((await runsOf(service, traceId))[0].agent_id).toBe(agentId)
  const keys = (await service.api('GET', `/api/v1/keys?agent_id=${agentId}`)).data.items
  await service.api('POST', `/api/v1/keys/${keys[0].key_id}/revoke`)
  expect((await sendBatch(service, [], agentKey)).status).toBe(401)
})
