import { beforeAll, expect, test } from 'bun:test'
import { type Answer, newAgent } from '../support/api.ts'
import { LiveSocket } from '../support/feeds.ts'
import { newHostedAgent } from '../support/hosted.ts'
import { inParallel } from '../support/in-parallel.ts'
import { startModelServer } from '../support/model-server.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { OPERATOR_TOKEN, startTestService, type TestService } from '../support/service.ts'

/** Forged or damaged cursors are rejected or harmless everywhere. */

const SAMPLES = 40
/** Numbers that JSON, Postgres, ClickHouse and `Date` treat differently. */
const NUMBERS = ['NaN', '1e21', '-1', '-0', '0.5', '1e400', '8640000000000001', '9007199254740993', '1e15', '0x10', '٣']
const TEXTS = ['', ' ', '\0', '\ud800', '"', "'", '%', '1'.repeat(490), 'Infinity', 'null', '2026-13-45T00:00:00Z']

let service: TestService
/** The paths of all lists, each with the key to read it. */
let lists: Map<string, string | undefined>
let runId: string

beforeAll(async () => {
  const model = startModelServer(() => ({}))
  service = await startTestService({ OPENAI_BASE_URL: model.url })
  const { api } = service
  const { agentId, agentKey } = await newAgent(api)
  const started = await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
  runId = started.data.run_id
  await api('POST', '/api/ingest/v1/events', { run_id: runId, events: [{ type: 'a' }, { type: 'b' }] })
  const hosted = await newHostedAgent(service)
  const { data: invoked } = await hosted.invoke({ start_session: true, input: { message: 'hello' } })
  await inParallel([1, 2], async (n) => {
    await api('PUT', `/api/v1/secrets/SECRET_${n}`, { value: 'a secret' })
    await api('POST', '/api/v1/queries', { name: `query ${n}`, query: 'select 1' })
    await api('POST', '/api/v1/boards', { name: `board ${n}` })
    await api('PUT', `/api/v1/views/${n}`, { query: '' })
    const task = { id: crypto.randomUUID(), name: 'a task', status: 'pending' }
    await api('POST', '/api/ingest/v1/tasks', { run_id: runId, task }, { key: agentKey })
  })
  const paths = [
    'agents',
    'keys',
    'runs',
    'approvals',
    'input-requests',
    'sessions',
    'secrets',
    'queries',
    'boards',
    'views',
  ]
  const nested = [`runs/${runId}/tasks`, `runs/${runId}/events`, `runs/${runId}/children`]
  const ofHosted = [`sessions/${invoked.session_id}/messages`]
  lists = new Map([...paths, ...nested, ...ofHosted].map((path) => [`/api/v1/${path}`, undefined]))
  lists.set('/api/v1/workspaces', OPERATOR_TOKEN)
})

/** A forged cursor: JSON of about the right shape, a real cursor with one character changed, or something else. */
function forge(random: Random, real: readonly string[]): string {
  const uuid = () => (random.bool(0.7) ? crypto.randomUUID() : random.pick(TEXTS))
  const part = (): string =>
    random.pick([
      () => random.pick(NUMBERS),
      () => JSON.stringify(random.pick(NUMBERS)),
      () => JSON.stringify(uuid()),
      () => JSON.stringify(random.pick(TEXTS)),
      () => random.pick(['null', 'true', '{}', '[]', '[[]]']),
      () => String(random.int(0, 2 ** 53)),
    ])()
  const json = random.pick([part, () => `[${part()},${part()}]`, () => `[${part()},"${uuid()}"]`, () => `[${part()}`])
  const damaged = () => {
    const text = real.length > 0 ? random.pick(real) : String(random.int(0, 99))
    const at = random.int(0, text.length)
    return text.slice(0, at) + random.pick(['', 'A', '.', '_', '9', 'é']) + text.slice(at + random.int(0, 1))
  }
  return random
    .pick([
      () => Buffer.from(json()).toString('base64url'),
      () => Buffer.from(json()).toString('base64url'),
      damaged,
      () => random.pick(NUMBERS),
      () => `${random.pick(['', 'x', 'ep-1'])}.${random.pick(NUMBERS)}`,
      () => random.pick(TEXTS),
    ])()
    .slice(0, 500)
}

function expectHarmless({ status, error, text }: Pick<Answer, 'status' | 'error' | 'text'>, what: string): void {
  if (status === 200 || status === 204) return
  expect(`${what}: ${status} ${error?.code} ${text}`).toStartWith(`${what}: 400 VALIDATION_ERROR`)
}

