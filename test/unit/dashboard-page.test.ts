import { describe, expect, test } from 'bun:test'
import type { Token, Tokens } from 'marked'
import { compact, dollars, duration, percent } from '../../src/base/format.ts'
import { parseIntact } from '../../src/base/intact-json.ts'
import { placeholdersOf } from '../../src/base/placeholders.ts'
import { visible } from '../../src/base/visible.ts'
import { Backlog } from '../../src/dashboard/page/app/health.tsx'
import { hrefOf, parseAddress } from '../../src/dashboard/page/context/router.ts'
import { plain, pretty, textOf } from '../../src/dashboard/page/data/json.ts'
import { feedFilterOf } from '../../src/dashboard/page/live/tail.ts'
import { sampleOf } from '../../src/dashboard/page/overview/call-sample.ts'
import { readCalls, settledOf } from '../../src/dashboard/page/overview/metrics.ts'
import { changeOf } from '../../src/dashboard/page/overview/tiles.tsx'
import { isolated, segmentsOf, withEmptyBuckets } from '../../src/dashboard/page/parts/chart.tsx'
import { diffLines } from '../../src/dashboard/page/parts/diff.tsx'
import { markdownTokens } from '../../src/dashboard/page/parts/markdown.tsx'
import { bucketsOf, completeBuckets, linkedRange, rangeOf, zoomOf } from '../../src/dashboard/page/parts/range.tsx'
import { ago, ahead } from '../../src/dashboard/page/parts/time.tsx'
import { filterOf, isPlain, searchQuery } from '../../src/dashboard/page/runs/filters.ts'
import { timeOf } from '../../src/dashboard/page/sql/columns.ts'
import {
  addressOf,
  paramsOf,
  placeholdersOf as sqlPlaceholders,
  valuesOf,
} from '../../src/dashboard/page/sql/placeholders.ts'
import { positionOf } from '../../src/dashboard/page/sql/sql-state.ts'
import { readArguments } from '../../src/dashboard/page/waiting/decision.tsx'
import { fillPrompt } from '../../src/hosted/invoke/prompt.ts'
import { seededRandom } from '../support/random.ts'

/** The parts of the dashboard page that can be tested without a browser. */

