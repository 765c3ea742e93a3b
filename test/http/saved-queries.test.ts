import { describe, expect, test } from 'bun:test'
import { SAVED_QUERIES_MAX } from '../../src/sql/analytics/saved-store.ts'
import { type Answer, type Api, pagesOf } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { newReporter, newTenant } from '../support/feeds.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startTestService } from '../support/service.ts'
import { verdict } from './auth-app.ts'

/** Saved queries of a workspace (docs/sql.md#saved-queries). */

const PATH = '/api/v1/queries'
const UUID = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/
const { url: databaseUrl, sql } = await freshDatabase()
const { api, url, workspaceKey } = await startTestService({ DATABASE_URL: databaseUrl })
let named = 0

describe('a saved query', () => {
  test('can be created, read, listed, edited and deleted, and is stored exactly', async () => {
    const body = {
      name: 'Fehler — 失敗 🚀',
      description: 'by day',
      query: 'select 1 -- as I wrote it',
      params: { since: '2026-01-01', n: 7, tags: ['a', null], none: null, __proto: true },
      chart: { kind: 'line', x: 'at', y: ['count()', '__proto__'], right: ['cost'], right_unit: 'usd' },
    }
    const made = await api('POST', PATH, body)
    expect(made.status).toBe(200)
    const { query_id, created_at } = made.data
    expect(query_id).toMatch(UUID)
    expect(made.data).toEqual({ query_id, ...body, version: 1, created_at, updated_at: created_at })
    expect((await api('GET', `${PATH}/${query_id.toUpperCase()}`)).data).toEqual(made.data)
    expect((await api('GET', PATH)).data.items).toContainEqual(made.data)

    const edit = { query: 'select 2', params: { n: 8 }, description: null, chart: { series: 'agent' } }
    const edited = await api('PATCH', `${PATH}/${query_id}`, edit)
    expect(edited.data).toEqual({ ...made.data, ...edit, version: 2, updated_at: edited.data.updated_at })
    expect(edited.data.updated_at > created_at).toBe(true)
    expect((await api('PATCH', `${PATH}/${query_id}`, {})).data).toEqual(edited.data)
    expect((await api('GET', `${PATH}/${query_id}`)).data).toEqual(edited.data)
    expect((await api('PATCH', `${PATH}/${query_id}`, { chart: null })).data.chart).toBeNull()

    expect((await api('DELETE', `${PATH}/${query_id}`)).data).toEqual({ query_id, deleted: true })
    for (const method of ['GET', 'DELETE'])
      expect(verdict(await api(method, `${PATH}/${query_id}`))).toBe('404 NOT_FOUND')
    expect(verdict(await api('PATCH', `${PATH}/${query_id}`, { name: 'x' }))).toBe('404 NOT_FOUND')
    expect(verdict(await api('POST', `${PATH}/${query_id}/run`, {}))).toBe('404 NOT_FOUND')
  })

  test('needs only a name and a query', async () => {
    const { data } = await save({})
    expect(data).toMatchObject({ description: null, params: {}, chart: null })
  })

  test('has a name that is unique in the workspace', async () => {
    const first = await save({ name: 'daily' })
    const second = await save({})
    const third = await save({ name: 'daily' })
    expect(verdict(third)).toBe('409 CONFLICT')
    expect(third.error?.message).toContain('"daily"')
    const renamed = await api('PATCH', `${PATH}/${second.data.query_id}`, { name: 'daily' })
    expect(verdict(renamed)).toBe('409 CONFLICT')
    expect(renamed.error?.message).toContain('"daily"')
    expect(verdict(await api('PATCH', `${PATH}/${first.data.query_id}`, { name: 'daily' }))).toBe('200')
    expect(verdict(await save({ name: 'Daily' }))).toBe('200')
    expect(verdict(await (await tenant())('POST', PATH, { name: 'daily', query: 'select 1' }))).toBe('200')
  })

  test('is created once by concurrent requests with the same name', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => save({ name: 'wanted by all' })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(11)
  })
})

