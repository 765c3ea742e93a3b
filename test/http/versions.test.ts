import { describe, expect, test } from 'bun:test'
import type { Answer, CallOptions } from '../support/api.ts'
import { newReporter } from '../support/feeds.ts'
import { startTestService } from '../support/service.ts'
import { verdict } from './auth-app.ts'

/** `ETag` and `If-Match` of everything that can be edited (docs/api.md#versions). */

const { api } = await startTestService()
let named = 0
const freshName = () => `name ${named++}`

interface Resource {
  readonly path: string
  /** The member that identifies one in its path. */
  readonly id: string
  readonly create: () => Promise<Answer>
  readonly edit: () => object
  /** Created and edited by PUT, and read in the list only. */
  readonly isPut?: true
}

const posted = (path: string, id: string, body: () => object, edit: () => object): Resource => ({
  ...{ path, id, edit },
  create: () => api('POST', path, body()),
})

const RESOURCES: Readonly<Record<string, Resource>> = {
  agent: posted(
    '/api/v1/agents',
    'agent_id',
    () => ({ name: freshName() }),
    () => ({ name: freshName() }),
  ),
  'saved query': posted(
    '/api/v1/queries',
    'query_id',
    () => ({ name: freshName(), query: 'select 1' }),
    () => ({ name: freshName() }),
  ),
  board: posted(
    '/api/v1/boards',
    'board_id',
    () => ({ name: freshName() }),
    () => ({ name: freshName() }),
  ),
  webhook: posted(
    '/api/v1/webhooks',
    'webhook_id',
    () => ({ url: 'https://receiver.example/hook', status: 'disabled' }),
    () => ({ description: freshName() }),
  ),
  alert: posted(
    '/api/v1/alerts',
    'alert_id',
    () => ({ name: freshName(), query: 'select 1', every: '1h', condition: 'any_row', enabled: false }),
    () => ({ name: freshName() }),
  ),
  view: {
    ...{ path: '/api/v1/views', id: 'name', isPut: true },
    create: () => api('PUT', `/api/v1/views/${encodeURIComponent(freshName())}`, { query: '' }),
    edit: () => ({ query: freshName() }),
  },
  secret: {
    ...{ path: '/api/v1/secrets', id: 'name', isPut: true },
    create: () => api('PUT', `/api/v1/secrets/NAME_${named++}`, { value: freshName() }),
    edit: () => ({ value: freshName() }),
  },
}

function pathOf({ path, id }: Resource, { data }: Answer): string {
  return `${path}/${encodeURIComponent(data[id])}`
}

function edit(resource: Resource, path: string, options: CallOptions): Promise<Answer> {
  return api(resource.isPut ? 'PUT' : 'PATCH', path, resource.edit(), options)
}

function at(version: number | string) {
  return { headers: { 'if-match': `"${version}"` } }
}

async function expectChanged(answer: Promise<Answer>, versions: string): Promise<void> {
  const { error } = await answer
  expect(error).toMatchObject({ code: 'CONFLICT', reason: 'version_changed', param: 'header If-Match' })
  expect(error?.message).toEndWith(versions)
}

describe.each(Object.entries(RESOURCES))('a %s', (_name, resource) => {
  test('sends its version as ETag, in the list as `version`, and each edit raises it', async () => {
    const made = await resource.create()
    expect([made.headers.get('etag'), made.data.version]).toEqual(['"1"', 1])
    const edited = await edit(resource, pathOf(resource, made), at(1))
    expect([edited.headers.get('etag'), edited.data.version]).toEqual(['"2"', 2])
    if (!resource.isPut) expect((await api('GET', pathOf(resource, edited))).headers.get('etag')).toBe('"2"')
    const listed = await api('GET', resource.path)
    expect(listed.headers.get('etag')).toBeNull()
    const isThis = (item: Record<string, unknown>) => item[resource.id] === edited.data[resource.id]
    expect(listed.data.items.find(isThis).version).toBe(2)
  })

  test('is not edited or deleted at another version', async () => {
    const made = await resource.create()
    const path = pathOf(resource, made)
    await expectChanged(edit(resource, path, at(2)), 'it is at version 1, not 2')
    await expectChanged(api('DELETE', path, undefined, at(7)), 'it is at version 1, not 7')
    const listed = await api('GET', `${resource.path}?limit=1`)
    expect(listed.data.items[0].version).toBe(1)
    expect((await api('DELETE', path, undefined, at(1))).status).toBe(200)
    expect(verdict(await api('DELETE', path, undefined, at(1)))).toBe('404 NOT_FOUND')
  })

  test('of concurrent edits of one version, one succeeds', async () => {
    const made = await resource.create()
    const edits = Array.from({ length: 6 }, () => edit(resource, pathOf(resource, made), at(1)))
    const answers = await Promise.all(edits)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.reason === 'version_changed')).toHaveLength(5)
  })

  test('the tag * and a weak tag are accepted; others are refused by name, and nothing changes', async () => {
    const made = await resource.create()
    const path = pathOf(resource, made)
    for (const tag of ['1', '"0"', '"1", "2"', '"x"', '', '"9999999999"']) {
      const { error } = await api('DELETE', path, undefined, { headers: { 'if-match': tag } })
      expect([error?.code, error?.param]).toEqual(['VALIDATION_ERROR', 'header If-Match'])
    }
    const weak = await edit(resource, path, { headers: { 'if-match': 'W/"1"' } })
    expect(weak.data.version).toBe(2)
    expect((await api('DELETE', pathOf(resource, weak), undefined, { headers: { 'if-match': '*' } })).status).toBe(200)
  })
})

