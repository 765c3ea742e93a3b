import { beforeAll, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { LiveSocket, LiveStream, newReporter, newTenant, type Reporter, type Tenant } from '../support/feeds.ts'
import { OutputReader, untilStatus } from '../support/hosted.ts'
import { callTurn, type HostedRig, type ScriptedAgent, startHostedRig } from '../support/hosted-rig.ts'
import { inParallel } from '../support/in-parallel.ts'
import { spanItem, traceItem } from '../support/openai-traces.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../support/openid-provider.ts'
import { attributesOf, logsOf, randomHex, span, tracesOf } from '../support/otlp.ts'
import { Browser, signInVariables } from '../support/people.ts'
import { freePorts } from '../support/processes.ts'
import { seededRandom } from '../support/random.ts'
import { OPERATOR_TOKEN, UNLIMITED } from '../support/service.ts'
import { Checker, type Document, type Endpoint, type OperationCall, readDocument, targetOf } from './document.ts'

/**
 * Two workspaces call everything at once. Whatever one sends, data and mistakes, contains its mark, and no answer or feed
 * of the other may contain that mark. What is called comes from the document: an operation that no story below calls
 * successfully fails the test, and so does a request or an answer that does not match it.
 */

const MARKS = ['ALDER', 'BIRCH'] as const
/** How often each workspace plays each story, all at once. */
const PLAYS = 2
/** Answers that nothing sent influences, so that they cannot be refused. */
const NO_INPUT = ['clickHousePing', 'getHealth', 'getReadiness', 'getMetrics']
/** The operator sees the names of all workspaces. */
const SEES_ALL = ['listWorkspaces']

interface Side extends Tenant {
  readonly mark: string
  readonly otherMark: string
  readonly reporter: Reporter
  readonly paying: ScriptedAgent
  readonly asking: ScriptedAgent
  readonly talking: ScriptedAgent
  /** The statuses of each operation. */
  readonly seen: Map<string, Set<number>>
}

interface Request extends OperationCall {
  /** The body does not match its schema but is accepted. */
  readonly isWrong?: boolean
}

let rig: HostedRig
let provider: OpenIdProvider
let document: Document
let checker: Checker
let sides: readonly Side[]
/** Answers with the mark of the other workspace, or undocumented ones. */
const wrong: string[] = []

beforeAll(async () => {
  const [port] = freePorts(1)
  const publicUrl = `http://localhost:${port}`
  provider = await startOpenIdProvider(publicUrl)
  const signIn = { ...signInVariables(provider.issuer, publicUrl), OIDC_OPTIONS: '{"workspace_claim": "workspaces"}' }
  rig = await startHostedRig({ ...UNLIMITED, ...signIn, PORT: `${port}` })
  document = await readDocument(rig.service)
  checker = new Checker(document)
  sides = await Promise.all(MARKS.map((mark, index) => newSide(mark, MARKS[1 - index])))
})

async function newSide(mark: string, otherMark: string): Promise<Side> {
  const tenant = await newTenant(rig.service)
  const tools = [rig.tools.tool('pay', { requires_approval: true })]
  const [reporter, paying, asking, talking] = await Promise.all([
    newReporter(tenant.api),
    rig.agent(tenant, [callTurn(['pay', { n: 1, note: mark }]), { text: `${mark} paid` }], { name: mark, tools }),
    rig.agent(tenant, [callTurn(['request_input', { question: `${mark}?` }]), { text: `${mark} heard` }], {
      name: mark,
      allow_input_requests: true,
    }),
    rig.agent(tenant, [{ text: `${mark} says hello to nobody else` }], { name: mark, prompt: `You are ${mark}.` }),
  ])
  return { ...tenant, mark, otherMark, reporter, paying, asking, talking, seen: new Map() }
}

/** Notes the answer if it contains the other workspace's mark. */
function inspect({ mark, otherMark, seen }: Side, operationId: string, status: number, answer: string): void {
  seen.set(operationId, (seen.get(operationId) ?? new Set()).add(status))
  if (answer.toUpperCase().includes(otherMark) && !SEES_ALL.includes(operationId))
    wrong.push(`${operationId} answered ${mark} with ${status}: ${answer.slice(0, 500)}`)
}

/** Calls an operation, and checks the answer. */
async function send(side: Side, operationId: string, request: OperationCall = {}) {
  const { path, query, body, key, headers } = request
  const endpoint = document.operations.get(operationId)!
  const options = { ...(key !== undefined && { key }), ...(headers && { headers }) }
  const answer = await side.api(endpoint.method.toUpperCase(), targetOf(endpoint, path, query), body, options)
  inspect(side, operationId, answer.status, `${JSON.stringify([...answer.headers])} ${answer.text}`)
  if (answer.status >= 500 && answer.status !== 503)
    wrong.push(`${operationId} answered ${answer.status}: ${answer.text.slice(0, 500)}`)
  try {
    if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) checker.answer(endpoint, answer)
  } catch (error) {
    wrong.push(String(error))
  }
  return answer
}

