import { describe, expect, test } from 'bun:test'
import { ALERTS_MAX } from '../../src/sql/alerts/store.ts'
import { ALERT_TEMPLATES } from '../../src/sql/alerts/templates.ts'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { newTenant } from '../support/feeds.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startTestService } from '../support/service.ts'
import { verdict } from './auth-app.ts'

/** Alerts of a workspace (docs/alerts.md). */

const PATH = '/api/v1/alerts'
const { url: databaseUrl, sql } = await freshDatabase()
const { api, url } = await startTestService({ DATABASE_URL: databaseUrl })
const HOUR = { from: '2026-01-31T10:00:00Z', to: '2026-01-31T11:00:00Z' }
const QUERY = 'select status, count() as n, max(agent_name) as name from runs group by status'
let named = 0

function definition(more: object = {}): Record<string, unknown> {
  const condition = { column: 'n', op: '>', value: 10 }
  return { name: `alert ${++named}`, query: QUERY, every: '1m', by: ['status'], condition, ...more }
}

const save = (more: object = {}) => api('POST', PATH, definition(more))
const tenant = () => newTenant({ url, api }).then((made) => made.api)

describe('an alert', () => {
  test('can be created, read, listed, edited and deleted', async () => {
    const body = {
      ...definition(),
      params: { n: 1, tags: ['a'] },
      ...{ every: '90s', window: '2h', for: '120s', keep_firing_for: '1h', renotify: '1d' },
      condition: { column: 'n', op: '>=', value: 10, recover_value: 8.5 },
      ...{ no_data: 'alert', on_error: 'alert', notify: [], enabled: true },
    }
    const made = await api('POST', PATH, body)
    const { alert_id, created_at, next_at } = made.data
    expect(made.data).toEqual({
      ...{
        alert_id,
        query_id: null,
        ...body,
        for: '2m',
        states: [],
        series_count: 0,
        evaluated_at: null,
        next_at,
        error: null,
      },
      ...{ version: 1, created_at, updated_at: created_at },
    })
    expect(Date.parse(next_at) % 90_000).toBe(0)
    expect(Date.parse(next_at) - Date.parse(created_at)).toBeLessThanOrEqual(90_000)
    expect((await api('GET', `${PATH}/${alert_id.toUpperCase()}`)).data).toEqual(made.data)
    expect((await api('GET', PATH)).data.items).toContainEqual(made.data)

    const edit = { every: '1d', window: null, for: null, condition: 'any_row', by: [], enabled: false }
    const edited = await api('PATCH', `${PATH}/${alert_id}`, edit)
    expect(edited.data).toMatchObject({ ...edit, next_at: null, keep_firing_for: '1h', params: body.params })
    expect((await api('PATCH', `${PATH}/${alert_id}`, { enabled: true })).data.next_at).toMatch(/T00:00:00.000Z$/)

    expect((await api('DELETE', `${PATH}/${alert_id}`)).data).toEqual({ alert_id, deleted: true })
    for (const method of ['GET', 'DELETE'])
      expect(verdict(await api(method, `${PATH}/${alert_id}`))).toBe('404 NOT_FOUND')
    expect(verdict(await api('PATCH', `${PATH}/${alert_id}`, {}))).toBe('404 NOT_FOUND')
    expect(verdict(await api('POST', `${PATH}/${alert_id}/test`, HOUR))).toBe('404 NOT_FOUND')
  })

  test('with a long query makes a page end early, and no page leaves out any', async () => {
    const own = await tenant()
    const query = `select 1 as n /* ${'x'.repeat(66_000)} */`
    const made: string[] = []
    for (let i = 0; i < 20; i++) {
      const { data } = await own('POST', PATH, { name: `${i}`, query, every: '1h', condition: 'any_row' })
      made.push(data.alert_id)
    }
    const listed: string[] = []
    let cursor = ''
    for (let pages = 0; pages === 0 || cursor !== ''; pages++) {
      const { data } = await own('GET', `${PATH}?limit=200${cursor && `&cursor=${cursor}`}`)
      expect(data.items.length).toBeLessThan(18)
      listed.push(...data.items.map(({ alert_id }: { alert_id: string }) => alert_id))
      cursor = data.next_cursor ?? ''
    }
    expect(listed).toEqual(made.toReversed())
  })

  test('needs only a name, a query, an interval and a condition', async () => {
    const { data } = await api('POST', PATH, {
      name: 'short',
      query: 'select 1 as n',
      every: '60s',
      condition: 'any_row',
    })
    expect(data).toMatchObject({ every: '1m', window: null, by: [], for: null, keep_firing_for: null, renotify: null })
    expect(data).toMatchObject({ no_data: 'ok', on_error: 'last', notify: [], enabled: true, params: {} })
  })

  test('may use a saved query, which then cannot be deleted', async () => {
    const { data: saved } = await api('POST', '/api/v1/queries', {
      name: 'for an alert',
      query: 'select {n:Int64} as n',
      params: { n: 3 },
    })
    const body = definition({ query: undefined, query_id: saved.query_id, by: [] })
    const { data } = await api('POST', PATH, body)
    expect(data).toMatchObject({ query: null, query_id: saved.query_id })
    const deleted = await api('DELETE', `/api/v1/queries/${saved.query_id}`)
    expect(verdict(deleted)).toBe('409 CONFLICT')
    expect(deleted.error?.message).toBe('an alert uses this saved query: delete or edit it first')
    expect((await api('PATCH', `${PATH}/${data.alert_id}`, { query: 'select 1 as n' })).data.query_id).toBeNull()
    expect(verdict(await api('DELETE', `/api/v1/queries/${saved.query_id}`))).toBe('200')
  })

  test('notifies webhooks of its workspace', async () => {
    const made = () => api('POST', '/api/v1/webhooks', { url: 'https://example.com/hook' })
    const { webhook_id } = (await made()).data
    const { data } = await save({ notify: [webhook_id.toUpperCase(), webhook_id] })
    expect(data.notify).toEqual([webhook_id])
    await api('DELETE', `/api/v1/webhooks/${webhook_id}`)
    const path = `${PATH}/${data.alert_id}`
    expect((await api('PATCH', path, { every: '5m' })).data.every).toBe('5m')
    expect(verdict(await api('PATCH', path, { notify: [webhook_id] }))).toBe('400 VALIDATION_ERROR')
    const theirs = await (await tenant())('POST', '/api/v1/webhooks', { url: 'https://example.com/hook' })
    expect(verdict(await save({ notify: [theirs.data.webhook_id] }))).toBe('400 VALIDATION_ERROR')
  })

  test('has a name that is unique in the workspace', async () => {
    await save({ name: 'taken' })
    const second = await save()
    expect(verdict(await save({ name: 'taken' }))).toBe('409 CONFLICT')
    expect(verdict(await api('PATCH', `${PATH}/${second.data.alert_id}`, { name: 'taken' }))).toBe('409 CONFLICT')
    expect(verdict(await (await tenant())('POST', PATH, definition({ name: 'taken' })))).toBe('200')
  })

  test.each<[object, string]>([
    [{ every: '59s' }, 'every: expected a duration from 1m to 1d, such as 30s, 5m or 1h; got "59s"'],
    [{ every: '2d' }, 'every: expected a duration from 1m to 1d, such as 30s, 5m or 1h; got "2d"'],
    [{ for: '1.5m' }, 'for: expected a duration from 1s to 30d, such as 30s, 5m or 1h; got "1.5m"'],
    [{ query: undefined }, 'query: expected either query or query_id'],
    [{ query_id: crypto.randomUUID() }, 'query: expected either query or query_id'],
    [{ query: undefined, query_id: crypto.randomUUID() }, 'query_id: saved query does not exist'],
    [{ notify: [crypto.randomUUID()] }, 'notify[0]: webhook does not exist'],
    [{ by: ['status', 'nobody'] }, 'by[1]: the result has no column "nobody"; its columns are status, n, name'],
    [
      { condition: { column: 'm', op: '>', value: 1 } },
      'condition.column: the result has no column "m"; its columns are status, n, name',
    ],
    [{ condition: { column: 'name', op: '>', value: 1 } }, 'condition.column: "name" is not numeric, but String'],
    [{ condition: { column: 'n', op: '~', value: 1 } }, 'condition.op: expected one of >, >=, <, <=, =, !=; got "~"'],
    [{ condition: { column: 'n', op: '>', value: '1' } }, 'condition.value: expected a number; got "1"'],
    [
      { condition: { column: 'n', op: '=', value: 1, recover_value: 1 } },
      'condition.recover_value: cannot be combined with =',
    ],
    [
      { condition: { column: 'n', op: '>', value: 1, recover_value: 2 } },
      'condition.recover_value: expected at most the value 1',
    ],
    [{ window: '1h', params: { to: 1 } }, 'params.to: window sets this placeholder; leave it out'],
    [{ no_data: 'never' }, 'no_data: expected one of ok, last, alert, zero; got "never"'],
    [{ query: 'drop table runs' }, 'query: only SELECT is allowed'],
    [
      { query: 'select rand() as n', by: [] },
      'query: the function rand is not allowed in an alert, because its result is random',
    ],
    [{ notice: [] }, 'notice: unknown field; did you mean "notify"?'],
  ])('%j is refused', async (more, message) => {
    const answer = await save(more)
    expect([verdict(answer), answer.error?.message]).toEqual(['400 VALIDATION_ERROR', message])
  })

  test('names what is wrong with its query', async () => {
    for (const [query, problem] of [
      ['select nothing as n from runs', 'nothing'],
      ['select {p:Int64} as n', '`p`'],
      ['select n from nowhere', 'nowhere'],
      ['select search_text as n from runs', 'search_text'],
    ]) {
      const answer = await save({ query, by: [] })
      expect(verdict(answer)).toBe('400 VALIDATION_ERROR')
      expect(answer.error?.message).toContain(problem)
    }
  })

  test('belongs to its workspace', async () => {
    const call = await tenant()
    const { data } = await save()
    const path = `${PATH}/${data.alert_id}`
    const answers = [
      await call('GET', path),
      await call('DELETE', path),
      await call('PATCH', path, { name: 'mine' }),
      await call('POST', `${path}/test`, HOUR),
    ]
    expect(answers.map(verdict)).toEqual(Array(4).fill('404 NOT_FOUND'))
    expect((await call('GET', PATH)).data.items).toEqual([])
    const { data: theirs } = await call('POST', '/api/v1/queries', { name: 'theirs', query: 'select 1 as n' })
    expect(verdict(await save({ query: undefined, query_id: theirs.query_id, by: [] }))).toBe('400 VALIDATION_ERROR')
  })

  test('is for workspace keys only', async () => {
    const { agentKey: key } = await newAgent(api)
    const { data } = await save()
    for (const [method, path, body] of [
      ['GET', PATH],
      ['GET', `${PATH}/templates`],
      ['POST', PATH, definition()],
      ['GET', `${PATH}/${data.alert_id}`],
      ['PATCH', `${PATH}/${data.alert_id}`, {}],
      ['DELETE', `${PATH}/${data.alert_id}`],
      ['POST', `${PATH}/${data.alert_id}/test`, HOUR],
      ['POST', `${PATH}/test`, { ...definition(), ...HOUR }],
    ] as const)
      expect(verdict(await api(method, path, body, { key })), `${method} ${path}`).toBe('403 FORBIDDEN')
  })

  test('is one of at most a hundred, also when many are created at the same time', async () => {
    const call = await tenant()
    const { data } = await call('POST', PATH, definition())
    await sql`
      insert into alerts (alert_id, workspace_id, name, query, params, every_seconds, by_columns, for_seconds, keep_firing_seconds,
        no_data, on_error, notify, is_enabled, states, shown_states, series_count, created_at, updated_at)
      select gen_random_uuid(), workspace_id, 'copy ' || n, query, params, every_seconds, by_columns, for_seconds, keep_firing_seconds,
        no_data, on_error, notify, false, states, shown_states, series_count, created_at, updated_at
      from alerts, generate_series(1, ${ALERTS_MAX - 3}) as n where alert_id = ${data.alert_id}`
    const answers = await Promise.all(
      Array.from({ length: 3 }, () => call('POST', PATH, definition({ query: 'select 1 as n', by: [] }))),
    )
    expect(answers.map(verdict).sort()).toEqual(['200', '200', '409 CONFLICT'])
  })
})

