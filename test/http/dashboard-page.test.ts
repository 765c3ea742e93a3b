import { expect, test } from 'bun:test'
import { readArguments } from '../../src/dashboard/page/approval-form.ts'
import { ago, ahead, duration } from '../../src/dashboard/page/format.ts'
import { parseIntact, plain, pretty, textOf } from '../../src/dashboard/page/json.ts'
import { taskBars } from '../../src/dashboard/page/task-bars.ts'
import { taskTree } from '../../src/dashboard/page/task-tree.ts'
import { fillPrompt, placeholdersOf } from '../../src/hosted/invoke/prompt.ts'
import { seededRandom } from '../support/random.ts'

/** The parts of the dashboard page that can be tested without a browser. */

test('shows numbers with the digits they were sent with', () => {
  const text = '{"big": 9223372036854775807, "whole": 1.0, "small": 1e-3, "plain": 42, "list": [18446744073709551615]}'
  const value = parseIntact(text)
  expect(textOf(value)).toBe(text.replaceAll(/([:,]) /g, '$1'))
  expect(pretty(value)).toContain('"big": 9223372036854775807,\n')
  expect((value as { plain: unknown }).plain).toBe(42)
})

test('keeps strings of digits as strings and __proto__ as a plain key', () => {
  const value = parseIntact('{"__proto__": {"x": "12345678901234567890"}}')
  expect(textOf(value)).toBe('{"__proto__":{"x":"12345678901234567890"}}')
  expect((value as { x?: unknown }).x).toBeUndefined()
})

test('lists tasks below their parents, siblings in reported order', () => {
  // As the API lists them, newest first; c and b have the same time.
  const tasks = [task('d', 'a', 3), task('c', null, 2), task('b', 'a', 2), task('a', null, 1)]
  expect(taskTree(tasks).map(({ task: { id }, depth }) => `${depth}${id}`)).toEqual(['0a', '1b', '1d', '0c'])
})

test('sorts siblings by start time, or by creation time without one', () => {
  const late = { ...task('late', null, 1), started_at: '2026-01-31T09:05:00.000Z' }
  const early = { ...task('early', null, 4), started_at: '2026-01-31T09:02:00.000Z' }
  const order = taskTree([task('pending', null, 3), early, late]).map(({ task: { id } }) => id)
  expect(order).toEqual(['early', 'pending', 'late'])
})

test('draws a bar from start to end of a task, and none for pending or skipped tasks', () => {
  const at = (second: number) => new Date(second * 1_000).toISOString()
  const timed = (status: string, started: number | null, completed: number | null) => ({
    status,
    started_at: started === null ? null : at(started),
    completed_at: completed === null ? null : at(completed),
  })
  const run = { created_at: at(0), started_at: at(0), completed_at: null as string | null }
  const bars = (tasks: ReturnType<typeof timed>[], completed: number | null = null) => {
    const found = taskBars(tasks, { ...run, completed_at: completed === null ? null : at(completed) }, 20_000)
    return tasks.map((task) => found.get(task) ?? null)
  }
  const tasks = [timed('completed', 5, 10), timed('running', 15, null), timed('pending', null, null)]
  expect(bars(tasks)).toEqual([{ from: 25, to: 50, ms: 5_000 }, { from: 75, to: 100, ms: 5_000 }, null])
  expect(bars([timed('skipped', null, 9), timed('skipped', 5, 9), timed('failed', 5, 5)])).toEqual([
    null,
    null,
    { from: 25, to: 25, ms: 0 },
  ])
  // Times outside the run, and a task that never ended.
  expect(bars([timed('completed', -10, 30)], 10)).toEqual([{ from: 0, to: 100, ms: 40_000 }])
  expect(bars([timed('running', 5, null)], 10)).toEqual([{ from: 50, to: 100, ms: 5_000 }])
})

