import { type Load, type LoadResult, runLoad } from './load.ts'
import { quiet } from './quiet.ts'
import { median, ms, type Report, whole } from './report.ts'
import type { BenchService } from './servers.ts'

export interface Comparison {
  readonly service: BenchService
  readonly report: Report
  readonly rounds: number
  /** Its name in the target line. */
  readonly name: string
  readonly target: number
  readonly ours: Load
  readonly baseline: { readonly name: string; readonly load: Load }
  /** Events per call; the rate is printed beside calls per second when it is not 1. */
  readonly eventsPerCall: number
  /** How a load is sent; by `load-generator.ts` unless given. */
  readonly run?: (load: Load) => Promise<LoadResult>
}

/** Sends the load to the service and to its baseline alternately, and prints both and their ratio. */
export async function compare(comparison: Comparison): Promise<void> {
  const { service, report, rounds, target, name, run = runLoad } = comparison
  const ours: LoadResult[] = []
  const theirs: LoadResult[] = []
  // A first round that does not count, until both are compiled.
  for (const load of [comparison.baseline.load, comparison.ours]) await run(load)
  for (let round = 0; round < rounds; round++) {
    await quiet(service)
    theirs.push(await run(comparison.baseline.load))
    await quiet(service)
    ours.push(await run(comparison.ours))
  }
  const ratios = ours.map(({ callsPerSecond }, round) => callsPerSecond / theirs[round]!.callsPerSecond)
  report.line(row(comparison.baseline.name, theirs, comparison.eventsPerCall))
  report.line(row('service', ours, comparison.eventsPerCall))
  const ratio = median(ratios)
  const spread = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`
  report.target(`${name}: ${ratio.toFixed(2)} of the baseline (${spread}), target ${target}`, ratio >= target)
}

function row(name: string, results: readonly LoadResult[], eventsPerCall: number): string {
  const of = (figure: (result: LoadResult) => number) => median(results.map(figure))
  const calls = of(({ callsPerSecond }) => callsPerSecond)
  const events = eventsPerCall === 1 ? '' : `${whole(calls * eventsPerCall)} events/s, `
  const failures = results.reduce((sum, result) => sum + result.failures, 0)
  const refused = results.find(({ firstFailure }) => firstFailure !== null)?.firstFailure
  return (
    `${name.padEnd(8)} ${whole(calls).padStart(8)} calls/s, ${events}p50 ${ms(of(({ p50 }) => p50))}, ` +
    `p99 ${ms(of(({ p99 }) => p99))}${failures === 0 ? '' : `, ${failures} FAILED, the first: ${refused}`}`
  )
}
