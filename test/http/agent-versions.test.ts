import { beforeAll, describe, expect, test } from 'bun:test'
import { type AuthApp, authApp, verdict } from './auth-app.ts'

/** Versions of agents (docs/agents.md#agent-versions). */

const VERSIONS_KEPT = 200
const HOSTED = { name: 'h', runtime_type: 'hosted', model: 'a-model', prompt: 'one' }
const TOOL = { type: 'mcp', name: 'files', description: '', server_url: 'http://localhost:1/mcp' }

let app: AuthApp
let owner: string

beforeAll(async () => {
  app = await authApp()
  owner = app.owner.key
})

const call = (method: string, path: string, body?: unknown, key = owner) =>
  app.call(method, `/api/v1/agents${path}`, { key, body })
const edit = async (id: string, body: unknown) => (await call('PATCH', `/${id}`, body)).data
const versions = async (id: string, query = '') => (await call('GET', `/${id}/versions${query}`)).data
const version = async (id: string, number: number) => (await call('GET', `/${id}/versions/${number}`)).data
const restore = (id: string, number: number, key = owner) => call('POST', `/${id}/versions/${number}/restore`, {}, key)

async function create(body: object = HOSTED): Promise<string> {
  const { data, error } = await call('POST', '', body)
  expect(error).toBeNull()
  return data.agent_id
}

/** The members of an agent that belong to its configuration. */
function configurationOf({ agent_id, version, created_at, updated_at, ...configuration }: Record<string, unknown>) {
  return configuration
}

describe('the versions of an agent', () => {
  test('an edit that changes something makes one, with its key, its time and the fields that differ', async () => {
    const id = await create()
    const { data: other } = await app.call('POST', '/api/v1/keys', { key: owner, body: { name: 'other' } })
    await edit(id, { prompt: 'two', temperature: 0.5 })
    await edit(id, { prompt: 'two' })
    const { data: third } = await call('PATCH', `/${id.toUpperCase()}`, { tools: [TOOL] }, other.key)
    const { items, next_cursor } = await versions(id.toUpperCase())
    expect(next_cursor).toBeNull()
    const { data: keys } = await app.call('GET', '/api/v1/keys', { key: owner })
    const byName = (name: string) => keys.items.find((key: { name: string }) => key.name === name).key_id
    const common = { agent_id: id, created_by: byName('first key'), created_by_person: null, restored_from: null }
    expect(items).toEqual([
      { ...common, version: 3, created_at: third.updated_at, created_by: other.key_id, changes: ['tools'] },
      { ...common, version: 2, created_at: expect.any(String), changes: ['prompt', 'temperature'] },
      { ...common, version: 1, created_at: third.created_at, changes: [] },
    ])
  })

  test('each can be read with its whole configuration, numbers exact', async () => {
    const metadata = '{"n":12345678901234567890,"f":1.0,"__proto__":{"x":1}}'
    const { data: first } = await call('POST', '', `{"name":"m","metadata":${metadata}}`)
    const id = first.agent_id
    await edit(id, { metadata: {}, name: 'other' })
    const read = await call('GET', `/${id}/versions/1`)
    expect(read.text).toContain(`"metadata":${metadata}`)
    expect(read.data).toMatchObject(configurationOf(first))
    expect(await version(id, 2)).toMatchObject(configurationOf((await call('GET', `/${id}`)).data))
    const restored = await restore(id, 1)
    expect(restored.text).toContain(`"metadata":${metadata}`)
  })

  test('are listed newest first, in pages', async () => {
    const id = await create()
    for (const prompt of ['two', 'three', 'four', 'five']) await edit(id, { prompt })
    const numbers: number[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await versions(id, `?limit=2${cursor && `&cursor=${cursor}`}`)
      numbers.push(...page.items.map((item: { version: number }) => item.version))
      cursor = page.next_cursor
    }
    expect(numbers).toEqual([5, 4, 3, 2, 1])
    expect(verdict(await call('GET', `/${id}/versions?cursor=x`))).toBe('400 VALIDATION_ERROR')
  })

  test('concurrent edits skip no number', async () => {
    const id = await create()
    await Promise.all(Array.from({ length: 8 }, (_, at) => edit(id, { prompt: `prompt ${at}` })))
    const { items } = await versions(id)
    expect(items.map((item: { version: number }) => item.version)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1])
    const prompts = await Promise.all(
      items.map(async (item: { version: number }) => (await version(id, item.version)).prompt),
    )
    expect(new Set(prompts).size).toBe(9)
  })

  test('beyond the newest 200, the oldest are no longer kept, and the error says so', async () => {
    const id = await create()
    for (let at = 1; at < VERSIONS_KEPT; at++) await edit(id, { prompt: `prompt ${at}` })
    expect((await version(id, 1)).prompt).toBe('one')
    await edit(id, { prompt: 'one more' })
    const { items, next_cursor } = await versions(id, '?limit=200')
    expect([items.length, items.at(-1).version, next_cursor]).toEqual([VERSIONS_KEPT, 2, null])
    for (const answer of [await call('GET', `/${id}/versions/1`), await restore(id, 1)])
      expect([verdict(answer), answer.error?.message]).toEqual(['404 NOT_FOUND', 'version 1 is no longer kept'])
  })

  test('an agent from before versions were kept has its current version', async () => {
    const id = await create()
    await app.sql`update agents set version = 7, version_created_by = null where agent_id = ${id}`
    expect(await versions(id)).toMatchObject({ items: [{ version: 7, created_by: null, changes: [] }] })
    expect((await version(id, 7)).prompt).toBe('one')
    expect(verdict(await call('GET', `/${id}/versions/6`))).toBe('404 NOT_FOUND')
    expect((await edit(id, { prompt: 'two' })).version).toBe(8)
    expect((await versions(id)).items).toHaveLength(2)
  })
})

