import { describe, expect, test } from 'bun:test'
import type { Activity } from '../../src/dashboard/page/data/records.ts'
import { kindOf } from '../../src/dashboard/page/live/line-detail.tsx'
import { sampleOf, searchedText } from '../../src/dashboard/page/live/tail.ts'
import { hrefOfCell } from '../../src/dashboard/page/sql/cell-links.ts'
import { lookOf, planOf, readChoice, writeChoice } from '../../src/dashboard/page/sql/chart-plan.ts'
import { timeParams, usesRange } from '../../src/dashboard/page/sql/time-params.ts'

/** What the dashboard draws of a result, and what its live view shows, without a browser. */

type Answer = Parameters<typeof planOf>[0]

function answer(types: Readonly<Record<string, string>>, rows: readonly unknown[][]): Answer {
  const columns = Object.entries(types).map(([name, type]) => ({ name, type }))
  const objects = rows.map((row) => Object.fromEntries(columns.map(({ name }, at) => [name, row[at]])))
  const rest = { truncated: false, statistics: { elapsed_ms: 1, rows_read: 0, bytes_read: 0 }, complete_through: 'a.1' }
  return { columns, rows: objects, row_count: rows.length, ...rest }
}

const MINUTES = answer({ at: "DateTime('UTC')", runs: 'UInt64', p95_ms: 'Nullable(Float64)', cost_usd: 'Float64' }, [
  ['2026-01-01 00:00:00', 3, 1_200, 0.5],
  ['2026-01-01 00:01:00', 4, null, 0.25],
  ['2026-01-01 00:03:00', 5, 900, 1],
])
const STATUSES = answer({ at: 'DateTime64(3)', status: 'LowCardinality(String)', runs: 'UInt64' }, [
  ['2026-01-01 00:00:00.000', 'failed', 1],
  ['2026-01-01 00:00:00.000', 'completed', '9'],
  ['2026-01-01 00:01:00.000', 'completed', 8],
])

describe('a chart without choices', () => {
  test('has lines over time, with a place for each empty bucket; other units than the first are on the right', () => {
    const plan = planOf(MINUTES, {})!
    expect(plan).toMatchObject({
      kind: 'line',
      left: ['runs'],
      right: ['p95_ms', 'cost_usd'],
      unit: 'number',
      by: null,
    })
    expect(plan.at).toHaveLength(4)
    expect(plan.series.map(({ label, values, isOnRight }) => [label, values, isOnRight])).toEqual([
      ['runs', [3, 4, null, 5], false],
      ['p95_ms', [1_200, null, null, 900], true],
      ['cost_usd', [0.5, 0.25, null, 1], true],
    ])
    // Milliseconds and dollars have no unit in common.
    expect(plan.rightUnit).toBe('number')
  })

  test('has a line for each value where several rows have one time, the largest first', () => {
    const plan = planOf(STATUSES, {})!
    expect(plan.by).toBe('status')
    expect(plan.series.map(({ label, values }) => [label, values])).toEqual([
      ['completed', [9, 8]],
      ['failed', [1, null]],
    ])
  })

  test('has bars by a text, numbers for one row of them, and nothing without numbers', () => {
    const agents = answer({ agent: 'String', runs: 'UInt64', failed: 'UInt64' }, [
      ['a', 2, 1],
      ['a', 3, 0],
      ['b', 4, 0],
    ])
    // Rows are not merged.
    expect(planOf(agents, {})).toMatchObject({ kind: 'bar', labels: ['a', 'a', 'b'], left: ['runs'] })
    const totals = answer({ runs: 'UInt64', error_rate: 'Float64', cost_usd: 'Float64' }, [[2, 0.5, 1]])
    const { kind, series } = planOf(totals, {})!
    expect([kind, ...series.map(({ unit, values }) => [unit, ...values])]).toEqual([
      'number',
      ['number', 2],
      ['percent', 0.5],
      ['usd', 1],
    ])
    expect(planOf(answer({ a: 'String' }, [['x']]), {})).toBeNull()
    expect(planOf(answer({ a: 'UInt8' }, []), {})).toBeNull()
  })

  test('a rate above 1 is no percentage', () => {
    expect(planOf(answer({ agent: 'String', rate: 'Float64' }, [['a', 40]]), {})?.unit).toBe('number')
  })
})

