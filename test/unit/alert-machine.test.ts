import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  advance,
  EvaluationError,
  isAlerting,
  keyOf,
  type Result,
  type Rule,
  resetAll,
  SERIES_MAX,
  type States,
  type Transition,
} from '../../src/sql/alerts/machine.ts'
import { fromStored, NO_STATES, toStored } from '../../src/sql/alerts/states.ts'

/** The states of an alert's series (docs/alerts.md). */

const RULE: Rule = {
  by: [],
  comparison: { op: '>', value: 5, recoverValue: null },
  forMs: 0,
  keepFiringMs: 0,
  noData: 'ok',
  onError: 'last',
  renotifyMs: null,
}

/** A tick is 1 ms. `-`: no row, `!`: the query fails; otherwise the value. Each becomes the state that it leads to. */
function states(rule: Partial<Rule>, values: string): string {
  return run({ ...RULE, ...rule }, values.split(' ').map(resultOf)).states.join(' ')
}

function events(rule: Partial<Rule>, values: string): string {
  const { transitions } = run({ ...RULE, ...rule }, values.split(' ').map(resultOf))
  return transitions.map(({ at, type, renotified }) => `${at}:${type.slice(6)}${renotified ? '!' : ''}`).join(' ')
}

function resultOf(value: string): Result {
  if (value === '!') return new EvaluationError('broken')
  return new Map(value === '-' ? [] : [['[]', { series: [], value: Number(value) }]])
}

function run(rule: Rule, results: readonly Result[]) {
  let current: States = NO_STATES
  const transitions: Transition[] = []
  const all = results.map((result, index) => {
    const advanced = advance(rule, current, index + 1, result)
    current = advanced.states
    transitions.push(...advanced.transitions)
    return current.get('[]')?.state ?? 'none'
  })
  return { states: all, transitions, last: current }
}

test('missing data of series of which none is known has a series of its own, without values', () => {
  const rule = { ...RULE, by: ['kind'], noData: 'alert' as const }
  const none: Result = new Map()
  const some: Result = new Map([['["a"]', { series: ['a'], value: 1 }]])
  const broken = new EvaluationError('broken')
  const { states, transitions, last } = run(rule, [none, none, broken, some, none])
  expect(states).toEqual(['no_data', 'no_data', 'no_data', 'none', 'none'])
  // From then on the series that is known has no data.
  expect(transitions.map(({ at, key, type }) => `${at} ${key} ${type}`)).toEqual([
    '1 [] alert.fired',
    '4 [] alert.resolved',
    '5 ["a"] alert.fired',
  ])
  expect([...last.keys()]).toEqual(['["a"]'])
  for (const other of [{ noData: 'zero' as const }, { noData: 'last' as const }, { comparison: null }])
    expect(run({ ...rule, onError: 'alert', ...other }, [broken, none, none]).last.size).toBe(0)
})

describe('one series', () => {
  test('fires and is resolved with its condition', () => {
    expect(states({}, '1 6 7 5 6')).toBe('ok firing firing ok firing')
    expect(events({}, '1 6 7 5 6')).toBe('2:fired 4:resolved 5:fired')
  })

  test('waits for `for`, and forgets the wait', () => {
    expect(states({ forMs: 2 }, '6 6 1 6 6 6 6')).toBe('pending pending ok pending pending firing firing')
    expect(events({ forMs: 2 }, '6 6 1 6 6 6 6')).toBe('1:changed 3:changed 4:changed 6:fired')
  })

  test('keeps firing for a while', () => {
    expect(states({ keepFiringMs: 2 }, '6 1 6 1 1 1 1')).toBe('firing recovering firing recovering recovering ok ok')
    expect(events({ keepFiringMs: 2 }, '6 1 6 1 1 1 1')).toBe('1:fired 2:changed 3:changed 4:changed 6:resolved')
  })

  test('stays firing until the value that ends it', () => {
    const comparison = { op: '>', value: 5, recoverValue: 3 } as const
    expect(states({ comparison }, '4 6 4 3 4')).toBe('ok firing firing ok ok')
    expect(states({ comparison, keepFiringMs: 9 }, '6 3 4 3')).toBe('firing recovering firing recovering')
  })

  test('without a row follows the policy', () => {
    expect(states({ noData: 'ok' }, '6 - 6')).toBe('firing ok firing')
    expect(states({ noData: 'last' }, '6 - - 1 -')).toBe('firing firing firing ok ok')
    expect(states({ noData: 'alert' }, '- 6 - 1')).toBe('no_data firing no_data ok')
    expect(events({ noData: 'alert' }, '- 6 - 1')).toBe('1:fired 2:changed 3:changed 4:resolved')
    expect(states({ noData: 'zero', comparison: { op: '<', value: 1, recoverValue: null } }, '2 - 2')).toBe(
      'ok firing ok',
    )
    // It alerts already, so it does not wait.
    expect(states({ noData: 'alert', forMs: 9 }, '- 6 1')).toBe('no_data firing ok')
  })

  test('of a failing query follows the policy', () => {
    expect(states({}, '6 ! 1')).toBe('firing firing ok')
    expect(states({ onError: 'alert' }, '1 ! ! 6 ! 1')).toBe('ok error error firing error ok')
    expect(events({ onError: 'alert' }, '1 ! ! 6 ! 1')).toBe('2:fired 4:changed 5:changed 6:resolved')
  })

  test('is reported again after `renotify`, while it alerts', () => {
    expect(events({ renotifyMs: 2 }, '6 6 6 6 6 1')).toBe('1:fired 3:fired! 5:fired! 6:resolved')
    expect(events({ renotifyMs: 1, keepFiringMs: 3 }, '6 1 1 6')).toBe('1:fired 2:changed 4:changed')
  })

  test('fires with any row', () => {
    expect(states({ comparison: null, noData: 'alert' }, '- 0 -')).toBe('ok firing ok')
  })

  test.each([
    ['>', 'ok ok firing'],
    ['>=', 'ok firing firing'],
    ['<', 'firing ok ok'],
    ['<=', 'firing firing ok'],
    ['=', 'ok firing ok'],
    ['!=', 'firing ok firing'],
  ] as const)('compares by %s', (op, expected) => {
    const each = ['4', '5', '6'].map((value) => states({ comparison: { op, value: 5, recoverValue: null } }, value))
    expect(each.join(' ')).toBe(expected)
  })
})

