import { beforeAll, expect, test } from 'bun:test'
import { type Api, newAgent } from '../support/api.ts'
import { stateOf } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { type Activity, LiveSocket } from '../support/feeds.ts'
import { OPERATOR_TOKEN } from '../support/service.ts'
import { createWebhook, startReceiver } from '../support/webhooks.ts'

/** Tests for processes that share the partitions: the workers of one machine, or the nodes of a cluster. */

export interface SharingProcesses {
  /** An API client of each process. */
  readonly apis: readonly Api[]
  /** URLs at which feeds are opened; together they reach all processes. */
  readonly feedUrls: readonly string[]
  readonly workspaceKey: string
}

const byCursor = (a: { cursor: string }, b: { cursor: string }) => a.cursor.localeCompare(b.cursor)
const OPERATOR = { key: OPERATOR_TOKEN }
const EVENTS = Array.from({ length: 50 }, () => ({ type: 'step' }))

export interface AgentClient {
  readonly agentId: string
  startRun(api: Api): Promise<string>
  report(api: Api, run_id: string, events: object[], headers?: Record<string, string>): ReturnType<Api>
  complete(api: Api, run_id: string): ReturnType<Api>
}

/** A client that reports as a new agent, through any process. */
export async function newAgentClient(api: Api): Promise<AgentClient> {
  const { agentId, agentKey } = await newAgent(api)
  const key = { key: agentKey }
  return {
    agentId,
    async startRun(api) {
      const { data } = await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, key)
      return data.run_id
    },
    report: (api, run_id, events, headers = {}) =>
      api('POST', '/api/ingest/v1/events', { run_id, events }, { ...key, headers }),
    complete: (api, run_id) => api('POST', '/api/ingest/v1/run/complete', { run_id }, key),
  }
}

