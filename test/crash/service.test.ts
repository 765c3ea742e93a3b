import { expect, test } from 'bun:test'
import { type Answer, createApi, newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/processes.ts'
import { seededRandom } from '../support/random.ts'
import { freePort, type SpawnedService, spawnService } from '../support/service.ts'

/** Long enough for several kills of each process while the fleet reports. */
const KILLS = 6
const WORKERS = 6

test('nothing acknowledged is lost or doubled while the service, ClickHouse and Postgres are killed at random', async () => {
  const random = seededRandom('service crash')
  const PORT = String(freePort())
  let service = await spawnService({ PORT, LOG_LEVEL: 'silent' })
  const { api, workspaceKey, dataDir } = service
  const { agentId, agentKey } = await newAgent(api)

  const stop = new AbortController()
  const acknowledged = {
    runs: new Map<string, 'completed' | 'failed' | 'running'>(),
    events: new Map<string, number>(),
    tasks: 0,
  }
  const call = insistently(`http://127.0.0.1:${PORT}`, agentKey)

  async function work(): Promise<void> {
    while (!stop.signal.aborted) {
      const run_id = Bun.randomUUIDv7()
      await call('/api/ingest/v1/run/start', { agent_id: agentId, run_id, input: { by: 'fleet' } })
      acknowledged.runs.set(run_id, 'running')
      let sent = 0
      for (let batch = random.int(1, 4); batch > 0; batch--) {
        const count = random.int(1, 20)
        // Half of the batches name their events, the other half rely on the Idempotency-Key alone.
        const named = random.bool()
        const events = Array.from({ length: count }, (_, i) => ({
          type: 'step',
          ...(named && { id: `${sent + i}` }),
          payload: { i },
        }))
        await call('/api/ingest/v1/events', { run_id, events }, named ? {} : { 'idempotency-key': `${run_id} ${sent}` })
        sent += count
        acknowledged.events.set(run_id, sent)
      }
      const task = { id: Bun.randomUUIDv7(), name: 'step' }
      await call('/api/ingest/v1/tasks', { run_id, task: { ...task, status: 'running' } })
      await call('/api/ingest/v1/tasks', { run_id, task: { ...task, status: 'completed' } })
      acknowledged.tasks++
      const failed = random.bool()
      await call(
        failed ? '/api/ingest/v1/run/fail' : '/api/ingest/v1/run/complete',
        failed ? { run_id, error_message: 'no' } : { run_id },
      )
      acknowledged.runs.set(run_id, failed ? 'failed' : 'completed')
    }
  }
  const working = Promise.all(Array.from({ length: WORKERS }, work))

  for (let kill = 0; kill < KILLS; kill++) {
    await Bun.sleep(random.int(100, 700))
    const victim = (['service', 'clickhouse', 'postgres'] as const)[kill % 3]
    if (victim === 'service') {
      service.kill('SIGKILL')
      await service.exited
      service = await spawnService({
        PORT,
        DATA_DIR: dataDir,
        BOOTSTRAP_WORKSPACE_KEY: workspaceKey,
        LOG_LEVEL: 'silent',
      })
    } else {
      const name = victim === 'clickhouse' ? 'engine/server.ts' : 'postgres'
      for (const child of childrenOf(service.pid)) if (child.command.includes(name)) process.kill(child.pid, 'SIGKILL')
    }
  }
  await Bun.sleep(300)
  stop.abort()
  await working

  await eventually(() => service.api('GET', '/readyz').then(({ data }) => data?.status === 'ready'), {
    timeoutMs: 15_000,
  })
  await compare(service, acknowledged)
  service.kill('SIGTERM')
  expect(await service.exited).toBe(0)
})

/** A client as it should be: it repeats a call under the same ids until it is answered. */
function insistently(url: string, key: string) {
  const api = createApi(url, key)
  return async (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> => {
    for (;;) {
      const answer = await api('POST', path, body, { headers, signal: AbortSignal.timeout(5_000) }).catch(
        () => undefined,
      )
      if (answer?.status === 200) return answer
      const retryable = answer === undefined || answer.status === 503 || answer.headers.has('retry-after')
      if (!retryable) throw new Error(`${path}: ${answer.status} ${answer.text}`)
      await Bun.sleep(20)
    }
  }
}

interface Acknowledged {
  readonly runs: ReadonlyMap<string, string>
  readonly events: ReadonlyMap<string, number>
  readonly tasks: number
}

async function compare({ api }: SpawnedService, { runs, events, tasks }: Acknowledged): Promise<void> {
  const total = [...events.values()].reduce((sum, count) => sum + count, 0)
  expect(total).toBeGreaterThan(0)
  const sql = async (query: string) => {
    const { data, error } = await api('POST', '/api/v1/query', { query })
    expect(error).toBeNull()
    return data.rows
  }
  await eventually(
    async () => (await sql("select count() as n from runs where status != 'running'"))[0].n === runs.size,
  )
  expect(
    Object.fromEntries(
      (await sql('select run_id, status from runs')).map((row: Record<string, string>) => [row.run_id, row.status]),
    ),
  ).toEqual(Object.fromEntries(runs))
  // At once: a run that is seen to be over has all its events.
  expect((await sql('select count() as n from events'))[0].n).toBe(total)
  expect(
    Object.fromEntries(
      (await sql('select run_id, count() as n from events group by run_id')).map(
        (row: { run_id: string; n: number }) => [row.run_id, row.n],
      ),
    ),
  ).toEqual(Object.fromEntries(events))
  expect((await sql("select count() as n from tasks where status = 'completed'"))[0].n).toBe(tasks)
  await eventually(async () => {
    let counted = 0
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { data }: Answer = await api('GET', `/api/v1/runs?limit=200${cursor && `&cursor=${cursor}`}`)
      for (const run of data.items) counted += run.event_count
      cursor = data.next_cursor
    }
    return counted === total
  })
}
