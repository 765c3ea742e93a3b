import { beforeAll, describe, expect, test } from 'bun:test'
import type { ExampleQuery } from '../../src/sql/analytics/examples.ts'
import { newReporter, newTenant } from '../support/feeds.ts'
import { seededRandom } from '../support/random.ts'
import { type Demo, QUERY_SECONDS, type ReportedEvent, type ReportedRun, reportDemo } from './query-demo.ts'

/** `GET /api/v1/query/schema` compared with the engine, and its example queries with the reported data. */

type Row = Record<string, unknown>

let demo: Demo
let runs: readonly ReportedRun[]
// biome-ignore lint/suspicious/noExplicitAny: what a test expects there is the test.
let catalogue: any

beforeAll(async () => {
  demo = await reportDemo(seededRandom('query-schema'))
  runs = demo.runs
  const answer = await demo.service.api('GET', '/api/v1/query/schema')
  expect(answer.status).toBe(200)
  catalogue = answer.data
})

describe('the catalogue', () => {
  test('lists the specified tables with the columns and types of the engine', async () => {
    expect(catalogue.tables.map(({ name }: Row) => name)).toEqual([
      'events',
      'runs',
      'tasks',
      'scores',
      'pauses',
      'agents',
      'agent_versions',
      'deliveries',
      'alert_states',
      'gaps',
    ])
    for (const { name: table, columns } of catalogue.tables) {
      const shown = columns.map(({ name, type }: Row) => ({ name, type }))
      const names = shown.map(({ name }: Row) => name).join(', ')
      expect((await ask(`SELECT ${names} FROM ${table} LIMIT 0`)).columns).toEqual(shown)
      // Without a row there is no type to read.
      if (['scores', 'pauses', 'deliveries', 'alert_states', 'gaps'].includes(table)) continue
      const typeNames = columns.map(({ name }: Row) => `any(toTypeName(${name})) AS ${name}`).join(', ')
      const [types] = (await ask(`SELECT ${typeNames} FROM ${table}`)).rows
      expect(Object.entries(types!).map(([name, type]) => ({ name, type }))).toEqual(shown)
    }
  })

  test('describes every table and column, and which are nullable', () => {
    for (const { description, columns } of catalogue.tables) {
      expect(description).not.toBe('')
      for (const column of columns) {
        expect(column, column.name).toMatchObject({ description: expect.stringMatching(/\w.*\.$/s) })
        expect(column.nullable, column.name).toBe(column.type.startsWith('Nullable'))
      }
    }
  })

  test('reports the actual limits', async () => {
    expect(catalogue.caps).toEqual({
      seconds: QUERY_SECONDS,
      memory_bytes: 2 ** 30,
      rows: 10_000,
      result_bytes: 32 * 2 ** 20,
      at_once: 3,
    })
    for (const more of [0, 1]) {
      const answer = await ask(`SELECT number FROM numbers(${catalogue.caps.rows + more})`)
      expect(answer).toMatchObject({ row_count: catalogue.caps.rows, truncated: more === 1 })
      expect(answer.rows).toHaveLength(catalogue.caps.rows)
    }
  })

  test('reads dotted and nested keys by the same path, as the payload description says', async () => {
    const payloads = [
      { 'gen_ai.usage.input_tokens': 5, 'x-id': 1, cost_usd: 2, tool: { name: 'a', input: { q: 1 } } },
      { gen_ai: { usage: { input_tokens: 7 } }, 'x-id': 2, cost_usd: 'free' },
    ]
    const { ask } = await tenantWith(payloads.map((payload) => ({ type: 'a', payload })))
    const { data } = await ask({
      query: `SELECT payload.gen_ai.usage.input_tokens AS nested, payload.\`gen_ai.usage.input_tokens\` AS dotted,
          payload.\`x-id\` AS quoted, accurateCastOrNull(payload.cost_usd, 'Float64') AS cost,
          payload.tool.name::String AS name, payload.cost_usd.:Int64 AS whole, payload.^tool AS tool
        FROM events ORDER BY seq`,
    })
    expect(data.rows).toEqual([
      { nested: 5, dotted: 5, quoted: 1, cost: 2, name: 'a', whole: 2, tool: { name: 'a', input: { q: 1 } } },
      { nested: 7, dotted: 7, quoted: 2, cost: null, name: '', whole: null, tool: {} },
    ])
  })
})

