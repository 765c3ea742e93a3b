import { expect, spyOn, test } from 'bun:test'
import { inBatches } from '../../src/doors/traces/groups.ts'
import { eventually } from '../support/eventually.ts'
import { at, event, sendBatch, type TestEvent } from '../support/langfuse.ts'
import { eventsOf, runsOf, tasksOf } from '../support/otlp.ts'
import { dataOf, startTestService, type TestService, UNLIMITED } from '../support/service.ts'

/** Observations whose state is not in memory any more: it is read again from what is stored of them. */

const KIB = 1024

async function restart(service: TestService) {
  await service.stop()
  return startTestService({ ...UNLIMITED, ...dataOf(service) })
}

/** Does the work, and returns the length of the longest answer that ClickHouse gave meanwhile. */
async function longestAnswer(clickhouseUrl: string, work: () => Promise<void>): Promise<number> {
  const { host } = new URL(clickhouseUrl)
  const real = globalThis.fetch
  let longest = 0
  const counting = async (...args: Parameters<typeof fetch>) => {
    const response = await real(...args)
    if (new URL(String(args[0])).host !== host) return response
    const text = await response.text()
    longest = Math.max(longest, text.length)
    return new Response(text, response)
  }
  const spied = spyOn(globalThis, 'fetch').mockImplementation(counting as typeof fetch)
  try {
    await work()
  } finally {
    spied.mockRestore()
  }
  return longest
}

/** Rows of SQL, with everything that was sent before. */
async function query(service: TestService, traceId: string, text: string): Promise<Record<string, unknown>[]> {
  // This waits until all of it is loaded.
  await tasksOf(service, traceId)
  return (await service.api('POST', '/api/v1/query', { query: text })).data.rows
}

async function sendAll(service: Parameters<typeof sendBatch>[0], events: readonly TestEvent[], atOnce: number) {
  for (const batch of inBatches(events, atOnce)) {
    // A busy machine may answer 503: a client sends the batch again.
    const { status, errors } = await eventually(async () => {
      const answer = await sendBatch(service, batch)
      return answer.status !== 503 && answer
    })
    expect([status, errors]).toEqual([207, []])
  }
}

test('a small batch about large payloads reads them a part at a time', async () => {
  const first = await startTestService(UNLIMITED)
  const traces = Array.from({ length: 4 }, () => crypto.randomUUID())
  const [traceId] = traces
  const ids = Array.from({ length: 14 }, () => crypto.randomUUID())
  const large = (name: string) => ({ [name]: 'm'.repeat(250 * KIB) })
  await sendAll(
    first,
    [
      ...traces.map((id) => event('trace-create', { id, name: 'large', metadata: large('of') })),
      ...ids.map((id, n) =>
        event('span-create', {
          ...{ id, traceId, name: `span ${n}`, startTime: at(0), metadata: large('of') },
          ...(n % 2 === 0 && { endTime: at(5) }),
        }),
      ),
    ],
    8,
  )
  const second = await restart(first)
  const updates = [
    ...traces.map((id) => event('trace-create', { id, metadata: { later: 1 } })),
    ...ids.map((id) => event('span-update', { id, traceId, output: 'later', metadata: { later: 1 } })),
  ]
  const longest = await longestAnswer(second.clickhouseUrl, () => sendAll(second, updates, 100))
  expect(longest).toBeGreaterThan(1_000 * KIB)
  expect(longest).toBeLessThan(2_500 * KIB)
  // Of two metadata that are too large together, the later one counts.
  const later = await query(
    second,
    traceId,
    `select argMax(toString(payload.metadata.later), seq) as later from events group by run_id, task_id`,
  )
  expect(later).toEqual([...traces, ...ids].map(() => ({ later: '1' })))
  const [{ changed }] = await query(
    second,
    traceId,
    "select count() as changed from tasks where startsWith(name, 'span ') and toString(output.text) = 'later'",
  )
  expect(changed).toBe(ids.length)
})

test('generations that are not in memory any more are completed with their run', async () => {
  const first = await startTestService(UNLIMITED)
  const traceId = crypto.randomUUID()
  const [root, generation] = [crypto.randomUUID(), crypto.randomUUID()]
  await sendAll(
    first,
    [
      event('span-create', { id: root, traceId, name: 'root', startTime: at(0) }),
      event('generation-create', {
        ...{ id: generation, traceId, parentObservationId: root, model: 'm', startTime: at(1) },
        usage: { input: 5, output: 6 },
      }),
    ],
    10,
  )
  const second = await restart(first)
  await sendAll(second, [event('span-update', { id: root, traceId, endTime: at(9) })], 1)
  const calls = (await eventsOf(second, traceId)).filter(({ type }: { type: string }) => type === 'llm.call')
  expect(calls).toHaveLength(1)
  expect(calls[0].payload).toMatchObject({ 'gen_ai.usage.input_tokens': 5, 'gen_ai.usage.output_tokens': 6 })
  await eventually(async () => (await runsOf(second, traceId))[0].usage.total_tokens === 11)
})

test('usage that arrives after the end of a run that is not in memory any more is counted', async () => {
  const first = await startTestService(UNLIMITED)
  const traceId = crypto.randomUUID()
  const [root, generation] = [crypto.randomUUID(), crypto.randomUUID()]
  await sendAll(
    first,
    [
      event('span-create', { id: root, traceId, name: 'root', startTime: at(0), endTime: at(9) }),
      event('generation-create', { id: generation, traceId, parentObservationId: root, startTime: at(1) }),
    ],
    10,
  )
  const second = await restart(first)
  const usage = { input: 5, output: 6 }
  await sendAll(second, [event('generation-update', { id: generation, traceId, usage })], 1)
  await eventually(async () => (await runsOf(second, traceId))[0].usage.total_tokens === 11)
})

test('of a run with more than is kept in memory, updates keep the earlier values, and its generations are completed', async () => {
  const service = await startTestService(UNLIMITED)
  const traceId = crypto.randomUUID()
  const root = crypto.randomUUID()
  const ids: string[] = Array.from({ length: 7 }, () => crypto.randomUUID())
  const input = 'i'.repeat(2.5 * KIB * KIB)
  await sendAll(
    service,
    [
      event('span-create', { id: root, traceId, name: 'root', startTime: at(0) }),
      ...ids.map((id) =>
        event('generation-create', {
          ...{ id, traceId, parentObservationId: root, startTime: at(1), input, usage: { input: 1, output: 2 } },
        }),
      ),
    ],
    1,
  )
  await sendAll(
    service,
    ids.map((id) => event('generation-update', { id, traceId, output: 'later' })),
    100,
  )
  await sendAll(service, [event('span-update', { id: root, traceId, endTime: at(9) })], 1)
  const stored = await query(
    service,
    traceId,
    'select name, status, length(toString(input.text)) as bytes, toString(output.text) as output from tasks',
  )
  expect(stored.filter(({ name }) => name === 'generation')).toEqual(
    ids.map(() => ({ name: 'generation', status: 'completed', bytes: input.length, output: 'later' })),
  )
  const [{ calls }] = await query(service, traceId, "select count() as calls from events where type = 'llm.call'")
  expect(calls).toBe(ids.length)
})