test('a view is replaced and renamed only at the version that is named, and not created at one', async () => {
  const path = '/api/v1/views/replaced'
  expect(verdict(await api('PUT', path, { query: 'a=1' }, at(1)))).toBe('404 NOT_FOUND')
  await api('PUT', path, { query: 'a=1' })
  const replaced = await api('PUT', path, { query: 'a=2' }, at(1))
  expect([replaced.headers.get('etag'), replaced.data.query]).toEqual(['"2"', 'a=2'])
  await expectChanged(api('PUT', path, { query: 'a=3' }, at(1)), 'it is at version 2, not 1')
  expect((await api('PUT', path, { query: 'a=4' })).headers.get('etag')).toBe('"3"')
  await expectChanged(api('PATCH', path, { name: 'renamed' }, at(2)), 'it is at version 3, not 2')
  expect((await api('PATCH', path, { name: 'renamed' }, at(3))).headers.get('etag')).toBe('"4"')
})

test('a secret is replaced only at the version that is named, and not created at one', async () => {
  const path = '/api/v1/secrets/REPLACED'
  expect(verdict(await api('PUT', path, { value: 'first' }, at(1)))).toBe('404 NOT_FOUND')
  await api('PUT', path, { value: 'first' })
  await expectChanged(api('PUT', path, { value: 'second' }, at(2)), 'it is at version 1, not 2')
  expect((await api('PUT', path, { value: 'second' }, at(1))).headers.get('etag')).toBe('"2"')
  expect((await api('PUT', path, { value: 'third' })).headers.get('etag')).toBe('"3"')
})

describe('a run', () => {
  const tags = () => ({ tags: [freshName()] })

  async function started(): Promise<string> {
    return `/api/v1/runs/${await (await newReporter(api)).start()}`
  }

  test('sends the version of its tags and metadata, also in lists, and each edit raises it', async () => {
    const path = await started()
    expect((await api('GET', path)).headers.get('etag')).toBe('"1"')
    const edited = await api('PATCH', path, tags(), at(1))
    expect([edited.headers.get('etag'), edited.data.version]).toEqual(['"2"', 2])
    expect((await api('PATCH', path, { metadata: { a: 1 } })).headers.get('etag')).toBe('"3"')
    const { data, headers } = await api('GET', path)
    expect([headers.get('etag'), data.version]).toEqual(['"3"', 3])
    const listed = await api('GET', '/api/v1/runs?limit=1')
    expect([listed.headers.get('etag'), listed.data.items[0].version]).toEqual([null, 3])
  })

  test('is not edited at another version', async () => {
    const path = await started()
    const { data } = await api('PATCH', path, tags())
    for (const body of [tags(), { metadata: {} }, {}])
      await expectChanged(api('PATCH', path, body, at(1)), 'it is at version 2, not 1')
    expect((await api('GET', path)).data).toEqual(data)
    expect((await api('PATCH', path, {}, at(2))).data).toEqual(data)
    const elsewhere = `/api/v1/runs/${Bun.randomUUIDv7()}`
    expect(verdict(await api('PATCH', elsewhere, tags(), at(1)))).toBe('404 NOT_FOUND')
  })

  test('of concurrent edits of one version, one succeeds', async () => {
    const path = await started()
    const answers = await Promise.all(Array.from({ length: 6 }, () => api('PATCH', path, tags(), at(1))))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.reason === 'version_changed')).toHaveLength(5)
  })
})

test('an edit of a board names the version in the body or the header, and not two', async () => {
  const made = await RESOURCES.board!.create()
  const path = pathOf(RESOURCES.board!, made)
  const both = await api('PATCH', path, { version: 1, name: freshName() }, at(1))
  expect(both.data.version).toBe(2)
  const differ = await api('PATCH', path, { version: 2 }, at(1))
  expect([differ.error?.code, differ.error?.param]).toEqual(['VALIDATION_ERROR', 'version'])
  expect((await api('PATCH', path, { version: 1 })).error).toMatchObject({
    reason: 'version_changed',
    param: 'version',
  })
})

test('an edit without any member is refused at another version, too', async () => {
  const made = await RESOURCES['saved query']!.create()
  const path = pathOf(RESOURCES['saved query']!, made)
  await expectChanged(api('PATCH', path, {}, at(2)), 'not 2')
  expect((await api('PATCH', path, {}, at(1))).headers.get('etag')).toBe('"1"')
})

test('a restored version of an agent and a rotated webhook have the ETag of their new version', async () => {
  const agent = await RESOURCES.agent!.create()
  const path = pathOf(RESOURCES.agent!, agent)
  await api('PATCH', path, { name: freshName() })
  expect((await api('POST', `${path}/versions/1/restore`, {})).headers.get('etag')).toBe('"3"')
  const webhook = await RESOURCES.webhook!.create()
  expect((await api('POST', `${pathOf(RESOURCES.webhook!, webhook)}/rotate`)).headers.get('etag')).toBe('"2"')
})
