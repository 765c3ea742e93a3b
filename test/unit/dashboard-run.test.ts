import { describe, expect, test } from 'bun:test'
import { totalUsage, usageOf } from '../../src/base/conventions/payload.ts'
import type { Event, RunSummary, Task } from '../../src/dashboard/page/data/records.ts'
import { barsOf, timelineSummary } from '../../src/dashboard/page/run/bars.ts'
import { startOf } from '../../src/dashboard/page/run/long-text.tsx'
import { summaryOf, tokensText } from '../../src/dashboard/page/run/summary.ts'
import { panned, tickLabel, ticksOf, zoomed } from '../../src/dashboard/page/run/time-window.ts'
import { ancestorsOf, matching, treeOrder, unfolded, withBelow } from '../../src/dashboard/page/run/tree.ts'
import { seededRandom } from '../support/random.ts'

/** What the dashboard makes of the events of a run, which can be tested without a browser. */

describe('the timeline of a run', () => {
  const at = (second: number) => new Date(second * 1_000).toISOString()
  const run = { run_id: 'r', status: 'running', created_at: at(0), started_at: at(0), completed_at: null }
  const summary = run as unknown as RunSummary
  let lastSeq = 0
  const event = (type: string, second: number, payload: object, level = 'info') =>
    ({ id: `e${lastSeq}`, seq: ++lastSeq, type, level, payload, occurred_at: at(second) }) as Event
  const task = (id: string, times: Partial<Task>) =>
    ({
      id,
      name: id,
      status: 'completed',
      parent_task_id: null,
      started_at: null,
      completed_at: null,
      ...times,
    }) as Task
  const bars = (events: readonly Event[], tasks: readonly Task[] = []) =>
    barsOf({ run: summary, tasks, children: [], events }).map(({ kind, name, startMs, endMs, status }) => {
      return `${kind} ${name} ${startMs / 1_000}–${endMs === null ? '' : endMs / 1_000} ${status}`
    })

  test('a task is a span once it has begun, unless it was skipped', () => {
    const tasks = [
      task('done', { started_at: at(5), completed_at: at(10) }),
      task('open', { started_at: at(15), status: 'running' }),
      task('later', { status: 'pending' }),
      task('never', { status: 'skipped', started_at: at(3), completed_at: at(4) }),
    ]
    expect(bars([], tasks)).toEqual(['task done 5–10 completed', 'task open 15– running'])
  })

  test('the start and the end of a tool call are one span; ids of calls may repeat', () => {
    const call = { 'gen_ai.tool.name': 'pay', 'gen_ai.tool.call.id': 'a' }
    const events = [
      event('tool.call.started', 1, call),
      event('tool.call.finished', 3, { ...call, status: 'failed' }, 'warn'),
      event('tool.call.started', 4, call),
      event('tool.call.finished', 9, { gen_ai: { tool: { name: 'look' } }, latency_ms: 2_000 }),
    ]
    expect(bars(events)).toEqual(['tool pay 1–3 failed', 'tool pay 4– running', 'tool look 7–9 completed'])
  })

  test('a call that a person rejected was never made, so it has not failed', () => {
    const events = [event('tool.call.finished', 3, { 'gen_ai.tool.name': 'pay', status: 'rejected' })]
    expect(bars(events)).toEqual(['tool pay 3–3 rejected'])
  })

  test('a model call begins its latency earlier; a wait lasts until its decision', () => {
    const events = [
      event('llm.call', 5, { 'gen_ai.request.model': 'm', latency_ms: 1_500 }),
      event('approval.requested', 6, { approval_id: '1', tool: 'pay' }),
      event('approval.decided', 8, { approval_id: '1', status: 'approved' }),
      event('input.requested', 9, { request_id: '2' }),
    ]
    expect(bars(events)).toEqual([
      'model m 3.5–5 completed',
      'wait approval: pay 6–8 approved',
      'wait question 9– awaiting_input',
    ])
  })

  test('an OpenTelemetry span, which is a task and an event, is one span', () => {
    const own = { ...event('llm.call', 9, { 'gen_ai.request.model': 'm' }), id: 'span' }
    expect(bars([own], [task('span', { started_at: at(1), completed_at: at(9) })])).toEqual([
      'model span 1–9 completed',
    ])
  })

  test('lists bars below their parents, siblings by their start, each once, whatever the parents are', () => {
    const node = (id: string, parentId: string | null, startMs: number) => ({ id, parentId, startMs })
    const nodes = [node('d', 'a', 3), node('c', null, 2), node('b', 'a', 2), node('a', null, 1)]
    expect(treeOrder(nodes).map(({ id, depth }) => `${depth}${id}`)).toEqual(['0a', '1b', '1d', '0c'])
    const random = seededRandom('span tree')
    for (let round = 0; round < 200; round++) {
      const ids = Array.from({ length: random.int(1, 12) }, (_, index) => `t${index}`)
      const tree = treeOrder(ids.map((id) => node(id, random.pick([null, 'missing', ...ids]), random.int(0, 9))))
      expect(tree.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
      expect(tree[0]?.depth).toBe(0)
    }
  })

  test('calls are below the tasks that they name, and a task folds', () => {
    const tasks = [task('outer', { started_at: at(1) }), task('inner', { started_at: at(2), parent_task_id: 'outer' })]
    const within = (event: Event, task_id: string) => ({ ...event, task_id })
    const events = [
      event('llm.call', 0, {}),
      within(event('llm.call', 3, {}), 'inner'),
      within(event('tool.call.started', 4, { tool_call_id: 'x', tool: 'search' }), 'outer'),
      event('tool.call.finished', 5, { tool_call_id: 'x' }),
      within(event('llm.call', 6, {}), 'unknown'),
    ]
    const children: readonly RunSummary[] = []
    const tree = treeOrder(barsOf({ run: summary, tasks, children, events }))
    const shown = (folded: readonly string[]) =>
      unfolded(tree, new Set(folded)).map(({ depth, kind, isParent }) => `${depth}${kind}${isParent ? '+' : ''}`)
    expect(shown([])).toEqual(['0model', '0task+', '1task+', '2model', '1tool', '0model'])
    expect(shown(['inner'])).toEqual(['0model', '0task+', '1task+', '1tool', '0model'])
    expect(shown(['outer', 'inner'])).toEqual(['0model', '0task+', '0model'])
  })

  test('a row knows the tokens and failures below it; a step is found with those above it', () => {
    const row = (id: string, depth: number, status = 'completed', tokens = 0) => ({
      ...{ id, depth, status },
      usage: { inputTokens: tokens, outputTokens: 0 },
    })
    const rows = [
      row('a', 0),
      row('b', 1, 'completed', 5),
      row('c', 2, 'failed', 2),
      row('d', 1, 'completed', 1),
      row('e', 0),
    ]
    expect(withBelow(rows).map(({ id, tokens, hasFailed }) => `${id} ${tokens} ${hasFailed}`)).toEqual([
      'a 8 true',
      'b 7 true',
      'c 2 false',
      'd 1 false',
      'e 0 false',
    ])
    expect(ancestorsOf(rows, 'c').map(({ id }) => id)).toEqual(['a', 'b'])
    expect(ancestorsOf(rows, 'missing')).toEqual([])
    expect(matching(rows, ({ id }) => id === 'c' || id === 'e').map(({ id }) => id)).toEqual(['a', 'b', 'c', 'e'])
  })

  test('cached and reasoning tokens are shown where senders give them', () => {
    const text = (payload: object) => tokensText(usageOf({ 'gen_ai.usage.input_tokens': 9, ...payload }))
    expect(text({})).toBe('9 in, 0 out')
    const details = { prompt_tokens_details: { cached_tokens: 4 }, completion_tokens_details: { reasoning_tokens: 2 } }
    expect(text({ usage: details })).toBe('9 in (4 cached), 2 out (2 reasoning)')
    expect(text({ usage: { cache_read_input_tokens: 3 } })).toBe('9 in (3 cached), 0 out')
    expect(text({ 'gen_ai.usage.cache_read.input_tokens': '3', cached_tokens: -1 })).toBe('9 in (3 cached), 0 out')
    expect(text({ cached_tokens: 'many' })).toBe('9 in, 0 out')
    const call = usageOf({ model: 'm', 'gen_ai.usage.output_tokens': 3, reasoning_tokens: 2 })
    expect(totalUsage([call, call, { ...call, model: 'n' }])).toMatchObject({
      model: null,
      outputTokens: 9,
      reasoningTokens: 6,
    })
  })

  test('the summary counts all calls, also those that are not drawn, and their cost', () => {
    const usage = { ...usageOf({}), model: 'm', costUsd: 0.001 }
    const drawn = (kind: 'model' | 'tool', n: number) => Array.from({ length: n }, () => ({ kind, usage }))
    const types = (type: string, n: number) => Array.from({ length: n }, () => ({ type }))
    const events = [...types('llm.call', 4_000), ...types('tool.call.finished', 3), ...types('tool.call.started', 2)]
    const cost = { cost_usd: 4 }
    const bars = [...drawn('model', 2_000), ...drawn('tool', 3)]
    expect(timelineSummary(bars, events, cost)).toBe('2,000 of 4,000 model calls shown · 3 tool calls · $4.00')
    expect(timelineSummary(drawn('model', 2), types('llm.call', 2), cost)).toBe('2 model calls · $0.002')
    expect(timelineSummary([], [], cost)).toBe('')
    const unreported = [{ kind: 'model' as const, usage: usageOf({ model: 'm' }) }]
    expect(timelineSummary(unreported, types('llm.call', 1), { cost_usd: 0 })).toBe('1 model call · cost unknown')
  })

  test('the window never leaves the run, and has few marks', () => {
    const whole = { fromMs: 1_000, toMs: 61_000 }
    const half = zoomed(whole, whole, 1_000, 0.5)
    expect(half).toEqual({ fromMs: 1_000, toMs: 31_000 })
    expect(zoomed(half, whole, 2_000, 10)).toEqual(whole)
    expect(panned(half, whole, -1)).toEqual(half)
    expect(panned(half, whole, 5)).toEqual({ fromMs: 31_000, toMs: 61_000 })
    expect(ticksOf(whole, whole)).toEqual([0, 10_000, 20_000, 30_000, 40_000, 50_000])
    expect([0, 250, 1_500, 75_000, 120_000, 9_000_000].map(tickLabel)).toEqual([
      '0',
      '250 ms',
      '1.5 s',
      '1:15 min',
      '2 min',
      '2:30 h',
    ])
    expect(ticksOf({ fromMs: 0, toMs: 4e9 }, { fromMs: 0, toMs: 4e9 }).length).toBeLessThan(8)
  })
})

test('a long text is cut at a word or a line, a text that is hardly longer is not', () => {
  expect(startOf('a b', 10, 3)).toBe('a b')
  expect(startOf('word '.repeat(10), 42, 3)).toBe('word '.repeat(10))
  expect(startOf('word '.repeat(20), 42, 3)).toBe('word word word word word word word word …')
  expect(startOf('1\n2\n3\n4\n5', 100, 3)).toBe('1\n2\n3 …')
  expect(startOf('\u{1f600}'.repeat(50), 41, 3).isWellFormed()).toBe(true)
})

describe('one line on an event', () => {
  test('a model call has its figures, a tool call its arguments or result, others their message', () => {
    const call = {
      'gen_ai.request.model': 'gpt-5',
      'gen_ai.usage.input_tokens': 900,
      'gen_ai.usage.output_tokens': 80,
      'gen_ai.response.finish_reasons': ['tool_calls'],
      cost_usd: 0.02,
      latency_ms: 1_490,
    }
    expect(summaryOf({ type: 'llm.call', payload: call })).toBe('gpt-5 · 900 in, 80 out · $0.02 · 1.49 s · tool calls')
    const tool = { 'gen_ai.tool.name': 'search', input: { q: 'x' }, output: 'two rows', latency_ms: 12 }
    expect(summaryOf({ type: 'tool.call.started', payload: { ...tool, latency_ms: undefined } })).toBe(
      'search · {"q":"x"}',
    )
    expect(summaryOf({ type: 'tool.call.finished', payload: tool })).toBe('search · 12 ms · two rows')
    expect(summaryOf({ type: 'log', payload: { message: 'hello', n: 1 } })).toBe('hello')
    const approval = { approval_id: 'a', tool: 'refund', input: { usd: 5 } }
    expect(summaryOf({ type: 'approval.requested', payload: approval })).toBe('refund · {"usd":5}')
    expect(summaryOf({ type: 'input.requested', payload: { question: 'Which?' } })).toBe('Which?')
  })

  test('anything else is shown as JSON, an empty payload as nothing', () => {
    expect(summaryOf({ type: 'log', payload: { message: 5, n: 1 } })).toBe('{"message":5,"n":1}')
    for (const type of ['llm.call', 'tool.call.started', 'tool.call.finished'])
      expect(summaryOf({ type, payload: { other: true } })).toBe('{"other":true}')
    expect(summaryOf({ type: 'step', payload: {} })).toBe('')
    expect(summaryOf({ type: 'step', payload: 'text' })).toBe('text')
  })
})