describe('the list', () => {
  test('is sorted newest first and paginates without gaps or repeats', async () => {
    const call = await tenant()
    const ids: string[] = []
    for (let i = 0; i < 7; i++) {
      const made = await call('POST', PATH, { name: `query ${i}`, query: 'select 1' })
      ids.unshift(made.data.query_id)
    }
    const pages = await pagesOf<{ query_id: string }>((cursor) => call('GET', `${PATH}?limit=3${cursor}`))
    expect(pages.flat().map(({ query_id }) => query_id)).toEqual(ids)
  })

  test.each(['limit=0', 'limit=201', 'cursor=x', 'name=a'])('rejects ?%s', async (query) => {
    expect(verdict(await api('GET', `${PATH}?${query}`))).toBe('400 VALIDATION_ERROR')
  })
})

describe('validation and access', () => {
  const query = 'select 1'
  test.each<[string, object, string]>([
    ['no name', {}, 'name'],
    ['no query', { name: 'a' }, 'query'],
    ['an empty name', { name: '', query }, 'name: expected at least 1 character'],
    ['a long name', { name: 'x'.repeat(201), query }, 'name: expected at most 200 characters'],
    ['an empty query', { name: 'a', query: '' }, 'query: expected at least 1 character'],
    [
      'a long query',
      { name: 'a', query: `select ${' '.repeat(100_000)}1` },
      'query: expected at most 100000 characters',
    ],
    ['an unknown field', { name: 'a', query, sql: 'x' }, 'sql: unknown field'],
    ['a field of a run', { name: 'a', query, wait_for: 1 }, 'wait_for: unknown field'],
    ['a parameter with an invalid name', { name: 'a', query, params: { 'a b': 1 } }, 'params'],
    [
      'a parameter that has lost digits',
      { name: 'a', query, params: { a: 2 ** 53 } },
      'params.a: expected a string or a number from -9007199254740991 to',
    ],
    ['an array of such', { name: 'a', query, params: { a: [2 ** 53] } }, 'params.a'],
    ['a parameter with an object value', { name: 'a', query, params: { a: { b: 1 } } }, 'params'],
    [
      'large parameters',
      { name: 'a', query, params: { a: 'x'.repeat(100_000) } },
      'params: expected values of at most 100000 characters',
    ],
    ['a chart of an unknown kind', { name: 'a', query, chart: { kind: 'pie' } }, 'chart'],
    ['an unknown field of a chart', { name: 'a', query, chart: { colour: 'red' } }, 'chart'],
    ['a chart of many columns', { name: 'a', query, chart: { y: Array(21).fill('a') } }, 'chart'],
    ['a long description', { name: 'a', query, description: 'x'.repeat(10_001) }, 'description'],
    ['a syntax error', { name: 'a', query: 'select 1 +' }, 'query: Syntax error'],
    // What else the guard rejects is in query-safety.test.ts.
    [
      'a system table',
      { name: 'a', query: 'select * from system.tables' },
      'query: the table system.tables is not allowed',
    ],
  ])('rejects %s on create and on edit', async (_what, body, problem) => {
    const made = await api('POST', PATH, body)
    expect(verdict(made)).toBe('400 VALIDATION_ERROR')
    expect(made.error?.message).toContain(problem)
    if (Object.keys(body).length < 2) return
    const { data } = await save({})
    const edited = await api('PATCH', `${PATH}/${data.query_id}`, body)
    expect(verdict(edited)).toBe('400 VALIDATION_ERROR')
    expect(edited.error?.message).toContain(problem)
    expect((await api('GET', `${PATH}/${data.query_id}`)).data).toEqual(data)
  })

  test('rejects saved queries over the limit, even when created concurrently', async () => {
    const call = await tenant()
    const { data } = await call('POST', PATH, { name: 'first', query })
    await fill(data.query_id, SAVED_QUERIES_MAX - 3)
    const answers = await runConcurrently(6, (i) => call('POST', PATH, { name: `one more ${i}`, query }))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
    const rejected = answers.filter(({ status }) => status !== 200)
    for (const answer of rejected) {
      expect(verdict(answer)).toBe('409 CONFLICT')
      expect(answer.error?.message).toContain(`at most ${SAVED_QUERIES_MAX} saved queries`)
    }
    await call('DELETE', `${PATH}/${data.query_id}`)
    expect(verdict(await call('POST', PATH, { name: 'in its place', query }))).toBe('200')
  })

  test('rejects the id of another workspace in every operation', async () => {
    const { data } = await save({})
    const call = await tenant()
    const path = `${PATH}/${data.query_id}`
    expect(verdict(await call('GET', path))).toBe('404 NOT_FOUND')
    expect(verdict(await call('PATCH', path, { name: 'mine' }))).toBe('404 NOT_FOUND')
    expect(verdict(await call('DELETE', path))).toBe('404 NOT_FOUND')
    expect(verdict(await call('POST', `${path}/run`, {}))).toBe('404 NOT_FOUND')
    expect((await call('GET', PATH)).data.items).toEqual([])
    expect((await api('GET', path)).data).toEqual(data)
  })

  test('rejects an id that is not a UUID', async () => {
    const answer = await api('GET', `${PATH}/42`)
    expect(answer.error?.message).toContain('path.query_id')
  })
})

