import type { Bench } from './parts.ts'
import { quiet } from './quiet.ts'
import { ms, whole } from './report.ts'
import type { BenchService } from './servers.ts'

const LOOPS = 8
const EVENTS_PER_CALL = 25
const CALLS_PER_SECOND = 10
const SECONDS = 15
const POLL_INTERVAL_MS = 50
const TARGET_MS = 2_000

/** How soon SQL shows acknowledged events, while other programs use all processors. */
export async function measureFreshness({ service, report }: Bench): Promise<void> {
  report.heading(`freshness of SQL at ${whole(EVENTS_PER_CALL * CALLS_PER_SECOND)} events/s`)
  await quiet(service)
  report.line(summary('alone', await freshness(service, SECONDS / 3)))
  const loops = Array.from({ length: LOOPS }, () => busyLoop((SECONDS + 5) * 1_000))
  const beside = await freshness(service, SECONDS)
  for (const loop of loops) loop.kill('SIGKILL')
  await Promise.all(loops.map(({ exited }) => exited))
  const worst = beside.at(-1) ?? Number.POSITIVE_INFINITY
  report.target(`${summary(`beside ${LOOPS} busy loops`, beside)}, target at most ${TARGET_MS} ms`, worst <= TARGET_MS)
}

function summary(where: string, sorted: readonly number[]): string {
  return `${where}: median ${ms(percentile(sorted, 0.5))}, p99 ${ms(percentile(sorted, 0.99))}, longest ${ms(sorted.at(-1) ?? Number.NaN)}`
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** A process that only uses a processor, and exits by itself. */
function busyLoop(milliseconds: number) {
  const loop = `const end = performance.now() + ${milliseconds}; while (performance.now() < end) {}`
  return Bun.spawn([process.execPath, '-e', loop], { stdin: 'ignore', stdout: 'ignore' })
}

/** @returns milliseconds from each acknowledgement to the end of the first query that shows its events, sorted */
async function freshness(service: BenchService, seconds: number): Promise<number[]> {
  const { key, runIds } = service.agents[0]!
  const events = Array.from({ length: EVENTS_PER_CALL }, (_, i) => ({ type: 'step', payload: { i } }))
  const acknowledged: { readonly seq: number; readonly atMs: number }[] = []
  const waits: number[] = []
  let sent = 0
  const watching = (async () => {
    while (sent < seconds * CALLS_PER_SECOND || acknowledged.length > 0) {
      const { rows } = await service.call('POST', '/api/v1/query', { query: 'select max(seq) as seq from events' })
      const shown = Number((rows as { seq: number }[])[0]!.seq)
      const now = performance.now()
      while (acknowledged.length > 0 && acknowledged[0]!.seq <= shown) waits.push(now - acknowledged.shift()!.atMs)
      await Bun.sleep(POLL_INTERVAL_MS)
    }
  })()
  const startedMs = performance.now()
  for (; sent < seconds * CALLS_PER_SECOND; sent++) {
    await Bun.sleep(Math.max(0, startedMs + (sent * 1_000) / CALLS_PER_SECOND - performance.now()))
    const body = { run_id: runIds[sent % runIds.length]!, events }
    const answer = await service.call('POST', '/api/ingest/v1/events', body, key)
    acknowledged.push({ seq: Number(answer.last_seq), atMs: performance.now() })
  }
  await watching
  return waits.sort((a, b) => a - b)
}
