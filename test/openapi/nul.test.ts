import { beforeAll, expect, test } from 'bun:test'
import { createApi } from '../support/api.ts'
import { callTurn, type HostedRig, startHostedRig } from '../support/hosted-rig.ts'
import { converse } from '../support/http-app.ts'
import { OPERATOR_TOKEN } from '../support/service.ts'
import { type Endpoint, readDocument, resolve, type Schema } from './document.ts'

/** Postgres stores no NUL, so it must be refused or kept out of text columns by every call. */

const NUL = 'a\0b'
const DEPTH_MAX = 6
/** Operations whose plain call must succeed: so the poisoned ones, too, reach the handler, and its statements. */
const SERVED = [
  ...['answerInputRequest', 'appendEvents', 'approveCall', 'cancelRun', 'completeRun', 'createAgent', 'createAgentKey'],
  ...[
    'createWorkspace',
    'editAgent',
    'editRun',
    'editSavedQuery',
    'editWorkspace',
    'failRun',
    'getRun',
    'getSession',
    'listRuns',
  ],
  ...['rejectCall', 'reportTask', 'rotateKey', 'runSavedQuery', 'setSecret', 'startRun'],
]

/** What the calls of one operation refer to, by the names of parameters and fields. */
type Ids = Readonly<Record<string, string>>

let rig: HostedRig

beforeAll(async () => {
  rig = await startHostedRig()
})

test('NUL in every string of every operation is never a 500', async () => {
  const { json, operations } = await readDocument(rig.service)
  const problems: string[] = []
  const served: string[] = []
  for (const endpoint of operations.values()) {
    const { path, operation } = endpoint
    const ids = await newIds(path)
    const parameters = operation.parameters ?? []
    const query = parameters
      .filter((each) => each.in === 'query')
      .map(({ name }) => `?${name}=${encodeURIComponent(NUL)}`)
    const given = operation.requestBody?.content['application/json']?.schema
    const schema = given && resolve(json, given)
    const real = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name])
    const calls: [string, unknown][] = [
      [path.replaceAll(/\{\w+\}/g, encodeURIComponent(NUL)), schema && sample(schema, json, ids)],
      ...query.map((each): [string, unknown] => [real + each, schema && sample(schema, json, ids)]),
      ...[...(schema ? variants(schema, json, ids) : [])].map((body): [string, unknown] => [real, body]),
      [real, schema && sample(schema, json, ids)],
    ]
    let last = 0
    for (const [target, body] of calls) last = await statusOf(endpoint, target, body, ids, problems)
    if (last < 300) served.push(operation.operationId)
  }
  expect(problems).toEqual([])
  expect(SERVED.filter((name) => !served.includes(name))).toEqual([])
}, 240_000)

