import { beforeAll, describe, expect, test } from 'bun:test'
import { newReporter } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Untyped JSON paths in numeric contexts: they work without a cast, and other values count as null. */

let service: TestService

beforeAll(async () => {
  service = await startTestService({}, { bounds: { queries: { atOnce: 8 } } })
  const { api } = service
  const agent = await newReporter(api)
  const runId = await agent.start({ input: { n: 5 } })
  const payloads = [
    { ms: 5, tokens: { in: 812 }, model: 'a', at: '2026-01-01', 'gen_ai.x': 3 },
    { ms: 2.5, tokens: { in: 8 }, model: 'b', at: '2026-01-02' },
    { ms: '12', tokens: { in: true }, model: 7 },
    { ms: 'many', tokens: { in: [1] }, list: [1, 2] },
    { ms: -1, tokens: null },
    {},
  ]
  const events = payloads.map((payload, i) => ({ type: i < 2 ? 'call' : 'other', payload }))
  const { last_seq } = await agent.events(runId, events)
  await api('POST', '/api/v1/query', { query: 'select 1', wait_for: last_seq })
})

/** All values that a query returns, row by row, or the error message. */
async function values(query: string, params: Record<string, unknown> = {}): Promise<unknown[]> {
  const { error, data } = await service.api('POST', '/api/v1/query', { query, params })
  if (error !== null) return [error.message]
  return data.rows.flatMap((row: Record<string, unknown>) => Object.values(row))
}

async function names(query: string): Promise<string[]> {
  const { error, data } = await service.api('POST', '/api/v1/query', { query })
  return error === null ? data.columns.map(({ name }: { name: string }) => name) : [error.message]
}

describe('numeric contexts use numbers and treat other values as null', () => {
  test.each<[string, unknown[]]>([
    ['sum(payload.ms), avg(payload.ms), min(payload.ms), max(payload.ms), count() - 6', [6.5, 6.5 / 3, -1, 5, 0]],
    ['sum(payload.tokens.in), avg(payload.tokens.in)', [820, 410]],
    ['quantile(0.5)(payload.ms), median(payload.ms), quantiles(0, 1)(payload.ms)', [2.5, 2.5, [-1, 5]]],
    ["sumIf(payload.ms, type = 'call'), avgOrNullIf(payload.ms, 0), sumDistinct(payload.ms)", [7.5, null, 6.5]],
    ["sum(payload.ms) filter (where type = 'call')", [7.5]],
    ['argMax(payload.model, payload.ms), argMin(seq > 0, payload.ms)', ['a', 1]],
    ['sum(payload.gen_ai.x), sum(payload.tokens.in + payload.ms)', [3, 827.5]],
    [
      "sum(if(type = 'call', payload.ms, 0)), sum(ifNull(payload.ms, 1)), sum(coalesce(payload.tokens.in, payload.ms))",
      [7.5, 9.5, 819],
    ],
    ["max(case when type = 'call' then payload.ms else -payload.ms end)", [5]],
    ['round(sum(payload.ms) / count(), 2), sum(payload.ms * 2) + 1', [1.08, 14]],
    ['countIf(payload.ms > 2), countIf(payload.ms between 2 and 3), countIf(5 = payload.ms)', [2, 1, 1]],
    ['countIf(payload.ms in (5, 2.5)), countIf(payload.ms not in (5)), countIf(payload.ms in [5])', [2, 2, 1]],
    [
      'countIf(payload.ms > {low:Float64}), countIf(payload.ms > seq - seq), countIf(payload.ms in {list:Array(Float64)})',
      [2, 2, 2],
    ],
    ['sum(payload.none), max(payload.model)', [null, 7]],
  ])('%s', async (list, expected) => {
    expect(await values(`select ${list} from events`, { low: 2, list: [5, 2.5, 7] })).toEqual(expected)
  })

  test.each<[string, unknown[]]>([
    ['select payload.ms from events where payload.ms > 1 order by seq', [5, 2.5]],
    ['select e.payload.ms * 2 from events as e where e.payload.tokens.in >= 8 order by e.seq', [10, 5]],
    ['select payload.ms % 2 as odd from events where odd is not null order by seq', [1, 0.5, -1]],
    ['select payload.ms as ms from events where ms > 2 order by seq', [5, 2.5]],
    ['select sum(ms) from (select payload.ms as ms from events)', [6.5]],
    ['with 2 as low select count() from events where payload.ms > low', [2]],
    ['select count() from events where payload.ms > (select avg(payload.ms) from events)', [2]],
    ['select payload.ms + 1 as next from events group by payload.ms having next > 3 order by next', [3.5, 6]],
    ['select sum(payload.ms) from events group by type order by type', [7.5, -1]],
    ['select distinct payload.ms > 0 as x from events order by x nulls last', [0, 1, null]],
    ['select max(payload.ms) over (partition by type) as m from events order by seq limit 1', [5]],
    ['select count() from events as e join runs as r on e.payload.ms = r.input.n + 0', [1]],
    ['select count() from (select *, payload.ms * 2 as double from events) where double = 10', [1]],
    [
      'select x from (select sum(payload.ms) as x from events union all select max(payload.ms) from events) order by x',
      [5, 6.5],
    ],
    ['select sum(input.n), max(runs.input.n) from runs', [5, 5]],
  ])('%s', async (query, expected) => {
    expect(await values(query)).toEqual(expected)
  })
})

