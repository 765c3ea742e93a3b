import { type Load, runLoad } from './load.ts'
import type { Bench } from './parts.ts'
import { alternate } from './quiet.ts'
import { median, spread, whole } from './report.ts'

const MANY = 60_000
const FEW = 1_000
const CONNECTIONS = 16
/** Calls per second with many live runs, as a share of those with few. */
const TARGET = 0.5

/** Single events with ids, for each of many live runs in turn, compared with the same for few. */
export async function measureLiveRuns(bench: Bench): Promise<void> {
  const { service, seconds, report } = bench
  const agent = service.agents[0]!
  const name = `live: one event with an id a call, ${whole(MANY)} live runs in turn, ${CONNECTIONS} connections`
  report.heading(name)
  const runIds: string[] = []
  const start = async () => {
    while (runIds.length < MANY) {
      const { run_id } = await service.call('POST', '/api/ingest/v1/run/start', { agent_id: agent.agentId }, agent.key)
      runIds.push(String(run_id))
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, start))
  // Each load has ids of its own, as many as with many runs.
  const load = (count: number): Load => {
    const prefix = crypto.randomUUID()
    const requests = Array.from({ length: MANY }, (_, index) => {
      const events = [{ id: `${prefix}-${index}`, type: 'step', payload: { index } }]
      return {
        path: '/api/ingest/v1/events',
        key: agent.key,
        body: JSON.stringify({ run_id: runIds[index % count], events }),
      }
    })
    return { port: service.port, connections: CONNECTIONS, seconds, requests }
  }
  const pairs = await alternate(
    bench,
    () => runLoad(load(FEW)),
    () => runLoad(load(MANY)),
  )
  const failure = pairs.flat().find(({ firstFailure }) => firstFailure !== null)?.firstFailure
  if (failure) report.line(`FAILED: ${failure}`)
  for (const [index, count] of [FEW, MANY].entries())
    report.line(`${whole(count)} runs: ${whole(median(pairs.map((pair) => pair[index]!.callsPerSecond)))} calls/s`)
  const ratios = pairs.map(([few, many]) => many.callsPerSecond / few.callsPerSecond)
  const ratio = median(ratios)
  report.target(
    `${name}: ${ratio.toFixed(2)} of ${whole(FEW)} runs (${spread(ratios)}), target ${TARGET}`,
    ratio >= TARGET,
  )
}
