import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import { eventually } from '../support/eventually.ts'
import { newTenant } from '../support/feeds.ts'
import { type HostedAgent, newHostedAgent, untilStatus } from '../support/hosted.ts'
import { type ModelServer, type ModelServerRequest, startModelServer } from '../support/model-server.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Sessions: conversation memory, with one run at a time (docs/hosted-agents.md#sessions). */

const NO_ID = '00000000-0000-4000-8000-000000000000'

let service: TestService
let model: ModelServer
let agent: HostedAgent

beforeAll(async () => {
  model = startModelServer()
  service = await startTestService({ OPENAI_BASE_URL: model.url })
  agent = await newHostedAgent(service)
})

beforeEach(() => model.script(echo))

/** Answers every message in upper case. */
const echo = ({ body }: ModelServerRequest) => ({ text: `${body.messages.at(-1)!.content}`.toUpperCase() })
/** The messages of the last model request, without the system prompt. */
const told = () =>
  model.requests
    .at(-1)!
    .body.messages.slice(1)
    .map(({ content }) => content)
const say = (session_id: string, message: string, more: object = {}) =>
  agent.invoke({ session_id, input: { message }, ...more })
const begin = async (message = 'one', more: object = {}): Promise<string> =>
  (await agent.invoke({ start_session: true, input: { message }, ...more })).data.session_id
const read = async (path: string) => (await service.api('GET', `/api/v1/sessions${path}`)).data
const messagesOf = async (id: string): Promise<string[]> =>
  (await read(`/${id}/messages`)).items.map(({ role, content }: Record<string, string>) => `${role}: ${content}`)

/** Makes the model wait. @returns a function that releases it */
function held() {
  const gate = Promise.withResolvers<void>()
  model.script(async (request) => {
    await gate.promise
    return echo(request)
  })
  return gate.resolve
}

describe('a session', () => {
  test('remembers its messages in order, and none of other sessions', async () => {
    const first = await agent.invoke({ start_session: true, input: { message: 'one' } })
    const { session_id } = first.data
    await begin('elsewhere')
    const second = await say(session_id, 'two')
    expect(second.data.session_id).toBe(session_id)
    expect(told()).toEqual(['one', 'ONE', 'two'])
    await say(session_id.toUpperCase(), 'three')
    expect(told()).toEqual(['one', 'ONE', 'two', 'TWO', 'three'])
    const { items } = (await service.api('GET', `/api/v1/runs?session_id=${session_id}`)).data
    expect(items).toHaveLength(3)
    expect(items[2]).toMatchObject({ run_id: first.data.run_id, session_id })
  })

  test('has a record, and lists messages in order, in pages', async () => {
    const id = await begin('one', { external_user_id: 'user-1' })
    const { data } = await say(id, 'two')
    expect(await read(`/${id}`)).toEqual({
      session_id: id,
      kind: 'hosted',
      agent_id: agent.agentId,
      external_user_id: 'user-1',
      message_count: 4,
      active_run_id: null,
      status: 'completed',
      run_count: 2,
      is_partial: false,
      failed_count: 0,
      waiting_count: 0,
      usage: expect.any(Object),
      cost_usd: expect.any(Number),
      agent_ids: [agent.agentId],
      external_user_ids: ['user-1'],
      first_message: 'one',
      last_message: 'TWO',
      last_run_id: data.run_id,
      created_at: expect.any(String),
      updated_at: expect.any(String),
      last_activity_at: expect.any(String),
    })
    expect(await read(`/${id.toUpperCase()}`)).toMatchObject({ session_id: id, run_count: 2 })
    const runs = await service.api('GET', `/api/v1/runs?session_id=${id.toUpperCase()}`)
    expect(runs.data.items).toHaveLength(2)
    const first = await read(`/${id}/messages?limit=3`)
    expect(
      first.items.map(({ position, role, content }: Record<string, unknown>) => [position, role, content]),
    ).toEqual([
      [1, 'user', 'one'],
      [2, 'assistant', 'ONE'],
      [3, 'user', 'two'],
    ])
    const rest = await read(`/${id}/messages?limit=3&cursor=${first.next_cursor}`)
    expect(rest).toEqual({
      items: [{ position: 4, role: 'assistant', content: 'TWO', run_id: data.run_id, created_at: expect.any(String) }],
      next_cursor: null,
    })
  })

  test('a run that cannot be read when it begins is executed later', async () => {
    const id = await begin()
    const sql = connectPostgres(service.databaseUrl, { log: createLog('error'), max: 1 })
    await sql`alter table run_steps rename to run_steps_away`
    const { status, data } = await say(id, 'two', { background: true })
    await sql`alter table run_steps_away rename to run_steps`
    await sql.end()
    expect([status, data.status]).toEqual([202, 'queued'])
    await untilStatus(service, data.run_id, 'completed')
    expect(await messagesOf(id)).toEqual(['user: one', 'assistant: ONE', 'user: two', 'assistant: TWO'])
  })

  test('remembers input and final output of a run with tool calls', async () => {
    const id = await begin()
    model.script([{ text: 'Let me see', toolCalls: [{ name: 'none', arguments: {} }] }, { text: 'done' }])
    await say(id, 'two')
    expect(await messagesOf(id)).toEqual(['user: one', 'assistant: ONE', 'user: two', 'assistant: done'])
  })

  test('remembers nothing of a failed run, and can continue', async () => {
    model.script({ status: 400 })
    const failed = await agent.invoke({ start_session: true, input: { message: 'one' } })
    expect(failed.data.status).toBe('failed')
    const { session_id } = failed.data
    expect(await read(`/${session_id}`)).toMatchObject({ message_count: 0, active_run_id: null })
    model.script(echo)
    await say(session_id, 'two')
    expect(told()).toEqual(['two'])
  })

  test('is named in the last frame of a stream', async () => {
    const reader = await agent.stream({ start_session: true })
    const { data } = (await reader.all()).at(-1)!
    expect(data.session_id).toMatch(/^[0-9a-f-]{36}$/)
    expect((await read(`/${data.session_id}`)).message_count).toBe(2)
  })
})

