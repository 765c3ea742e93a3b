import { beforeEach, describe, expect, test } from 'bun:test'
import { alignSteps, STEPS_MAX } from '../../src/dashboard/page/compare/align.ts'
import { changeText, withLines } from '../../src/dashboard/page/compare/change.ts'
import { address, hrefOf, parseAddress } from '../../src/dashboard/page/context/router.ts'
import type { Queries } from '../../src/dashboard/page/data/api.ts'
import type { RunSummary } from '../../src/dashboard/page/data/records.ts'
import { chosenColumns, shownColumns } from '../../src/dashboard/page/runs/columns.ts'
import { RunDetails } from '../../src/dashboard/page/runs/details.ts'
import {
  filterOf,
  isFiltered,
  matches,
  problemOf,
  queryOf,
  searchQuery,
} from '../../src/dashboard/page/runs/filters.ts'
import { commonView, isSameQuery, queryOfView, savedQuery } from '../../src/dashboard/page/runs/saved-views.ts'
import { eventually } from '../support/eventually.ts'

/** The list of runs and the comparison of two, without a browser. */

const open = (query: Readonly<Record<string, string>>) => {
  address.value = parseAddress(hrefOf('runs', [], query))
}
const names = (columns: readonly { readonly name: string }[]) => columns.map(({ name }) => name)

describe('columns', () => {
  beforeEach(() => open({}))

  test('are those of the address, in their usual order; unknown ones are left out', () => {
    open({ cols: 'cost,nothing,input,toString' })
    expect(chosenColumns()).toEqual(['input', 'cost'])
    open({ cols: 'none' })
    expect(chosenColumns()).toEqual([])
    open({})
    expect(chosenColumns()).toContain('input')
  })

  test('the error is shown by itself where failures are asked for, once', () => {
    open({ cols: 'started' })
    expect(names(shownColumns(''))).toEqual(['started'])
    expect(names(shownColumns('completed'))).toEqual(['started'])
    for (const status of ['failed', 'completed,failed', 'timed_out'])
      expect(names(shownColumns(status))).toEqual(['started', 'error'])
    open({ cols: 'error' })
    expect(names(shownColumns('failed'))).toEqual(['error'])
  })
})

describe('filters', () => {
  const run = {
    status: 'failed',
    agent_version: 3,
    external_user_id: 'anna',
    session_id: 'chat 1',
    tags: [] as string[],
    created_at: '2026-01-31T09:00:00Z',
  } as unknown as RunSummary

  test('several statuses: any of them, in the list of the API, in SQL, and for what the feed brings', () => {
    const filter = filterOf({ status: 'timed_out,failed,nonsense' }, 0)
    expect(filter.status).toBe('failed,timed_out')
    expect(queryOf(filter).status).toBe('failed,timed_out')
    expect(searchQuery(filter).params).toEqual({ status: 'failed,timed_out' })
    expect([matches(run, filter), matches({ ...run, status: 'completed' }, filter)]).toEqual([true, false])
    expect(isFiltered(filterOf({ status: 'nonsense' }, 0))).toBe(false)
  })

  test('user, session and version are exact; what no run can have is pointed out and filters nothing', () => {
    const filter = filterOf({ user: 'anna', session: 'chat 1', version: '3' }, 0)
    expect(queryOf(filter)).toMatchObject({ external_user_id: 'anna', session_id: 'chat 1', agent_version: '3' })
    expect(matches(run, filter)).toBe(true)
    for (const [name, value] of [
      ['user', 'ann'],
      ['session', 'chat'],
      ['version', '4'],
    ] as const)
      expect(matches(run, filterOf({ [name]: value }, 0))).toBe(false)
    expect(searchQuery(filter).text).toContain('agent_version = {version:Int64}')
    for (const version of ['0', '-1', 'x', '1.5']) {
      expect(problemOf('version', version)).toBeDefined()
      expect(isFiltered(filterOf({ version }, 0))).toBe(false)
    }
  })
})

describe('views', () => {
  test('a saved view is the same address again, with the columns that were shown', () => {
    open({ status: 'failed', tag: 'a & b', cols: 'error', view: 'another' })
    const query = savedQuery(address.value.query)
    const opened = queryOfView({ name: 'mine', query })
    expect(opened).toEqual({ status: 'failed', tag: 'a & b', cols: 'error', view: 'mine' })
    expect(isSameQuery(opened, { cols: 'error', tag: 'a & b', status: 'failed', view: 'mine' })).toBe(true)
    expect(isSameQuery(opened, { ...opened, status: 'completed' })).toBe(false)
    open({})
    expect(new URLSearchParams(savedQuery({})).get('cols')).toBe(chosenColumns().join())
  })

  test('the common views are found by what they show', () => {
    expect(commonView({})).toBe('All')
    expect(commonView({ cols: 'input' })).toBe('All')
    expect(commonView({ status: 'failed,timed_out' })).toBe('Failed')
    expect(commonView({ status: 'failed,timed_out', tag: 'x' })).toBeUndefined()
    expect(commonView({ view: 'mine' })).toBeUndefined()
  })
})