describe('running a saved query', () => {
  test('returns exactly what the query returns', async () => {
    const query = 'select number, toString(number) as t from numbers({n:UInt8}) order by number desc'
    const { data } = await save({ query, params: { n: 3 } })
    const ran = await api('POST', `${PATH}/${data.query_id}/run`, {})
    const asked = await api('POST', '/api/v1/query', { query, params: { n: 3 } })
    expect(ran.data.rows).toHaveLength(3)
    expect({ ...ran.data, statistics: null }).toEqual({ ...asked.data, statistics: null })
    expect(Object.keys(ran.data.statistics)).toEqual(Object.keys(asked.data.statistics))
  })

  test.each([
    ['ndjson', 'application/x-ndjson'],
    ['csv', 'text/csv; charset=utf-8; header=present'],
    ['parquet', 'application/vnd.apache.parquet'],
    ['arrow', 'application/vnd.apache.arrow.stream'],
  ])('returns %s exactly as the query does', async (format, contentType) => {
    const query = 'select number as n, toString(number) as t from numbers({n:UInt16}) order by n'
    const { data } = await save({ query, params: { n: 3 } })
    const bytes = async (path: string, body: object) => {
      const headers = { authorization: `Bearer ${workspaceKey}`, 'content-type': 'application/json' }
      const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify({ ...body, format }) })
      expect([response.status, response.headers.get('content-type')]).toEqual([200, contentType])
      expect(response.headers.get('x-complete-through')).toContain('.')
      return Buffer.from(await response.arrayBuffer())
    }
    // More rows than a JSON result may have.
    const params = { n: 12_000 }
    const ran = await bytes(`${PATH}/${data.query_id}/run`, { params })
    const asked = await bytes('/api/v1/query', { query, params })
    expect(Buffer.compare(ran, asked)).toBe(0)
    if (format === 'ndjson') expect(ran.toString().trimEnd().split('\n')).toHaveLength(12_000)
    expect((await bytes(`${PATH}/${data.query_id}/run`, {})).length).toBeLessThan(ran.length)
  })

  test('rejects an unknown format, and returns a query failure in the envelope', async () => {
    const { data } = await save({ query: 'select throwIf({n:UInt8} = 1) as a', params: { n: 1 } })
    const path = `${PATH}/${data.query_id}/run`
    expect((await api('POST', path, { format: 'xml' })).error?.message).toContain('format')
    expect(verdict(await api('POST', path, { format: 'csv' }))).toBe('400 VALIDATION_ERROR')
  })

  test('overrides saved parameters with those of the request', async () => {
    const query = "select concat({a:String}, {b:String}, ifNull({c:Nullable(String)}, '-')) as v"
    const { data } = await save({ query, params: { a: 'a', b: 'b', c: 'c' } })
    const answered = async (body: object) => (await api('POST', `${PATH}/${data.query_id}/run`, body)).data.rows[0].v
    expect(await answered({})).toBe('abc')
    expect(await answered({ params: {} })).toBe('abc')
    expect(await answered({ params: { b: 'B' } })).toBe('aBc')
    expect(await answered({ params: { a: '', b: '1', c: null } })).toBe('1-')
    expect((await api('GET', `${PATH}/${data.query_id}`)).data.params).toEqual({ a: 'a', b: 'b', c: 'c' })
  })

  test('sees acknowledged events with wait_for, and none of another workspace', async () => {
    const agent = await newReporter(api)
    const accepted = await agent.events(await agent.start(), [{ type: 'saved' }, { type: 'saved' }])
    const saved = { name: 'count', query: "select count() as n from events where type = 'saved'" }
    const { data } = await api('POST', PATH, saved)
    const ran = await api('POST', `${PATH}/${data.query_id}/run`, { wait_for: accepted.last_seq })
    expect(ran.data.rows).toEqual([{ n: 2 }])
    const call = await tenant()
    const theirs = await call('POST', PATH, saved)
    const answer = await call('POST', `${PATH}/${theirs.data.query_id}/run`, { wait_for: accepted.last_seq })
    expect(answer.data.rows).toEqual([{ n: 0 }])
  })

  test.each<[object, string]>([
    [{ query: 'select 2' }, 'query: unknown field'],
    [{ params: { a: { b: 1 } } }, 'params'],
    [{ wait_for: -1 }, 'wait_for'],
    [{ params: { n: 'x' } }, 'query: '],
  ])('rejects %j, naming the field', async (body, problem) => {
    const { data } = await save({ query: 'select {n:UInt8}', params: { n: 1 } })
    const answer = await api('POST', `${PATH}/${data.query_id}/run`, body)
    expect(verdict(answer)).toBe('400 VALIDATION_ERROR')
    expect(answer.error?.message).toContain(problem)
  })

  test('checks the stored query again before it runs', async () => {
    const { data } = await save({})
    await sql`update saved_queries set query = 'select * from system.tables' where query_id = ${data.query_id}`
    const answer = await api('POST', `${PATH}/${data.query_id}/run`, {})
    expect(verdict(answer)).toBe('400 VALIDATION_ERROR')
    expect(answer.error?.message).toContain('system.tables')
  })

  test('counts towards the query rate limit, managing saved queries does not', async () => {
    const service = await startTestService({ RATE_LIMIT_QUERIES_PER_MINUTE: '2' })
    const { data } = await service.api('POST', PATH, { name: 'a', query: 'select 1' })
    const run = () => service.api('POST', `${PATH}/${data.query_id}/run`, {})
    expect([await run(), await run(), await run()].map(({ status }) => status)).toEqual([200, 200, 429])
    expect(verdict(await service.api('PATCH', `${PATH}/${data.query_id}`, { query: 'select 2' }))).toBe('200')
  })
})

