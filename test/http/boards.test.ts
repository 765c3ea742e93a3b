import { describe, expect, test } from 'bun:test'
import { BOARD_CHARTS_MAX } from '../../src/sql/analytics/board-schema.ts'
import { BOARDS_MAX } from '../../src/sql/analytics/board-store.ts'
import { type Answer, type Api, pagesOf } from '../support/api.ts'
import { newTenant } from '../support/feeds.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startTestService } from '../support/service.ts'
import { verdict } from './auth-app.ts'

/** Boards of a workspace (docs/sql.md#boards). */

const PATH = '/api/v1/boards'
const { url: databaseUrl, sql } = await freshDatabase()
const { api, url } = await startTestService({ DATABASE_URL: databaseUrl })
let named = 0

/** Creates a board, with a free name by default. */
function make(body: object = {}, call: Api = api): Promise<Answer> {
  return call('POST', PATH, { name: `board ${named++}`, ...body })
}

async function tenant(): Promise<Api> {
  return (await newTenant({ url, api })).api
}

function charts(count: number) {
  return Array.from({ length: count }, () => ({ query_id: crypto.randomUUID() }))
}

describe('a board', () => {
  test('can be created, read, listed, edited and deleted, with its charts in order', async () => {
    const body = { name: 'Kosten — 費用', charts: charts(3) }
    const made = await make(body)
    const { board_id, created_at } = made.data
    expect(made.data).toEqual({ board_id, ...body, version: 1, created_at, updated_at: created_at })
    expect((await api('GET', `${PATH}/${board_id.toUpperCase()}`)).data).toEqual(made.data)
    expect((await api('GET', PATH)).data.items).toContainEqual(made.data)

    const edit = { name: 'Costs', charts: body.charts.toReversed() }
    const edited = await api('PATCH', `${PATH}/${board_id}`, { version: 1, ...edit })
    expect(edited.data).toEqual({ ...made.data, ...edit, version: 2, updated_at: edited.data.updated_at })
    expect((await api('GET', `${PATH}/${board_id}`)).data).toEqual(edited.data)

    expect((await api('DELETE', `${PATH}/${board_id}`)).data).toEqual({ board_id, deleted: true })
    for (const method of ['GET', 'DELETE'])
      expect(verdict(await api(method, `${PATH}/${board_id}`))).toBe('404 NOT_FOUND')
    expect(verdict(await api('PATCH', `${PATH}/${board_id}`, { version: 2 }))).toBe('404 NOT_FOUND')
  })

  test('an edit of an earlier version is a CONFLICT and changes nothing: of concurrent edits, one succeeds', async () => {
    const { board_id } = (await make()).data
    const edit = (name: string) => api('PATCH', `${PATH}/${board_id}`, { version: 1, name })
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => edit(`edit ${named++} ${i}`)))
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    expect(answers.filter((answer) => verdict(answer) === '409 CONFLICT')).toHaveLength(7)
    expect((await edit('late')).error?.message).toContain('it is at version 2, not 1')
    expect((await api('GET', `${PATH}/${board_id}`)).data).toEqual(won[0]!.data)
  })

  test('has a name that is unique in the workspace', async () => {
    await make({ name: 'daily' })
    const other = await make()
    expect((await make({ name: 'daily' })).error?.message).toContain('"daily"')
    const path = `${PATH}/${other.data.board_id}`
    expect(verdict(await api('PATCH', path, { version: 1, name: 'daily' }))).toBe('409 CONFLICT')
    expect((await api('GET', path)).data).toEqual(other.data)
    expect(verdict(await make({ name: 'daily' }, await tenant()))).toBe('200')
  })

  test('stays as it is when a saved query on it is deleted', async () => {
    const { query_id } = (await api('POST', '/api/v1/queries', { name: 'pinned', query: 'select 1' })).data
    const board = await make({ charts: [{ query_id }] })
    await api('DELETE', `/api/v1/queries/${query_id}`)
    expect((await api('GET', `${PATH}/${board.data.board_id}`)).data).toEqual(board.data)
  })

  test('is not seen or changed by another workspace', async () => {
    const { data } = await make()
    const call = await tenant()
    const path = `${PATH}/${data.board_id}`
    for (const method of ['GET', 'DELETE']) expect(verdict(await call(method, path))).toBe('404 NOT_FOUND')
    expect(verdict(await call('PATCH', path, { version: 1, name: 'mine' }))).toBe('404 NOT_FOUND')
    expect((await call('GET', PATH)).data.items).toEqual([])
    expect((await api('GET', path)).data).toEqual(data)
  })
})

describe('the list', () => {
  test('is sorted newest first and paginates without gaps or repeats', async () => {
    const call = await tenant()
    const ids: string[] = []
    for (let i = 0; i < 7; i++) ids.unshift((await make({}, call)).data.board_id)
    const pages = await pagesOf<{ board_id: string }>((cursor) => call('GET', `${PATH}?limit=3${cursor}`))
    expect(pages.flat().map(({ board_id }) => board_id)).toEqual(ids)
  })
})

describe('limits', () => {
  test.each<[string, object, string]>([
    ['no name', { name: undefined }, 'name'],
    ['an empty name', { name: '' }, 'name: expected at least 1 character'],
    ['a long name', { name: 'x'.repeat(201) }, 'name: expected at most 200 characters'],
    ['too many charts', { charts: charts(BOARD_CHARTS_MAX + 1) }, 'charts'],
    ['a chart without an id', { charts: [{}] }, 'charts[0].query_id'],
    ['an id that is not a UUID', { charts: [{ query_id: '42' }] }, 'charts[0].query_id'],
    ['an unknown field', { color: 'red' }, 'color: unknown field'],
  ])('rejects %s', async (_what, body, problem) => {
    const answer = await make(body)
    expect(verdict(answer)).toBe('400 VALIDATION_ERROR')
    expect(answer.error?.message).toContain(problem)
  })

  test('a board takes the maximum of charts; an edit needs the version', async () => {
    const { data } = await make({ charts: charts(BOARD_CHARTS_MAX) })
    expect(data.charts).toHaveLength(BOARD_CHARTS_MAX)
    const answer = await api('PATCH', `${PATH}/${data.board_id}`, { name: 'x' })
    expect(answer.error?.message).toContain('version')
  })

  test('a workspace has a bounded number of boards; a retry after a lost response gets the created one', async () => {
    const call = await tenant()
    const headers = { 'idempotency-key': 'the last' }
    const body = { name: 'the last' }
    const last = await call('POST', PATH, body, { headers })
    await sql`
      insert into boards (board_id, workspace_id, name, charts, version, created_at, updated_at)
      select gen_random_uuid(), workspace_id, 'copy ' || i, charts, version, created_at, updated_at
      from boards, generate_series(2, ${BOARDS_MAX}::int) as i where board_id = ${last.data.board_id}`
    const refused = await make({}, call)
    expect(verdict(refused)).toBe('409 CONFLICT')
    expect(refused.error?.message).toContain(`at most ${BOARDS_MAX} boards`)
    // Simulates a crash between writing the row and storing the response.
    await sql`update idempotency_keys set status = null, response = null where idem_key = 'the last'`
    expect((await call('POST', PATH, body, { headers })).data).toEqual(last.data)
  })
})
