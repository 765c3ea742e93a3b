import { beforeAll, describe, expect, test } from 'bun:test'
import { startStaleRuns } from '../../src/activity/runs/stale.ts'
import type { RunRef } from '../../src/base/ids.ts'
import type { OwnedPartition } from '../../src/tenants/partitions/partition.ts'
import { pagesOf } from '../support/api.ts'
import { batchOf } from '../support/events.ts'
import { eventually } from '../support/eventually.ts'
import { verdict } from './auth-app.ts'
import { type RunsApp, runsApp } from './runs-app.ts'

let app: RunsApp
beforeAll(async () => {
  app = await runsApp()
})

type Listed = { run_id: string; created_at: string }
const NO_RUN = '00000000-0000-7000-8000-000000000000'
const idsOf = async (query: string, key?: string) =>
  (await app.read(`runs?limit=200&${query}`, key)).data.items.map((run: Listed) => run.run_id)
const refOf = (run: string): RunRef => ({
  runId: run,
  workspaceId: app.workspace.workspaceId,
  agentId: app.agent.agentId,
  runtimeType: 'external',
})
const report = (run: string, events: object[]) => app.journal.appendEvents(batchOf(refOf(run), events))

describe('GET /runs', () => {
  test('filters by each field and by all combined', async () => {
    const agent = await app.newAgent(app.workspace.workspaceId)
    const parent = await app.start()
    const session = crypto.randomUUID()
    const from = new Date(app.clock.now()).toISOString()
    const run = await app.start(
      { trigger_type: 'manual', external_run_id: 'x & y', tags: ['a', 'b'], parent_run_id: parent },
      agent,
    )
    await app.sql`update runs set session_id = ${session}, agent_version = 7 where run_id = ${run}`
    app.clock.aheadMs += 10
    const to = new Date(app.clock.now()).toISOString()
    const decoy = await app.start({ tags: ['c'] })
    await app.ingest('run/complete', { run_id: decoy })
    const filters = {
      status: 'running',
      agent_id: agent.agentId.toUpperCase(),
      trigger_type: 'manual',
      external_run_id: 'x & y',
      parent_run_id: parent,
      session_id: session,
      agent_version: '7',
      tag: 'b',
      from,
      to,
    }
    for (const [name, value] of Object.entries(filters)) {
      const ids = await idsOf(new URLSearchParams({ [name]: value }).toString())
      expect([name, ids.includes(run)]).toEqual([name, true])
      if (!['from', 'to'].includes(name)) expect([name, ids.includes(decoy)]).toEqual([name, false])
    }
    expect(await idsOf(new URLSearchParams(filters).toString())).toEqual([run])
    expect(await idsOf(`from=${to}`)).toEqual([decoy])
    expect(await idsOf('status=timed_out')).toEqual([])
    const { data } = await app.read(`runs/${parent}/children`)
    expect(data.items.map((item: Listed) => item.run_id)).toEqual([run])
  })

  test('several statuses match any of them, in order over pages, whatever else is asked', async () => {
    const agent = await app.newAgent(app.workspace.workspaceId)
    const runs: string[] = []
    for (const status of ['failed', 'timed_out', 'failed', 'completed', 'timed_out', 'running', 'failed']) {
      app.clock.aheadMs += 1
      const run = await app.start({}, agent)
      await app.sql`update runs set status = ${status} where run_id = ${run}`
      if (status === 'failed' || status === 'timed_out') runs.unshift(run)
    }
    const statuses = 'status=failed&status=timed_out&status=failed'
    const query = `agent_id=${agent.agentId}&${statuses}`
    expect(await idsOf(query)).toEqual(runs)
    const pages = await pagesOf<Listed>((cursor) => app.read(`runs?limit=3&${query}${cursor}`))
    expect(pages.flat().map(({ run_id }) => run_id)).toEqual(runs)
    for (const listed of ['failed,timed_out', 'failed,timed_out&status=failed', 'timed_out%2Cfailed'])
      expect(await idsOf(`agent_id=${agent.agentId}&status=${listed}`)).toEqual(runs)
    expect((await idsOf(statuses)).slice(0, runs.length)).toEqual(runs)
    expect(await idsOf(statuses, (await app.newWorkspace()).key)).toEqual([])
    expect((await app.read(`runs?${'&status=failed'.repeat(101)}`)).error).toMatchObject({
      code: 'VALIDATION_ERROR',
      message: 'query.status: expected at most 100 values; got an array',
    })
  })

  test('paginates completely, in order and without repeats while runs are added', async () => {
    const agent = await app.newAgent(app.workspace.workspaceId)
    const runs: string[] = []
    for (let index = 0; index < 11; index++) {
      app.clock.aheadMs += index % 3 === 0 ? 1 : 0
      runs.push(await app.start({}, agent))
    }
    const pages = await pagesOf<Listed>(async (cursor) => {
      const page = await app.read(`runs?limit=4&agent_id=${agent.agentId}${cursor}`)
      await app.start({}, agent)
      return page
    })
    const seen = pages.flat()
    expect(seen.map((run) => run.run_id).toSorted()).toEqual(runs.toSorted())
    const keys = seen.map((run) => `${run.created_at} ${run.run_id}`)
    expect(keys).toEqual(keys.toSorted().reverse())
  })

  test('returns whole records; a page of large records ends early and the next continues', async () => {
    const agent = await app.newAgent(app.workspace.workspaceId)
    const runs: string[] = []
    for (let index = 0; index < 5; index++)
      runs.push(await app.start({ input: { index, text: 'x'.repeat(2_900_000) } }, agent))
    type Large = Listed & { input: { text: string } }
    const pages = await pagesOf<Large>((cursor) =>
      app.read(`runs?agent_id=${agent.agentId}&include=input,output${cursor}`),
    )
    expect(pages.map(({ length }) => length)).toEqual([3, 2])
    const seen = pages.flat()
    expect(seen[0].input.text).toHaveLength(2_900_000)
    expect(seen.map(({ run_id }) => run_id).sort()).toEqual(runs.toSorted())
    const { data: first } = await app.read(`runs/${runs[0]}`)
    const listed = seen.find(({ run_id }) => run_id === runs[0])
    expect(listed).toEqual({ ...first, input_preview: expect.stringMatching(/^x{239}…$/), output_preview: null })
    const { items } = (await app.read(`runs?agent_id=${agent.agentId}`)).data
    expect(items).toHaveLength(5)
    expect(JSON.stringify(items).length).toBeLessThan(20_000)
  })

  test('returns previews of input and output, and the content only if it is asked for', async () => {
    const parent = await app.start()
    const input = { message: `Where is\n my order? ${'😀'.repeat(300)}` }
    const run_id = await app.start({ input, parent_run_id: parent })
    await app.ingest('run/complete', { run_id, output: { text: 'On its way.' } })
    const listed = async (path: string) => (await app.read(path)).data.items[0]
    for (const path of [`runs?parent_run_id=${parent}`, `runs/${parent}/children?limit=1`]) {
      const plain = await listed(path)
      expect(plain.input_preview).toStartWith('Where is my order? 😀')
      expect([...plain.input_preview]).toHaveLength(240)
      expect(plain.output_preview).toBe('On its way.')
      expect('input' in plain || 'output' in plain).toBe(false)
      const some = await listed(`${path}&include=input`)
      expect([some.input, 'output' in some]).toEqual([input, false])
      expect(await listed(`${path}&include=input,output`)).toEqual({ ...some, output: { text: 'On its way.' } })
    }
    expect((await app.read('runs?include=metadata')).error).toMatchObject({
      param: 'query.include',
      message: 'query.include: expected one of input, output; got "metadata"',
    })
  })

  test('an agent key sees only the runs of its agent', async () => {
    const sibling = await app.newAgent(app.workspace.workspaceId)
    const theirs = await app.start({}, sibling)
    const own = await app.start()
    expect(await idsOf('', sibling.key)).toEqual([theirs])
    expect(await idsOf(`agent_id=${sibling.agentId}`, sibling.key)).toEqual([theirs])
    expect(verdict(await app.read(`runs?agent_id=${app.agent.agentId}`, sibling.key))).toBe('403 FORBIDDEN')
    expect(verdict(await app.read(`runs/${own}`, sibling.key))).toBe('403 FORBIDDEN')
    expect(verdict(await app.read(`runs/${own}/children`, sibling.key))).toBe('403 FORBIDDEN')
    expect((await app.read(`runs/${own}`, app.agent.key)).status).toBe(200)
  })

  test('runs of another workspace cannot be read', async () => {
    const own = await app.start()
    const outsider = await app.newWorkspace()
    expect(await idsOf('', outsider.key)).toEqual([])
    expect(await idsOf(`agent_id=${app.agent.agentId}`, outsider.key)).toEqual([])
    for (const path of ['', '/events', '/tasks', '/children']) {
      if (path === '/tasks') continue
      expect(verdict(await app.read(`runs/${own}${path}`, outsider.key))).toBe('404 NOT_FOUND')
      expect(verdict(await app.read(`runs/${NO_RUN}${path}`))).toBe('404 NOT_FOUND')
    }
  })

  const rejected: [string, string][] = [
    [
      'status=done',
      'query.status: expected one of queued, running, awaiting_approval, awaiting_input, completed, failed, cancelled, timed_out; got "done"',
    ],
    [
      'status=failed&status=done',
      'query.status: expected one of queued, running, awaiting_approval, awaiting_input, completed, failed, cancelled, timed_out; got "done"',
    ],
    [
      'status=failed,',
      'query.status: expected one of queued, running, awaiting_approval, awaiting_input, completed, failed, cancelled, timed_out; got ""',
    ],
    ['agent_version=0', 'query.agent_version: expected an integer from 1 to 2147483647; got "0"'],
    ['agent_id=x', 'query.agent_id: expected a UUID; got "x"'],
    ['from=yesterday', 'query.from: expected an RFC 3339 timestamp of the years 1900 to 2299; got "yesterday"'],
    ['limit=201', 'query.limit: expected an integer from 1 to 200; got "201"'],
    ['cursor=x', 'query.cursor: expected the next_cursor of a page of this list'],
    ['tag=a%00', 'query.tag: expected text without the character U+0000; got "a\\u0000"'],
    ['stauts=running', 'query.stauts: unknown field; did you mean "status"?'],
  ]
  test.each(rejected)('%s is a VALIDATION_ERROR that names the parameter', async (query, message) => {
    expect((await app.read(`runs?${query}`)).error).toMatchObject({ code: 'VALIDATION_ERROR', message })
  })
})

