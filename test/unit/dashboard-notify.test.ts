import { describe, expect, test } from 'bun:test'
import * as crypto from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { draftOfAlert, editBody, newBody, ownPlaceholders } from '../../src/dashboard/page/alerts/alert-draft.ts'
import { figure, seriesName, spansOf } from '../../src/dashboard/page/alerts/series.ts'
import { historyOf, historyQuery } from '../../src/dashboard/page/alerts/value-history.ts'
import { type Alert, type AlertDefinition, stateOf } from '../../src/dashboard/page/data/alerts.ts'
import { hrefOfCell } from '../../src/dashboard/page/sql/cell-links.ts'
import { verifyCode } from '../../src/dashboard/page/webhooks/verify-code.ts'
import { bodyOf, draftOf, filterOf } from '../../src/dashboard/page/webhooks/webhook-draft.ts'
import { sentBy } from '../../src/dashboard/page/webhooks/webhook-list.tsx'
import { headersFor, newSecret } from '../../src/feeds/webhooks/signature.ts'

/** The parts of the dashboard's webhooks and alerts that need no browser. */

const RATE: AlertDefinition = {
  name: 'failures',
  query_id: null,
  query:
    'SELECT agent, rate FROM t WHERE at >= { from : DateTime64(3) } AND at < {to:DateTime64(3)} AND x = {x:String} -- end',
  params: { x: 'a' },
  every: '5m',
  window: '1h',
  by: ['agent'],
  condition: { column: 'rate', op: '>', value: 0.05, recover_value: 0.02 },
  for: '10m',
  keep_firing_for: null,
  renotify: null,
  no_data: 'zero',
  on_error: 'alert',
  notify: ['7b0e0b58-0000-7000-8000-000000000001'],
  enabled: false,
}

describe('webhooks as they are edited', () => {
  const webhookOf = (filter: object | null) =>
    ({ ...draftOf(null), filter, description: null, url: 'https://a.b' }) as never

  test('keep their filter, also conditions that the form does not show', () => {
    const filters = [null, {}, { kind: ['run'], status: ['failed', 'timed_out'], tag: ['nightly'], run_id: 'x' }]
    for (const filter of filters) expect(filterOf(draftOf(webhookOf(filter)))).toEqual(filter)
    // Single values and texts of several are lists for the form.
    expect(filterOf(draftOf(webhookOf({ kind: 'run', status: 'failed,cancelled' })))).toEqual({
      kind: ['run'],
      status: ['failed', 'cancelled'],
    })
  })

  test('take types with spaces or commas between them; what is empty is no condition', () => {
    const draft = { ...draftOf(webhookOf({})), types: ' llm.call,  tool.* ' }
    expect(filterOf({ ...draft, selection: 'filter' })).toEqual({ type: ['llm.call', 'tool.*'] })
    expect(filterOf({ ...draft, selection: 'all' })).toEqual({})
    expect(filterOf({ ...draft, selection: 'default' })).toBeNull()
  })

  test('say how they are signed only when they are new', () => {
    const draft = { ...draftOf(null), url: ' https://a.b ', description: ' ' }
    expect(bodyOf(draft, true)).toEqual({
      ...{ url: 'https://a.b', description: null, filter: null, format: 'standard', order: 'run', signing: 'v1' },
    })
    expect(bodyOf(draft, false)).not.toHaveProperty('signing')
  })

  test('are described by what they are sent', () => {
    expect(sentBy({ filter: null, format: 'standard' })).toBe('finished runs, approvals and questions')
    expect(sentBy({ filter: {}, format: 'slack' })).toBe('all activity, to Slack')
    const filter = { kind: ['run'], status: ['failed', 'timed_out'], agent_id: ['a', 'b'] } as never
    expect(sentBy({ filter, format: 'standard' })).toBe('runs that are failed or timed out of 2 agents')
    expect(sentBy({ filter: { type: 'llm.*' }, format: 'standard' })).toBe('events of type llm.*')
  })
})