/** Defines the tests. @param started resolves with the processes once they own all partitions */
export function sharedPartitionTests(started: () => Promise<SharingProcesses>): void {
  let apis: readonly Api[]
  let sharing: SharingProcesses
  let agent: AgentClient

  beforeAll(async () => {
    sharing = await started()
    apis = sharing.apis
    agent = await newAgentClient(apis[0])
  })

  const openFeeds = (workspaceKey: string) =>
    Promise.all(sharing.feedUrls.map((url) => LiveSocket.open({ url, workspaceKey })))

  test('any process takes reports, and any process has them at once', async () => {
    const run_id = await agent.startRun(apis[0])
    for (const [n, api] of apis.entries()) {
      const { status, data } = await agent.report(api, run_id, [{ type: 'step', payload: { n } }])
      expect([status, data.accepted]).toEqual([200, 1])
      for (const reader of apis) {
        const page = await reader('GET', `/api/v1/runs/${run_id}/events`)
        const numbers = page.data.items.map(({ payload }: { payload: { n: number } }) => payload.n)
        expect(numbers).toEqual(Array.from({ length: n + 1 }, (_, i) => i))
        const query = 'select count() as n from events where run_id = {run:UUID}'
        const answer = await reader('POST', '/api/v1/query', {
          query,
          params: { run: run_id },
          wait_for: data.last_seq,
        })
        expect(answer.data.rows).toEqual([{ n: n + 1 }])
      }
    }
  })

  test('an event id or an Idempotency-Key counts once, whichever process receives it', async () => {
    const run_id = await agent.startRun(apis[0])
    const accepted = []
    const positions = new Set()
    for (const api of apis) {
      accepted.push((await agent.report(api, run_id, [{ id: 'same', type: 'step' }])).data.accepted)
      const keyed = await agent.report(api, run_id, [{ type: 'step' }], { 'idempotency-key': `key of ${run_id}` })
      positions.add(keyed.data.last_seq)
    }
    expect(accepted).toEqual(apis.map((_, index) => (index === 0 ? 1 : 0)))
    expect(positions.size).toBe(1)
    const { data } = await apis.at(-1)!('GET', `/api/v1/runs/${run_id}/events`)
    expect(data.items).toHaveLength(2)
  })

  test('a run that one process deletes takes reports at none, and leaves its log and SQL', async () => {
    const run_id = await agent.startRun(apis[0])
    for (const api of apis) await agent.report(api, run_id, [{ type: 'step' }])
    await agent.complete(apis[0], run_id)
    const last = apis.at(-1)!
    const { status, data } = await last('DELETE', `/api/v1/runs/${run_id}`)
    expect(status).toBe(202)
    for (const api of apis)
      await eventually(async () => (await agent.report(api, run_id, [{ type: 'late' }])).status === 404)
    for (const api of apis) {
      await eventually(async () => (await api('GET', `/api/v1/erasures/${data.erasure_id}`)).data.status === 'done')
      const query = `select (select count() from events where run_id = {run:UUID}) as events,
        (select count() from runs where run_id = {run:UUID}) as runs`
      const { rows } = (await api('POST', '/api/v1/query', { query, params: { run: run_id } })).data
      expect(rows).toEqual([{ events: 0, runs: 0 }])
    }
  })

  test('a score that one process deletes is refused by all, and leaves the list', async () => {
    const run_id = await agent.startRun(apis[0])
    const add = (api: Api, id: string) => api('POST', `/api/v1/runs/${run_id}/scores`, { id, name: 'good', value: 1 })
    for (const id of ['gone', 'kept']) expect((await add(apis[0], id)).status).toBe(200)
    expect((await apis.at(-1)!('DELETE', `/api/v1/runs/${run_id}/scores/gone`)).status).toBe(202)
    for (const api of apis) {
      await eventually(async () => (await add(api, 'gone')).status === 409)
      await eventually(async () => {
        const { data } = await api('GET', `/api/v1/runs/${run_id}/scores`)
        return data.items.map(({ id }: { id: string }) => id).join() === 'kept'
      })
    }
  })

  test('feeds of all processes show the same, and a cursor of one resumes at every other', async () => {
    const run_id = await agent.startRun(apis[0])
    const sockets = await openFeeds(sharing.workspaceKey)
    for (const socket of sockets) await socket.subscribe('s', { filter: { kind: 'event', run_id } })
    for (let n = 0; n < 9; n++) await agent.report(apis[n % apis.length], run_id, [{ type: 'step', payload: { n } }])
    const numbersOf = (items: readonly Activity[]) => items.map(({ event }) => event?.payload.n)
    const all = Array.from({ length: 9 }, (_, n) => n)
    for (const socket of sockets) {
      await eventually(() => socket.items('s').length >= 9)
      expect(numbersOf(socket.items('s'))).toEqual(all)
    }
    const cursors = sockets.map((socket) => socket.items('s').map(({ cursor }) => cursor))
    for (const each of cursors) expect(each).toEqual(cursors[0])
    for (const [index, socket] of sockets.entries()) {
      const after = cursors[(index + 1) % cursors.length][4]
      const answer = await socket.subscribe('resumed', { filter: { kind: 'event', run_id }, after })
      expect(answer.recovered).toBe(true)
      await eventually(() => socket.items('resumed').length >= 4)
      expect(numbersOf(socket.items('resumed'))).toEqual(all.slice(5))
    }
    // The newest position, a moment after another process has acknowledged it.
    const { data } = await agent.report(apis[0], run_id, [{ type: 'step', payload: { n: 9 } }])
    const after = String(data.last_seq)
    const newest = await Promise.all(sockets.map((socket) => socket.subscribe('newest', { filter: { run_id }, after })))
    expect(newest.map(({ recovered }) => recovered)).toEqual(sockets.map(() => true))
  })

  test('changes of runs reach the feeds of all processes in order', async () => {
    const sockets = await openFeeds(sharing.workspaceKey)
    for (const socket of sockets) await socket.subscribe('s', { filter: { agent_id: agent.agentId } })
    const run_id = await agent.startRun(apis[0])
    await agent.report(apis[1], run_id, [{ type: 'step' }])
    await agent.complete(apis[1], run_id)
    for (const socket of sockets) {
      const statuses = () =>
        socket.items('s').flatMap((item) => (item.run_id === run_id && item.kind === 'run' ? item.run?.status : []))
      await eventually(() => statuses().includes('completed'))
      expect(statuses()[0]).toBe('running')
    }
  })

  test('one process sends to a webhook, whichever was asked', async () => {
    const receiver = startReceiver()
    const webhookId = await createWebhook({ api: apis[1] }, receiver)
    for (const api of apis) {
      const { data } = await api('POST', `/api/v1/webhooks/${webhookId}/test`)
      expect(data.status).toBe('succeeded')
    }
    const runs = await Promise.all(apis.map((api) => agent.startRun(api)))
    for (const [index, runId] of runs.entries()) await agent.complete(apis[(index + 1) % apis.length], runId)
    const ended = () => receiver.received.flatMap(({ body }) => (body.type === 'run.completed' ? body.data.run_id : []))
    await eventually(() => ended().length >= runs.length)
    expect(ended().toSorted()).toEqual(runs.toSorted())
    // Any of them answers polls, with the same bodies.
    const bodies = receiver.received.flatMap(({ body }) => (body.type === 'run.completed' ? [body] : []))
    for (const api of apis) {
      const { data } = await api('GET', `/api/v1/webhooks/${webhookId}/poll`)
      expect(data.data.toSorted(byCursor)).toEqual(bodies.toSorted(byCursor))
    }
    await apis[0]('DELETE', `/api/v1/webhooks/${webhookId}`)
  })

  test('a revoked key is rejected by every process, and its feeds end', async () => {
    const { data } = await apis[0]('POST', '/api/v1/keys', { name: 'k' })
    const sockets = await openFeeds(data.key)
    await apis[1]('POST', `/api/v1/keys/${data.key_id}/revoke`, {})
    const answers = await Promise.all(apis.map((api) => api('GET', '/api/v1/runs', undefined, { key: data.key })))
    expect(answers.map(({ status }) => status)).toEqual(apis.map(() => 401))
    for (const socket of sockets) await eventually(() => socket.closed?.code === 4001)
  })

  test('only the other processes can name the caller of a request', async () => {
    const run_id = await agent.startRun(apis[0])
    const claim = Buffer.from(JSON.stringify({ caller: {}, bodyDigest: '', at: Date.now() })).toString('base64url')
    for (const api of apis)
      for (const forged of ['x', `${claim}.x`, `${claim}.${'A'.repeat(43)}`]) {
        const { status } = await agent.report(api, run_id, [{ type: 'step' }], { 'x-cluster-forwarded': forged })
        expect(status).toBe(401)
      }
  })

  test('workspaces are spread over the processes, and erased through any of them', async () => {
    const workspaceIds: string[] = []
    for (const [index, api] of apis.entries()) {
      const made = await api('POST', '/api/v1/workspaces', { name: 'w' }, OPERATOR)
      const asWorkspace: Api = (method, path, body, options) =>
        api(method, path, body, { key: made.data.key, ...options })
      const other = await newAgentClient(asWorkspace)
      await other.report(apis[(index + 1) % apis.length], await other.startRun(api), EVENTS)
      workspaceIds.push(made.data.workspace_id)
    }
    await eventually(async () => {
      const { partitions } = await stateOf({ api: apis[0] })
      const used = partitions.filter(({ end_seq }) => end_seq > 0)
      return used.length === apis.length + 1 && new Set(used.map(({ owner }) => owner)).size > 1
    })
    for (const id of workspaceIds) {
      const erase = (api: Api) => api('DELETE', `/api/v1/workspaces/${id}`, undefined, OPERATOR)
      const erased = await Promise.all(apis.map(erase))
      expect(erased.map(({ status, data }) => [status, data?.deleted.events])).toEqual(apis.map(() => [200, 50]))
    }
  })
}