describe('GET /runs/:run_id/events', () => {
  test('returns events as soon as they are acknowledged, oldest first and exact', async () => {
    const run = await app.start()
    const batch = batchOf(refOf(run), [
      { type: 'llm.call', level: 'debug', payload: { n: 1 }, occurred_at: '2026-01-31T09:30:00.123Z' },
      { type: 'tool.call', payload: {} },
    ])
    const { firstSeq } = await app.journal.appendEvents({ ...batch, ids: ['e1', undefined] })
    const { data } = await app.read(`runs/${run}/events`)
    expect(data.next_cursor).toBeNull()
    expect(data.items).toHaveLength(2)
    expect(data.items[0]).toEqual({
      id: 'e1',
      seq: firstSeq,
      type: 'llm.call',
      level: 'debug',
      payload: { n: 1 },
      occurred_at: '2026-01-31T09:30:00.123Z',
      received_at: data.items[0].received_at,
    })
    expect(data.items[1]).toMatchObject({ seq: firstSeq + 1, type: 'tool.call', level: 'info' })
    expect((await app.read(`runs/${run}/events`, app.agent.key)).data.items).toHaveLength(2)
  })

  test('filters by type, type prefix, minimum level and position', async () => {
    const run = await app.start()
    const { firstSeq } = await report(
      run,
      ['debug', 'info', 'warn', 'error'].flatMap((level) => [
        { type: 'llm.call', level },
        { type: 'llm_other', level },
      ]),
    )
    const found = async (query: string) => {
      const { data } = await app.read(`runs/${run}/events?${query}`)
      return data.items.map((event: { type: string; level: string }) => `${event.type} ${event.level}`)
    }
    expect(await found('type=llm.call')).toEqual(['llm.call debug', 'llm.call info', 'llm.call warn', 'llm.call error'])
    expect(await found('type=llm.*&level=warn')).toEqual(['llm.call warn', 'llm.call error'])
    expect(await found('type=llm*&level=error')).toEqual(['llm.call error', 'llm_other error'])
    expect(await found(`after_seq=${firstSeq + 5}`)).toEqual(['llm.call error', 'llm_other error'])
    expect(await found('type=llm%25')).toEqual([])
    expect(verdict(await app.read(`runs/${run}/events?level=fatal`))).toBe('400 VALIDATION_ERROR')
    expect(verdict(await app.read(`runs/${run}/events?cursor=-1`))).toBe('400 VALIDATION_ERROR')
  })

  test('paginates forwards, also through large payloads', async () => {
    const run = await app.start()
    for (let index = 0; index < 19; index++)
      await report(run, [{ type: 'big', payload: { index, text: 'x'.repeat(500_000) } }])
    const pages = await pagesOf<{ payload: { index: number } }>((cursor) =>
      app.read(`runs/${run}/events?limit=20${cursor}`),
    )
    expect(pages.map(({ length }) => length)).toEqual([9, 9, 1])
    expect(pages.flat().map(({ payload }) => payload.index)).toEqual(Array.from({ length: 19 }, (_, index) => index))
  })
})