describe('several series', () => {
  const by = ['kind']
  const rows = (values: Record<string, number>): Result =>
    new Map(Object.entries(values).map(([kind, value]) => [keyOf([kind]), { series: [kind], value }]))

  test('have states of their own, and are forgotten when they are ok and gone', () => {
    const { transitions, last } = run({ ...RULE, by }, [rows({ a: 6, b: 1 }), rows({ b: 6 }), rows({})])
    expect(transitions.map(({ series, to, at }) => [series[0], to, at])).toEqual([
      ['a', 'firing', 1],
      ['a', 'ok', 2],
      ['b', 'firing', 2],
      ['b', 'ok', 3],
    ])
    expect(last.size).toBe(0)
  })

  test('are at most a thousand', () => {
    const many = rows(Object.fromEntries(Array.from({ length: SERIES_MAX + 1 }, (_, n) => [`s${n}`, 6])))
    expect(advance({ ...RULE, by }, NO_STATES, 1, many)).toMatchObject({
      transitions: [],
      error: 'more than 1000 series: group the rows by fewer columns',
    })
  })

  test('keep their states while the query fails, which alerts once', () => {
    const rule: Rule = { ...RULE, by, onError: 'alert' }
    const { transitions, last } = run(rule, [
      rows({ a: 6 }),
      new EvaluationError('x'),
      new EvaluationError('x'),
      rows({ a: 6 }),
    ])
    expect(transitions.map(({ series, type, from, to }) => [series.join(), type, from, to])).toEqual([
      ['a', 'alert.fired', 'ok', 'firing'],
      ['', 'alert.fired', 'ok', 'error'],
      ['', 'alert.resolved', 'error', 'ok'],
    ])
    expect([...last.keys()]).toEqual([keyOf(['a'])])
  })

  test('are all ok after a reset, and those that alert are resolved', () => {
    const { last } = run({ ...RULE, by, forMs: 1 }, [rows({ a: 6, b: 1 }), rows({ a: 6, b: 1, c: 6 })])
    expect(resetAll(last, 9).map(({ series, type, from, to }) => [series[0], type, from, to])).toEqual([
      ['a', 'alert.resolved', 'firing', 'ok'],
      ['c', 'alert.changed', 'pending', 'ok'],
    ])
  })

  test('names like those of members of objects are series like others', () => {
    const series = ['__proto__', 'constructor', 'toString']
    const { last } = run({ ...RULE, by }, [
      new Map(series.map((each) => [keyOf([each]), { series: [each], value: 6 }])),
    ])
    expect([...fromStored(toStored(last, by).states).values()].map((each) => each.series[0])).toEqual(series.sort())
  })
})

const duration = fc.integer({ min: 0, max: 4 })
const anyRule = fc.record<Rule>({
  by: fc.constant(['kind']),
  comparison: fc.option(
    fc.record({
      op: fc.constantFrom('>' as const, '>=' as const),
      value: fc.constant(3),
      recoverValue: fc.option(fc.constant(1)),
    }),
  ),
  forMs: duration,
  keepFiringMs: duration,
  noData: fc.constantFrom('ok' as const, 'last' as const, 'alert' as const, 'zero' as const),
  onError: fc.constantFrom('last' as const, 'alert' as const),
  renotifyMs: fc.option(fc.integer({ min: 1, max: 4 })),
})
const anyResult: fc.Arbitrary<Result> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc
      .dictionary(fc.constantFrom('a', 'b', 'c'), fc.option(fc.integer({ min: 0, max: 6 })), { noNullPrototype: true })
      .map(
        (values) => new Map(Object.entries(values).map(([kind, value]) => [keyOf([kind]), { series: [kind], value }])),
      ),
  },
  { weight: 1, arbitrary: fc.constant(new EvaluationError('broken')) },
)

test('fired and resolved alternate for each series, and transitions connect', () => {
  fc.assert(
    fc.property(anyRule, fc.array(anyResult, { maxLength: 30 }), (rule, results) => {
      const { transitions, last } = run(rule, results)
      for (const own of Map.groupBy(transitions, ({ key }) => key).values()) {
        let state = 'ok'
        for (const { type, from, to, renotified } of own) {
          expect(from as string).toBe(state)
          if (!renotified)
            expect(type).toBe(
              isAlerting(from) === isAlerting(to) ? 'alert.changed' : isAlerting(to) ? 'alert.fired' : 'alert.resolved',
            )
          expect(from === to).toBe(renotified)
          state = to
        }
        expect(last.get(own[0].key)?.state ?? 'ok').toBe(state as never)
      }
    }),
  )
})

test('a process that stops after any evaluation leaves what another continues from', () => {
  fc.assert(
    fc.property(anyRule, fc.array(anyResult, { maxLength: 20 }), (rule, results) => {
      let stored = toStored(NO_STATES, rule.by).states
      const transitions: Transition[] = []
      for (const [index, result] of results.entries()) {
        const advanced = advance(rule, fromStored(stored), index + 1, result)
        stored = toStored(advanced.states, rule.by).states
        transitions.push(...advanced.transitions)
      }
      expect(transitions).toEqual(run(rule, results).transitions)
    }),
  )
})