describe('a test', () => {
  test('gives the transitions of the past, for a definition and for an alert', async () => {
    // True in the minutes 10 to 19 of each hour.
    const query = 'select toMinute(now()) as minute, intDiv(minute, 10) = 1 as n'
    const body = definition({ query, by: [], every: '5m', condition: { column: 'n', op: '=', value: 1 }, for: '1m' })
    const expected = {
      transitions: [
        {
          type: 'alert.changed',
          series: {},
          from: 'ok',
          to: 'pending',
          at: '2026-01-31T10:10:00.000Z',
          value: 1,
          renotified: false,
        },
        {
          type: 'alert.fired',
          series: {},
          from: 'pending',
          to: 'firing',
          at: '2026-01-31T10:15:00.000Z',
          value: 1,
          renotified: false,
        },
        {
          type: 'alert.resolved',
          series: {},
          from: 'firing',
          to: 'ok',
          at: '2026-01-31T10:20:00.000Z',
          value: 0,
          renotified: false,
        },
      ],
      ...{ ticks: 13, complete: true, through: '2026-01-31T11:00:00.000Z', error: null },
    }
    expect((await api('POST', `${PATH}/test`, { ...body, ...HOUR })).data).toEqual(expected)
    const { data } = await api('POST', PATH, body)
    expect((await api('POST', `${PATH}/${data.alert_id}/test`, HOUR)).data).toEqual(expected)
    const steps = await api('POST', `${PATH}/${data.alert_id}/test`, { ...HOUR, step: '20m' })
    expect(steps.data).toMatchObject({ ticks: 4, transitions: [] })
  })

  test('says why evaluations fail, and where it ends', async () => {
    const failing = definition({
      query: 'select throwIf(toMinute(now()) >= 30) as n',
      by: [],
      every: '10m',
      on_error: 'alert',
    })
    const { data } = await api('POST', `${PATH}/test`, { ...failing, ...HOUR })
    expect(data.transitions.map(({ to, at }: { to: string; at: string }) => `${at.slice(11, 16)} ${to}`)).toEqual([
      '10:30 error',
      '11:00 ok',
    ])
    expect(data.error).toContain('query: ')
    const twice = definition({ query: 'select number as n from numbers(2)', by: [] })
    expect((await api('POST', `${PATH}/test`, { ...twice, ...HOUR, step: '1h' })).data.error).toBe(
      'two rows of the series []: by must name all columns that identify a series',
    )
  })

  test.each<[object, string]>([
    [{ from: HOUR.to, to: HOUR.from }, 'to: expected a time after from'],
    [{ from: HOUR.from, to: '2299-01-01T00:00:00Z' }, 'to: expected a time in the past'],
    [{ from: HOUR.from }, 'to: required'],
    [{ ...HOUR, step: '0s' }, 'step: expected a duration from 1s to 30d, such as 30s, 5m or 1h; got "0s"'],
  ])('of %j is refused', async (range, message) => {
    const answer = await api('POST', `${PATH}/test`, { ...definition(), ...range })
    expect([verdict(answer), answer.error?.message]).toEqual(['400 VALIDATION_ERROR', message])
  })

  test('ends when its client disconnects, and frees its slot', async () => {
    const slow = definition({ query: 'select count() as n from numbers(300000000) where number % 3 = 1', by: [] })
    const call = await tenant()
    for (let n = 0; n < 4; n++) {
      const signal = AbortSignal.timeout(200)
      expect(call('POST', `${PATH}/test`, { ...slow, ...HOUR }, { signal })).rejects.toThrow()
      await Bun.sleep(250)
    }
    const free = () => call('POST', `${PATH}/test`, { ...definition(), ...HOUR, step: '1h' })
    await eventually(async () => expect(verdict(await free())).toBe('200'))
  })
})

test('every template can be saved and tested as it is', async () => {
  const { data } = await api('GET', `${PATH}/templates`)
  expect(data).toEqual(ALERT_TEMPLATES)
  for (const { definition: template } of data.items) {
    const made = await api('POST', PATH, template)
    expect(made.data.name).toBe(template.name)
    expect((await api('POST', `${PATH}/${made.data.alert_id}/test`, { ...HOUR, step: '30m' })).data).toMatchObject({
      transitions: [],
      error: null,
    })
  }
})