describe('a run of an agent with stale_after_seconds', () => {
  test('times out after that time without an event or a task, with the reason', async () => {
    const agent = await app.newAgent(app.workspace.workspaceId, { staleAfterSeconds: 60 })
    const start = () => app.start({}, agent)
    const [silent, withEvent, withTask, patient] = [await start(), await start(), await start(), await app.start()]
    const statusOf = async (run: string) => (await app.read(`runs/${run}`)).data.status
    app.clock.aheadMs += 50_000
    await app.journal.appendEvents(batchOf({ ...refOf(withEvent), agentId: agent.agentId }, [{ type: 'alive' }]))
    const task = { id: crypto.randomUUID(), name: 't', status: 'running' }
    await app.ingest('tasks', { run_id: withTask, task }, agent.key)
    app.clock.aheadMs += 5_000
    expect(await app.stale.sweep()).toBe(0)
    app.clock.aheadMs += 6_000
    expect(await app.stale.sweep()).toBe(1)
    const { data } = await app.read(`runs/${silent}`)
    expect(data).toMatchObject({
      status: 'timed_out',
      error_message: 'silent for more than 60 s: no event, no task, no change of state',
    })
    expect(data.duration_ms).toBeGreaterThanOrEqual(61_000)
    expect([await statusOf(withEvent), await statusOf(withTask)]).toEqual(['running', 'running'])
    expect(verdict(await app.ingest('run/complete', { run_id: silent }, agent.key))).toBe('409 CONFLICT')
    app.clock.aheadMs += 50_000
    expect(await app.stale.sweep()).toBe(2)
    expect(await statusOf(patient)).toBe('running')
  })

  test('times out although the events of another partition are not counted', async () => {
    const agent = await app.newAgent(app.workspace.workspaceId, { staleAfterSeconds: 60 })
    const silent = await app.start({}, agent)
    app.clock.aheadMs += 61_000
    const stuck = { id: 1, statistics: { flush: () => new Promise<void>(() => {}), lag: () => 1 } } as OwnedPartition
    const partitions = { owned: () => [stuck, ...app.partitions.owned()] }
    const { sql, clock, log } = app
    const stale = startStaleRuns({ sql, partitions, clock, log, onChange: app.relay.wake, intervalMs: 3_600_000 })
    void stale.sweep()
    await eventually(async () => (await app.read(`runs/${silent}`)).data.status === 'timed_out')
    // The next sweep leaves it alone.
    expect(await stale.sweep()).toBe(0)
    await stale.stop()
  })
})

