import { beforeAll, describe, expect, test } from 'bun:test'
import { figuresOf, readCalls, readRuns } from '../../src/dashboard/page/overview/metrics.ts'
import { bucketsOf, rangeOf } from '../../src/dashboard/page/parts/range.tsx'
import { EventLog } from '../../src/dashboard/page/run/event-log.ts'
import { filterOf, findRuns } from '../../src/dashboard/page/runs/filters.ts'
import { readRunFigures } from '../../src/dashboard/page/runs/run-figures.ts'
import { eventually } from '../support/eventually.ts'
import { newReporter, numbered, type Reporter } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** What the dashboard reads by its own queries. */

describe('the queries of the dashboard', () => {
  const { signal } = new AbortController()
  const range = () => rangeOf({ range: '15m' }, Date.now())
  let service: TestService
  let agent: Reporter

  beforeAll(async () => {
    service = await startTestService({ MODEL_PRICES: '{"house*": {"input": 1000, "output": 2000}}' })
    agent = await newReporter(service.api)
  })

  const queries = {
    async run(query: string, params: object) {
      const answer = await service.api('POST', '/api/v1/query', { query, params })
      expect(answer).toMatchObject({ status: 200 })
      return answer.data
    },
  } as never

  test('where nothing has ended there is no latency', async () => {
    await agent.start()
    const { total, series } = await eventually(async () => {
      const figures = await readRuns(queries, range(), signal)
      return figures.total.runs > 0 && figures
    })
    expect(total).toMatchObject({ runs: 1, ended: 0, p50: null, p95: null, p99: null })
    expect(series.filter(({ p95 }) => p95 !== null)).toEqual([])
    expect(figuresOf({ timed: 0, quantiles: [0, 0, 0] })).toMatchObject({ p50: null, p95: null, p99: null })
  })

  test('the costs of models are those of the runs, whether calls report them or have a price', async () => {
    const runId = await agent.start()
    const payloads = [
      {
        'gen_ai.request.model': 'gpt-5',
        'gen_ai.usage.input_tokens': 1_000_000,
        'gen_ai.usage.output_tokens': 100_000,
      },
      { gen_ai: { request: { model: 'gpt-5' }, usage: { input_tokens: 2_000_000 } }, cost_usd: 0.25 },
      { 'llm.model_name': 'house-2', 'llm.token_count.prompt': 1_000, 'llm.token_count.completion': 500 },
      { 'gen_ai.response.model': 'unknown', 'gen_ai.usage.cost': 1.5, 'gen_ai.usage.prompt_tokens': 10 },
      { 'gen_ai.request.model': 'free', 'gen_ai.usage.input_tokens': 7 },
    ]
    await agent.events(
      runId,
      payloads.map((payload) => ({ type: 'llm.call', payload })),
    )
    await agent.end(runId)
    const { total } = await eventually(async () => {
      const figures = await readRuns(queries, range(), signal)
      return figures.total.cost > 0 && figures.total.tokens === 3_101_517 && figures
    })
    const schema = await service.api('GET', '/api/v1/query/schema')
    const { models } = await readCalls(queries, schema.data.model_prices, range(), [], signal)
    const found = models.calls.map(({ name, tokens, cost }) => ({ name, tokens, cost: Number(cost.toFixed(6)) }))
    expect(found).toEqual([
      { name: 'gpt-5', tokens: 3_100_000, cost: 2.5 },
      { name: 'house-2', tokens: 1_500, cost: 2 },
      { name: 'unknown', tokens: 10, cost: 1.5 },
      { name: 'free', tokens: 7, cost: 0 },
    ])
    expect(models.calls.reduce((sum, { cost }) => sum + cost, 0)).toBeCloseTo(total.cost, 9)
  })

  test('one query has what each agent has done, over time', async () => {
    const [busy, idle] = [await newReporter(service.api), await newReporter(service.api)]
    const runIds = [await busy.start(), await busy.start(), await busy.start()]
    await busy.end(runIds[0] as string, 'no')
    await busy.end(runIds[1] as string)
    const week = rangeOf({ range: '7d' }, Date.now())
    const all = await eventually(async () => {
      const figures = await readRunFigures(queries, 'agent', week, signal)
      const byId = new Map(figures.map(({ id, ...each }) => [id, each]))
      return byId.get(busy.agentId)?.ended === 2 && byId
    })
    const { data: newest } = await service.api('GET', `/api/v1/runs/${runIds[2]}`)
    const { counts, failures, ...rest } = all.get(busy.agentId) as NonNullable<ReturnType<typeof all.get>>
    const used = { sessions: 0, tokens: 0, cost: 0 }
    expect(rest).toEqual({ runs: 3, failed: 1, ended: 2, ...used, lastMs: Date.parse(newest.created_at) })
    expect([counts.length, failures.length]).toEqual(Array(2).fill(bucketsOf(week).length))
    // Two buckets, if the second one began in between.
    const sum = (values: readonly number[]) => values.slice(-2).reduce((total, value) => total + value, 0)
    expect([sum(counts), sum(failures), counts.slice(0, -2).every((count) => count === 0)]).toEqual([3, 1, true])
    expect(all.has(idle.agentId)).toBe(false)
  })

  test('the same query has what each user has done, or one of them', async () => {
    for (const session_id of ['s-1', 's-2', 's-2']) await agent.start({ external_user_id: "o'hara", session_id })
    await agent.start({ external_user_id: 'other' })
    const week = rangeOf({ range: '7d' }, Date.now())
    const users = await eventually(async () => {
      const figures = await readRunFigures(queries, 'user', week, signal)
      return figures.length === 2 && figures.some(({ runs }) => runs === 3) && figures
    })
    expect(users.map(({ id, runs, sessions }) => [id, runs, sessions])).toEqual([
      ['other', 1, 0],
      ["o'hara", 3, 2],
    ])
    expect(await readRunFigures(queries, 'user', week, signal, "o'hara")).toEqual(users.slice(1))
  })

  test('SQL finds runs with what the API says of them', async () => {
    const runId = await agent.start({ external_run_id: 'Order 77', tags: ['shop'] })
    await agent.events(runId, [{ type: 'step' }])
    await agent.end(runId)
    const filter = filterOf({ external: 'Order 77', tag: 'shop', agent: agent.agentId, sort: 'events' }, Date.now())
    const found = await eventually(async () => {
      const [run] = await findRuns(queries, filter, signal)
      return run?.event_count === 1 && run.status === 'completed' && run
    })
    // The API counts events a moment later.
    const { input, output, version, ...run } = await eventually(async () => {
      const { data } = await service.api('GET', `/api/v1/runs/${runId}`)
      return data.event_count === 1 && data
    })
    expect(found).toEqual({ ...run, last_event_at: null })
  })

  test('SQL lists the events of a long run as the API does', async () => {
    const runId = await agent.start()
    const { last_seq } = await agent.events(runId, numbered(900))
    const raw = async (path: string, body: object) => {
      const { text } = await service.api('POST', path, { ...body, wait_for: last_seq })
      return new Response(text)
    }
    // Only what SQL does not list is read in pages.
    const pages: unknown[] = []
    const get = async (_: string, query: unknown) => {
      pages.push(query)
      return { items: [], next_cursor: null }
    }
    const log = new EventLog({ api: { raw, get } as never, queries }, runId, signal)
    await log.load(Promise.resolve(900))
    expect(pages).toEqual([{ after_seq: last_seq, limit: 200 }])
    const { items } = (await service.api('GET', `/api/v1/runs/${runId}/events?limit=1`)).data
    const { id, seq, type, level, occurred_at } = items[0]
    const first = { id, seq, type, level, occurred_at, task_id: null }
    expect([log.events.value.length, log.events.value[0]]).toEqual([900, first])
  })
})