test('NUL in SQL and in an Idempotency-Key is never a 500', async () => {
  const { service } = rig
  const { api } = service
  const sql = `SELECT '${NUL}', count() FROM runs WHERE external_run_id = '${NUL}'`
  const answers = [
    await api('POST', '/api/v1/query', { query: sql }),
    await api('POST', '/api/v1/query', { query: 'SELECT {x:String}', params: { x: NUL } }),
    await api('POST', '/api/v1/query', { query: 'SELECT 1', params: { [NUL]: NUL } }),
    await api('POST', '/clickhouse/', sql, { headers: { 'content-type': 'text/plain' } }),
    await api('POST', `/clickhouse/?query=${encodeURIComponent(sql)}`, NUL),
    await api(
      'GET',
      `/clickhouse/?query=${encodeURIComponent('SELECT {x:String}')}&param_x=${encodeURIComponent(NUL)}`,
    ),
  ]
  for (const { status, text } of answers) expect([status, status >= 500], text).toEqual([status, false])
  const { port } = new URL(service.url)
  const request = `POST /api/v1/agents HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${service.workspaceKey}\r\n`
  const body = '{"name":"a"}'
  const rest = `Content-Type: application/json\r\nIdempotency-Key: ${NUL}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const { text } = await converse(Number(port), [request + rest], { isEnough: (received) => received.includes('\r\n') })
  expect(text).toMatch(/^HTTP\/1\.1 400 /)
})

/** Calls an operation, and notes a 500. */
async function statusOf(
  { method, operation }: Endpoint,
  target: string,
  body: unknown,
  ids: Ids,
  problems: string[],
): Promise<number> {
  const schemes = operation.security?.flatMap(Object.keys) ?? []
  const key = schemes.includes('operatorToken')
    ? OPERATOR_TOKEN
    : schemes.includes('workspaceKey')
      ? rig.service.workspaceKey
      : (ids.agentKey ?? rig.service.workspaceKey)
  const response = await fetch(rig.service.url + target, {
    method: method.toUpperCase(),
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    signal: AbortSignal.timeout(60_000),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  if (response.status === 500) problems.push(`${method} ${target} ${JSON.stringify(body)}: ${await response.text()}`)
  else await response.body?.cancel()
  return response.status
}

/** New resources for each operation, because some delete what they are called with. */
async function newIds(path: string): Promise<Ids> {
  const { api, url } = rig.service
  const agent = await api('POST', '/api/v1/agents', { name: 'an agent' })
  const { agent_id } = agent.data
  const key = await api('POST', `/api/v1/agents/${agent_id}/keys`, {})
  const { key: agentKey, key_id } = key.data
  const run = await createApi(url, agentKey)('POST', '/api/ingest/v1/run/start', { agent_id })
  const ids = { agent_id, agentKey, key_id, run_id: run.data.run_id, name: 'A_SECRET', ...(await pauseOf(path)) }
  if (path.includes('{workspace_id}')) {
    const workspace = await api('POST', '/api/v1/workspaces', { name: 'w' }, { key: OPERATOR_TOKEN })
    return { ...ids, workspace_id: workspace.data.workspace_id }
  }
  if (path.includes('{board_id}')) {
    const board = await api('POST', '/api/v1/boards', { name: crypto.randomUUID() })
    return { ...ids, board_id: board.data.board_id }
  }
  if (path.includes('{webhook_id}')) {
    const body = { url: 'https://receiver.example', status: 'disabled' }
    const { webhook_id } = (await api('POST', '/api/v1/webhooks', body)).data
    return { ...ids, webhook_id, delivery_id: `msg_${webhook_id.replaceAll('-', '')}_e_1` }
  }
  if (!path.includes('{query_id}')) return ids
  const saved = await api('POST', '/api/v1/queries', { name: crypto.randomUUID(), query: 'SELECT 1' })
  return { ...ids, query_id: saved.data.query_id }
}

/** A call that waits for approval, or a question, or a session of a hosted agent. */
async function pauseOf(path: string): Promise<Ids> {
  const { service, tools } = rig
  if (!/approval_id|request_id|session_id/.test(path)) return {}
  const call = path.includes('request_id')
    ? callTurn(['request_input', { question: 'Which?' }])
    : callTurn(['pay', { n: 1 }])
  const agent = await rig.agent(service, [call, { text: 'done' }], {
    tools: [tools.tool('pay', { requires_approval: true })],
    allow_input_requests: true,
  })
  const { data } = await agent.invoke({ start_session: true })
  return {
    approval_id: data.awaiting_approval?.approval_id,
    request_id: data.awaiting_input?.request_id,
    session_id: data.session_id,
  }
}

/** A valid-looking value with one of its strings replaced each time; free-form objects hold NUL in a name and a value. */
function* variants(schema: Schema, json: Schema, ids: Ids): Generator<Schema> {
  const plain = sample(schema, json, ids)
  for (const name of Object.keys(schema?.properties ?? {})) {
    const member = resolve(json, schema.properties[name])
    if (member?.properties !== undefined)
      for (const value of variants(member, json, ids)) yield { ...plain, [name]: value }
    else yield { ...plain, [name]: poisoned(member, json, ids) }
  }
}

function poisoned(schema: Schema, json: Schema, ids: Ids): unknown {
  const one = resolve(json, schema?.anyOf?.[0] ?? schema)
  if (one?.type === 'array') {
    const item = resolve(json, one.items ?? {})
    return item?.properties === undefined ? [poisoned(item, json, ids)] : [...variants(item, json, ids)]
  }
  return one?.type === 'object' ? { [NUL]: NUL, deep: [{ [NUL]: NUL }] } : NUL
}

function sample(schema: Schema, json: Schema, ids: Ids, depth = 0): Schema {
  const one = resolve(json, schema?.anyOf?.[0] ?? schema)
  if (one?.enum !== undefined) return one.enum[0]
  if (one?.type === 'object' && depth < DEPTH_MAX) {
    const names: string[] = one.required ?? []
    return Object.fromEntries(
      names.map((name) => [name, ids[name] ?? sample(one.properties?.[name], json, ids, depth + 1)]),
    )
  }
  if (one?.type === 'array') return [sample(one.items, json, ids, depth + 1)]
  if (one?.type === 'string') return one.format === 'uuid' ? crypto.randomUUID() : 'text'
  return one?.type === 'boolean' ? true : one?.type === 'object' ? {} : 1
}
