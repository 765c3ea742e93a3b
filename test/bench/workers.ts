import { OPERATOR_TOKEN } from '../support/service.ts'
import { compare } from './compare.ts'
import type { Load } from './load.ts'
import type { Bench } from './parts.ts'
import { type BenchService, eventsLoad, makeAgents, startBenchService } from './servers.ts'

const EVENTS_PER_CALL = 100
const CONNECTIONS = 64
const FORWARDED_TARGET = 0.7
/** On two cores, which the load generator and ClickHouse share, a second process has nothing to gain. */
const SHARED_TARGET = 0.8

interface State {
  readonly nodes: readonly { readonly instance_id: string; readonly url: string }[]
  readonly partitions: readonly { readonly partition: number; readonly owner: string; readonly lag: number }[]
}

/** Two processes on one port (`WORKERS=2`), compared with one. */
export async function measureWorkers({ service: one, report, rounds, seconds }: Bench): Promise<void> {
  const started = await startBenchService({ WORKERS: '2' })
  const state = async () =>
    (await started.call('GET', '/api/v1/cluster', undefined, OPERATOR_TOKEN)) as unknown as State
  const two: BenchService = {
    ...started,
    async backlog() {
      const lags = (await state()).partitions.map(({ lag }) => lag)
      return Math.max(await one.backlog(), ...lags)
    },
  }
  const made = await two.call('POST', '/api/v1/workspaces', { name: 'second' }, OPERATOR_TOKEN)
  const others = await makeAgents(two.call, String(made.key))
  const shape = { connections: CONNECTIONS, seconds }
  const common = { service: two, report, rounds, eventsPerCall: EVENTS_PER_CALL }

  const title = `workers: ${EVENTS_PER_CALL} events a call, ${CONNECTIONS} connections, two workspaces`
  report.heading(title)
  await compare({
    ...common,
    name: title,
    target: SHARED_TARGET,
    baseline: { name: 'one', load: eventsLoad(one, one.port, EVENTS_PER_CALL, shape) },
    ours: alternating(
      eventsLoad(two, two.port, EVENTS_PER_CALL, shape),
      eventsLoad({ agents: others }, two.port, EVENTS_PER_CALL, shape),
    ),
  })

  const { nodes, partitions } = await state()
  // The workspace of the first start.
  const [{ owner }] = partitions
  const portOf = (isOwner: boolean) => {
    const node = nodes.find(({ instance_id }) => (instance_id === owner) === isOwner)
    return Number(new URL(node!.url).port)
  }
  const forwarded = `workers: ${EVENTS_PER_CALL} events a call, all sent to the worker that does not own the workspace`
  report.heading(forwarded)
  await compare({
    ...common,
    name: forwarded,
    target: FORWARDED_TARGET,
    baseline: { name: 'direct', load: eventsLoad(two, portOf(true), EVENTS_PER_CALL, shape) },
    ours: eventsLoad(two, portOf(false), EVENTS_PER_CALL, shape),
  })
}

/** The requests of both loads in turn. */
function alternating(a: Load, b: Load): Load {
  return { ...a, requests: a.requests.flatMap((request, index) => [request, b.requests[index % b.requests.length]!]) }
}
