import { createRandom } from '../../src/cli/demo/random.ts'
import { type Load, runLoad } from './load.ts'
import { modelCall } from './model-call.ts'
import type { Bench } from './parts.ts'
import { alternate } from './quiet.ts'
import { median, spread, whole } from './report.ts'
import { eventsLoad } from './servers.ts'

const TARGET = 0.8
const CONNECTIONS = 16
const CALLS = 100
const TRACES = 2
const SEED = 20_260_131
/** Ids begin with this; the load puts another beginning into each request. */
const FRESH_ID = '5eed5eed'

/** Batches of the Langfuse SDKs compared with the `events` call, by the bytes that each takes. */
export async function measureLangfuse(bench: Bench): Promise<void> {
  const { service, report, seconds } = bench
  const body = langfuseBatch()
  const requests = service.agents.map(({ key }) => ({ path: '/api/public/ingestion', key, body }))
  const load: Load = { port: service.port, connections: CONNECTIONS, seconds, requests, freshIds: FRESH_ID }
  const events = eventsLoad(service, service.port, CALLS, { connections: CONNECTIONS, seconds, content: 'model calls' })
  const eventBytes = median(events.requests.map((request) => Buffer.byteLength(request.body)))
  const name = `langfuse: ${CALLS} generations of 4 KB in ${TRACES} new traces a batch, ${CONNECTIONS} connections`
  report.heading(name)
  const pairs = await alternate(
    bench,
    () => runLoad(events),
    () => runLoad(load),
  )
  const bytes = Buffer.byteLength(body)
  const ratios = pairs.map(([theirs, own]) => (own.callsPerSecond * bytes) / (theirs.callsPerSecond * eventBytes))
  for (const [what, index, size] of [['events', 0, eventBytes] as const, ['langfuse', 1, bytes] as const]) {
    const rate = median(pairs.map((pair) => pair[index].callsPerSecond))
    const failed = pairs.find((pair) => pair[index].firstFailure !== null)?.[index].firstFailure
    report.line(
      `${what.padEnd(8)} ${whole(rate).padStart(6)} calls/s of ${whole(size)} bytes, ${whole((rate * size) / 1e6)} MB/s` +
        (failed === undefined ? '' : `, FAILED: ${failed}`),
    )
  }
  const ratio = median(ratios)
  report.target(
    `${name}: ${ratio.toFixed(2)} of events by bytes (${spread(ratios)}), target ${TARGET}`,
    ratio >= TARGET,
  )
}

/** A batch of traces, each with a root span and its generations, which end in it. */
function langfuseBatch(): string {
  const random = createRandom(SEED)
  let ids = 0
  const id = () => `${FRESH_ID}-0000-4000-8000-${(++ids).toString(16).padStart(12, '0')}`
  const at = (ms: number) => new Date(Date.UTC(2026, 0, 31, 9, 30) + ms).toISOString()
  const event = (type: string, ms: number, body: object) => ({ id: id(), type, timestamp: at(ms), body })
  const batch = Array.from({ length: TRACES }, () => {
    const [traceId, root] = [id(), id()]
    const generations = Array.from({ length: CALLS / TRACES }, (_, index) => {
      const call = modelCall(random)
      const own = id()
      const ms = index * 10
      return [
        event('generation-create', ms, {
          ...{ id: own, traceId, parentObservationId: root, name: 'llm', startTime: at(ms), environment: 'default' },
          ...{ model: 'gpt-5-mini', modelParameters: { temperature: 0 }, input: call['gen_ai.input.messages'] ?? call },
        }),
        event('generation-update', ms + 5, {
          ...{ id: own, traceId, endTime: at(ms + 5), output: call['gen_ai.output.messages'] ?? 'done' },
          usage: { promptTokens: 100 + index, completionTokens: index, totalTokens: 100 + 2 * index },
        }),
      ]
    })
    return [
      event('trace-create', 0, {
        id: traceId,
        timestamp: at(0),
        name: 'support',
        userId: 'u-1',
        environment: 'default',
      }),
      event('span-create', 0, { id: root, traceId, name: 'answer', startTime: at(0), environment: 'default' }),
      ...generations.flat(),
      event('span-update', 1_000, { id: root, traceId, endTime: at(1_000), output: { done: true } }),
    ]
  })
  return JSON.stringify({ batch: batch.flat(), metadata: { sdk_name: 'langfuse-js' } })
}
