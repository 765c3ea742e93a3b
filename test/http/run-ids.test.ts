import { beforeAll, describe, expect, test } from 'bun:test'
import type { Answer } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import {
  LiveSocket,
  LiveStream,
  newReporter,
  newTenant,
  numbered,
  numbersOf,
  type Reporter,
  type Tenant,
} from '../support/feeds.ts'
import { newHostedAgent } from '../support/hosted.ts'
import { startModelServer } from '../support/model-server.ts'
import { dataOf, OPERATOR_TOKEN, rowsInSql, startTestService, type TestService } from '../support/service.ts'

/**
 * A `run_id` is unique within its workspace only (docs/runs.md#starting-a-run): equal ids in two workspaces do not
 * interfere.
 */

let service: TestService
let env: Record<string, string>

beforeAll(async () => {
  const model = startModelServer()
  env = { OPENAI_BASE_URL: model.url }
  service = await startTestService(env)
})

interface Side extends Tenant {
  readonly agent: Reporter
}

async function newSide(at: TestService): Promise<Side> {
  const tenant = await newTenant(at)
  return { ...tenant, agent: await newReporter(tenant.api) }
}

const newSides = (at = service): Promise<[Side, Side]> => Promise.all([newSide(at), newSide(at)])

const ingest = ({ api, agent }: Side, path: string, body: object) =>
  api('POST', `/api/ingest/v1/${path}`, body, { key: agent.agentKey })

const start = (side: Side, run_id: string, more: object = {}) =>
  ingest(side, 'run/start', { agent_id: side.agent.agentId, run_id, ...more })

const report = (side: Side, run_id: string, ids: readonly string[], mark: string) =>
  ingest(side, 'events', { run_id, events: ids.map((id) => ({ id, type: mark, payload: { mark } })) })

const read = async (side: Side, path: string) => (await side.api('GET', `/api/v1/${path}`)).data

const sql = (side: Side, query: string) => rowsInSql(side.api, query)

/** Everything that a workspace can read of a run. */
async function whole(side: Side, runId: string) {
  const [run, events, tasks, list] = await Promise.all([
    read(side, `runs/${runId}`),
    read(side, `runs/${runId}/events`),
    read(side, `runs/${runId}/tasks`),
    read(side, 'runs'),
  ])
  const rows = await sql(
    side,
    `select e.event_id as id, e.type as type, r.status as status, r.agent_id as agent_id, t.name as name from events e
     join runs r on r.run_id = e.run_id join tasks t on t.run_id = r.run_id
     where e.run_id = '${runId}' order by e.event_id`,
  )
  return {
    run,
    events: events.items,
    tasks: tasks.items,
    listed: list.items.map((each: typeof run) => each.run_id),
    rows,
  }
}