/** The expected result of each example, computed from the reported data. */
const EXPECTED: Record<string, (rows: readonly Row[]) => void> = {
  'Error rate by agent': (rows) => {
    const expected = [...grouped(runs, ({ agent }) => agent)].map(([agent_name, its]) => {
      const ended = its.filter(({ status }) => status !== 'running').length
      const failed = its.filter(({ status }) => status === 'failed').length
      return { agent_name, ended, failed, error_rate: near(failed / ended, 3) }
    })
    expectSame(rows, expected, 'agent_name')
  },
  'Duration of runs by hour': (rows) => {
    const ended = runs.filter(({ status }) => status !== 'running')
    const byHour = grouped(ended, ({ startedMs }) => `${new Date(startedMs).toISOString().slice(0, 13)}:00:00Z`)
    expect(rows.map(({ hour, runs }) => [hour, runs]).sort()).toEqual(
      [...byHour].map(([hour, its]) => [hour, its.length]).sort(),
    )
    for (const { hour, p50_ms, p95_ms } of rows) {
      const durations = byHour.get(String(hour))!.map(({ durationMs }) => durationMs)
      expect(p50_ms).toBeGreaterThanOrEqual(Math.min(...durations))
      expect(p95_ms).toBeGreaterThanOrEqual(p50_ms as number)
      expect(p95_ms).toBeLessThanOrEqual(Math.max(...durations))
    }
  },
  'Tokens and cost by model': (rows) => {
    const byModel = grouped(payloadsOf('llm.call'), (payload) => String(payload['gen_ai.request.model']))
    const expected = [...byModel].map(([model, its]) => ({
      model,
      calls: its.length,
      input_tokens: total(its, 'gen_ai.usage.input_tokens'),
      output_tokens: total(its, 'gen_ai.usage.output_tokens'),
      cost_usd: near(total(its, 'cost_usd'), 4),
    }))
    expect(expected.length).toBe(3)
    expectSame(rows, expected, 'model')
  },
  'Slowest tools': (rows) => {
    const byTool = grouped(payloadsOf('tool.call.finished'), (payload) => String(payload['gen_ai.tool.name']))
    const expected = [...byTool].map(([tool, its]) => ({
      tool,
      calls: its.length,
      failed: its.filter((payload) => 'error.type' in payload).length,
      p50_ms: expect.any(Number),
      p95_ms: expect.any(Number),
    }))
    expectSame(rows, expected, 'tool')
    expect(rows.map(({ p95_ms }) => p95_ms)).toEqual(rows.map(({ p95_ms }) => p95_ms as number).sort((a, b) => b - a))
  },
  // With rows: scores.test.ts.
  'Mean score by agent and day': (rows) => expect(rows).toEqual([]),
  'Precision and recall by label': (rows) => expect(rows).toEqual([]),
  'Funnel of event types': (rows) => {
    const reached = (...types: string[]) => runs.filter((run) => hasInOrder(run.events, types)).length
    expect(rows).toEqual([
      {
        reported: runs.length,
        called_a_model: reached('llm.call'),
        called_a_tool: reached('llm.call', 'tool.call.started'),
        had_its_result: reached('llm.call', 'tool.call.started', 'tool.call.finished'),
      },
    ])
  },
  'Runs stuck waiting': (rows) => {
    const stuck = runs.filter(({ status }) => status === 'running')
    expect(stuck.length).toBeGreaterThan(3)
    expect(rows.map(({ run_id, status, last_event }) => [run_id, status, last_event])).toEqual(
      stuck.map(({ runId, events }) => [runId, 'running', events.at(-1)!.type]),
    )
    expect(rows.every(({ minutes, last_heard_at }) => (minutes as number) > 15 && last_heard_at !== null)).toBe(true)
  },
  'Busiest hours of the day': (rows) => {
    const sum = rows.reduce((events, row) => events + (row.events as number), 0)
    expect(sum).toBe(runs.flatMap(({ events }) => events).length)
    const busiest = Math.max(...rows.map(({ events }) => events as number))
    expect(rows.find(({ events }) => events === busiest)).toMatchObject({ chart: '█'.repeat(30) })
  },
  'Reasons of failure': (rows) => {
    const byReason = grouped(
      runs.filter(({ status }) => status === 'failed'),
      ({ reason }) => reason!,
    )
    const expected = [...byReason].map(([reason, its]) => ({
      reason,
      runs: its.length,
      agents: new Set(its.map(({ agent }) => agent)).size,
      last_seen: new Date(Math.max(...its.map(endMs))).toISOString(),
      latest_run: its.toSorted((a, b) => endMs(a) - endMs(b)).at(-1)!.runId,
    }))
    expect(expected.length).toBeGreaterThan(1)
    expectSame(rows, expected, 'reason')
  },
  'Work that took several runs': (rows) => {
    const named = runs.filter(({ plan }) => plan.externalRunId !== undefined)
    const several = [...grouped(named, ({ plan }) => plan.externalRunId!)].filter(([, its]) => its.length > 1)
    const expected = several.map(([external_run_id, its]) => ({
      external_run_id,
      attempts: its.length,
      failed: its.filter(({ status }) => status === 'failed').length,
      outcome: its.at(-1)!.status,
      seconds_between: expect.any(Number),
    }))
    expect(expected.length).toBeGreaterThan(1)
    expectSame(rows, expected, 'external_run_id')
  },
  'Tasks by status': (rows) => {
    const byName = grouped(
      runs.flatMap(({ tasks }) => tasks),
      ({ name }) => name,
    )
    const expected = [...byName].map(([name, its]) => {
      const count = (status: string) => its.filter((task) => task.status === status).length
      const [completed, failed, skipped, open] = ['completed', 'failed', 'skipped', 'running'].map(count)
      const average_ms = completed === 0 ? null : expect.any(Number)
      return { name, tasks: its.length, completed, failed, skipped, open, average_ms }
    })
    expectSame(rows, expected, 'name')
  },
  'Longest silences of runs': (rows) => {
    const gaps = runs.flatMap(({ runId, events }) =>
      events.slice(1).map((event, i) => ({
        run_id: runId,
        event_before: events[i]!.type,
        event_after: event.type,
        gap_ms: event.occurredMs - events[i]!.occurredMs,
        occurred_at: new Date(event.occurredMs).toISOString(),
      })),
    )
    expect(rows).toHaveLength(20)
    const longest = gaps.toSorted((a, b) => b.gap_ms - a.gap_ms).slice(0, 20)
    expect(rows.map(({ gap_ms }) => gap_ms)).toEqual(longest.map(({ gap_ms }) => gap_ms))
    for (const row of rows) expect(gaps).toContainEqual(row as (typeof gaps)[number])
  },
  'Latest events of a run': (rows) => {
    const newest = runs.reduce((latest, run) => (run.startedMs > latest.startedMs ? run : latest))
    expect(rows.map(({ type, occurred_at }) => [type, occurred_at])).toEqual(
      newest.events.map(({ type, occurredMs }) => [type, new Date(occurredMs).toISOString()]).reverse(),
    )
  },
  'Cohorts by tag': (rows) => {
    const tagged = runs.flatMap((run) => run.plan.tags.map((tag) => ({ tag, run })))
    const expected = [...grouped(tagged, ({ tag }) => tag)].map(([tag, its]) => ({
      tag,
      runs: its.length,
      completed: near(its.filter(({ run }) => run.status === 'completed').length / its.length, 3),
      p50_ms: its.some(({ run }) => run.status !== 'running') ? expect.any(Number) : null,
    }))
    expectSame(rows, expected, 'tag')
  },
  'Most expensive runs': (rows) => {
    const costs = runs.map(({ runId, agent, status, events }) => {
      const calls = events.filter(({ type }) => type === 'llm.call').map(({ payload }) => payload)
      const tokens = total(calls, 'gen_ai.usage.input_tokens') + total(calls, 'gen_ai.usage.output_tokens')
      const cost_usd = near(total(calls, 'cost_usd'), 6)
      return { run_id: runId, agent_name: agent, status, calls: calls.length, tokens, cost_usd }
    })
    expect(rows).toHaveLength(20)
    expect(rows[0]!.cost_usd).toBeCloseTo(Math.max(...runs.map((run) => costOf(run))), 6)
    for (const row of rows) expect(costs).toContainEqual(row as (typeof costs)[number])
  },
  'Concurrent runs': (rows) => {
    const expected = [...grouped(runs, ({ agent }) => agent)].map(([agent_name, its]) => {
      const under = (ms: number) =>
        its.filter((run) => run.startedMs <= ms && (run.status === 'running' || ms < endMs(run)))
      const most_at_once = Math.max(...its.map(({ startedMs }) => under(startedMs).length))
      return { agent_name, runs: its.length, most_at_once, at: expect.stringMatching(/Z$/) }
    })
    expectSame(rows, expected, 'agent_name')
  },
  'Who delegates to whom': (rows) => {
    const children = runs.filter(({ parentId }) => parentId !== undefined)
    expect(children.length).toBeGreaterThan(0)
    const failed = children.filter(({ status }) => status === 'failed').length
    expect(rows).toEqual([
      { asked_by: 'coding', done_by: 'research', child_runs: children.length, failed, average_ms: expect.any(Number) },
    ])
  },
  'Decisions of people': (rows) => expect(rows).toEqual([]),
  'Versions of agents': (rows) => {
    const ended = runs.filter(({ status }) => status !== 'running')
    const expected = [...grouped(ended, ({ agent }) => agent)].map(([agent, its]) => {
      const error_rate = near(its.filter(({ status }) => status === 'failed').length / its.length, 3)
      return { agent, version: 1, changes: [], ended: its.length, error_rate, p50_ms: expect.any(Number) }
    })
    expectSame(rows, expected, 'agent')
  },
  'Warnings and errors': (rows) => {
    const bad = runs.flatMap(({ runId, events }) =>
      events.filter(({ level }) => level === 'warn' || level === 'error').map((event) => ({ ...event, runId })),
    )
    const expected = [...grouped(bad, ({ type, level }) => `${type} ${level}`)].map(([key, its]) => ({
      type: key.split(' ')[0],
      level: key.split(' ')[1],
      events: its.length,
      runs: new Set(its.map(({ runId }) => runId)).size,
      last_seen: new Date(Math.max(...its.map(({ occurredMs }) => occurredMs))).toISOString(),
      latest_payload: expect.stringContaining('tool'),
    }))
    expectSame(rows, expected, 'type')
  },
  'What is in the payloads': (rows) => {
    const byType = grouped(
      runs.flatMap(({ events }) => events),
      ({ type }) => type,
    )
    expect(rows.map(({ type, events }) => [type, events]).sort()).toEqual(
      [...byType].map(([type, its]) => [type, its.length]).sort(),
    )
    const paths = rows.find(({ type }) => type === 'llm.call')?.paths
    expect(paths).toEqual(Object.keys(byType.get('llm.call')![0]!.payload).sort())
  },
}

