import type { Bench } from './parts.ts'
import { quiet } from './quiet.ts'
import { ms, percentile, whole } from './report.ts'
import type { BenchService } from './servers.ts'

/** Events that are reported at a steady rate. */
interface Rate {
  readonly eventsPerCall: number
  readonly callsPerSecond: number
  readonly seconds: number
}

const TYPICAL: Rate = { eventsPerCall: 100, callsPerSecond: 20, seconds: 5 }
const DELAY_TARGET_MS = 1_000
const SLOW: Rate = { eventsPerCall: 25, callsPerSecond: 10, seconds: 15 }
const LOOPS = 8
const POLL_MS = 10
const TARGET_MS = 2_000

/** From acknowledgement to the first query that sees the events, at the rate of a typical installation. */
export async function measureDelay({ service, report }: Bench): Promise<void> {
  report.heading(`delay: from acknowledgement to SQL at ${shown(TYPICAL)}, for ${TYPICAL.seconds} s`)
  await quiet(service)
  const delays = await delaysOf(service, TYPICAL)
  const [p50, p99] = [percentile(delays, 0.5), percentile(delays, 0.99)]
  report.target(
    `delay to SQL: p50 ${ms(p50)}, p99 ${ms(p99)}, target p99 ${ms(DELAY_TARGET_MS)}`,
    p99 < DELAY_TARGET_MS,
  )
}

/** How soon SQL shows acknowledged events, while other programs use all processors. */
export async function measureFreshness({ service, report }: Bench): Promise<void> {
  report.heading(`freshness of SQL at ${shown(SLOW)}`)
  await quiet(service)
  report.line(summary('alone', await delaysOf(service, { ...SLOW, seconds: SLOW.seconds / 3 })))
  const loops = Array.from({ length: LOOPS }, () => busyLoop((SLOW.seconds + 5) * 1_000))
  const beside = await delaysOf(service, SLOW)
  for (const loop of loops) loop.kill('SIGKILL')
  await Promise.all(loops.map(({ exited }) => exited))
  const text = `${summary(`beside ${LOOPS} busy loops`, beside)}, target at most ${TARGET_MS} ms`
  report.target(text, Math.max(...beside) <= TARGET_MS)
}

function shown({ eventsPerCall, callsPerSecond }: Rate): string {
  return `${whole(eventsPerCall * callsPerSecond)} events/s`
}

function summary(where: string, delays: readonly number[]): string {
  const [p50, p99] = [percentile(delays, 0.5), percentile(delays, 0.99)]
  return `${where}: median ${ms(p50)}, p99 ${ms(p99)}, longest ${ms(Math.max(...delays))}`
}

/** A process that only uses a processor, and exits by itself. */
function busyLoop(milliseconds: number) {
  const loop = `const end = performance.now() + ${milliseconds}; while (performance.now() < end) {}`
  return Bun.spawn([process.execPath, '-e', loop], { stdin: 'ignore', stdout: 'ignore' })
}

/** Milliseconds from each acknowledgement to the end of the first query that shows its events. */
export async function delaysOf(
  service: BenchService,
  { eventsPerCall, callsPerSecond, seconds }: Rate,
): Promise<readonly number[]> {
  const { key, runIds } = service.agents[0]!
  const events = Array.from({ length: eventsPerCall }, (_, i) => ({ type: 'step', payload: { i } }))
  const acknowledged: { readonly seq: number; readonly atMs: number }[] = []
  const delays: number[] = []
  const calls = seconds * callsPerSecond
  const report = async (index: number) => {
    await Bun.sleep((index * 1_000) / callsPerSecond)
    const body = { run_id: runIds[index % runIds.length]!, events }
    const answer = await service.call('POST', '/api/ingest/v1/events', body, key)
    acknowledged.push({ seq: Number(answer.last_seq), atMs: performance.now() })
  }
  const reported = Promise.all(Array.from({ length: calls }, (_, index) => report(index)))
  while (delays.length < calls) {
    const { rows } = await service.call('POST', '/api/v1/query', { query: 'select max(seq) as seq from events' })
    const shown = Number((rows as { seq: number | string }[])[0]!.seq)
    const now = performance.now()
    for (const each of acknowledged.splice(0)) {
      if (each.seq <= shown) delays.push(now - each.atMs)
      else acknowledged.push(each)
    }
    await Bun.sleep(POLL_MS)
  }
  await reported
  return delays
}