describe('two workspaces with the same run_id', () => {
  test('can both start it concurrently', async () => {
    const sides = await newSides()
    const ids = Array.from({ length: 30 }, () => crypto.randomUUID())
    const answers = await Promise.all(
      ids.flatMap((id) => [...sides, ...sides].map((side) => start(side, id, { input: { of: side.workspaceId } }))),
    )
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    for (const side of sides) {
      const { items } = await read(side, 'runs?include=input')
      expect(items.map((run: { run_id: string }) => run.run_id).sort()).toEqual([...ids].sort())
      expect(new Set(items.map(({ input }: { input: { of: string } }) => input.of))).toEqual(
        new Set([side.workspaceId]),
      )
    }
  })

  test('detect repeated and conflicting starts separately', async () => {
    const [ours, theirs] = await newSides()
    const id = crypto.randomUUID()
    await start(ours, id, { input: { n: 1 } })
    await start(theirs, id, { input: { n: 2 } })
    for (const [side, n] of [
      [ours, 1],
      [theirs, 2],
    ] as const) {
      expect((await start(side, id, { input: { n } })).data).toEqual({ run_id: id })
      expect((await start(side, id, { input: { n: 3 - n } })).error?.code).toBe('CONFLICT')
      expect((await read(side, `runs/${id}`)).input).toEqual({ n })
    }
  })

  test('report the same event and task ids concurrently, and end the run differently', async () => {
    const sides = await newSides()
    const runId = crypto.randomUUID()
    const taskId = crypto.randomUUID()
    const ids = Array.from({ length: 20 }, (_, n) => `e${String(n).padStart(2, '0')}`)
    await Promise.all(sides.map((side) => start(side, runId)))
    // Small calls of both, so that journal frames mix rows of both runs.
    const reported = await Promise.all(
      ids.flatMap((id) => sides.map((side, n) => report(side, runId, [id], `of.${n}`))),
    )
    expect(reported.map(({ data }) => data.accepted)).toEqual(reported.map(() => 1))
    const again = await Promise.all(sides.map((side, n) => report(side, runId, [...ids, 'new'], `of.${n}`)))
    expect(again.map(({ data }) => [data.accepted, data.duplicates])).toEqual(sides.map(() => [1, 20]))
    const tasks = await Promise.all(
      sides.map((side, n) =>
        ingest(side, 'tasks', {
          run_id: runId,
          task: { id: taskId, name: `of.${n}`, status: n === 0 ? 'completed' : 'running' },
        }),
      ),
    )
    expect(tasks.map(({ data }) => [data.created, data.applied])).toEqual(sides.map(() => [true, true]))
    const [completed, failed] = await Promise.all([
      ingest(sides[0], 'run/complete', { run_id: runId, output: { of: 0 } }),
      ingest(sides[1], 'run/fail', { run_id: runId, error_message: 'of 1' }),
    ])
    expect([completed.data.status, failed.data.status]).toEqual(['completed', 'failed'])
    for (const [n, side] of sides.entries()) {
      await eventually(async () => (await read(side, `runs/${runId}`)).event_count === 21)
      const { run, events, tasks: listed, listed: runs, rows } = await whole(side, runId)
      expect(run).toMatchObject({ agent_id: side.agent.agentId, status: n === 0 ? 'completed' : 'failed' })
      expect([run.output, run.error_message]).toEqual(n === 0 ? [{ of: 0 }, null] : [null, 'of 1'])
      expect(new Set(events.map(({ type }: { type: string }) => type))).toEqual(new Set([`of.${n}`]))
      expect(events.map(({ id }: { id: string }) => id).sort()).toEqual([...ids, 'new'])
      expect(listed).toMatchObject([{ id: taskId, name: `of.${n}`, status: n === 0 ? 'completed' : 'running' }])
      expect(runs).toEqual([runId])
      const expected = { type: `of.${n}`, status: run.status, agent_id: side.agent.agentId, name: `of.${n}` }
      expect(rows).toEqual([...ids, 'new'].map((id) => ({ id, ...expected })))
    }
  })

  test('cancel their own run and have their own children', async () => {
    const [ours, theirs] = await newSides()
    const parent = crypto.randomUUID()
    const child = crypto.randomUUID()
    await Promise.all([start(ours, parent), start(theirs, parent)])
    await Promise.all([start(ours, child, { parent_run_id: parent }), start(theirs, child)])
    const childrenOf = async (side: Side) => (await read(side, `runs/${parent}/children`)).items
    expect((await childrenOf(ours)).map((run: { run_id: string }) => run.run_id)).toEqual([child])
    expect(await childrenOf(theirs)).toEqual([])
    expect((await ours.api('POST', `/api/v1/runs/${parent}/cancel`, {})).data.already).toBe(false)
    expect((await read(ours, `runs/${parent}`)).status).toBe('cancelled')
    expect((await read(theirs, `runs/${parent}`)).status).toBe('running')
    expect((await theirs.api('POST', `/api/v1/runs/${parent}/cancel`, {})).data.already).toBe(false)
  })

  test('follow their own run in event streams and WebSockets, live and replayed', async () => {
    const sides = await newSides()
    const runId = crypto.randomUUID()
    await Promise.all(sides.map((side) => start(side, runId)))
    const feeds = await Promise.all(
      sides.map(async (side) => {
        const { data: token } = await side.api('POST', '/api/v1/feed-tokens', { run_id: runId })
        const path = '/api/v1/stream?kind=event'
        const socket = await LiveSocket.open(side)
        await socket.subscribe('live', { filter: { run_id: runId, kind: 'event' } })
        await socket.subscribe('replayed', { filter: { kind: 'event' }, after: 0 })
        const run = await LiveStream.open(side, `/api/v1/runs/${runId}/stream?after=0`)
        const stream = await LiveStream.open(side, path)
        const tokened = await LiveStream.open(side, path, { token: token.token })
        return { socket, run, stream, tokened }
      }),
    )
    await Promise.all(
      numbered(30).flatMap((event) =>
        sides.map(({ agent }, n) => agent.events(runId, [{ ...event, payload: { n: event.payload.n * 2 + n } }])),
      ),
    )
    await sides[0].agent.end(runId)
    for (const [n, { socket, run, stream, tokened }] of feeds.entries()) {
      const expected = Array.from({ length: 30 }, (_, i) => i * 2 + n)
      const seen = () => [
        numbersOf(socket.items('live')),
        numbersOf(socket.items('replayed')),
        numbersOf(stream.items),
        numbersOf(tokened.items),
        numbersOf(run.items.filter(({ kind }) => kind === 'event')),
      ]
      await eventually(() => seen().every((numbers) => numbers.length >= 30))
      for (const numbers of seen()) expect((numbers as number[]).sort((a, b) => a - b)).toEqual(expected)
    }
    // The feed of a run ends with that run, not with the run of the other workspace.
    expect(await feeds[0]!.run.untilEnded()).toBe('clean')
    await sides[1].agent.events(runId, numbered(1, 1_000))
    await feeds[1]!.run.until(() => numbersOf(feeds[1]!.run.items).includes(1_000))
    for (const { socket, run, stream, tokened } of feeds)
      await Promise.all([socket.close(), stream.close(), tokened.close(), ...(run.ended ? [] : [run.close()])])
  })

  test('keep their own run when the other workspace is erased', async () => {
    const [gone, stays] = await newSides()
    const runId = crypto.randomUUID()
    await Promise.all([gone, stays].map((side) => start(side, runId)))
    await Promise.all([gone, stays].map((side) => report(side, runId, ['a', 'b'], 'kept')))
    await Promise.all([gone, stays].map(({ agent }) => agent.task(runId, { name: 'kept', status: 'running' })))
    await eventually(async () => (await read(stays, `runs/${runId}`)).event_count === 2)
    const before = await whole(stays, runId)
    expect(before.rows).toHaveLength(2)
    const erased = await service.api('DELETE', `/api/v1/workspaces/${gone.workspaceId}`, undefined, {
      key: OPERATOR_TOKEN,
    })
    expect(erased.data.deleted).toMatchObject({ runs: 1, tasks: 1, events: 2 })
    expect(await whole(stays, runId)).toEqual(before)
    expect((await report(stays, runId, ['a', 'b', 'c'], 'kept')).data).toMatchObject({ accepted: 1, duplicates: 2 })
    const replayed = await LiveStream.open(stays, `/api/v1/stream?kind=event&run_id=${runId}&after=0`)
    await replayed.until(() => replayed.items.length >= 3)
    expect(replayed.items.map(({ event }) => event?.id)).toEqual(['a', 'b', 'c'])
    await replayed.close()
  })

  test('stay separate after a restart', async () => {
    const own = await startTestService(env)
    const [ours, theirs] = await newSides(own)
    const runId = crypto.randomUUID()
    await Promise.all([start(ours, runId), start(theirs, runId)])
    await report(ours, runId, ['a', 'b'], 'mine')
    await report(theirs, runId, ['b', 'c'], 'mine')
    await own.stop()
    const next = await startTestService({ ...env, ...dataOf(own) })
    const again = ({ agentKey }: Reporter) =>
      next.api(
        'POST',
        '/api/ingest/v1/events',
        { run_id: runId, events: ['a', 'b', 'c'].map((id) => ({ id, type: 'mine' })) },
        { key: agentKey },
      )
    const [first, second] = await Promise.all([again(ours.agent), again(theirs.agent)])
    expect([first, second].map(({ data }) => [data.accepted, data.duplicates])).toEqual([
      [1, 2],
      [1, 2],
    ])
    const ids = async ({ workspaceKey }: Side) => {
      const { data } = await next.api('GET', `/api/v1/runs/${runId}/events`, undefined, { key: workspaceKey })
      return data.items.map(({ id }: { id: string }) => id)
    }
    expect([await ids(ours), await ids(theirs)]).toEqual([
      ['a', 'b', 'c'],
      ['b', 'c', 'a'],
    ])
    await next.stop()
  })
})

