import { beforeAll, describe, expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { LiveSocket, LiveStream } from '../support/feeds.ts'
import { OutputReader, untilStatus } from '../support/hosted.ts'
import { callTurn, type HostedRig, startHostedRig } from '../support/hosted-rig.ts'
import { OPERATOR_TOKEN } from '../support/service.ts'
import { Checker, type Document, type OperationCall, readDocument, targetOf } from './document.ts'

/**
 * Checks real requests and responses against the document: request bodies match their schema, and each response has a
 * documented status, matches its schema and has no undocumented member. `cross-talk.test.ts` does so with a call of every
 * operation that succeeds; here are other parameters, bodies and refusals, and the frames of streams.
 */

let rig: HostedRig
let document: Document
let checker: Checker

beforeAll(async () => {
  rig = await startHostedRig()
  document = await readDocument(rig.service)
  checker = new Checker(document)
})

interface Request extends OperationCall {
  readonly status?: number
  /** The body does not match its schema but is accepted. */
  readonly isWrong?: boolean
}

/** Calls an operation and checks request and response. @returns the data */
async function call(operationId: string, request: Request = {}) {
  const { path, query, body, key, headers, status = 200, isWrong = status >= 300 } = request
  const endpoint = document.operations.get(operationId)!
  checker.request(endpoint, isWrong ? { ...request, body: undefined } : request)
  const options = { ...(key !== undefined && { key }), ...(headers && { headers }) }
  const answer = await rig.service.api(endpoint.method.toUpperCase(), targetOf(endpoint, path, query), body, options)
  expect(answer.status, `${operationId}: ${answer.text.slice(0, 500)}`).toBe(status)
  checker.answer(endpoint, answer)
  return answer.data
}

/** Checks the frames of an event stream against the operation. */
function checkFrames(operationId: string, status: number, frames: readonly { event: string; data: unknown }[]): void {
  const { path, method } = document.operations.get(operationId)!
  const pointer = ['paths', path, method, 'responses', `${status}`, 'content', 'text/event-stream', 'x-event-stream']
  for (const { event, data } of frames) checker.check(data, ...pointer, event)
}

const operator = { key: OPERATOR_TOKEN }
const MISSING = '00000000-0000-7000-8000-000000000000'

test('keys and workspaces', async () => {
  const { workspace_id } = await call('createWorkspace', { body: { name: 'w' }, ...operator })
  await call('listWorkspaces', { query: 'limit=1', ...operator })
  await call('editWorkspace', { path: [workspace_id], body: { name: 'v', retention_days: 3 }, ...operator })
  await call('editWorkspace', { path: [MISSING], body: { name: 'v' }, status: 404, ...operator })
  const { key } = await call('createOwnerKey', { path: [workspace_id], body: { name: 'k' }, ...operator })
  const { key_id } = await call('createWorkspaceKey', {
    body: { name: 'k', expires_at: '2100-01-01T00:00:00+02:00' },
    key,
  })
  await call('createWorkspaceKey', { body: {}, key, status: 400 })
  await call('createWorkspaceKey', { body: { name: 'k' }, key: null, status: 401 })
  await call('rotateKey', { path: [key_id], body: { grace_seconds: 5 }, key })
  await call('rotateKey', { path: [key_id], body: {}, key, status: 409 })
  await call('revokeKey', { path: [key_id], body: {}, key })
  await call('listKeys', { query: 'type=workspace', key })
})

test('agents, ingest, and reading runs', async () => {
  const { agent_id } = await call('createAgent', { body: { name: 'a', metadata: { a: 1 }, stale_after_seconds: 60 } })
  const agent = [agent_id]
  await call('listAgents', { query: 'runtime_type=external&limit=5' })
  await call('getAgent', { path: agent })
  await call('editAgent', { path: agent, body: { description: null, status: 'paused' } })
  const { key } = await call('createAgentKey', { path: agent, body: {} })
  const start = { agent_id, input: { a: 1 }, tags: ['t'], metadata: {}, external_run_id: 'x', trigger_type: 'manual' }
  const { run_id } = await call('startRun', { body: start, key, headers: { 'idempotency-key': 'k' } })
  await call('startRun', { body: start, key, headers: { 'idempotency-key': 'k' } })
  await call('startRun', { body: start, status: 403 })
  const child = await call('startRun', { body: { agent_id, parent_run_id: run_id }, key })
  const events = [
    { type: 'a.b', level: 'warn', payload: { n: 1 }, occurred_at: '2026-01-31T09:30:00Z', id: '1' },
    { type: 'c' },
  ]
  await call('appendEvents', { body: { run_id, events }, key })
  await call('appendEvents', { body: { run_id: MISSING, events }, key, status: 404 })
  const mixed = { run_id, events: [{}, ...events] }
  const { rejected } = await call('appendEvents', { query: 'partial=true', body: mixed, isWrong: true, key })
  expect(rejected).toHaveLength(1)
  const task = { id: child.run_id, name: 't', status: 'running', input: { a: 1 } }
  await call('reportTask', { body: { run_id, task }, key })
  const scores = [
    { run_id, id: 's', task_id: child.run_id, name: 'n', value: true, label: 'l', text: 't', source: 'judge' },
    { run_id, name: 'n', value: 0.5, comment: 'c', metadata: { a: 1 }, created_at: '2026-01-31T09:30:00Z' },
  ]
  await call('addScores', { body: { scores }, key })
  await call('addScores', { body: { scores: [{ ...scores[0], run_id: MISSING }] }, key, status: 404 })
  await call('addScores', { query: 'partial=true', body: { scores: [{}, ...scores] }, isWrong: true, key })
  await call('addRunScore', { path: [run_id], body: { name: 'n', label: 'l' } })
  await call('addRunScore', { path: [run_id], body: { name: 'n' }, status: 400 })
  await call('addRunScore', { path: [run_id], body: { name: 'n', value: 1 }, key, status: 403 })
  await call('listScores', { path: [run_id], query: 'limit=2' })
  await call('createFeedToken', { body: { scores: { run_id, names: ['n'], subject: 'u1' } } })
  await call('listEvents', { path: [run_id], query: 'type=a.*&level=info&after_seq=0' })
  await call('completeRun', { body: { run_id, output: { ok: true } }, key })
  await call('completeRun', { body: { run_id }, key })
  await call('failRun', { body: { run_id, error_message: 'e' }, key, status: 409 })
  await call('failRun', { body: { run_id: child.run_id, error_message: 'e', error_detail: { a: 1 } }, key })
  await call('cancelRun', { path: [run_id], body: { reason: 'r' }, status: 409 })
  const third = await call('startRun', { body: { agent_id }, key })
  await call('cancelRun', { path: [third.run_id], body: { reason: 'r' } })
  await call('getRun', { path: [run_id] })
  await call('editRun', { path: [run_id], body: { tags: ['a'], metadata: { a: 1 } } })
  await call('editRun', { path: [MISSING], body: {}, status: 404 })
  await call('getRun', { path: [MISSING], status: 404 })
  await call('getRun', { path: ['x'], status: 400 })
  await call('listRuns', { query: `agent_id=${agent_id}&status=completed&from=2020-01-01T00:00:00Z` })
  await call('startRun', { body: { agent_id, session_id: 'a chat', external_user_id: 'ada' }, key })
  await call('listSessions', { query: 'kind=external&external_user_id=ada&to=2200-01-01T00:00:00Z' })
  await call('getSession', { path: ['a chat'] })
  await call('getUser', { path: ['ada'] })
  await call('getUser', { path: ['eve'], status: 404 })
})

test('hosted agents: invoke, pauses, sessions, streams', async () => {
  const { service, tools } = rig
  await call('setSecret', { path: ['TOKEN'], body: { value: 'secret' } })
  const tool = tools.tool('pay', { requires_approval: true })
  const turns = [callTurn(['pay', { n: 1 }]), { text: 'paid' }]
  const approvalAgent = await rig.agent(service, turns, { tools: [tool], output_schema: null, temperature: 0.5 })
  await call('getAgent', { path: [approvalAgent.agentId] })
  const paused = async (body = {}) => call('invokeAgent', { path: [approvalAgent.agentId], body, status: 202 })
  const first = await paused({ input: { message: 'm' }, start_session: true, external_user_id: 'u' })
  const { approval_id } = first.awaiting_approval
  await call('getRun', { path: [first.run_id] })
  await call('getApproval', { path: [approval_id] })
  await call('approveCall', { path: [approval_id], body: { comment: 'yes' } })
  await call('approveCall', { path: [approval_id], body: {}, status: 409 })
  const second = await paused()
  await call('rejectCall', { path: [second.awaiting_approval.approval_id], body: { comment: 'no' } })
  await call('listApprovals', { query: 'status=approved' })
  await call('listSessions', { query: `agent_id=${approvalAgent.agentId}` })

  const QUESTION = { question: 'Which?', options: ['a', 'b'] }
  const askingAgent = await rig.agent(service, [callTurn(['request_input', QUESTION]), { text: 'ok' }], {
    allow_input_requests: true,
  })
  const asked = await call('invokeAgent', { path: [askingAgent.agentId], body: {}, status: 202 })
  await call('getRun', { path: [asked.run_id] })
  const request = [asked.awaiting_input.request_id]
  await call('listInputRequests', { query: 'status=pending' })
  await call('answerInputRequest', { path: request, body: { answer: 'a' } })

  const plain = await rig.agent(service, [{ text: 'hello' }])
  await call('invokeAgent', { path: [plain.agentId], body: { input: { a: 1 }, history: [] } })
  const later = await call('invokeAgent', { path: [plain.agentId], body: { background: true }, status: 202 })
  await untilStatus(service, later.run_id, 'completed')
  const broken = await rig.agent(service, [{ status: 400 }])
  const failed = await call('invokeAgent', { path: [broken.agentId], body: {} })
  expect(failed.status).toBe('failed')
  await call('invokeAgent', { path: [MISSING], body: {}, status: 404 })
  await call('deleteSecret', { path: ['TOKEN'] })
  await call('deleteSecret', { path: ['TOKEN'], status: 404 })

  const streams = [
    await plain.stream(),
    await broken.stream(),
    await approvalAgent.stream(),
    await askingAgent.stream(),
  ]
  for (const stream of streams) checkFrames('invokeAgent', 200, await stream.all())
  const events = streams.flatMap(({ frames }) => frames.map(({ event }) => event))
  const followed = await OutputReader.ofRun(service, first.run_id)
  checkFrames('streamRunOutput', 200, await followed.all())
  const all = new Set([...events, ...followed.frames.map(({ event }) => event)])
  expect(all).toEqual(new Set(['chunk', 'tool', 'done', 'error', 'awaiting_approval', 'awaiting_input']))
  await call('streamRunOutput', { path: [MISSING], status: 404 })
})

describe('feeds', () => {
  test('server-sent events and WebSocket messages', async () => {
    const { agentId, agentKey } = await newAgent(rig.service.api)
    const { run_id } = await call('startRun', { body: { agent_id: agentId }, key: agentKey })
    await call('appendEvents', { body: { run_id, events: [{ type: 'a' }] }, key: agentKey })
    const task = { id: run_id, name: 't', status: 'completed' }
    await call('reportTask', { body: { run_id, task }, key: agentKey })
    const { token } = await call('createFeedToken', { body: { run_id, ttl_seconds: 60 } })
    await call('createFeedToken', { body: { run_id: MISSING }, status: 404 })
    await call('completeRun', { body: { run_id }, key: agentKey })

    const lines = (
      await (await fetch(`${rig.service.url}/api/v1/runs/${run_id}/stream?after=0&token=${token}`)).text()
    ).split('\n')
    checkFrames('streamRun', 200, framesOf(lines))
    expect(new Set(framesOf(lines).map(({ event }) => event))).toEqual(new Set(['event', 'task', 'run']))
    const last = lines.findLast((line) => line.startsWith('id: '))!.slice(4)
    await call('streamRun', { path: [run_id], headers: { 'last-event-id': last }, status: 204 })

    // A cursor of another journal cannot be resumed, so the stream starts with a gap.
    const path = `/api/v1/stream?run_id=${run_id}&kind=event&kind=run&after=another.1`
    const stream = await LiveStream.open(rig.service, path)
    await stream.until(() => stream.frames.some(({ event }) => event === 'gap'))
    checkFrames('streamActivity', 200, framesOf(stream.text.split('\n')))
    await stream.close()
    await call('streamActivity', { query: 'level=loud', status: 400 })

    const socket = await LiveSocket.open(rig.service)
    const filter = { run_id, kind: ['event', 'task', 'run'] }
    const said = [
      { op: 'subscribe', id: 's', filter, after: 0, max_per_second: 5 },
      { op: 'ping' },
      { op: 'unsubscribe', id: 's' },
    ]
    const { clientMessage, serverMessage } = websocket()
    for (const message of said) checker.check(message, ...clientMessage)
    socket.send(said[0]!)
    await eventually(() => socket.messages.flatMap(({ items = [] }) => items).length >= 4)
    for (const message of [said[1]!, said[2]!, { op: 'subscribe', id: '', filter: {} }]) socket.send(message)
    await eventually(() => socket.messages.some(({ op }) => op === 'error'))
    for (const message of socket.messages) checker.check(message, ...serverMessage)
    expect(new Set(socket.messages.map(({ op }) => op))).toEqual(new Set(['subscribed', 'activity', 'pong', 'error']))
    await socket.close()
    await call('openLive', { status: 400 })
  })
})

function websocket() {
  const { path } = document.operations.get('openLive')!
  const at = (name: string) => ['paths', path, 'get', 'x-websocket', name]
  return { clientMessage: at('clientMessage'), serverMessage: at('serverMessage') }
}

function framesOf(lines: readonly string[]): { event: string; data: unknown }[] {
  return lines.flatMap((line, index) =>
    line.startsWith('event: ') ? [{ event: line.slice(7), data: JSON.parse(lines[index + 1]!.slice(6)) }] : [],
  )
}

test('SQL, saved queries and the ClickHouse interface', async () => {
  const query = 'SELECT {n:Int64} AS n, [1] AS list'
  await call('runQuery', { body: { query, params: { n: 1 }, wait_for: 0 } })
  for (const format of ['ndjson', 'csv', 'parquet', 'arrow'])
    await call('runQuery', { body: { query, params: { n: '1' }, format } })
  await call('runQuery', { body: { query: 'DROP TABLE events' }, status: 400 })
  const { query_id } = await call('createSavedQuery', { body: { name: 'q', query, params: { n: 1 } } })
  await call('createSavedQuery', { body: { name: 'q', query, params: { n: 1 } }, status: 409 })
  await call('listSavedQueries', { query: 'limit=1' })
  await call('runSavedQuery', { path: [query_id], body: { params: { n: 2 } } })
  const chart = { kind: 'line', x: 'a', y: ['b'], right: [], series: 'c', unit: 'ms', right_unit: 'usd' }
  await call('editSavedQuery', { path: [query_id], body: { chart } })
  const { board_id } = await call('createBoard', { body: { name: 'b', charts: [{ query_id }] } })
  await call('editBoard', { path: [board_id], body: { version: 1, charts: [] } })
  await call('editBoard', { path: [board_id], body: { version: 1, charts: [] }, status: 409 })
  await call('deleteBoard', { path: [board_id] })
  await call('getBoard', { path: [board_id], status: 404 })
  await call('deleteSavedQuery', { path: [query_id] })
  await call('setView', { path: ['failed today'], body: { query: 'status=failed' } })
  await call('listViews', { query: 'limit=1' })
  await call('renameView', { path: ['failed today'], body: { name: 'failed' } })
  await call('deleteView', { path: ['failed'] })
  await call('deleteView', { path: ['failed'], status: 404 })
  await call('getSavedQuery', { path: [query_id], status: 404 })
  await call('clickHouseGet', { query: 'query=SELECT+1&default_format=JSON' })
  await call('clickHouseGet', { query: 'query=SELECT+1', key: null, status: 401 })
})