test('lists every task once, whatever parents the caller reported', () => {
  const random = seededRandom('task tree')
  for (let round = 0; round < 200; round++) {
    const ids = Array.from({ length: random.int(1, 12) }, (_, index) => `t${index}`)
    const tasks = ids.map((id) => task(id, random.pick([null, 'missing', ...ids]), random.int(0, 9)))
    const tree = taskTree(tasks)
    expect(tree.map(({ task: { id } }) => id).toSorted()).toEqual(ids.toSorted())
    expect(tree[0]?.depth).toBe(0)
  }
})

test('formats durations and ages, never negative', () => {
  expect([-5, 340, 1_240, 12_400, 125_000, 12_000_000].map(duration)).toEqual([
    '0 ms',
    '340 ms',
    '1.24 s',
    '12 s',
    '2 min 05 s',
    '3 h 20 min',
  ])
  const now = Date.parse('2026-01-31T12:00:00.000Z')
  const times = [
    '2026-01-31T12:00:09.000Z',
    '2026-01-31T11:59:48.000Z',
    '2026-01-31T11:55:00.000Z',
    '2026-01-31T09:00:00Z',
  ]
  expect(times.map((time) => ago(time, now))).toEqual(['just now', '12 s ago', '5 min ago', '3 h ago'])
})

test('formats the time until an expiry, never negative', () => {
  const now = Date.parse('2026-01-31T12:00:00.000Z')
  const times = ['2026-01-31T11:00:00Z', '2026-01-31T12:00:09.500Z', '2026-01-31T12:05:00Z', '2026-01-31T15:59:00Z']
  expect(times.map((time) => ahead(time, now))).toEqual(['now', 'in 10 s', 'in 5 min', 'in 3 h'])
})

test('escapes invisible characters in tool arguments without changing the value', () => {
  const tricky = {
    'to\u200b': 'safe\u202eevil\u2066',
    tags: '\u{e0041}x\u00ad\u2028\u0085\ufeff',
    seen: 'Grüße, 你好 👍\n',
  }
  const text = plain(tricky)
  expect(text).toContain('"to\\u200b": "safe\\u202eevil\\u2066"')
  expect(text).toContain('"\\udb40\\udc41x\\u00ad\\u2028\\u0085\\ufeff"')
  expect(text).toContain('Grüße, 你好 👍\\n')
  expect(JSON.parse(text)).toEqual(tricky)
  expect(plain({ a: [1, { b: 'c' }] })).toBe(pretty({ a: [1, { b: 'c' }] }))
})

test('reads edited arguments as a JSON object with exact numbers, or reports the problem', () => {
  const edited = readArguments(' {"order": 9223372036854775807, "amount": 1.0}')
  expect('value' in edited && textOf(edited.value)).toBe('{"order":9223372036854775807,"amount":1.0}')
  for (const text of ['', '{', '{"a": 1,}', '[1]', '"text"', '12345678901234567890', 'null'])
    expect(readArguments(text)).toEqual({ problem: expect.stringMatching(/JSON/) })
})

test('the invoke form asks for exactly the placeholders of the prompt', () => {
  const prompt = 'You help {{CUSTOMER}} in {{ language }}, {{CUSTOMER}}; {{not this}} {{}} {{a.b-c}}'
  const names = placeholdersOf(prompt)
  expect(names).toEqual(['CUSTOMER', 'language', 'a.b-c'])
  const filled = (given: readonly string[]) => {
    const variables = Object.fromEntries(given.map((name) => [name, 'x']))
    return fillPrompt(prompt, { variables, path: 'prompt_variables', lengthMax: 100 })
  }
  expect(filled(names)).toBe('You help x in x, x; {{not this}} {{}} x')
  for (const name of names) expect(() => filled(names.filter((each) => each !== name))).toThrow(name)
})

function task(id: string, parent: string | null, minute: number) {
  return { id, parent_task_id: parent, created_at: `2026-01-31T09:0${minute}:00.000Z`, started_at: null }
}