describe('other contexts keep values unchanged', () => {
  test.each<[string, unknown[]]>([
    ['select payload.ms from events order by seq', [5, 2.5, '12', 'many', -1, null]],
    ['select max(payload.at::String) from events', ['2026-01-02']],
    ["select count() from events where payload.model = 'a'", [1]],
    ["select count() from events where payload.model in ('a', 'b')", [2]],
    ['select count() from events where payload.at = {at:String}', [1]],
    ["select count() from events where payload.at > '2026-01-01' and payload.model != 'a'", [1]],
    ["select count() from events where payload.model not in ('a', 'x') or payload.model in {list:Array(String)}", [2]],
    ['select countIf(payload.model = 7) from events', [1]],
    ["select sum(accurateCastOrNull(payload.ms, 'Float64')) from events", [18.5]],
    ['select sum(payload.ms::Nullable(Float64)) from events where type = {type:String}', [7.5]],
    ['select sum(payload.ms.:Int64) from events', [4]],
    ['select toTypeName(payload.ms), toTypeName(payload.ms + 1) from events limit 1', ['Dynamic', 'Nullable(Float64)']],
    ['select toTypeName(any(payload.model)) from events', ['Dynamic']],
    ['select payload.x + 1 from (select tuple(1)::Tuple(x UInt8) as payload)', [2]],
    ["select payload.n + 1 from values('n UInt8', 1) as payload", [2]],
    ["select 'sum(payload.ms)' as text from events limit 1", ['sum(payload.ms)']],
  ])('%s', async (query, expected) => {
    expect(await values(query, { at: '2026-01-02', type: 'call', list: ['a'] })).toEqual(expected)
  })

  test('the rewrite does not change column names', async () => {
    expect(
      await names('select payload.ms * 2, payload.ms > 5, payload.`ms`, seq + 1, round(payload.ms, 1) from events'),
    ).toEqual([
      'multiply(payload.ms, 2)',
      'greater(payload.ms, 5)',
      'payload.ms',
      'plus(seq, 1)',
      'round(payload.ms, 1)',
    ])
    expect(
      await names('select * from (select distinct quantile(0.5)(payload.ms), max(e.payload.ms) from events as e)'),
    ).toEqual(['quantile(0.5)(payload.ms)', 'max(e.payload.ms)'])
    expect(await names('with 2 as n select sum(payload.ms * n) over (order by seq) from events')).toEqual([
      'sum(payload.ms * n) OVER (ORDER BY seq ASC)',
    ])
  })

  test('an unsupported function gets an error that suggests a cast', async () => {
    expect(await values('select groupBitAnd(payload.ms) from events')).toEqual([expect.stringContaining('::Float64')])
  })
})

test('the guard checks every part, next to and within numeric expressions', async () => {
  for (const part of [
    "file('/etc/passwd')",
    '(select sum(number) from system.numbers)',
    "getSetting('readonly')",
    'hostName()',
    '(select any(payload.ms) from other.events)',
  ])
    for (const query of [
      `select sum(payload.ms + ${part}) from events`,
      `select payload.ms > ${part} from events`,
      `select payload.ms * 2 as x, ${part} from events`,
      `select sum(if(payload.ms > 1, payload.ms, ${part})) from events`,
    ])
      expect(await values(query), query).toEqual([expect.stringMatching(/not allowed/)])
})