/** The code as a function of what it imports. */
function receiverOf(code: string, given: Readonly<Record<string, unknown>>): (request: Request) => Promise<Response> {
  const body = code.replace(/^import .*$/gm, '').replace('export default async function', 'return async function')
  return new Function(...Object.keys(given), body)(...Object.values(given))
}

for (const signing of ['v1', 'v1a'] as const)
  test(`the code that is shown verifies deliveries and refuses others, ${signing}`, async () => {
    const { secret, publicKey } = newSecret(signing)
    const { createPublicKey, verify } = crypto
    const receive = receiverOf(verifyCode({ signing, public_key: publicKey }), {
      ...{ Webhook, secret, createPublicKey, verify },
    })
    const answer = (body: string, sent = body, at = Date.now()) => {
      const headers = headersFor({ signing, secret, previous: [] }, { deliveryId: 'msg_1', body }, at)
      return receive(new Request('http://a.b', { method: 'POST', headers, body: sent })).then(
        ({ status }) => status < 300,
        () => false,
      )
    }
    expect(await answer('{"type":"run.completed"}')).toBe(true)
    expect(await answer('{"type":"run.completed"}', '{"type":"run.failed"}')).toBe(false)
    expect(await answer('{}', '{}', Date.now() - 3_600_000)).toBe(false)
  })

describe('alerts as they are edited', () => {
  const without = (definition: AlertDefinition) =>
    Object.fromEntries(Object.entries(definition).filter(([, value]) => value !== null)) as unknown as AlertDefinition

  test('become what the API takes without a loss', () => {
    for (const definition of [
      RATE,
      { ...RATE, condition: 'any_row' as const, no_data: 'ok' as const, by: [], for: null },
    ])
      expect(newBody(draftOfAlert(definition), definition.query ?? '')).toEqual(without(definition))
    const saved = { ...RATE, query_id: '7b0e0b58-0000-7000-8000-000000000002', query: null }
    expect(newBody(draftOfAlert(saved), RATE.query ?? '')).toEqual(without(saved))
  })

  test('send only what was changed, because states begin anew when a query is given', () => {
    const draft = draftOfAlert(RATE)
    const text = RATE.query ?? ''
    expect(editBody(draft, text, RATE)).toEqual({})
    expect(editBody({ ...draft, for: '', notify: [] }, text, RATE)).toEqual({ for: null, notify: [] })
    expect(editBody({ ...draft, queryId: 'id' }, text, RATE)).toEqual({ query_id: 'id' })
    const saved = { ...RATE, query_id: 'id', query: null }
    expect(editBody({ ...draftOfAlert(saved), queryId: '' }, text, saved)).toEqual({ query: text })
    // A number with digits that would print otherwise is no change.
    const exact = JSON.parse('{"column": "rate", "op": ">", "value": 5}')
    exact.value = (JSON as unknown as { rawJSON: (text: string) => number }).rawJSON('5.0')
    expect(editBody(draftOfAlert({ ...RATE, condition: exact }), text, { ...RATE, condition: exact })).toEqual({})
  })

  test('recover at another value only where that can be', () => {
    const draft = { ...draftOfAlert(RATE), op: '=' as const }
    expect(newBody(draft, '').condition).toEqual({ column: 'rate', op: '=', value: 0.05 })
  })

  test('have fields for the placeholders that an evaluation does not set', () => {
    const names = (window: string) => ownPlaceholders(RATE.query ?? '', window).map(({ name }) => name)
    expect(names('1h')).toEqual(['x'])
    expect(names('')).toEqual(['from', 'to', 'x'])
  })

  test('have the most urgent state of their series', () => {
    const of = (enabled: boolean, ...states: string[]) =>
      stateOf({ enabled, states: states.map((state) => ({ state })) } as unknown as Alert)
    expect(of(true, 'ok', 'pending', 'firing')).toBe('firing')
    expect(of(true, 'recovering', 'no_data')).toBe('no_data')
    expect(of(true)).toBe('ok')
    expect(of(false, 'firing')).toBe('disabled')
  })
})

