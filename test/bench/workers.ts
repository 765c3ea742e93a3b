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
  const load = (of: Pick<BenchService, 'agents'>, port: number) =>
    eventsLoad(of, port, EVENTS_PER_CALL, { connections: CONNECTIONS, seconds })
  const bench = { service: two, report, rounds }
  const title = `workers: ${EVENTS_PER_CALL} events a call`

  await compare(bench, {
    name: `${title}, ${CONNECTIONS} connections, two workspaces`,
    ...{ target: SHARED_TARGET, eventsPerCall: EVENTS_PER_CALL },
    baseline: { name: 'one', load: load(one, one.port) },
    ours: alternating(load(two, two.port), load({ agents: others }, two.port)),
  })

  const { nodes, partitions } = await state()
  // The workspace of the first start.
  const [{ owner }] = partitions
  const portOf = (isOwner: boolean) => {
    const node = nodes.find(({ instance_id }) => (instance_id === owner) === isOwner)
    return Number(new URL(node!.url).port)
  }
  await compare(bench, {
    name: `${title}, all sent to the worker that does not own the workspace`,
    ...{ target: FORWARDED_TARGET, eventsPerCall: EVENTS_PER_CALL },
    baseline: { name: 'direct', load: load(two, portOf(true)) },
    ours: load(two, portOf(false)),
  })
}

/** The requests of both loads in turn. */
function alternating(a: Load, b: Load): Load {
  return { ...a, requests: a.requests.flatMap((request, index) => [request, b.requests[index % b.requests.length]!]) }
}
