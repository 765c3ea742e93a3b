import { median, percentile } from '../../report.ts'
import type { AgentSystem } from './agent-peer.ts'

export const AGENT_CALLERS = 32
const WARM_UP_SECONDS = 4

export interface Throughput {
  readonly runsPerSecond: number
  /** Milliseconds of a whole run, from the invoke to the end; the approval comes at once. */
  readonly p50: number
  readonly p99: number
}

/** Complete runs by concurrent callers, each of whom approves as soon as the run waits. */
export async function throughputOf(system: AgentSystem, seconds: number, rounds: number): Promise<Throughput> {
  await runs(system, WARM_UP_SECONDS)
  const results: Throughput[] = []
  for (let round = 0; round < rounds; round++) results.push(await runs(system, seconds))
  const of = (figure: keyof Throughput) => median(results.map((result) => result[figure]))
  return { runsPerSecond: of('runsPerSecond'), p50: of('p50'), p99: of('p99') }
}

async function runs(system: AgentSystem, seconds: number): Promise<Throughput> {
  const took: number[] = []
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1000
  const caller = async () => {
    while (performance.now() < endsAt) {
      const run = Bun.randomUUIDv7()
      const began = performance.now()
      await system.invoke(run)
      await system.approve(run)
      took.push(performance.now() - began)
    }
  }
  await Promise.all(Array.from({ length: AGENT_CALLERS }, caller))
  const runsPerSecond = (took.length / (performance.now() - startedAt)) * 1000
  return { runsPerSecond, p50: percentile(took, 0.5), p99: percentile(took, 0.99) }
}
