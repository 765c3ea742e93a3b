import { beforeAll, describe, expect, test } from 'bun:test'
import { remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import { createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { eventually } from '../support/eventually.ts'
import { LiveStream, newReporter, newTenant, type Reporter, type Tenant } from '../support/feeds.ts'
import { newHostedAgent, untilStatus } from '../support/hosted.ts'
import { startModelServer } from '../support/model-server.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { usageRecord } from '../support/usage.ts'

/** Tokens and cost of runs: docs/usage.md. */

let service: TestService
let tenant: Tenant
let agent: Reporter

beforeAll(async () => {
  const model = startModelServer({ text: 'Done.' })
  service = await startTestService({
    OPENAI_BASE_URL: model.url,
    MODEL_PRICES: JSON.stringify({ m: { input: 1, output: 10 } }),
  })
  tenant = await newTenant(service)
  agent = await newReporter(tenant.api)
})

const call = (input: number, output: number, more: object = {}) => ({
  type: 'llm.call',
  payload: { 'gen_ai.usage.input_tokens': input, 'gen_ai.usage.output_tokens': output, ...more },
})
const shown = (input: number, output: number, cost_usd: number) => ({
  usage: usageRecord(input, output),
  cost_usd,
})
const ingest = (path: string, body: object, headers: Record<string, string> = {}) =>
  tenant.api('POST', `/api/ingest/v1/${path}`, body, { key: agent.agentKey, headers })

async function usageOf(runId: string) {
  const { data } = await tenant.api('GET', `/api/v1/runs/${runId}`)
  return { usage: data.usage, cost_usd: data.cost_usd }
}

/** Waits until all events of the run are counted. */
async function counted(runId: string, events: number) {
  await eventually(async () => (await tenant.api('GET', `/api/v1/runs/${runId}`)).data.event_count === events)
  return usageOf(runId)
}

async function inSql(runId: string) {
  const query = 'select status, input_tokens, output_tokens, cost_usd from runs where run_id = {run:UUID}'
  const { data } = await tenant.api('POST', '/api/v1/query', { query, params: { run: runId } })
  return data.rows[0]
}

async function runRowsInFeed(runId: string): Promise<Record<string, unknown>[]> {
  const stream = await LiveStream.open(tenant, `/api/v1/stream?run_id=${runId}&kind=run&after=0`)
  const { data } = await tenant.api('GET', `/api/v1/runs/${runId}`)
  await stream.until(() => stream.items.some(({ run }) => run?.cost_usd === data.cost_usd))
  await stream.close()
  return stream.items.map(({ run }) => run as Record<string, unknown>)
}

describe('the usage of an external run', () => {
  test('is the sum of its llm.call events, by their cost or else the price of the model', async () => {
    const runId = await agent.start()
    await agent.events(runId, [
      call(100, 20, { cost_usd: 0.5 }),
      call(1_000_000, 100_000, { 'gen_ai.response.model': 'm' }),
      call(7, 3, { model: 'of no known price' }),
      { type: 'tool.call.finished', payload: { 'gen_ai.usage.input_tokens': 1_000, cost_usd: 1_000 } },
      { type: 'llm.call', payload: { text: 'without usage' } },
      { type: 'llm.call', payload: { model: 'm', tokens: { in: 812, out: 64 } } },
    ])
    expect(await counted(runId, 6)).toEqual(shown(1_000_919, 100_087, 2.501452))
  })

  test('is the same in the API, feeds and SQL, while the run is live and after it has ended', async () => {
    const runId = await agent.start()
    await agent.events(runId, [call(10, 5, { cost_usd: 0.25 })])
    await eventually(async () => (await inSql(runId))?.input_tokens === 10)
    expect(await inSql(runId)).toEqual({ status: 'running', input_tokens: 10, output_tokens: 5, cost_usd: 0.25 })
    await agent.events(runId, [call(10, 5, { cost_usd: 0.5 })])
    await agent.end(runId)
    await eventually(async () => (await inSql(runId)).input_tokens === 20)
    expect(await inSql(runId)).toEqual({ status: 'completed', input_tokens: 20, output_tokens: 10, cost_usd: 0.75 })
    expect(await usageOf(runId)).toEqual(shown(20, 10, 0.75))
    const rows = await runRowsInFeed(runId)
    expect(rows.at(-1)).toMatchObject({ status: 'completed', ...shown(20, 10, 0.75) })
    // The row with the sum only repeats the end, which webhooks tell once.
    const ends = await createColumnarClient(remoteClickHouse(service.clickhouseUrl)).query<{ is_recount: boolean }>(
      "select is_recount from run_changes where run_id = {run:UUID} and status = 'completed' order by seq",
      { params: { run: runId } },
    )
    // None follows if the sum was there before the end was in the log.
    expect([[false], [false, true]]).toContainEqual(ends.map(({ is_recount }) => is_recount))
    const { data } = await tenant.api('GET', `/api/v1/runs?limit=200`)
    expect(data.items.find((run: { run_id: string }) => run.run_id === runId)).toMatchObject(shown(20, 10, 0.75))
  })

  test('counts a repeated event once, with an event id or with an Idempotency-Key', async () => {
    const runId = await agent.start()
    const named = { run_id: runId, events: [{ id: 'a', ...call(1, 1, { cost_usd: 1 }) }] }
    for (let i = 0; i < 3; i++) await ingest('events', named)
    const unnamed = { run_id: runId, events: [call(10, 10, { cost_usd: 10 })] }
    for (let i = 0; i < 3; i++) await ingest('events', unnamed, { 'idempotency-key': `${runId} 1` })
    expect(await counted(runId, 2)).toEqual(shown(11, 11, 11))
  })

  test('includes model calls reported after its end, also in SQL', async () => {
    const runId = await agent.start()
    await agent.end(runId)
    await agent.events(runId, [call(3, 4, { cost_usd: 5 })])
    expect(await counted(runId, 1)).toEqual(shown(3, 4, 5))
    await eventually(async () => (await inSql(runId))?.cost_usd === 5)
    expect(await inSql(runId)).toEqual({ status: 'completed', input_tokens: 3, output_tokens: 4, cost_usd: 5 })
  })
})

describe('the usage reported with the end of a run', () => {
  const usage = { input_tokens: 1_000, output_tokens: 200, cost_usd: 0.125 }

  test('replaces the sums of earlier and later events', async () => {
    for (const [path, more] of [
      ['run/complete', { output: { a: 1 } }],
      ['run/fail', { error_message: 'no' }],
    ] as const) {
      const runId = await agent.start()
      await agent.events(runId, [call(1, 1, { cost_usd: 1 })])
      expect((await ingest(path, { run_id: runId, ...more, usage })).status).toBe(200)
      await agent.events(runId, [call(1, 1, { cost_usd: 1 })])
      expect(await counted(runId, 2)).toEqual(shown(1_000, 200, 0.125))
      await eventually(async () => (await inSql(runId))?.input_tokens === 1_000)
      expect(await inSql(runId)).toMatchObject({ input_tokens: 1_000, output_tokens: 200, cost_usd: 0.125 })
      // A repeat of the call, and one with another usage: the run has already ended.
      for (const again of [usage, { input_tokens: 1, output_tokens: 1 }])
        expect((await ingest(path, { run_id: runId, ...more, usage: again })).data.already).toBe(true)
      expect(await usageOf(runId)).toEqual(shown(1_000, 200, 0.125))
    }
  })

  test('leaves the sum of the costs if it has none', async () => {
    const runId = await agent.start()
    await agent.events(runId, [call(1, 1, { cost_usd: 1 })])
    await ingest('run/complete', { run_id: runId, usage: { input_tokens: 5, output_tokens: 6 } })
    await agent.events(runId, [call(1, 1, { cost_usd: 2 })])
    expect(await counted(runId, 2)).toEqual(shown(5, 6, 3))
  })

  const invalid: [string, object, string][] = [
    ['negative tokens', { input_tokens: -1, output_tokens: 0 }, 'usage.input_tokens: expected an integer from 0 to'],
    ['tokens that are text', { input_tokens: 1, output_tokens: '2' }, 'usage.output_tokens: expected an integer from'],
    [
      'a negative cost',
      { input_tokens: 1, output_tokens: 2, cost_usd: -0.5 },
      'usage.cost_usd: expected a number from',
    ],
    ['a cost that is text', { input_tokens: 1, output_tokens: 2, cost_usd: '1' }, 'usage.cost_usd: expected a number'],
    ['missing tokens', { cost_usd: 1 }, 'usage.input_tokens: required'],
    ['an unknown field', { input_tokens: 1, output_tokens: 2, total: 3 }, 'usage.total: unknown field'],
  ]
  test.each(invalid)('rejects %s with a VALIDATION_ERROR that names the field', async (_, usage, message) => {
    const runId = await agent.start()
    const answer = await ingest('run/complete', { run_id: runId, usage })
    expect(answer.error).toMatchObject({ code: 'VALIDATION_ERROR', message: expect.stringContaining(message) })
  })
})

test('a hosted run counts its own model calls, and its events add nothing', async () => {
  const hosted = await newHostedAgent(tenant)
  const { data } = await hosted.invoke()
  await untilStatus(tenant, data.run_id, 'completed')
  const { usage } = await usageOf(data.run_id)
  expect(usage.input_tokens).toBeGreaterThan(0)
  // Its system events come through the outbox in order; the last one is `run.completed`.
  const events = await eventually(async () => {
    const { data: page } = await tenant.api('GET', `/api/v1/runs/${data.run_id}/events?limit=200`)
    return page.items.some(({ type }: { type: string }) => type === 'run.completed') && page.items
  })
  expect((await counted(data.run_id, events.length)).usage).toEqual(usage)
})