describe('a chosen chart', () => {
  test('has the columns, axes and units that were chosen', () => {
    const plan = planOf(MINUTES, { kind: 'bar', y: ['p95_ms'], right: ['cost_usd'], unit: 's' })!
    expect(plan).toMatchObject({ kind: 'bar', left: ['p95_ms'], right: ['cost_usd'], unit: 's', rightUnit: 'usd' })
    expect(planOf(STATUSES, { kind: 'area' })).toMatchObject({ isStacked: true, by: 'status' })
    expect(planOf(STATUSES, { x: 'status', kind: 'bar' })).toMatchObject({ labels: ['failed', 'completed'] })
    expect(planOf(MINUTES, { x: 'runs', kind: 'line', y: ['cost_usd'] })).toMatchObject({ at: [3, 4, 5], labels: null })
  })

  test('a number is that of the latest time', () => {
    expect(planOf(MINUTES, { kind: 'number' })?.series.map(({ values }) => values)).toEqual([[5], [900], [1]])
  })

  test('chosen columns that the result lacks are ignored', () => {
    const choice = { x: 'gone', y: ['gone'], right: ['__proto__'], series: 'constructor' }
    expect(planOf(MINUTES, choice)).toEqual(planOf(MINUTES, {}))
  })

  test('shows the whole of a range whose buckets it has', () => {
    const fromMs = Date.parse('2025-12-31T23:58:00Z')
    const range = { fromMs, toMs: fromMs + 600_000, bucketSeconds: 60, isMoving: false }
    expect(planOf(MINUTES, {}, range)?.at).toHaveLength(10)
    expect(planOf(MINUTES, {}, { ...range, bucketSeconds: 300 })?.at).toHaveLength(4)
  })

  test('is in the address as it was saved; damaged choices are ignored', () => {
    const choice: Parameters<typeof planOf>[1] = { kind: 'line', y: ['count()', 'a,b'], right_unit: 'usd' }
    expect(readChoice(writeChoice(choice) ?? undefined)).toEqual(choice)
    expect(lookOf(null)).toEqual({ as: 'table', chart: {} })
    expect(lookOf({})).toEqual({ as: 'chart', chart: {} })
    for (const text of ['{', '7', 'null', '[]', '{"kind":"pie","y":[1],"x":{},"unit":"__proto__"}'])
      expect(readChoice(text)).toEqual({})
  })
})

test('placeholders of time follow a range by their type; others do not', () => {
  const range = { fromMs: 1_700_000_000_000, toMs: 1_700_003_600_000, bucketSeconds: 60, isMoving: true }
  const query = 'SELECT {from:DateTime64(3)}, {to:Int64}, {step:UInt32}, {days:UInt8}'
  expect(timeParams(query, range)).toEqual({ from: '1700000000', to: '1700003600000', step: '60' })
  expect(timeParams('{from:Date} {to:UInt32}', range)).toEqual({ from: '2023-11-14', to: '1700003600' })
  for (const text of ['SELECT {from:String}', 'SELECT {step:UInt32}', 'SELECT 1']) expect(usesRange(text)).toBe(false)
})

test('cells with ids link to runs, agents, sessions and pauses; events and tasks link to their run', () => {
  const [id, run] = [crypto.randomUUID(), crypto.randomUUID()]
  expect(hrefOfCell('run_id', { run_id: id })).toBe(`#/runs/${id}`)
  expect(hrefOfCell('latest_run', { latest_run: id })).toBe(`#/runs/${id}`)
  expect(hrefOfCell('agent_id', { agent_id: id })).toBe(`#/agents/${id}`)
  expect(hrefOfCell('session_id', { session_id: id })).toBe(`#/sessions/${id}`)
  expect(hrefOfCell('approval_id', { approval_id: id })).toBe(`#/waiting/approvals/${id}`)
  expect(hrefOfCell('task_id', { task_id: id, run_id: run })).toBe(`#/runs/${run}?task=${id}`)
  expect(hrefOfCell('seq', { seq: 7, run_id: run })).toBe(`#/runs/${run}?event=7`)
  for (const [name, value] of [
    ['task_id', id],
    ['external_run_id', id],
    ['agent', 'support'],
    ['seq', 7],
    ['toString', id],
  ] as const)
    expect(hrefOfCell(name, { [name]: value })).toBeNull()
})

describe('the live view', () => {
  const event = (n: number, level = 'info', type = 'step') =>
    ({
      cursor: `a.${n}`,
      kind: 'event',
      event: { type, level, payload: { n, Note: 'Größe' } },
      run_id: 'r',
    }) as unknown as Activity

  test('of many lines it shows an even sample, and every failure first', () => {
    const lines = Array.from({ length: 1_000 }, (_, n) => event(n, n % 100 === 3 ? 'error' : 'info'))
    const shown = sampleOf(lines, 50)
    expect(shown).toHaveLength(50)
    expect(shown.filter((line) => (line as Activity).event?.level === 'error')).toHaveLength(10)
    expect(shown.map(({ cursor }) => Number(cursor.slice(2)))).toEqual(
      shown.map(({ cursor }) => Number(cursor.slice(2))).toSorted((a, b) => a - b),
    )
    const others = shown
      .filter((line) => (line as Activity).event?.level === 'info')
      .map(({ cursor }) => Number(cursor.slice(2)))
    const gaps = others.slice(1).map((at, index) => at - others[index]!)
    expect(Math.max(...gaps)).toBeLessThan(60)
    expect(sampleOf(lines, 1_000)).toEqual(lines)
    expect(
      sampleOf(
        Array.from({ length: 100 }, (_, n) => event(n, 'error')),
        9,
      ),
    ).toHaveLength(9)
    expect(sampleOf(lines, 0)).toEqual([])
  })

  test('searches types, ids and payloads, and tells kinds apart', () => {
    expect(searchedText(event(7))).toContain('größe')
    expect(searchedText({ cursor: 'gap 1', gap: true })).toBe('')
    const kinds = ['llm.call', 'tool.call.started', 'toolbox', 'approval.requested', 'note']
    expect(kinds.map((type) => kindOf(event(1, 'info', type)))).toEqual(['model', 'tool', 'event', 'person', 'event'])
    expect(kindOf({ task: {} as never })).toBe('task')
    expect(kindOf({})).toBe('run')
  })
})