describe('details of runs', () => {
  const run = (id: string, status: string) => ({ run_id: id, status }) as RunSummary

  test('are read once for all runs that are shown, and again when one has ended', async () => {
    const reads: string[][] = []
    const closing = new AbortController()
    const details = new RunDetails<string>(
      async (runs) => {
        reads.push(runs.map(({ run_id }) => run_id))
        return new Map(runs.map(({ run_id, status }) => [run_id, { value: status, isFinal: status === 'completed' }]))
      },
      {} as Queries,
      closing.signal,
    )
    details.take([['known', { value: 'from the list', isFinal: true }]])
    details.want([run('known', 'completed'), run('a', 'running'), run('b', 'completed')])
    await eventually(() => details.of('b') === 'completed')
    details.want([run('known', 'completed'), run('a', 'running'), run('b', 'completed')])
    await Bun.sleep(1)
    expect(reads).toEqual([['a', 'b']])
    expect(['known', 'a', 'b'].map((id) => details.of(id))).toEqual(['from the list', 'running', 'completed'])
    details.want([run('a', 'completed'), run('b', 'completed')])
    await eventually(() => details.of('a') === 'completed')
    expect(reads).toEqual([['a', 'b'], ['a']])
    closing.abort()
  })
})

describe('a comparison', () => {
  const step = (name: string, kind = 'tool') => ({ name, kind: kind as 'tool' })
  const shown = (a: string[], b: string[]) =>
    alignSteps(
      a.map((name) => step(name)),
      b.map((name) => step(name)),
    ).map((pair) => `${pair.a?.name ?? ''}|${pair.b?.name ?? ''}`)

  test('matches steps by name in the order of both runs', () => {
    expect(shown(['plan', 'search', 'write'], ['plan', 'search', 'search', 'write'])).toEqual([
      ...['plan|plan', 'search|search', '|search', 'write|write'],
    ])
    expect(shown([], ['a'])).toEqual(['|a'])
    expect(shown(['a'], ['b'])).toEqual(['a|', '|b'])
    // Concurrent steps that began in another order.
    expect(shown(['x', 'y', 'end'], ['y', 'x', 'end'])).toEqual(['x|x', 'y|y', 'end|end'])
  })

  test('calls of models are the same step, whichever model answers; child runs of the same agent, too', () => {
    const child = (run_id: string, agent_id: string) => ({
      kind: 'child' as const,
      name: run_id,
      run: { agent_id } as RunSummary,
    })
    expect(alignSteps([step('gpt-5', 'model')], [step('gpt-5-mini', 'model')])).toHaveLength(1)
    expect(alignSteps([child('1', 'x')], [child('2', 'x')])).toHaveLength(1)
    expect(alignSteps([child('1', 'x')], [child('2', 'y')])).toHaveLength(2)
  })

  test('is bounded', () => {
    const many = Array.from({ length: 5_000 }, (_, n) => step(`step ${n}`))
    const times = Array.from({ length: 5 }, () => {
      const startMs = performance.now()
      expect(alignSteps(many, many.toReversed())).toHaveLength(STEPS_MAX * 2)
      return performance.now() - startMs
    })
    // Other work on the machine only ever prolongs it.
    expect(Math.min(...times)).toBeLessThan(200)
  })

  test('says how amounts have changed', () => {
    const ms = (value: number) => `${value} ms`
    const changes = [
      changeText(100, 134, ms),
      changeText(100, 88, ms),
      changeText(1_000, 1_001, ms),
      changeText(0, 5, ms),
      changeText(0, 0, ms),
      changeText(1, 51, ms),
      changeText(null, 5, ms),
    ]
    expect(changes).toEqual(['+34 ms (+34%)', '−12 ms (−12%)', 'same', '+5 ms', 'same', '+50 ms (+50×)', ''])
  })

  test('shows texts within JSON with their lines', () => {
    expect(withLines(JSON.stringify({ text: 'a\nb', path: 'C:\\new', quote: '"' }))).toBe(
      '{"text":"a\nb","path":"C:\\\\new","quote":"\\""}',
    )
  })
})