describe('the examples', () => {
  test.each(Object.entries(EXPECTED))('%s', async (title, expectRows) => {
    const { query, params } = example(title)
    expectRows((await ask(query, params)).rows)
  })

  test('all examples are tested above, and there are at least twelve', () => {
    expect(catalogue.examples.map(({ title }: ExampleQuery) => title).sort()).toEqual(Object.keys(EXPECTED).sort())
    expect(catalogue.examples.length).toBeGreaterThanOrEqual(12)
  })

  test('accept other parameter values', async () => {
    const run = runs[3]!
    const { rows } = await ask(example('Latest events of a run').query, { run_id: run.runId })
    expect(rows).toHaveLength(run.events.length)
    const tiers = await ask(example('Cohorts by tag').query, { prefix: 'tier:' })
    expect(tiers.rows.length).toBeGreaterThan(1)
    expect(tiers.rows.every(({ tag }) => String(tag).startsWith('tier:'))).toBe(true)
  })

  test('run in an empty workspace', async () => {
    const { ask } = await tenantWith([])
    for (const { title, query, params } of catalogue.examples) {
      const { error, data } = await ask({ query, params })
      expect(error, title).toBeNull()
      expect(data.row_count, title).toBeLessThanOrEqual(1)
    }
  })

  test('accept payloads with unexpected values', async () => {
    const odd = [7, 2.5, -1, 1e300, 'many', '', null, true, [1, 'a'], [], { a: 1 }, {}, '2026-01-01', '12']
    const keys = ['request.model', 'tool.name', 'usage.input_tokens', 'usage.output_tokens']
    const events = odd.flatMap((value) => {
      const genAi = Object.fromEntries(keys.map((key) => [`gen_ai.${key}`, value]))
      const payload = { ...genAi, latency_ms: value, cost_usd: value, error: value }
      return ['llm.call', 'tool.call.finished'].map((type) => ({ type, level: 'error', payload }))
    })
    const { ask } = await tenantWith(events)
    for (const { title, query, params } of catalogue.examples)
      expect((await ask({ query, params })).error, title).toBeNull()
  })
})