describe('restoring a version', () => {
  test('makes its configuration a new version', async () => {
    const id = await create()
    const first = (await call('GET', `/${id}`)).data
    await edit(id, { prompt: 'two', tools: [TOOL], description: 'd', max_steps: 2 })
    const { status, data } = await restore(id, 1)
    expect(status).toBe(200)
    expect(data).toEqual({ ...first, version: 3, updated_at: expect.any(String) })
    expect((await versions(id)).items[0]).toMatchObject({
      version: 3,
      restored_from: 1,
      changes: ['description', 'prompt', 'tools', 'max_steps'],
    })
    expect((await version(id, 2)).tools).toEqual([TOOL])
  })

  test('neither pauses nor resumes the agent', async () => {
    const id = await create()
    await edit(id, { prompt: 'two', status: 'paused' })
    expect((await restore(id, 1)).data).toMatchObject({ prompt: 'one', status: 'paused', version: 3 })
    await edit(id, { status: 'active' })
    expect((await restore(id, 2)).data).toMatchObject({ prompt: 'two', status: 'active', version: 5 })
  })

  test('changes nothing if the agent has that configuration, also when a retry comes late', async () => {
    const id = await create()
    await edit(id, { prompt: 'two' })
    expect((await restore(id, 2)).data.version).toBe(2)
    expect((await restore(id, 1)).data.version).toBe(3)
    expect((await restore(id, 1)).data.version).toBe(3)
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const path = `/api/v1/agents/${id}/versions/2/restore`
    const once = () => app.call('POST', path, { key: owner, body: {}, headers })
    const [one, again] = [await once(), await once()]
    expect([one.data.version, again.data.version]).toEqual([4, 4])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
  })

  test('takes no fields in its body', async () => {
    const id = await create()
    const answer = await call('POST', `/${id}/versions/1/restore`, { name: 'x' })
    expect(verdict(answer)).toBe('400 VALIDATION_ERROR')
    expect(answer.error?.message).toStartWith('name: unknown field')
  })
})

describe('access', () => {
  test('versions of an archived or unknown agent, or of another workspace, are NOT_FOUND', async () => {
    const tenant = await app.newWorkspace()
    const foreign = await app.newAgent({}, tenant.key)
    const archived = await create()
    await edit(archived, { prompt: 'two' })
    await call('DELETE', `/${archived}`)
    for (const id of [foreign, archived, crypto.randomUUID()]) {
      for (const path of ['versions', 'versions/1']) {
        const answer = await call('GET', `/${id}/${path}`)
        expect([verdict(answer), answer.error?.message]).toEqual(['404 NOT_FOUND', 'agent does not exist'])
      }
      expect(verdict(await restore(id, 1))).toBe('404 NOT_FOUND')
    }
    expect((await app.call('GET', `/api/v1/agents/${foreign}`, { key: tenant.key })).data.version).toBe(1)
  })

  test('an agent key is FORBIDDEN', async () => {
    const id = await create()
    const { key } = await app.newAgentKey(id)
    for (const path of [`/${id}/versions`, `/${id}/versions/1`])
      expect(verdict(await call('GET', path, undefined, key))).toBe('403 FORBIDDEN')
    expect(verdict(await restore(id, 1, key))).toBe('403 FORBIDDEN')
  })

  test('a version is a whole number from 1 on', async () => {
    const id = await create()
    for (const wrong of ['0', '-1', '1.5', 'x', '2147483648']) {
      const answer = await call('GET', `/${id}/versions/${wrong}`)
      expect(verdict(answer)).toBe('400 VALIDATION_ERROR')
      expect(answer.error?.message).toStartWith('path.version: expected an integer')
    }
    expect((await call('GET', `/${id}/versions/9`)).error?.message).toContain('its current version is 1')
  })
})