describe('a run_id of another workspace', () => {
  const NO_RUN = crypto.randomUUID()

  /** The responses of every call that takes a run id, with the id replaced. */
  async function answers(side: Side, runId: string): Promise<unknown[]> {
    const { agent, api } = side
    const hosted = await newHostedAgent(side)
    const task = { id: crypto.randomUUID(), name: 'a task', status: 'running' }
    const calls: Promise<Answer>[] = [
      ...['', '/events', '/tasks', '/children', '/stream', '/output-stream'].map((path) =>
        api('GET', `/api/v1/runs/${runId}${path}`),
      ),
      ...[`runs?parent_run_id=${runId}`, `approvals?run_id=${runId}`, `input-requests?run_id=${runId}`].map((path) =>
        api('GET', `/api/v1/${path}`),
      ),
      api('POST', `/api/v1/runs/${runId}/cancel`, {}),
      api('POST', '/api/v1/feed-tokens', { run_id: runId }),
      api('POST', '/api/v1/query', { query: `select * except (created_at) from runs where run_id = '${runId}'` }),
      ingest(side, 'events', { run_id: runId, events: [{ type: 'a' }] }),
      ingest(side, 'tasks', { run_id: runId, task }),
      ingest(side, 'run/complete', { run_id: runId }),
      ingest(side, 'run/fail', { run_id: runId, error_message: 'no' }),
      ingest(side, 'run/start', { agent_id: agent.agentId, parent_run_id: runId }),
      hosted.invoke({ parent_run_id: runId }),
    ]
    return (await Promise.all(calls)).map(({ status, data, error, headers }) => {
      const { statistics: _, complete_through: __, ...same } = data ?? {}
      const names = [...headers.keys()].sort()
      return JSON.parse(JSON.stringify({ status, same, error, names }).replaceAll(runId, 'ID'))
    })
  }

  test('is indistinguishable from an unknown run_id in every call, for external and hosted runs', async () => {
    const [ours, theirs] = await newSides()
    const external = crypto.randomUUID()
    await start(theirs, external)
    await theirs.agent.events(external, numbered(3))
    const { data: hosted } = await (await newHostedAgent(theirs)).invoke({})
    const nowhere = await answers(ours, NO_RUN)
    expect([nowhere[0], nowhere.at(-1)]).toMatchObject([{ status: 404 }, { status: 404 }])
    for (const runId of [external, hosted.run_id]) expect(await answers(ours, runId)).toEqual(nowhere)
    // Their run is unchanged.
    expect((await read(theirs, `runs/${external}`)).status).toBe('running')
    expect((await read(theirs, `runs/${external}/tasks`)).items).toEqual([])
    expect((await read(theirs, `runs/${external}/events`)).items).toHaveLength(3)
  })

  test('is available, also that of a hosted run, and the two runs are independent', async () => {
    const [ours, theirs] = await newSides()
    const waiting = await newHostedAgent(theirs, { allow_input_requests: true })
    const { data: hosted } = await waiting.invoke({})
    const runId = hosted.run_id
    expect((await start(ours, runId, { input: { ours: true } })).data).toEqual({ run_id: runId })
    expect((await report(ours, runId, ['a'], 'mine')).data.accepted).toBe(1)
    expect((await ours.api('GET', `/api/v1/runs/${runId}/output-stream`)).error?.code).toBe('VALIDATION_ERROR')
    expect((await ours.api('POST', `/api/v1/runs/${runId}/cancel`, {})).data.status).toBe('cancelled')
    expect(await read(theirs, `runs/${runId}`)).toMatchObject({ status: 'completed', agent_id: waiting.agentId })
    const types = await eventually(async () => {
      const { items } = await read(theirs, `runs/${runId}/events`)
      return items.length >= 3 && items.map(({ type }: { type: string }) => type)
    })
    expect(types).toEqual(['run.started', 'llm.call', 'run.completed'])
    expect((await read(ours, `runs/${runId}/events`)).items.map(({ type }: { type: string }) => type)).toEqual(['mine'])
  })
})