/** A service before it is moved. */
export interface EarlierService {
  readonly url: string
  readonly workspaceKey: string
  readonly api: Api
}

/** What was reported before the move. */
export interface MovedRun {
  readonly run_id: string
  readonly first_seq: number
}

/**
 * Moves a service with a run to processes that share the partitions: SQL shows the run's newest state, and a repeated
 * report is recognised.
 * @param move stops the service and starts the processes; returns a client of them
 */
export async function expectRunsGoOn(single: EarlierService, move: (before: MovedRun) => Promise<Api>): Promise<void> {
  const { agentId, agentKey: key } = await newAgent(single.api)
  const post = (api: Api, path: string, body: object) => api('POST', `/api/ingest/v1/${path}`, body, { key })
  const { run_id } = (await post(single.api, 'run/start', { agent_id: agentId })).data
  const events = Array.from({ length: 50 }, (_, n) => ({ id: `e${n}`, type: 'before', payload: { n } }))
  const before = await post(single.api, 'events', { run_id, events })
  const task = { id: crypto.randomUUID(), name: 'look', status: 'running' }
  await post(single.api, 'tasks', { run_id, task })
  const rowsOf = async (api: Api, query: string, more: object = {}) =>
    (await api('POST', '/api/v1/query', { query, params: { run: run_id }, ...more })).data.rows
  const states =
    'select status from runs where run_id = {run:UUID} union all select status from tasks where run_id = {run:UUID}'
  await eventually(async () => (await rowsOf(single.api, states)).length === 2)
  const { first_seq, last_seq } = before.data
  const api = await move({ run_id, first_seq })

  const after = await post(api, 'events', { run_id, events: [{ type: 'after' }] })
  expect(after.data.first_seq).toBeGreaterThan(last_seq)
  // A client that has seen no answer repeats its report.
  const repeated = await post(api, 'events', { run_id, events })
  expect(repeated.data).toMatchObject({ accepted: 0, duplicates: 50 })
  await post(api, 'tasks', { run_id, task: { ...task, status: 'completed' } })
  await post(api, 'run/complete', { run_id, output: {} })
  await eventually(
    async () => JSON.stringify(await rowsOf(api, states)) === '[{"status":"completed"},{"status":"completed"}]',
  )
  const types =
    'select type, count() as n, uniqExact(seq) as seqs from events where run_id = {run:UUID} group by type order by min(seq)'
  expect(await rowsOf(api, types, { wait_for: after.data.last_seq })).toEqual([
    { type: 'before', n: 50, seqs: 50 },
    { type: 'after', n: 1, seqs: 1 },
  ])
}