describe('changes of runs and tasks', () => {
  test('reach SQL completely and exactly', async () => {
    const input = '{"big":12345678901234567890,"nul":"\\u0000","lone":"\\ud800"}'
    const run = crypto.randomUUID()
    await app.ingest(
      'run/start',
      `{"agent_id":"${app.agent.agentId}","run_id":"${run}","tags":["a","b"],"input":${input}}`,
    )
    const id = crypto.randomUUID()
    await app.ingest(
      'tasks',
      `{"run_id":"${run}","task":{"id":"${id}","name":"n","status":"completed","output":${input}}}`,
    )
    const { data } = await app.ingest('run/complete', { run_id: run, output: { ok: true } })
    await app.relay.flush()
    expect(await app.sink.waitFor(app.journal.endSeq, 5_000)).toBe(true)
    const rows = await app.client.query(
      `select status, tags, input, output, agent_name, duration_ms, toUnixTimestamp64Milli(completed_at) as completed_ms
       from runs where run_id = {run:UUID} order by seq desc limit 1`,
      { params: { run } },
    )
    expect(rows).toEqual([
      {
        status: 'completed',
        tags: ['a', 'b'],
        input,
        output: '{"ok":true}',
        agent_name: 'an agent',
        duration_ms: data.duration_ms,
        completed_ms: Date.parse(data.completed_at),
      },
    ])
    const tasks = await app.client.query('select name, status, output from tasks where run_id = {run:UUID}', {
      params: { run },
    })
    expect(tasks).toEqual([{ name: 'n', status: 'completed', output: input }])
  })
})

describe('a query that a call would ignore is refused', () => {
  test.each([
    ['GET', 'runs?limit=1&limit=2', 'query.limit: expected one value; it is repeated'],
    ['GET', 'runs?tag=a&tag=b', 'query.tag: expected one value; it is repeated'],
    ['GET', `runs/${NO_RUN}?include=input`, 'query.include: unknown field; expected none'],
    ['GET', `runs/${NO_RUN}/events?type=a&type=b`, 'query.type: expected one value; it is repeated'],
    ['POST', `runs/${NO_RUN}/cancel?reason=x`, 'query.reason: unknown field; expected none'],
    ['GET', 'runs?a%20b=1', 'query["a b"]: unknown field; expected only q, status,'],
  ])('%s %s', async (method, path, message) => {
    const { status, error } = await app.call(method, `/api/v1/${path}`, { key: app.workspace.key })
    expect([status, error?.code]).toEqual([400, 'VALIDATION_ERROR'])
    expect(error!.message).toStartWith(message)
    expect(error!.param).toBe(message.slice(0, message.indexOf(':')))
  })

  test('not a repeated parameter that takes several values, nor a query of a call that needs a key without one', async () => {
    expect((await app.read('runs?status=running&status=failed&limit=1')).status).toBe(200)
    expect((await app.call('GET', `/api/v1/runs/${NO_RUN}?x=1`)).status).toBe(401)
  })
})