describe('Idempotency-Key', () => {
  const headers = { 'idempotency-key': 'save it' }

  test('creates one query and replays the response', async () => {
    const body = { name: 'only once', query: 'select 1' }
    const first = await api('POST', PATH, body, { headers })
    const again = await api('POST', PATH, body, { headers })
    expect([first.status, again.status]).toEqual([200, 200])
    expect(again.text).toBe(first.text)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(verdict(await api('POST', PATH, { ...body, name: 'other' }, { headers }))).toBe('409 CONFLICT')
  })

  test('a retry after a lost response returns the created query, even at the limit', async () => {
    const call = await tenant()
    const body = { name: 'last', query: 'select 1' }
    const first = await call('POST', PATH, body, { headers })
    await fill(first.data.query_id, SAVED_QUERIES_MAX)
    // Simulates a crash between writing the row and storing the response.
    await sql`update idempotency_keys set status = null, response = null where idem_key = 'save it'`
    const again = await call('POST', PATH, body, { headers })
    expect(again.error).toBeNull()
    expect(again.data).toEqual(first.data)
  })
})

/** Saves a query, with a free name by default. */
function save(body: object): Promise<Answer> {
  return api('POST', PATH, { name: `query ${named++}`, query: 'select 1', ...body })
}

async function tenant(): Promise<Api> {
  return (await newTenant({ url, api })).api
}

/** Copies a saved query until its workspace has that many. */
async function fill(queryId: string, count: number): Promise<void> {
  await sql`
    insert into saved_queries (query_id, workspace_id, name, query, params, created_at, updated_at)
    select gen_random_uuid(), workspace_id, 'copy ' || i, query, params, created_at, updated_at
    from saved_queries, generate_series(2, ${count}::int) as i where query_id = ${queryId}`
}

/** Blocks all writers of saved queries until all calls wait in Postgres, then releases them together. */
async function runConcurrently(count: number, call: (i: number) => Promise<Answer>): Promise<Answer[]> {
  let answers: Promise<Answer[]> | undefined
  await sql.begin(async (tx) => {
    await tx`lock table saved_queries in share mode`
    answers = Promise.all(Array.from({ length: count }, (_, i) => call(i)))
    await eventually(async () => {
      const [{ waiting }] = await tx<[{ waiting: number }]>`
        select count(*)::int as waiting from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`
      return waiting === count
    })
  })
  return answers!
}