/** Calls an operation that must succeed, again while others are served first. @returns the data */
async function call(side: Side, operationId: string, { isWrong = false, ...request }: Request = {}) {
  const endpoint = document.operations.get(operationId)!
  checker.request(endpoint, isWrong ? { ...request, body: undefined } : request)
  const { status, data, text } = await eventually(async () => {
    const answer = await send(side, operationId, request)
    // The repeat after a 503 may meet the recount that it has begun.
    const later = operationId === 'recountUsage' ? [409, 429, 503] : [429, 503]
    return !later.includes(answer.status) && answer
  })
  if (status >= 300) throw new Error(`${operationId} answered ${side.mark} with ${status}: ${text.slice(0, 500)}`)
  return data
}

type Story = (side: Side, play: number) => Promise<void>

/** Together they call every operation successfully. They run in any order, and several times at once. */
const STORIES: Readonly<Record<string, Story>> = {
  async workspaces(side, play) {
    const operator = { key: OPERATOR_TOKEN }
    const { workspace_id } = await call(side, 'createWorkspace', { body: { name: side.mark }, ...operator })
    await call(side, 'listWorkspaces', operator)
    const path = [workspace_id]
    await call(side, 'editWorkspace', { path, body: { name: `${side.mark} ${play}` }, ...operator })
    await call(side, 'createOwnerKey', { path, body: { name: side.mark }, ...operator })
    // It takes seconds.
    if (play === 0) await call(side, 'eraseWorkspace', { path, ...operator })
    await call(side, 'getCluster', operator)
  },
  async keys(side) {
    const { key_id } = await call(side, 'createWorkspaceKey', { body: { name: side.mark } })
    await call(side, 'listKeys')
    await call(side, 'rotateKey', { path: [key_id], body: { grace_seconds: 5 } })
    await call(side, 'revokeKey', { path: [key_id], body: {} })
  },
  async people(side, play) {
    const { mark } = side
    const sub = `${mark} ${play}`
    provider.know({ sub, name: mark, email: `${mark}@example.com`, roles: ['admin'], workspaces: [side.workspaceId] })
    const browser = new Browser(rig.service.url, `http://localhost:${new URL(rig.service.url).port}`, sub)
    await browser.signIn()
    const own = () => browser.feedOptions
    const { person } = await call(side, 'getSignIn', own())
    await call(side, 'listPeople', own())
    const path = [person.person_id]
    await call(side, 'getPerson', { path })
    const entered = await send(side, 'changeWorkspace', { body: { workspace_id: side.workspaceId }, ...own() })
    browser.own.take(entered.headers)
    await call(side, 'signOut', { body: {}, ...own() })
    await browser.signIn()
    const { sign_ins } = await call(side, 'getPerson', { path })
    await call(side, 'revokeSignIn', { path: [sign_ins[0].sign_in_id], body: {} })
    await call(side, 'editPerson', { path, body: { status: 'active' } })
  },
  async recounts(side, play) {
    // One at a time.
    if (play === 0) await call(side, 'recountUsage')
  },
  async agents(side, play) {
    const { agent_id } = await call(side, 'createAgent', {
      body: { name: `${side.mark} ${play}`, metadata: { [side.mark]: side.mark } },
    })
    const path = [agent_id]
    await call(side, 'listAgents')
    await call(side, 'getAgent', { path })
    await call(side, 'editAgent', { path, body: { description: side.mark } })
    await call(side, 'listAgentVersions', { path })
    await call(side, 'getAgentVersion', { path: [...path, '1'] })
    await call(side, 'restoreAgentVersion', { path: [...path, '1'], body: {} })
    await call(side, 'getWorkspace')
    await call(side, 'createAgentKey', { path, body: { name: side.mark } })
    await call(side, 'archiveAgent', { path })
    await call(side, 'restoreAgent', { path, body: {} })
  },
  async runs(side, play) {
    const { mark } = side
    const { agentId: agent_id, agentKey: key } = side.reporter
    const start = { agent_id, input: { mark }, tags: [mark], metadata: { mark }, external_run_id: `${mark} ${play}` }
    // Both workspaces send the same Idempotency-Key.
    const headers = { 'idempotency-key': `start ${play}` }
    const { run_id } = await call(side, 'startRun', { body: start, key, headers })
    const repeated = await call(side, 'startRun', { body: start, key, headers })
    if (repeated.run_id !== run_id) wrong.push(`startRun repeated ${run_id} for ${mark} as ${repeated.run_id}`)
    const child = await call(side, 'startRun', { body: { agent_id, parent_run_id: run_id }, key })
    await call(side, 'appendEvents', { body: { run_id, events: [{ type: mark, payload: { mark }, id: mark }] }, key })
    const task = { id: child.run_id, name: mark, status: 'running', input: { mark } }
    await call(side, 'reportTask', { body: { run_id, task }, key })
    const path = [run_id]
    const score = { id: 'same', name: mark, label: mark, metadata: { mark } }
    await call(side, 'addScores', { body: { scores: [{ run_id, ...score }] }, key })
    await call(side, 'addRunScore', { path, body: { ...score, comment: mark } })
    const reading = ['getRun', 'listTasks', 'listEvents', 'readConversation', 'listChildren', 'listScores']
    for (const id of reading) await call(side, id, { path })
    await call(side, 'listRuns', { query: `external_run_id=${mark}+${play}` })
    // Both workspaces have a session and a user of this name.
    const same = { session_id: 'same', external_user_id: 'same', input: { message: mark } }
    await call(side, 'startRun', { body: { agent_id, ...same }, key })
    await call(side, 'listSessions')
    for (const id of ['getSession', 'getUser']) await call(side, id, { path: ['same'] })
    await call(side, 'failRun', { body: { run_id: child.run_id, error_message: mark }, key })
    const third = await call(side, 'startRun', { body: { agent_id }, key })
    await call(side, 'cancelRun', { path: [third.run_id], body: { reason: mark } })
    await call(side, 'editRun', { path, body: { tags: [mark], metadata: { mark } } })
    const { token } = await call(side, 'createFeedToken', { body: { run_id } })
    await call(side, 'completeRun', { body: { run_id, output: { mark } }, key })
    await call(side, 'streamRun', { path, query: `after=0&token=${token}`, key: null })
    const { erasure_id } = await call(side, 'deleteRun', { path: [third.run_id] })
    await call(side, 'getErasure', { path: [erasure_id] })
    await call(side, 'deleteScore', { path: [run_id, 'same'] })
  },
  async 'partial calls'(side) {
    const run_id = await side.reporter.start()
    const events = [{ type: side.mark }, { type: 'a', level: side.mark }, { [side.mark]: 1 }, side.mark]
    const calls = Array.from({ length: 20 }, async (_, index) => {
      const body = { run_id, events: events.slice(0, 1 + (index % 4)) }
      const { rejected } = await call(side, 'appendEvents', {
        query: 'partial=true',
        body,
        key: side.reporter.agentKey,
        isWrong: true,
      })
      if (rejected.length !== index % 4) wrong.push(`${side.mark}: ${index % 4} rejected: ${JSON.stringify(rejected)}`)
    })
    await Promise.all(calls)
    const scores = [{ run_id, name: side.mark, value: 1 }, { run_id: side.mark }]
    const asked = { query: 'partial=true', body: { scores }, isWrong: true }
    const { rejected } = await call(side, 'addScores', asked)
    if (rejected.length !== 1) wrong.push(`${side.mark}: rejected scores: ${JSON.stringify(rejected)}`)
  },
  async approvals(side) {
    const { mark, paying } = side
    const invoke = () => call(side, 'invokeAgent', { path: [paying.agentId], body: { input: { message: mark } } })
    const [first, second] = await Promise.all([invoke(), invoke()])
    const path = [first.awaiting_approval.approval_id]
    await call(side, 'getApproval', { path })
    await call(side, 'listApprovals')
    await call(side, 'approveCall', { path, body: { comment: mark } })
    const rejected = [second.awaiting_approval.approval_id]
    await call(side, 'rejectCall', { path: rejected, body: { comment: mark } })
  },
  async 'input requests and sessions'(side) {
    const { mark, asking } = side
    const body = { input: { message: mark }, start_session: true, external_user_id: mark }
    const asked = await call(side, 'invokeAgent', { path: [asking.agentId], body })
    const path = [asked.awaiting_input.request_id]
    await call(side, 'getInputRequest', { path })
    await call(side, 'listInputRequests')
    await call(side, 'answerInputRequest', { path, body: { answer: mark } })
    await untilStatus(side, asked.run_id, 'completed')
    await call(side, 'listSessions', { query: `agent_id=${asking.agentId}` })
    const { session_id } = await call(side, 'getRun', { path: [asked.run_id] })
    const session = { path: [session_id] }
    for (const id of ['getSession', 'listSessionMessages', 'deleteSession']) await call(side, id, session)
  },
  async 'output streams'(side) {
    const stream = await side.talking.stream({ input: { message: side.mark } })
    await stream.all()
    inspect(side, 'invokeAgent', stream.status, JSON.stringify(stream.frames))
    const followed = await OutputReader.ofRun(side, await stream.runId())
    await followed.all()
    inspect(side, 'streamRunOutput', followed.status, JSON.stringify(followed.frames))
  },
  async secrets(side, play) {
    const path = [`${side.mark}_${play}`]
    await call(side, 'setSecret', { path, body: { value: side.mark } })
    await call(side, 'listSecrets')
    await call(side, 'deleteSecret', { path })
  },
  async queries(side, play) {
    const query = `SELECT '${side.mark}' AS mark, (SELECT groupArray(type) FROM events) AS types`
    for (const format of ['json', 'csv']) await call(side, 'runQuery', { body: { query, format } })
    await send(side, 'runQuery', { body: { query: `SELECT ${side.mark}` } })
    await send(side, 'runQuery', { body: { query: `SELECT throwIf(1, '${side.mark}')`, format: 'ndjson' } })
    await call(side, 'getQuerySchema')
    const { query_id } = await call(side, 'createSavedQuery', { body: { name: `${side.mark} ${play}`, query } })
    const path = [query_id]
    await call(side, 'listSavedQueries')
    await call(side, 'getSavedQuery', { path })
    await call(side, 'editSavedQuery', { path, body: { description: side.mark } })
    await call(side, 'runSavedQuery', { path, body: {} })
    const charts = [{ query_id }]
    const { board_id } = await call(side, 'createBoard', { body: { name: `${side.mark} ${play}`, charts } })
    await call(side, 'listBoards')
    await call(side, 'getBoard', { path: [board_id] })
    await call(side, 'editBoard', { path: [board_id], body: { version: 1, name: `${side.mark} ${play} edited` } })
    await call(side, 'deleteBoard', { path: [board_id] })
    await call(side, 'deleteSavedQuery', { path })
    const [view, renamed] = [`${side.mark} view ${play}`, `${side.mark} renamed ${play}`]
    await call(side, 'setView', { path: [view], body: { query: `q=${side.mark}` } })
    await call(side, 'renameView', { path: [view], body: { name: renamed } })
    await call(side, 'listViews')
    await call(side, 'deleteView', { path: [renamed] })
  },
  async alerts(side, play) {
    await call(side, 'listAlertTemplates')
    const query = `SELECT '${side.mark}' AS mark, arrayJoin((SELECT groupUniqArray(type) FROM events)) AS type`
    const condition = 'any_row'
    const body = { name: `${side.mark} alert ${play}`, query, every: '1m', by: ['mark', 'type'], condition }
    const range = { from: '2026-01-31T10:00:00Z', to: '2026-01-31T10:01:00Z' }
    await call(side, 'testAlertDefinition', { body: { ...body, ...range } })
    const { alert_id } = await call(side, 'createAlert', { body })
    const path = [alert_id]
    await call(side, 'testAlert', { path, body: range })
    await call(side, 'listAlerts')
    await call(side, 'getAlert', { path })
    await call(side, 'editAlert', { path, body: { name: `${side.mark} alert ${play} edited` } })
    await call(side, 'deleteAlert', { path })
  },
  async webhooks(side, play) {
    const { mark } = side
    const body = { url: rig.tools.urlOf(`${mark}_hook`), description: mark, filter: { type: `${mark} ${play}` } }
    const { webhook_id } = await call(side, 'createWebhook', { body })
    const path = [webhook_id]
    await call(side, 'listWebhooks')
    await call(side, 'getWebhook', { path })
    await call(side, 'rotateWebhookSecret', { path })
    await call(side, 'testWebhook', { path })
    const run = await side.reporter.start()
    await side.reporter.events(run, [{ type: `${mark} ${play}`, payload: { mark } }])
    const { data } = await call(side, 'pollWebhook', { path })
    if (data.length !== 1) wrong.push(`pollWebhook has ${data.length} messages for ${mark}`)
    const [made] = await eventually(async () => {
      const { items } = await call(side, 'listWebhookDeliveries', { path })
      const own = items.filter(({ type }: { type: string }) => type.startsWith(mark))
      return own.length > 0 && own
    })
    await call(side, 'resendWebhookDelivery', { path: [webhook_id, made.delivery_id] })
    await call(side, 'recoverWebhook', { path, body: { since: made.at } })
    await call(side, 'editWebhook', { path, body: { description: `${mark} edited` } })
    await call(side, 'deleteWebhook', { path })
  },
  async 'the ClickHouse interface'(side) {
    const query = `SELECT '${side.mark}', type FROM events LIMIT 1000`
    await call(side, 'clickHousePing', { key: null })
    await call(side, 'clickHouseGet', { query: `query=${encodeURIComponent(query)}` })
    await call(side, 'clickHousePost', { body: query })
    await send(side, 'clickHousePost', { body: `SELECT ${side.mark} FROM ${side.mark}` })
    await send(side, 'clickHouseGet', { query: `query=SELECT+1&${side.mark}=${side.mark}` })
  },
  async 'exports of OpenTelemetry'(side) {
    const { mark } = side
    const traceId = randomHex(16)
    const name = { 'service.name': mark }
    const attributes = attributesOf({ mark, 'session.id': mark })
    const mistake = span({ traceId: mark, name: mark, attributes })
    await call(side, 'exportTraces', { body: tracesOf([span({ traceId, name: mark, attributes }), mistake], name) })
    const record = { timeUnixNano: '1769851800000000000', body: { stringValue: mark }, attributes }
    await call(side, 'exportLogs', {
      body: logsOf(
        [
          { ...record, traceId },
          { ...record, traceId: mark },
        ],
        name,
      ),
    })
    await call(side, 'exportMetrics', { body: { resourceMetrics: [] } })
    for (const id of ['exportTraces', 'exportLogs', 'exportMetrics']) {
      await send(side, id, { body: `{"${mark}` })
      await send(side, id, { body: mark, headers: { 'content-type': 'application/x-protobuf' } })
    }
  },
  async 'traces of the OpenAI Agents SDK'(side) {
    const { mark } = side
    const id = `trace_${mark}_${randomHex(8)}`
    // Agents that another story archives have the mark itself as name.
    const head = traceItem(id, { workflow_name: `${mark} workflow`, group_id: mark, metadata: { mark } })
    const data = { type: 'function', name: mark, input: mark, output: mark }
    await call(side, 'ingestOpenAiTraces', { body: { data: [head, spanItem(id, data)] } })
    await send(side, 'ingestOpenAiTraces', { body: { data: [{ object: mark }] } })
    await send(side, 'ingestOpenAiTraces', { body: `{"${mark}` })
  },
  async 'batches of Langfuse'(side) {
    const { mark } = side
    const traceId = `${mark} ${randomHex(8)}`
    const timestamp = new Date().toISOString()
    const body = { id: `${mark} span`, traceId, name: mark, startTime: timestamp, input: mark, metadata: { mark } }
    const event = (type: string, body: object) => ({ id: `${mark} ${randomHex(4)}`, type, timestamp, body })
    await call(side, 'ingestLangfuseBatch', {
      body: {
        batch: [
          event('trace-create', { id: traceId, name: mark, userId: mark, sessionId: mark, tags: [mark] }),
          event('span-create', body),
          event('span-update', { ...body, endTime: mark }),
          event(mark, body),
        ],
      },
    })
    await send(side, 'ingestLangfuseBatch', { body: `{"${mark}` })
  },
  async operations(side) {
    for (const id of ['getHealth', 'getReadiness', 'getMetrics', 'getLimits']) await call(side, id, { key: null })
  },
}