describe('the values of an alert over time', () => {
  test('are asked for by one query with a window for each point', () => {
    const asked = historyQuery(RATE, RATE.query ?? '', { fromMs: 0, toMs: 48_000 })
    expect(asked?.times.slice(0, 2)).toEqual([1_000, 2_000])
    expect(asked?.params).toMatchObject({ x: 'a', from_0: '-3599', to_0: '1', to_47: '48' })
    const [first, second] = asked?.query.split('\nUNION ALL\n') ?? []
    expect(first).toStartWith('SELECT 0 AS `point of the chart`, `agent`, `rate` FROM (\nSELECT agent, rate')
    expect(first).toContain('at >= {from_0: DateTime64(3) } AND at < {to_0:DateTime64(3)} AND x = {x:String} -- end\n)')
    expect(second).toContain('{to_1:DateTime64(3)}')
  })

  test('are those of a query that follows the window only', () => {
    const range = { fromMs: 0, toMs: 1 }
    expect(historyQuery({ ...RATE, window: null }, RATE.query ?? '', range)).toBeNull()
    expect(historyQuery(RATE, 'SELECT 1 AS rate', range)).toBeNull()
  })

  test('are numbers of rows where any row fires; columns are quoted', () => {
    const any = historyQuery({ ...RATE, condition: 'any_row', by: ['a`b'] }, RATE.query ?? '', { fromMs: 0, toMs: 1 })
    expect(any?.query).toContain('`a\\`b`, count() AS `rows of the query`')
    expect(any?.query).toContain('GROUP BY `a\\`b`')
  })

  test('are those of each series, with gaps', () => {
    const rows = [
      { 'point of the chart': 0, agent: 'a', rate: '0.5' },
      { 'point of the chart': 2, agent: 'b', rate: null },
    ]
    const lines = historyOf({ rows }, RATE)
    expect(lines.get('a')?.slice(0, 3)).toEqual([0.5, null, null])
    expect(lines.get('b')?.every((value) => value === null)).toBe(true)
  })
})

describe('series', () => {
  const change = (agent: string, from: string, to: string, seconds: number, renotified = false) =>
    ({ series: { agent }, from, to, at: new Date(seconds * 1_000).toISOString(), value: 1, renotified }) as never

  test('have one state at each time, from the start to the end', () => {
    const changes = [
      change('a', 'ok', 'firing', 10),
      change('b', 'ok', 'pending', 20),
      change('a', 'firing', 'firing', 30, true),
      change('a', 'firing', 'ok', 40),
    ]
    const spans = Object.fromEntries(spansOf(changes, 0, 60_000))
    expect(spans.a).toEqual([
      { state: 'ok', fromMs: 0, toMs: 10_000 },
      { state: 'firing', fromMs: 10_000, toMs: 40_000 },
      { state: 'ok', fromMs: 40_000, toMs: 60_000 },
    ])
    expect(spans.b?.map(({ state }) => state)).toEqual(['ok', 'pending'])
  })

  test('are named by their values', () => {
    expect(seriesName({ agent: 'a', n: 1, none: null })).toBe('a · 1 · null')
    expect(seriesName({})).toBe('all rows')
    expect([0.0012345, 0, 1_234_567].map(figure)).toEqual(['0.00123', '0', '1.23M'])
  })
})

test('a cell of SQL leads to its webhook or alert; a workspace event leads nowhere', () => {
  const none = '00000000-0000-0000-0000-000000000000'
  const id = '7b0e0b58-0000-7000-8000-000000000001'
  expect(hrefOfCell('alert_id', { alert_id: id })).toBe(`#/alerts/${id}`)
  expect(hrefOfCell('webhook_id', { webhook_id: id })).toBe(`#/webhooks/${id}`)
  for (const column of ['run_id', 'agent_id', 'seq'])
    expect(hrefOfCell(column, { run_id: none, agent_id: none, seq: 7 })).toBeNull()
})
