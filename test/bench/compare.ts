import { type Load, type LoadResult, runLoad } from './load.ts'
import type { Bench } from './parts.ts'
import { alternate } from './quiet.ts'
import { median, ms, spread, whole } from './report.ts'

interface Comparison {
  /** Its heading, and its name in the target line. */
  readonly name: string
  readonly target: number
  readonly ours: Load
  readonly baseline: { readonly name: string; readonly load: Load }
  /** Events per call; the rate is printed beside calls per second when it is not 1. */
  readonly eventsPerCall: number
}

/** Sends the load to the service and to its baseline alternately, and prints both and their ratio. */
export async function compare(
  bench: Pick<Bench, 'service' | 'report' | 'rounds'>,
  { name, target, ours, baseline, eventsPerCall }: Comparison,
): Promise<void> {
  const { report } = bench
  report.heading(name)
  const pairs = await alternate(
    bench,
    () => runLoad(baseline.load),
    () => runLoad(ours),
  )
  const ratios = pairs.map(([theirs, own]) => own.callsPerSecond / theirs.callsPerSecond)
  report.line(
    row(
      baseline.name,
      pairs.map(([theirs]) => theirs),
      eventsPerCall,
    ),
  )
  report.line(
    row(
      'service',
      pairs.map(([, own]) => own),
      eventsPerCall,
    ),
  )
  const ratio = median(ratios)
  report.target(`${name}: ${ratio.toFixed(2)} of the baseline (${spread(ratios)}), target ${target}`, ratio >= target)
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