/** Mistakes in each place of a request that the document knows of. */
async function makeMistakes(side: Side, { path, method, operation }: Endpoint): Promise<void> {
  const { mark } = side
  const { operationId, parameters = [], requestBody } = operation
  const names = (place: string) => parameters.filter((each) => each.in === place).map(({ name }) => name)
  const values = names('path').map(() => mark)
  const key = operation.security?.some((scheme) => 'operatorToken' in scheme)
    ? OPERATOR_TOKEN
    : path.startsWith('/api/ingest/')
      ? side.reporter.agentKey
      : side.workspaceKey
  const isRead = method === 'get'
  const body = isRead ? undefined : { [mark]: mark }
  await send(side, operationId, { path: values, key: `${mark}${key}`, body })
  await send(side, operationId, { path: values, query: `${mark}=${mark}`, key, body })
  // A stream that accepts the parameter would stay open.
  const isStream = 'text/event-stream' in (operation.responses[200]?.content ?? {})
  for (const name of names('query')) {
    const query = `${name}=${mark}${isStream ? `&${mark}=${mark}` : ''}`
    await send(side, operationId, { path: values, query, key, body })
  }
  if (requestBody === undefined) return
  await send(side, operationId, { path: values, key, body: `{"${mark}": ["${mark}"` })
  const required = Object.fromEntries(['run_id', 'events', 'name', 'query', 'task'].map((name) => [name, mark]))
  await send(side, operationId, { path: values, key, body: required })
}