test('lists reject forged cursors', async () => {
  const random = seededRandom('forged cursors of lists')
  for (const [path, key] of lists) {
    const { data, text } = await service.api('GET', `${path}?limit=1`, undefined, { key })
    if (data === null) throw new Error(`${path}: ${text}`)
    const real = [data.next_cursor].filter((cursor) => cursor !== null)
    await inParallel(Array.from({ length: SAMPLES }), async () => {
      const cursor = forge(random, real)
      const answer = await service.api('GET', `${path}?cursor=${encode(cursor)}`, undefined, { key })
      expectHarmless(answer, `${path} ${JSON.stringify(cursor)}`)
    })
  }
})

test('rejects query parameters that are not integers within their bounds', async () => {
  const wrong = [...NUMBERS, ...TEXTS, '9'.repeat(30)].filter((text) => text !== '-0')
  const parameters = [...lists].map(([path, key]) => ({ path, key, name: 'limit' }))
  parameters.push({ path: `/api/v1/runs/${runId}/events`, key: undefined, name: 'after_seq' })
  for (const { path, key, name } of parameters)
    await inParallel(wrong, async (text) => {
      const answer = await service.api('GET', `${path}?${name}=${encode(text)}`, undefined, { key })
      const what = `${path}?${name}=${JSON.stringify(text)}`
      expect(`${what}: ${answer.status} ${answer.error?.code}`).toBe(`${what}: 400 VALIDATION_ERROR`)
    })
})

test('feeds reject forged cursors', async () => {
  const random = seededRandom('forged cursors of feeds')
  const { data: ready } = await service.api('GET', '/readyz')
  const real = [`${ready.journal.epoch}.1`]
  const paths = ['stream', `runs/${runId}/stream`, `runs/${runId}/output-stream`]
  const open = async (path: string, headers: Record<string, string>) => {
    const authorization = `Bearer ${service.workspaceKey}`
    const response = await fetch(`${service.url}/api/v1/${path}`, { headers: { authorization, ...headers } })
    const { status } = response
    if (status === 200) await response.body?.cancel()
    const text = status === 200 ? '' : await response.text()
    expectHarmless({ status, text, error: JSON.parse(text || '{}').error }, `${path} ${JSON.stringify(headers)}`)
  }
  for (const path of paths)
    await inParallel(Array.from({ length: SAMPLES }), async () => {
      const cursor = forge(random, real)
      await open(`${path}?after=${encode(cursor)}`, {})
      // A header cannot carry other characters.
      if (/^[ -~]*$/.test(cursor)) await open(path, { 'last-event-id': cursor })
    })
})

test('subscriptions reject forged cursors and keep their connection', async () => {
  const random = seededRandom('forged cursors of subscriptions')
  const socket = await LiveSocket.open(service)
  for (const number of NUMBERS.filter((text) => Number.isFinite(JSON.parse(`{"n":${jsonOf(text)}}`).n)))
    await rejectedOrSubscribed(`{"op":"subscribe","id":"n","after":${jsonOf(number)}}`)
  for (let n = 0; n < SAMPLES; n++)
    await rejectedOrSubscribed(JSON.stringify({ op: 'subscribe', id: 'n', after: forge(random, []) }))
  await socket.close()

  async function rejectedOrSubscribed(message: string) {
    const [answer] = await socket.ask(message)
    if (answer.op === 'subscribed') await socket.ask({ op: 'unsubscribe', id: 'n' })
    else expect(answer).toMatchObject({ op: 'error', id: 'n', code: 'VALIDATION_ERROR' })
  }
})

test('queries reject a wait_for that is not a position', async () => {
  const random = seededRandom('forged positions of queries')
  const ask = async (waitFor: string) => {
    const answer = await service.api('POST', '/api/v1/query', `{"query":"select 1","wait_for":${waitFor}}`)
    expectHarmless(answer, waitFor)
  }
  // A whole number may be a future position, which the query would wait for.
  const isPosition = (text: string) => /^([\w-]{1,64}\.)?\d{1,15}$/.test(text)
  for (const number of ['1e21', '-1', '0.5', '1e400', '9007199254740993', 'null', '{}', '[1]', 'true'])
    await ask(number)
  for (let n = 0; n < SAMPLES; n++) {
    const text = forge(random, [])
    if (!isPosition(text)) await ask(JSON.stringify(text))
  }
})

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}

/** The number as JSON if it is valid JSON; otherwise as a string. */
function jsonOf(number: string): string {
  try {
    JSON.parse(number)
    return number
  } catch {
    return JSON.stringify(number)
  }
}
