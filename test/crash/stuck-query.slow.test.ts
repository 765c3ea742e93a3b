import { beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { type Answer, createApi, newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/postgres.ts'
import { childrenOf } from '../support/processes.ts'
import { OPERATOR_TOKEN, type SpawnedService, spawnService } from '../support/service.ts'

/** A query that the engine cannot cancel makes it restart, without effects on other workspaces. */

/** The engine checks limits only before and after this call, which takes days. */
const ENDLESS = "select position(repeat(repeat('a', 1000000), 200), concat(repeat('a', 100000), 'b')) as n"
/** Takes a moment, so that one is running nearly all the time. */
const SLOW = 'select sum(sipHash64(number)) as n from numbers(2000000)'
const SECONDS = 3

let service: SpawnedService
let rogueKey: string

beforeAll(async () => {
  const { url: DATABASE_URL } = await freshDatabase()
  service = await spawnService({
    DATABASE_URL,
    LOG_LEVEL: 'silent',
    QUERY_CAPS: JSON.stringify({ seconds: SECONDS, penalty_seconds: 600 }),
  })
  rogueKey = (await newWorkspace('rogue')).key
})

const engine = () => childrenOf(service.pid).find(({ command }) => command.includes('engine/server.ts'))?.pid
const ask = (query: string, key?: string): Promise<Answer> =>
  service.api('POST', '/api/v1/query', { query }, key === undefined ? {} : { key })

async function newWorkspace(name: string): Promise<{ key: string }> {
  const operator = { key: OPERATOR_TOKEN }
  return (await service.api('POST', '/api/v1/workspaces', { name }, operator)).data
}

describe('a query that the engine cannot cancel', () => {
  test('times out and is followed by a penalty, while other workspaces and the loading of events continue', async () => {
    const { agentId, agentKey } = await newAgent(service.api)
    const agent = createApi(service.url, agentKey)
    const start = await agent('POST', '/api/ingest/v1/run/start', { agent_id: agentId })
    const runId = start.data.run_id
    const pid = engine()

    let isOver = false
    let sent = 0
    const reporting = (async () => {
      for (; !isOver; sent++) {
        const body = { run_id: runId, events: [{ type: 'step', id: `e${sent}` }] }
        expect((await agent('POST', '/api/ingest/v1/events', body)).status).toBe(200)
        await Bun.sleep(10)
      }
    })()
    const others: Answer[] = []
    const asking = ['select 1 as n', SLOW].map(async (query) => {
      while (!isOver) others.push(await ask(query))
    })

    const startedMs = performance.now()
    const [first, ...rest] = await Promise.all([ENDLESS, ENDLESS, ENDLESS].map((query) => ask(query, rogueKey)))
    const tookSeconds = (performance.now() - startedMs) / 1000
    for (const answer of [first, ...rest]) {
      expect(answer!.error).toMatchObject({ code: 'VALIDATION_ERROR' })
      expect(answer!.error!.message).toContain('took longer')
    }
    expect(tookSeconds).toBeGreaterThan(SECONDS)

    const refused = await ask('select 1', rogueKey)
    expect(refused.error).toMatchObject({ code: 'RATE_LIMITED' })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(500)

    await eventually(async () => engine() !== pid && engine() !== undefined)
    const before = others.length
    await eventually(() => others.length > before + 2)
    isOver = true
    await Promise.all([reporting, ...asking])
    // Queries cut off by the restart were repeated. On a busy machine a slow query may exceed its time limit.
    expect(others.filter(({ status, text }) => status !== 200 && !text.includes('took longer'))).toEqual([])

    const counted = await eventually(async () => {
      const { data } = await ask(
        `select count() as n, uniqExact(event_id) as ids from events where run_id = '${runId}'`,
      )
      return data.rows[0].n >= sent && data.rows[0]
    })
    expect(counted).toEqual({ n: sent, ids: sent })
  })

  test('makes the engine restart even when its client has disconnected', async () => {
    const { key } = await newWorkspace('leaver')
    const pid = engine()
    const abort = new AbortController()
    const before = busySeconds(pid!)
    const call = service.api('POST', '/api/v1/query', { query: ENDLESS }, { key, signal: abort.signal }).catch(String)
    await eventually(() => busySeconds(pid!) > before + 0.5)
    abort.abort()
    await call
    await eventually(async () => (await ask('select 1', key)).error?.code === 'RATE_LIMITED')
    await eventually(async () => engine() !== pid && (await ask('select 1 as n')).status === 200)
  })
})

/** The CPU time that the process has used. */
function busySeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

test('a stopped engine is reported by /readyz and replaced', async () => {
  const health = async () => (await service.api('GET', '/readyz', undefined, { key: null })).data
  await eventually(async () => (await health()).status === 'ready')
  const pid = engine()
  process.kill(pid!, 'SIGSTOP')
  const names = ['clickhouse', 'sql', 'loading'] as const
  const { status, dependencies } = await eventually(async () => {
    const data = await health()
    return names.every((name) => !data.dependencies[name].ok) && data
  })
  expect(status).toBe('degraded')
  for (const name of names) expect(dependencies[name].problem).toBe('no answer for 2000 ms')
  await eventually(async () => engine() !== pid && (await health()).status === 'ready')
})

test('an engine is not taken for dead because the service itself did not run', async () => {
  await eventually(async () => (await service.api('GET', '/readyz', undefined, { key: null })).data.status === 'ready')
  const pid = engine()
  process.kill(service.pid, 'SIGSTOP')
  // Longer than an engine may be silent.
  await Bun.sleep(17_000)
  process.kill(service.pid, 'SIGCONT')
  const { key } = await newWorkspace('waking')
  expect(await eventually(async () => (await ask('select 1 as n', key)).status === 200)).toBe(true)
  expect(engine()).toBe(pid)
})