test('no answer and no feed of a workspace contains what another one sends', async () => {
  const random = seededRandom('cross-talk')
  const feeds = await Promise.all(sides.map(openFeeds))
  const parts = [
    ...Object.values(STORIES).flatMap((story) => Array.from({ length: PLAYS }, (_, play) => [story, play] as const)),
    ...[...document.operations.values()].map((endpoint) => [(side: Side) => makeMistakes(side, endpoint), 0] as const),
  ]
  const order = parts.map((part) => ({ part, at: random.next() })).toSorted((a, b) => a.at - b.at)
  // Both workspaces in the same order, so that the same operations overlap.
  await inParallel(order, ({ part: [play, number] }) => Promise.all(sides.map((side) => play(side, number))), 8)
  await Promise.all(feeds.map((feed) => feed.end()))
  expect(wrong.slice(0, 5)).toEqual([])
  for (const { mark, otherMark } of sides)
    for (const { text } of rig.tools.of(`${mark}_hook`)) expect(text.toUpperCase()).not.toContain(otherMark)
  const ids = [...document.operations.keys()]
  for (const { seen, mark } of sides) {
    const without = (matches: (status: number) => boolean) =>
      ids.filter((id) => ![...(seen.get(id) ?? [])].some(matches))
    expect(
      without((status) => status < 300),
      `${mark}: no story calls these successfully`,
    ).toEqual([])
    expect(
      without((status) => status >= 400),
      `${mark}: accepted all mistakes`,
    ).toEqual(NO_INPUT)
  }
})

/** Feeds of everything that happens in a workspace, with mistakes on them as well. */
async function openFeeds(side: Side) {
  const { mark } = side
  const [stream, socket] = await Promise.all([LiveStream.open(side, '/api/v1/stream'), LiveSocket.open(side)])
  const last = await side.reporter.start()
  await socket.subscribe(mark, {})
  for (const message of [mark, { op: mark }, { op: 'subscribe', id: mark, filter: { level: mark } }])
    socket.send(message)
  return {
    async end(): Promise<void> {
      await side.reporter.events(last, [{ type: 'last', payload: { mark } }])
      const isLast = ({ event }: { event?: { type: string } }) => event?.type === 'last'
      await eventually(() => stream.items.some(isLast) && socket.items(mark).some(isLast))
      inspect(side, 'streamActivity', stream.status, stream.text)
      inspect(side, 'openLive', 101, JSON.stringify(socket.messages))
      for (const text of [stream.text, JSON.stringify(socket.messages)]) expect(text).toContain(mark)
      expect(socket.messagesOf('error').length).toBeGreaterThanOrEqual(3)
      await Promise.all([stream.close(), socket.close()])
    },
  }
}