describe('one run at a time', () => {
  test('other runs wait in order of arrival, and see the messages before them', async () => {
    const id = await begin()
    const release = held()
    const before = model.requests.length
    const turns = []
    for (const message of ['two', 'three', 'four']) {
      turns.push(say(id, message))
      const runs = async () => (await service.api('GET', `/api/v1/runs?session_id=${id}`)).data.items
      await eventually(async () => (await runs()).length === turns.length + 1)
    }
    await eventually(() => model.requests.length === before + 1)
    const { items } = (await service.api('GET', `/api/v1/runs?session_id=${id}`)).data
    const states = items.map(({ status, started_at }: Record<string, unknown>) => [status, started_at === null])
    expect(states.slice(0, 3)).toEqual([
      ['queued', true],
      ['queued', true],
      ['running', false],
    ])
    expect((await read(`/${id}`)).active_run_id).toBe(items[2].run_id)
    release()
    expect((await Promise.all(turns)).map(({ data }) => data.output.text)).toEqual(['TWO', 'THREE', 'FOUR'])
    expect(told()).toEqual(['one', 'ONE', 'two', 'TWO', 'three', 'THREE', 'four'])
    expect(model.requests.slice(before).map(({ body }) => body.messages.length)).toEqual([4, 6, 8])
    for (const { data } of await Promise.all(turns)) {
      const events = (await service.api('GET', `/api/v1/runs/${data.run_id}/events`)).data.items
      const types = events.map(({ type }: { type: string }) => type).sort()
      expect(types).toEqual(['llm.call', 'run.completed', 'run.started'])
    }
  })

  test('a waiting run can be streamed from its beginning, and can be cancelled', async () => {
    const id = await begin()
    const release = held()
    const holder = say(id, 'two')
    await eventually(async () => (await read(`/${id}`)).active_run_id !== null)
    const streamed = agent.stream({ session_id: id, input: { message: 'three' } })
    const given_up = await say(id, 'never', { background: true })
    expect(given_up.data.status).toBe('queued')
    const cancelled = await service.api('POST', `/api/v1/runs/${given_up.data.run_id}/cancel`, {})
    expect(cancelled.data).toMatchObject({ status: 'cancelled', already: false })
    release()
    const reader = await streamed
    await reader.all()
    expect(reader.textOf()).toBe('THREE')
    await holder
    expect(await messagesOf(id)).toHaveLength(6)
  })

  test('cancelling the active run starts the next', async () => {
    const id = await begin()
    model.script({ hangs: true })
    const stuck = await say(id, 'two', { background: true })
    await eventually(() => model.open > 0)
    model.script(echo)
    const next = say(id, 'three')
    await service.api('POST', `/api/v1/runs/${stuck.data.run_id}/cancel`, {})
    expect((await next).data.output).toEqual({ text: 'THREE' })
    expect(told()).toEqual(['one', 'ONE', 'three'])
  })

  test('other sessions do not wait', async () => {
    const [busy, free] = [await begin(), await begin()]
    model.script(({ body }) =>
      body.messages.at(-1)!.content === 'hang' ? { hangs: true } : echo({ body, headers: {} }),
    )
    const stuck = await say(busy, 'hang', { background: true })
    expect((await say(free, 'two')).data.output).toEqual({ text: 'TWO' })
    await service.api('POST', `/api/v1/runs/${stuck.data.run_id}/cancel`, {})
  })
})

