import { expect, test } from 'bun:test'
import { RUN_VIEWS_MAX } from '../../src/activity/runs/view-store.ts'
import { type Api, pagesOf } from '../support/api.ts'
import { newReporter, newTenant } from '../support/feeds.ts'
import { inParallel } from '../support/in-parallel.ts'
import { startTestService } from '../support/service.ts'
import { verdict } from './auth-app.ts'

/** Views of the list of runs (docs/runs.md#views). */

const service = await startTestService()
const PATH = '/api/v1/views'
const pathOf = (name: string) => `${PATH}/${encodeURIComponent(name)}`

async function tenant(): Promise<Api> {
  return (await newTenant(service)).api
}

async function namesOf(api: Api): Promise<string[]> {
  const { data } = await api('GET', PATH)
  return data.items.map(({ name }: { name: string }) => name)
}

test('a view can be saved, replaced, listed, renamed and deleted', async () => {
  const api = await tenant()
  const names = ['Kosten / 費用?', '100% "failed" #1', 'a+b']
  for (const name of names) {
    const saved = await api('PUT', pathOf(name), { query: 'status=failed' })
    expect([saved.status, saved.data.name]).toEqual([200, name])
    const again = await api('PUT', pathOf(name), { query: 'status=failed,timed_out&cols=error' })
    expect(again.data).toMatchObject({ name, query: 'status=failed,timed_out&cols=error' })
    expect(again.data.created_at).toBe(saved.data.created_at)
  }
  expect(await namesOf(api)).toEqual(names.toReversed())
  const [first = '', second = ''] = names
  expect((await api('PATCH', pathOf(first), { name: 'Costs' })).data).toMatchObject({ name: 'Costs' })
  expect((await api('PATCH', pathOf('Costs'), { name: 'Costs' })).status).toBe(200)
  const taken = await api('PATCH', pathOf('Costs'), { name: second })
  expect([verdict(taken), taken.error?.message]).toEqual([
    '409 CONFLICT',
    `a view named ${JSON.stringify(second)} already exists`,
  ])
  expect((await api('DELETE', pathOf(second))).data).toEqual({ name: second, deleted: true })
  expect(verdict(await api('DELETE', pathOf(second)))).toBe('404 NOT_FOUND')
  expect(verdict(await api('PATCH', pathOf(first), { name: 'x' }))).toBe('404 NOT_FOUND')
  expect(await namesOf(api)).toEqual(['a+b', 'Costs'])
})

test('a workspace has a limited number of views, also when saved concurrently; existing views can still change', async () => {
  const api = await tenant()
  const all = Array.from({ length: RUN_VIEWS_MAX + 5 }, (_, n) => `view ${n}`)
  const statuses: number[] = []
  await inParallel(all, async (name) => {
    statuses.push((await api('PUT', pathOf(name), { query: '' })).status)
  })
  expect(statuses.filter((status) => status === 409)).toHaveLength(5)
  const pages = await pagesOf<{ name: string }>((cursor) => api('GET', `${PATH}?limit=40${cursor}`))
  const kept = pages.flat().map(({ name }) => name)
  expect(pages.map(({ length }) => length)).toEqual([40, 40, 20])
  expect(new Set(kept).size).toBe(RUN_VIEWS_MAX)
  expect((await api('PUT', pathOf(kept[0] ?? ''), { query: 'q=x' })).status).toBe(200)
  const other = all.find((name) => !kept.includes(name)) ?? ''
  expect((await api('PUT', pathOf(other), { query: '' })).error?.message).toContain(`at most ${RUN_VIEWS_MAX} views`)
  await api('DELETE', pathOf(kept[0] ?? ''))
  expect((await api('PUT', pathOf(other), { query: '' })).status).toBe(200)
})

test('views belong to a workspace, and agent keys have none', async () => {
  const [own, others] = [await tenant(), await newTenant(service)]
  await own('PUT', pathOf('mine'), { query: 'tag=secret' })
  expect(await namesOf(others.api)).toEqual([])
  expect(verdict(await others.api('DELETE', pathOf('mine')))).toBe('404 NOT_FOUND')
  expect(verdict(await others.api('PATCH', pathOf('mine'), { name: 'theirs' }))).toBe('404 NOT_FOUND')
  await others.api('PUT', pathOf('mine'), { query: '' })
  expect((await own('GET', PATH)).data.items).toMatchObject([{ name: 'mine', query: 'tag=secret' }])
  const { agentKey } = await newReporter(others.api)
  expect(verdict(await others.api('GET', PATH, undefined, { key: agentKey }))).toBe('403 FORBIDDEN')
})

test('an invalid name or a query that is too long is refused with the name of the field', async () => {
  const api = await tenant()
  const refused: [answer: Promise<{ readonly error: { readonly message: string } | null }>, message: string][] = [
    [api('PUT', pathOf('x'.repeat(201)), { query: '' }), 'path.name: expected at most 200 characters'],
    [api('PUT', pathOf('a\0b'), { query: '' }), 'path.name: expected text without the character U+0000'],
    [api('PUT', pathOf('a'), { query: 'x'.repeat(4_001) }), 'query: expected at most 4000 characters'],
    [api('PUT', pathOf('a'), {}), 'query: required'],
    [api('PATCH', pathOf('a'), { name: '..' }), 'name: expected a name other than "." and ".."'],
    [api('PATCH', pathOf('a'), { name: '' }), 'name: expected at least 1 character'],
  ]
  for (const [answer, message] of refused) expect((await answer).error?.message).toStartWith(message)
})