async function ask(query: string, params: ExampleQuery['params'] = {}) {
  const request = { query, params, wait_for: demo.lastSeq }
  const { data, error } = await demo.service.api('POST', '/api/v1/query', request)
  expect(error).toBeNull()
  return data as { columns: unknown[]; rows: Row[]; row_count: number; truncated: boolean }
}

/** A new workspace in which one run has reported these events. */
async function tenantWith(events: readonly object[]) {
  const { api } = await newTenant(demo.service)
  const agent = await newReporter(api)
  const wait_for = events.length > 0 ? (await agent.events(await agent.start(), events)).last_seq : 0
  return { ask: (request: object) => api('POST', '/api/v1/query', { ...request, wait_for }) }
}

function example(title: string): ExampleQuery {
  return catalogue.examples.find((each: ExampleQuery) => each.title === title)
}

function payloadsOf(type: string) {
  return runs.flatMap(({ events }) => events.filter((event) => event.type === type).map(({ payload }) => payload))
}

function costOf({ events }: ReportedRun): number {
  return total(
    events.filter(({ type }) => type === 'llm.call').map(({ payload }) => payload),
    'cost_usd',
  )
}

function total(payloads: readonly Readonly<Row>[], name: string): number {
  return payloads.reduce((sum, payload) => sum + (payload[name] as number), 0)
}

function hasInOrder(events: readonly ReportedEvent[], types: readonly string[]): boolean {
  let at = 0
  for (const { type } of events) if (type === types[at]) at++
  return at === types.length
}

function endMs({ startedMs, durationMs }: ReportedRun): number {
  return startedMs + durationMs
}

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  return Map.groupBy(items, keyOf)
}

/** Matches a number rounded to `decimals`, up or down. */
function near(value: number, decimals: number) {
  return expect.closeTo(value, decimals - 1)
}

function expectSame(rows: readonly Row[], expected: readonly Row[], key: string): void {
  const sorted = (list: readonly Row[]) => list.toSorted((a, b) => (String(a[key]) < String(b[key]) ? -1 : 1))
  expect(sorted(rows)).toEqual(sorted(expected))
}
