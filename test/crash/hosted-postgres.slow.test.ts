import { expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/processes.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { type SpawnedService, spawnService } from '../support/service.ts'
import { createWorld, expectEffects, KINDS, startApprover, withRetries } from './hosted-life.ts'

const KILLS = 3
const CLIENTS = 4
const EVENTS = {
  worker: { 'llm.call': 3, 'tool.call.finished': 4, 'approval.decided': 1 },
  parent: { 'llm.call': 2, 'tool.call.finished': 2 },
  talker: { 'llm.call': 2, 'tool.call.finished': 1 },
} as const

test('runs survive a crash of the database: none fails, and nothing is done twice', async () => {
  const random = seededRandom('hosted runs without Postgres')
  const world = createWorld(random, () => {})
  const service = await spawnService({ ...world.backends.env, LOG_LEVEL: 'silent' })
  const agents = await world.createAgents(service)
  const call = withRetries(() => service.api)
  const stopApproving = startApprover(call, () => {})
  const runs = new Map<string, keyof typeof KINDS>()
  const stop = new AbortController()
  let n = 0
  async function invoke(): Promise<void> {
    while (!stop.signal.aborted) {
      const kind = random.pick(['worker', 'parent', 'parent', 'talker'] as const)
      const { data } = await call('POST', `/api/v1/agents/${agents[kind].agentId}/invoke`, {
        background: true,
        input: { message: `${kind}-${n++}` },
      })
      runs.set(data.run_id, kind)
    }
  }
  const invoking = Promise.all(Array.from({ length: CLIENTS }, invoke))
  for (let kill = 0; kill < KILLS; kill++) await killPostgres(service, random, world.backends.model)
  stop.abort()
  await invoking
  // Run by run: a list by status misses a run that changes its status between two lists.
  await eventually(async () => {
    for (const runId of runs.keys())
      expect((await call('GET', `/api/v1/runs/${runId}`)).data.completed_at).not.toBeNull()
  })
  await stopApproving()
  for (const [runId, kind] of runs) {
    const { data } = await call('GET', `/api/v1/runs/${runId}`)
    const text = kind === 'talker' ? `${KINDS.talker.output} ${data.input.message}` : KINDS[kind].output
    expect(data).toMatchObject({ status: 'completed', output: { text } })
    expectEffects(world, kind, data.input.message)
  }
  await eventually(
    async () => {
      const query = 'select run_id, type, count() as n, uniqExact(event_id) as ids from events group by 1, 2'
      const { data } = await call('POST', '/api/v1/query', { query })
      const rows: { run_id: string; type: string; n: number; ids: number }[] = data.rows
      for (const [runId, kind] of runs) {
        const counts = Object.fromEntries(rows.filter((row) => row.run_id === runId).map((row) => [row.type, row.n]))
        expect(counts).toMatchObject({ 'run.started': 1, 'run.completed': 1, ...EVENTS[kind] })
      }
      expect(rows.filter(({ n, ids }) => n !== ids)).toEqual([])
    },
    { intervalMs: 100 },
  )
  service.kill('SIGTERM')
  expect(await service.exited).toBe(0)
})

/** Kills the server with all its sessions while runs are executed, and waits until it is used again. */
async function killPostgres(service: SpawnedService, random: Random, model: { readonly requests: readonly unknown[] }) {
  const before = model.requests.length
  await eventually(() => model.requests.length > before + 5, { intervalMs: 1 })
  await Bun.sleep(random.int(0, 50))
  for (const { pid, command } of childrenOf(service.pid)) if (command.includes('postgres')) process.kill(pid, 'SIGKILL')
  const then = model.requests.length
  await eventually(() => model.requests.length > then + 5)
}