describe('JSON', () => {
  test('shows any number with its digits, alone and among others', () => {
    const random = seededRandom('digits of numbers')
    const digits = (max: number) => Array.from({ length: random.int(1, max) }, () => random.int(0, 9)).join('')
    for (let round = 0; round < 2_000; round++) {
      const whole = random.bool(0.3) ? '0' : digits(20).replace(/^0+(?=.)/, '')
      const exponent = `${random.pick(['e', 'E'])}${random.pick(['', '+', '-'])}${digits(2)}`
      const number = [
        random.bool() ? '-' : '',
        whole,
        random.bool() ? `.${random.bool(0.2) ? '000000' : ''}${digits(18)}` : '',
        random.bool(0.2) ? exponent : '',
      ].join('')
      const text = `{"n":${number},"list":[1,${number}],"at":"11:00:17.550Z","last":${number}}`
      expect(pretty(parseIntact(text))).toStartWith(`{\n  "n": ${number},\n`)
      expect(textOf(parseIntact(text))).toBe(text)
      expect(textOf(parseIntact(number))).toBe(number)
    }
  })

  test('keeps plain numbers, strings of digits as strings, and __proto__ as a plain key', () => {
    expect(parseIntact('{"plain": 42, "big": 9223372036854775807}')).toMatchObject({ plain: 42 })
    const value = parseIntact('{"__proto__": {"x": "12345678901234567890"}}')
    expect(textOf(value)).toBe('{"__proto__":{"x":"12345678901234567890"}}')
    expect((value as { x?: unknown }).x).toBeUndefined()
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

  test('texts never change their direction: what would do so is shown; lines, emoji and joiners stay', () => {
    expect(visible('invoice\u202egpj.exe')).toBe('invoice\\u202egpj.exe')
    for (const control of '\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u0000\u001b\u007f\u009b')
      expect(visible(`a${control}b`)).toMatch(/^a\\u[0-9a-f]{4}b$/)
    const harmless = 'a\tb\r\nc 👩\u200d💻 می\u200cخواهم שלום'
    expect(visible(harmless)).toBe(harmless)
  })
})

describe('Markdown', () => {
  /** What is shown: the tokens without children, and how deep they are nested. */
  function leaves(tokens: readonly Token[], depth = 1): { readonly raw: string; readonly depth: number }[] {
    return tokens.flatMap((token) => {
      const lists = token.type === 'list' ? (token as Tokens.List).items : undefined
      const children = lists ?? ('tokens' in token ? token.tokens : undefined)
      return children === undefined || children.length === 0 ? [{ raw: token.raw, depth }] : leaves(children, depth + 1)
    })
  }

  test('messages of nothing but marks are parsed to a limited depth', () => {
    const texts = {
      quotes: '>'.repeat(59_000),
      lists: '1. '.repeat(20_000),
      both: '> - '.repeat(15_000),
      emphasis: `${'*'.repeat(1_900)}a${'*'.repeat(1_900)}`,
      links: `${'['.repeat(900)}a${'](b)'.repeat(700)}`,
      strong: '**a '.repeat(15_000),
    }
    for (const [name, text] of Object.entries(texts)) {
      const found = leaves(markdownTokens(text) ?? [])
      const deepest = Math.max(0, ...found.map(({ depth }) => depth))
      expect({ name, isShown: deepest > 0, isDeep: deepest > 40 }).toEqual({ name, isShown: true, isDeep: false })
    }
  })

  test('what is nested too deeply stays text; longer texts are not parsed', () => {
    const deep = leaves(markdownTokens(`${'> '.repeat(20)}the end`) ?? [])
    expect(deep.map(({ raw }) => raw).join('')).toBe(`${'> '.repeat(8)}the end`)
    expect(leaves(markdownTokens('> > **so** it `is`') ?? []).map(({ raw }) => raw)).toEqual(['so', ' it ', '`is`'])
    expect(markdownTokens('a'.repeat(60_001))).toBeNull()
  })
})

describe('the address', () => {
  test('reads back what it wrote, whatever the values contain', () => {
    const href = hrefOf('runs', ['a/b'], { q: 'x&y=ü #1?', tag: '', status: 'failed' })
    expect(parseAddress(href)).toEqual({ view: 'runs', path: ['a/b'], query: { q: 'x&y=ü #1?', status: 'failed' } })
  })

  test('an unknown or damaged address is the overview', () => {
    for (const hash of ['', '#', '#/', '#/nowhere/1', '#/%zz']) expect(parseAddress(hash).view).toBe('overview')
  })

  test('a moving range ends now, at the edge of a bucket; a fixed one is as given', () => {
    const now = Date.parse('2026-01-31T12:00:07Z')
    const hour = rangeOf({}, now)
    const [fromMs, toMs] = ['2026-01-31T11:00:00Z', '2026-01-31T12:01:00Z'].map((time) => Date.parse(time))
    expect(hour).toEqual({ fromMs, toMs, bucketSeconds: 60, isMoving: true } as typeof hour)
    expect(bucketsOf(hour)).toHaveLength(61)
    for (const range of ['15m', '24h', '7d', '30d'])
      expect(bucketsOf(rangeOf({ range }, now)).length).toBeLessThanOrEqual(102)
    const fixed = rangeOf({ from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z', range: '1h' }, now)
    expect(fixed.isMoving).toBe(false)
    expect(fixed.toMs - fixed.fromMs).toBe(86_400_000)
    expect(rangeOf({ from: 'rubbish', to: '2026-01-02T00:00:00Z' }, now).isMoving).toBe(true)
  })

  test('links keep the range, also one that was chosen on a chart; a chart with a zoom knows the way back', () => {
    const [from, to] = ['2026-01-31T11:00:00.000Z', '2026-01-31T11:30:00.000Z']
    expect(linkedRange({})).toEqual({ range: '1h' })
    expect(linkedRange({ range: '7d', q: 'x' })).toEqual({ range: '7d' })
    const zoomed = { range: '7d', ...zoomOf(Date.parse(from), Date.parse(to)) }
    expect(linkedRange(zoomed)).toEqual({ from, to })
    expect(rangeOf(zoomed, 0)).toMatchObject({ fromMs: Date.parse(from), isMoving: false })
  })

  test('the bucket of now, and later ones, are not over', () => {
    const now = Date.parse('2026-01-31T09:30:20Z')
    const hour = rangeOf({ range: '1h' }, now)
    expect(completeBuckets(hour, now)).toBe(bucketsOf(hour).length - 1)
    expect(completeBuckets(hour, now + 60_000)).toBe(bucketsOf(hour).length)
    expect(completeBuckets(hour, hour.fromMs)).toBe(0)
  })
})

describe('lists', () => {
  test('the API answers filters and searches, SQL other orders; values are parameters', () => {
    expect(isPlain(filterOf({ status: 'failed', agent: crypto.randomUUID() }, 0))).toBe(true)
    expect(isPlain(filterOf({ q: 'refund', sort: 'cost.asc' }, 0))).toBe(true)
    const filter = filterOf({ external: "' OR 1 --", sort: 'cost.asc', tag: 'x' }, 0)
    expect(isPlain(filter)).toBe(false)
    const { text, params } = searchQuery(filter)
    expect(text).not.toContain('OR 1')
    expect(text).toContain('ORDER BY cost_usd ASC')
    expect(params).toEqual({ external: "' OR 1 --", tag: 'x' })
  })

  test('live filters work while a type is typed', () => {
    expect(feedFilterOf({ type: 'llm, tool.*', level: 'warn' })).toEqual({
      type: ['llm*', 'tool.*'],
      level: 'warn',
    })
    expect(feedFilterOf({ kind: 'failed' })).toEqual({ kind: 'run', status: ['failed', 'timed_out'] })
    expect(feedFilterOf({})).toEqual({})
  })

  test('an error of SQL is marked where it says, or at the name that it quotes', () => {
    expect(positionOf('query: Syntax error at position 8 (line 1)', 'SELECT FROM')).toBe(7)
    expect(positionOf('query: Unknown expression identifier `nothing`', 'SELECT nothing FROM runs')).toBe(7)
    expect(positionOf('query: it took longer than 10 s', 'SELECT 1')).toBeNull()
  })

  test('reads times of results in UTC, with or without a zone', () => {
    const times = ['2026-01-31 09:00:00', '2026-01-31T09:00:00.000Z', '2026-01-31T10:00:00+01:00']
    for (const time of times) expect(timeOf(time)).toBe(Date.parse('2026-01-31T09:00:00Z') / 1_000)
    expect(timeOf('2026-01-31')).toBe(Date.parse('2026-01-31T00:00:00Z') / 1_000)
  })

  test('values of SQL placeholders are kept in the address', () => {
    const query = 'SELECT {n:UInt8}, {ids:Array(UUID)}, {n:UInt8}'
    expect(sqlPlaceholders(query).map(({ name }) => name)).toEqual(['n', 'ids'])
    const kept = addressOf(query, { n: '5', ids: '["a"]' })
    expect(valuesOf(kept)).toEqual({ n: '5', ids: '["a"]' })
    expect(paramsOf(query, valuesOf(kept))).toEqual({ n: '5', ids: ['a'] })
  })
})

describe('figures of model and tool calls', () => {
  const DAY = 86_400
  const FIRST = Date.parse('2026-01-01T00:00:00Z') / 1_000
  const day = (n: number, events: number, modelCalls = events / 2, toolCalls = events / 4) => ({
    time: FIRST + n * DAY,
    events,
    modelCalls,
    toolCalls,
  })

  test('the newest buckets are not settled while many of their runs have not ended', () => {
    const bucket = (runs: number, ended: number) => ({ runs, ended })
    const series = [bucket(10, 10), bucket(0, 0), bucket(10, 9), bucket(10, 8), bucket(10, 2), bucket(4, 0)]
    expect(settledOf(series, 5)).toBe(3)
    expect(settledOf(series, 3)).toBe(3)
    // Most runs of this workspace wait for a person.
    const waiting = Array.from({ length: 9 }, () => bucket(10, 5))
    expect(settledOf(waiting, 9)).toBe(9)
    expect(settledOf([], 0)).toBe(0)
  })

  test('few events are read as a whole', () => {
    expect(sampleOf([])).toEqual({ every: 1, days: null })
    expect(sampleOf([day(0, 9_000), day(1, 11_000)])).toEqual({ every: 1, days: null })
    const week = Array.from({ length: 7 }, (_, n) => day(n, 970))
    expect(sampleOf(week)).toEqual({ every: 1, days: null })
  })

  test('of many events, one in 2, 4, 8, … is read; of many days, some with calls', () => {
    expect(sampleOf([day(0, 20_001)]).every).toBe(2)
    expect(sampleOf([day(0, 1_000_000)])).toEqual({ every: 64, days: null })
    const month = Array.from({ length: 31 }, (_, n) => (n % 2 === 0 ? day(n, 1_000_000) : day(n, 100, 0, 0)))
    expect(sampleOf(month)).toEqual({ every: 256, days: ['2026-01-01', '2026-01-11', '2026-01-21', '2026-01-31'] })
  })

  test('of buckets of several days, all their days are read', () => {
    const year = Array.from({ length: 52 }, (_, n) => day(n * 7, 1_000))
    const { days } = sampleOf(year)
    expect(days).toHaveLength(28)
    expect(days?.slice(0, 8)).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => `2026-01-0${n}`).concat('2026-04-30'))
  })

  test('the busiest day of a rare kind of call is among the days', () => {
    const month = Array.from({ length: 30 }, (_, n) => day(n, 1_000, 100, n === 5 ? 3 : n === 6 ? 8 : 0))
    expect(sampleOf(month).days).toEqual(['2026-01-01', '2026-01-11', '2026-01-20', '2026-01-30', '2026-01-07'])
  })

  test('sums are scaled with the number of all calls, latencies are not', async () => {
    const call = { of_models: 1, calls: 30, failed: 3, p50: 100, p95: 200, input: 500, output: 100, cost: 1.5 }
    const rows = [
      { type: 'llm.call', name: 'a', ...call },
      { type: 'llm.call', name: 'b', ...call, calls: 10 },
      { type: 'tool.call.finished', name: 'search', ...call },
    ]
    const asked: unknown[] = []
    const run = async (_query: string, params: unknown) => {
      asked.push(params)
      return { rows }
    }
    const range = rangeOf({ from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' }, 0)
    const counts = [day(0, 40_000, 80, 30)]
    const { models, tools } = await readCalls({ run } as never, {}, range, counts, new AbortController().signal)
    expect(asked).toEqual([{ from: range.fromMs, to: range.toMs, every: 2 }])
    expect(models.share).toBe(0.5)
    expect(models.calls[0]).toEqual({ name: 'a', calls: 60, failed: 6, p50: 100, p95: 200, tokens: 1_200, cost: 3 })
    expect(tools.share).toBe(1)
    expect(tools.calls[0]?.calls).toBe(30)
  })
})

describe('the health of the service', () => {
  const at = (end: number, loaded: number, epoch = 'a') => ({
    partitions: [{ partition: 0, generation: 1, epoch, end_seq: end, loaded_seq: loaded }],
    consumers: { sink: { lag: end - loaded, set_aside: 0 } },
  })

  test('a backlog matters when it is old, not when it is large', () => {
    const backlog = new Backlog()
    expect(backlog.seconds(at(50_000, 0), 0)).toBe(0)
    // Everything of the last time has been read since.
    expect(backlog.seconds(at(100_000, 50_000), 15_000)).toBe(0)
    expect(backlog.seconds(at(150_000, 60_000), 30_000)).toBe(15)
    expect(backlog.seconds(at(200_000, 60_000), 60_000)).toBe(45)
    expect(backlog.seconds(at(200_000, 200_000), 75_000)).toBe(0)
    // Another node has answered, or the journal has begun again: its positions mean something else.
    expect(backlog.seconds(at(10, 5, 'b'), 90_000)).toBe(0)
  })

  test('without journal a backlog is unknown, which says nothing', () => {
    expect(new Backlog().seconds({ partitions: [], consumers: { outbox: { lag: null, set_aside: 0 } } }, 0)).toBe(0)
  })
})

describe('decisions', () => {
  test('reads edited arguments as a JSON object with exact numbers, or reports the problem', () => {
    const edited = readArguments(' {"order": 9223372036854775807, "amount": 1.0}')
    expect('value' in edited && textOf(edited.value)).toBe('{"order":9223372036854775807,"amount":1.0}')
    for (const text of ['', '{', '{"a": 1,}', '[1]', '"text"', '12345678901234567890', 'null'])
      expect(readArguments(text)).toEqual({ problem: expect.stringMatching(/JSON/) })
  })

  test('shows what an edit has changed, line by line', () => {
    const signs = diffLines('{\n  "n": 7,\n  "to": "a"\n}', '{\n  "n": 5,\n  "to": "a"\n}').map(
      ({ kind, text }) => `${kind} ${text.trim()}`,
    )
    expect(signs).toEqual(['same {', 'removed "n": 7,', 'added "n": 5,', 'same "to": "a"', 'same }'])
  })

  test('the form to try an agent asks for exactly the placeholders of the prompt', () => {
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
})

describe('charts', () => {
  test('the times of empty buckets are added, other times stay as they are', () => {
    expect(withEmptyBuckets([60, 120, 300, 360])).toEqual([60, 120, 180, 240, 300, 360])
    expect(withEmptyBuckets([0, 7, 12, 400])).toBeNull()
    expect(withEmptyBuckets([5])).toBeNull()
    // Buckets of a second over a year would be too many points.
    expect(withEmptyBuckets([0, 1, 31_536_000])).toBeNull()
  })

  test('a line has a point where it has no neighbours, and none elsewhere', () => {
    expect(isolated([1, null, 2, 3, null, 4])).toEqual([0, 5])
    expect(isolated([null, 1, 2])).toEqual([])
    expect(isolated([5])).toEqual([0])
  })

  test('a line is drawn between neighbouring values only', () => {
    const values = [1, 2, null, 3, undefined, null, 4, 5, 6]
    expect(segmentsOf(values, 0, 8)).toEqual([
      [0, 1],
      [3, 3],
      [6, 8],
    ])
    expect(segmentsOf(values, 1, 7)).toEqual([
      [1, 1],
      [3, 3],
      [6, 7],
    ])
    expect(segmentsOf([null], 0, 0)).toEqual([])
  })

  test('rates change by percentage points, amounts by a share of what they were', () => {
    expect(changeOf({ now: 0.6031, before: 0.6131, isRate: true })).toBe('▼ 1 point')
    expect(changeOf({ now: 0.05, before: 0.03, isRate: true })).toBe('▲ 2 points')
    expect(changeOf({ now: 0.0302, before: 0.03, isRate: true })).toBe('unchanged')
    expect(changeOf({ now: 0.1, before: 0, isRate: true })).toBe('▲ 10 points')
    expect(changeOf({ now: 150, before: 100 })).toBe('▲ 50%')
    expect(changeOf({ now: 100, before: 100 })).toBe('unchanged')
    // A rise from nothing has no percentage.
    for (const change of [
      { now: 5, before: 0 },
      { now: Number.NaN, before: 1 },
      { now: 0.5, before: Number.NaN, isRate: true },
    ])
      expect(changeOf(change)).toBeNull()
  })
})

describe('formats', () => {
  test('durations, ages and the time until an expiry are never negative', () => {
    const durations = [-5, 340, 1_240, 12_400, 125_000, 12_000_000].map(duration)
    expect(durations.join(', ')).toBe('0 ms, 340 ms, 1.24 s, 12 s, 2 min 05 s, 3 h 20 min')
    const now = Date.parse('2026-01-31T12:00:00.000Z')
    const times = ['2026-01-31T12:00:09Z', '2026-01-31T11:59:48Z', '2026-01-31T11:55:00Z', '2026-01-31T09:00:00Z']
    expect(times.map((time) => ago(time, now))).toEqual(['just now', '12 s ago', '5 min ago', '3 h ago'])
    const later = ['2026-01-31T11:00:00Z', '2026-01-31T12:00:09.500Z', '2026-01-31T12:05:00Z', '2026-01-31T15:59:00Z']
    expect(later.map((time) => ahead(time, now))).toEqual(['now', 'in 10 s', 'in 5 min', 'in 3 h'])
  })

  test('large and small numbers have three digits at most', () => {
    const numbers = [0, 7, 999, 1_000, 1_234, 56_789, 999_960, 34_000_000].map(compact)
    expect(numbers.join(', ')).toBe('0, 7, 999, 1k, 1.23k, 56.8k, 1M, 34M')
    expect([0, 0.00042, 0.5, 1_234].map(dollars)).toEqual(['$0', '$0.00042', '$0.50', '$1,234'])
    expect([0, 0.042, 1, Number.NaN].map(percent)).toEqual(['0%', '4.2%', '100%', '–'])
  })
})