describe('the end user of a session', () => {
  test('cannot change; a session without one takes the first that is given', async () => {
    const id = await begin('one', { external_user_id: 'ada' })
    const { status, error } = await say(id, 'two', { external_user_id: 'eve' })
    expect(`${status} ${error!.code} ${error!.message}`).toBe(
      '400 VALIDATION_ERROR external_user_id: the session belongs to another end user',
    )
    expect((await say(id, 'two', { external_user_id: 'ada' })).status).toBe(200)
    expect((await say(id, 'three')).status).toBe(200)
    const open = await begin()
    await say(open, 'two', { external_user_id: 'eve' })
    expect((await read(`/${open}`)).external_user_id).toBe('eve')
  })

  test('filters the list, newest first', async () => {
    const user = `u-${crypto.randomUUID()}`
    const ids = [await begin('one', { external_user_id: user }), await begin('two', { external_user_id: user })]
    const listed = async (query: string) => {
      const { items, next_cursor } = await read(query)
      return [items.map(({ session_id }: { session_id: string }) => session_id), next_cursor] as const
    }
    expect((await listed(`?external_user_id=${user}&agent_id=${agent.agentId}`))[0]).toEqual([ids[1], ids[0]])
    const [page, cursor] = await listed(`?external_user_id=${user}&limit=1`)
    expect(page).toEqual([ids[1]!])
    expect(await listed(`?external_user_id=${user}&limit=1&cursor=${cursor}`)).toEqual([[ids[0]], null])
    expect((await listed(`?agent_id=${NO_ID}`))[0]).toEqual([])
  })
})

describe('access', () => {
  test('another agent or workspace can neither continue nor read a session', async () => {
    const id = await begin()
    const other = await newHostedAgent(service)
    const tenant = await newTenant(service)
    const rejection = async (call: ReturnType<TestService['api']>) => {
      const { status, error } = await call
      return `${status} ${error?.code}`
    }
    expect(await rejection(other.invoke({ session_id: id }))).toBe('404 NOT_FOUND')
    expect(await rejection((await newHostedAgent(tenant)).invoke({ session_id: id }))).toBe('404 NOT_FOUND')
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/messages'],
      ['DELETE', ''],
    ] as const) {
      const call = (key?: string) =>
        service.api(method, `/api/v1/sessions/${id}${path}`, undefined, key === undefined ? {} : { key })
      expect(await rejection(call(tenant.workspaceKey))).toBe('404 NOT_FOUND')
      expect(await rejection(call(other.agentKey))).toBe('403 FORBIDDEN')
      expect(await rejection(service.api(method, `/api/v1/sessions/${NO_ID}${path}`))).toBe('404 NOT_FOUND')
      const unknown = path === '' && method === 'GET' ? '404 NOT_FOUND' : '400 VALIDATION_ERROR'
      expect(await rejection(service.api(method, `/api/v1/sessions/x${path}`))).toBe(unknown)
    }
    const list = (key: string, query = '') => service.api('GET', `/api/v1/sessions${query}`, undefined, { key })
    expect((await list(tenant.workspaceKey)).data.items).toEqual([])
    expect((await list(other.agentKey)).data.items).toEqual([])
    expect(await rejection(list(other.agentKey, `?agent_id=${agent.agentId}`))).toBe('403 FORBIDDEN')
    expect((await list(agent.agentKey)).data.items.length).toBeGreaterThan(0)
  })

  test.each(['?user=x', '?limit=0', '?cursor=x', '?agent_id=x', '?kind=x', '?from=x'])(
    'rejects a list with %s',
    async (query) => {
      const { status, error } = await service.api('GET', `/api/v1/sessions${query}`)
      expect(`${status} ${error!.code}`).toBe('400 VALIDATION_ERROR')
      expect(error!.message).toContain(query.slice(1).split('=')[0]!)
    },
  )
})

describe('deleting a session', () => {
  const remove = (id: string) => service.api('DELETE', `/api/v1/sessions/${id}`)

  test('removes it and keeps its runs', async () => {
    const { data } = await agent.invoke({ start_session: true })
    const id = data.session_id
    expect((await remove(id)).data).toEqual({ session_id: id, deleted: true })
    for (const answer of [await remove(id), await say(id, 'two'), await service.api('GET', `/api/v1/sessions/${id}`)])
      expect(answer.error).toMatchObject({ code: 'NOT_FOUND', message: 'session does not exist' })
    expect((await service.api('GET', `/api/v1/runs/${data.run_id}`)).data.session_id).toBe(id)
  })

  test('cancels waiting runs; the active run completes and is not remembered', async () => {
    const id = await begin()
    const release = held()
    const holder = await say(id, 'two', { background: true })
    await eventually(async () => (await read(`/${id}`)).active_run_id === holder.data.run_id)
    const waiting = [say(id, 'three'), say(id, 'four')]
    const runs = async () => (await service.api('GET', `/api/v1/runs?session_id=${id}`)).data.items.length
    await eventually(async () => (await runs()) === 4)
    await remove(id)
    for (const { data } of await Promise.all(waiting))
      expect(data).toMatchObject({ status: 'cancelled', error_message: 'its session was deleted' })
    release()
    expect((await untilStatus(service, holder.data.run_id, 'completed')).output).toEqual({ text: 'TWO' })
    expect((await remove(id)).status).toBe(404)
  })
})
