import { expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { seededRandom } from '../support/random.ts'
import { freePort, type SpawnedService, spawnService, startTestService } from '../support/service.ts'
import { spawnTail, type TailProcess } from './tail-process.ts'

/** `bun run tail` against the real service. `tail-faults.test.ts` plays faults of the service. */

const HOUR_MS = 3_600_000

test('a tail misses and repeats nothing while the service is killed, stopped and restarted', async () => {
  const random = seededRandom('tail')
  const PORT = String(freePort())
  const first = await spawnService({ PORT, LOG_LEVEL: 'silent' })
  const again = { PORT, LOG_LEVEL: 'silent', DATA_DIR: first.dataDir, BOOTSTRAP_WORKSPACE_KEY: first.workspaceKey }
  const { agentId, agentKey } = await newAgent(first.api)
  const { data } = await first.api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
  const tails = [
    spawnTail(first.url, first.workspaceKey, '--since', '0', '--kind', 'event', '--json'),
    spawnTail(first.url, agentKey, '--since', '0', '--type', 'step*'),
  ] as const
  let sent = 0
  /** Reports some events in a few calls; returns when at least one of them was shown. */
  const report = async ({ api }: SpawnedService) => {
    const before = sent
    for (let calls = random.int(1, 5); calls > 0; calls--) {
      const events = Array.from({ length: random.int(1, 40) }, () => ({
        type: 'step.done',
        payload: { n: sent++ },
      }))
      const { status } = await api('POST', '/api/ingest/v1/events', { run_id: data.run_id, events }, { key: agentKey })
      expect(status).toBe(200)
    }
    await eventually(() => tails.every((tail) => tail.lines().length > before))
  }
  await report(first)
  let service = first
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    service.kill(signal)
    await service.exited
    service = await spawnService(again)
    await report(service)
  }
  await eventually(() => tails.every((tail) => tail.lines().length >= sent))
  for (const tail of tails) tail.signal('SIGINT')
  expect(await Promise.all(tails.map((tail) => tail.exited))).toEqual([0, 0])
  const [json, text] = tails
  const inOrder = Array.from({ length: sent }, (_, n) => n)
  expect(json.lines().map((line) => JSON.parse(line).event.payload.n)).toEqual(inOrder)
  expect(text.lines().map((line) => Number(/step\.done n=(\d+)$/.exec(line)?.[1]))).toEqual(inOrder)
  for (const tail of tails) {
    expect(tail.notes().match(/disconnected \(.+\); reconnecting …/g)?.length).toBe(2)
    expect(tail.notes().match(/resumed, nothing missed/g)?.length).toBe(2)
  }
  service.kill('SIGTERM')
  await service.exited
})

test('--since with a duration starts there: with runs and tasks before the first event, and without anything older', async () => {
  let ago = 72 * HOUR_MS
  const service = await startTestService({}, { clock: { now: () => Date.now() - ago } })
  const { api, url, workspaceKey } = service
  const { agentId, agentKey } = await newAgent(api, { name: 'support' })
  const run = async (type: string) => {
    const started = await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
    const { run_id } = started.data
    await inSql(api, run_id, 'running')
    const body = { run_id, events: [{ type }] }
    await api('POST', '/api/ingest/v1/events', body, { key: agentKey })
    await api('POST', '/api/ingest/v1/run/complete', { run_id }, { key: agentKey })
    await inSql(api, run_id, 'completed')
  }
  await run('old')
  ago = HOUR_MS
  await run('recent')

  const recent = await firstLines(spawnTail(url, workspaceKey, '--since', '2h'), 3)
  expect(recent.map((line) => line.replace(/^\S+ +/, ''))).toEqual([
    expect.stringMatching(/^support …\w{8} run running$/),
    expect.stringMatching(/^INFO +support …\w{8} recent$/),
    expect.stringMatching(/^support …\w{8} run completed [\d.]+ m?s$/),
  ])
  const all = await firstLines(spawnTail(url, agentKey, '--since', '0', '--json'), 6)
  const change = undefined
  const types = all.map((line) => JSON.parse(line).event?.type)
  expect(types).toEqual([change, 'old', change, change, 'recent', change])
  const { cursor } = JSON.parse(all[1]!)
  const rest = await firstLines(spawnTail(url, agentKey, '--since', cursor, '--json', '--type', 're*'), 1)
  expect(rest).toEqual([all[4]!])

  const agentTail = spawnTail(url, agentKey, '--since', '10m')
  expect(await agentTail.exited).toBe(1)
  expect(agentTail.notes()).toContain('With an agent key use --since 0')
  await service.stop()
})

test("ends with the service's message for an invalid key, an invalid filter and a revocation", async () => {
  const { api, url, workspaceKey } = await startTestService()
  const { agentKey } = await newAgent(api)
  const refused = async (expected: string, ...args: Parameters<typeof spawnTail>) => {
    const tail = spawnTail(...args)
    expect([await tail.exited, tail.lines()]).toEqual([1, []])
    expect(tail.notes()).toContain(expected)
  }
  const made = await api('POST', '/api/v1/keys', { name: 'to be revoked' })
  const { key_id, key } = made.data
  const watching = spawnTail(url, key, '--json', '--since', '0')
  const agent = await newAgent(api)
  await api('POST', '/api/ingest/v1/run/start', { agent_id: agent.agentId }, { key: agent.agentKey })
  await eventually(() => watching.lines().length > 0)
  await api('POST', `/api/v1/keys/${key_id}/revoke`, {})
  expect(await watching.exited).toBe(1)
  expect(watching.notes()).toBe('the key was revoked or expired\n')

  await Promise.all([
    refused(`the service at ${url} rejected the key: `, url, key),
    refused('filter.level[0]: expected one of debug, info, warn, error; got "loud"', url, workspaceKey, '--level=loud'),
    refused('FORBIDDEN: ', url, agentKey, '--agent', crypto.randomUUID()),
    spawnTail(url, workspaceKey, '--agnet', 'x').exited.then((code) => expect(code).toBe(2)),
    refused('after: expected the cursor of an activity', url, workspaceKey, '--since', 'yesterday'),
  ])
})

/** The first lines of a tail, which is then stopped. */
async function firstLines(tail: TailProcess, count: number): Promise<string[]> {
  await eventually(() => tail.lines().length >= count)
  tail.signal('SIGINT')
  expect(await tail.exited).toBe(0)
  const days = /^── .+ ──$/
  return tail.lines().filter((line) => !days.test(line))
}

/** Waits until the run's change has left the outbox, so that it comes before the next report. */
async function inSql(api: SpawnedService['api'], id: string, status: string): Promise<void> {
  await eventually(async () => {
    const query = 'select status from runs where run_id = {id:UUID}'
    const { data } = await api('POST', '/api/v1/query', { query, params: { id } })
    return data.rows[0]?.status === status
  })
}
