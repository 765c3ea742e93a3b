import { expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { at, event, sendBatch, type TestEvent } from '../support/langfuse.ts'
import { eventsOf, runsOf, tasksOf } from '../support/otlp.ts'
import { spawnService } from '../support/service.ts'

/** Batches of all traces together. */
const BATCHES = Number(process.env.LANGFUSE_CRASH_BATCHES ?? 60)
const CLIENTS = 4

interface Trace {
  readonly traceId: string
  readonly generation: string
  readonly batches: readonly (readonly TestEvent[])[]
}

/** A trace in three batches: its begin, the end of its generation, and its own end. */
function newTrace(): Trace {
  const [traceId, root, generation] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
  const begin = [
    event('trace-create', { id: traceId, name: 'crashing', userId: 'u', metadata: { a: 1 } }),
    event('span-create', { id: root, traceId, name: 'root', startTime: at(0), input: { q: 1 } }),
    event('generation-create', {
      ...{ id: generation, traceId, parentObservationId: root, name: 'llm', model: 'm', startTime: at(1), input: 'hi' },
    }),
  ]
  const middle = [
    event('generation-update', {
      ...{ id: generation, traceId, endTime: at(5), output: 'hello', usageDetails: { input: 10, output: 2 } },
    }),
  ]
  const end = [event('span-update', { id: root, traceId, endTime: at(9), output: { a: 2 } })]
  return { traceId, generation, batches: [begin, middle, end] }
}

test('acknowledged batches are stored exactly once while the service is killed and batches are retried', async () => {
  // Each start has a port of its own: the clients read the address again for each attempt.
  const env = { LOG_LEVEL: 'error' }
  let service = await spawnService(env)
  const data = { ...env, DATA_DIR: service.dataDir, BOOTSTRAP_WORKSPACE_KEY: service.workspaceKey }
  let sent = 0
  let isOver = false
  const traces = Array.from({ length: Math.ceil(BATCHES / 3) }, newTrace)
  const queue = [...traces]
  const client = async () => {
    for (let trace = queue.shift(); trace !== undefined; trace = queue.shift()) {
      for (const batch of trace.batches) {
        for (;;) {
          const answer = await sendBatch(service, batch).catch(() => undefined)
          if (answer?.status === 207) {
            expect(answer.errors, service.output().stderr).toEqual([])
            break
          }
          await Bun.sleep(20)
        }
        sent++
      }
    }
  }
  const killer = async () => {
    for (const share of [0.25, 0.6]) {
      await eventually(() => isOver || sent >= BATCHES * share)
      process.kill(service.pid, 'SIGKILL')
      await service.exited
      service = await spawnService(data)
    }
  }
  await Promise.all([Promise.all(Array.from({ length: CLIENTS }, client)).then(() => (isOver = true)), killer()])
  for (const { traceId, generation } of traces) {
    const [run] = await runsOf(service, traceId)
    expect(run).toMatchObject({ status: 'completed', output: { a: 2 }, input: { q: 1 }, external_user_id: 'u' })
    const tasks = await tasksOf(service, traceId)
    expect(tasks).toHaveLength(2)
    expect(tasks.find(({ id }: { id: string }) => id === generation)).toMatchObject({
      ...{ name: 'llm', status: 'completed', input: { text: 'hi' }, output: { text: 'hello' } },
      ...{ started_at: at(1), completed_at: at(5) },
    })
    const calls = (await eventsOf(service, traceId)).filter(({ type }: { type: string }) => type === 'llm.call')
    expect(calls).toHaveLength(1)
    expect(calls[0].payload).toMatchObject({ 'gen_ai.usage.input_tokens': 10, 'gen_ai.response.model': 'm' })
  }
  const tokens = await eventually(async () => {
    const query = "select sum(input_tokens) as tokens, count() as runs from runs where external_user_id = 'u'"
    const [row] = (await service.api('POST', '/api/v1/query', { query })).data.rows
    return row.tokens === 10 * traces.length && row
  })
  expect(tokens.runs).toBe(traces.length)
}, 600_000)
