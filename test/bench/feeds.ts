import { measureFilters } from './filters.ts'
import { runLoad } from './load.ts'
import type { Bench } from './parts.ts'
import { quiet } from './quiet.ts'
import { median, ms, percentile, type Report, whole } from './report.ts'
import { type BenchService, eventsLoad, startScript } from './servers.ts'
import { barePlan, type FeedKind, planOf, subscribe, type Watchers } from './watchers.ts'

const SUBSCRIBERS = 1_000
const IDLE_SUBSCRIBERS = 5_000
const EVENTS_PER_CALL = 10
const REPORTERS = 4
const DELAY_MESSAGES = 50
const TARGETS = { ws: 0.8, sse: 0.7, delay: 3, idle: 1.5 }
const SETTLE_MS = 2_000
const NAME: Record<FeedKind, string> = { ws: 'WebSocket', sse: 'SSE' }

/** Live feeds compared with plain Bun: deliveries, their delay, and the memory of idle subscribers. */
export async function measureFeeds(bench: Bench): Promise<void> {
  const { port: barePort } = await startScript('bare-feeds.ts', [])
  for (const kind of ['ws', 'sse'] as const) await deliveries(bench, barePort, kind)
  await delay(bench, barePort)
  await idleMemory(bench)
  await measureFilters(bench)
}

async function deliveries(
  { service, report, rounds, seconds }: Bench,
  barePort: number,
  kind: FeedKind,
): Promise<void> {
  report.heading(`feeds: ${NAME[kind]} deliveries to ${whole(SUBSCRIBERS)} subscribers`)
  const ours: number[] = []
  const theirs: number[] = []
  let frameBytes = 0
  for (let round = 0; round <= rounds; round++) {
    await quiet(service)
    const { bytes, frames } = await delivered(service, kind, seconds)
    frameBytes = Math.round(bytes / SUBSCRIBERS / frames)
    await quiet(service)
    const bare = await flood(barePort, kind, frameBytes, seconds)
    // The first round only warms up the compilers.
    if (round === 0) continue
    ours.push(bytes / seconds / frameBytes)
    theirs.push(bare / seconds / frameBytes)
  }
  const ratio = median(ours.map((each, round) => each / theirs[round]!))
  report.line(`bare     ${whole(median(theirs)).padStart(9)} deliveries/s of ${whole(frameBytes)} bytes`)
  report.line(`service  ${whole(median(ours)).padStart(9)} deliveries/s, reported by ${REPORTERS} connections`)
  target(report, `${NAME[kind]} deliveries: ${ratio.toFixed(2)} of bare Bun`, ratio, TARGETS[kind])
}

/** What the subscribers received while events were reported. */
export async function delivered(service: BenchService, kind: FeedKind, seconds: number) {
  const watchers = await subscribe(await planOf(service, kind, SUBSCRIBERS))
  const before = await watchers.count()
  await runLoad(eventsLoad(service, service.port, EVENTS_PER_CALL, { connections: REPORTERS, seconds }))
  const after = await watchers.count()
  await watchers.stop()
  return { bytes: after.bytes - before.bytes, frames: after.frames - before.frames }
}

/** The bytes that the subscribers of the bare server received. */
async function flood(port: number, kind: FeedKind, frameBytes: number, seconds: number): Promise<number> {
  const watchers = await subscribe(barePlan(port, kind, SUBSCRIBERS))
  const before = await watchers.count()
  await fetch(`http://127.0.0.1:${port}/publish/${kind}?seconds=${seconds}`, {
    method: 'POST',
    body: filler(frameBytes),
  })
  const after = await watchers.count()
  await watchers.stop()
  return after.bytes - before.bytes
}

async function delay({ service, report, rounds }: Bench, barePort: number): Promise<void> {
  report.heading(`feeds: from the call to each of ${whole(SUBSCRIBERS)} WebSocket subscribers`)
  const measured = { ours: [] as number[], theirs: [] as number[], oursP50: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    await quiet(service)
    const bare = await subscribe(barePlan(barePort, 'ws', SUBSCRIBERS))
    measured.theirs.push(percentile(await bare.delays(DELAY_MESSAGES), 0.99))
    await bare.stop()
    const ours = await subscribe(await planOf(service, 'ws', SUBSCRIBERS))
    const delays = await ours.delays(DELAY_MESSAGES)
    await ours.stop()
    measured.ours.push(percentile(delays, 0.99))
    measured.oursP50.push(percentile(delays, 0.5))
  }
  const ratio = median(measured.ours.map((each, round) => each / measured.theirs[round]!))
  report.line(`bare     p99 ${ms(median(measured.theirs))}`)
  report.line(`service  p99 ${ms(median(measured.ours))}, p50 ${ms(median(measured.oursP50))}`)
  target(
    report,
    `delay to subscribers: p99 ${ratio.toFixed(2)} times that of bare Bun`,
    ratio,
    TARGETS.delay,
    'at most',
  )
}

async function idleMemory({ service, report }: Bench): Promise<void> {
  report.heading(`feeds: memory of ${whole(IDLE_SUBSCRIBERS)} WebSockets that are idle`)
  const bare = await startScript('bare-feeds.ts', [])
  await quiet(service)
  const theirs = await grown(bare.pid, () => subscribe(barePlan(bare.port, 'ws', IDLE_SUBSCRIBERS)))
  const ours = await grown(service.pid, async () => subscribe(await planOf(service, 'ws', IDLE_SUBSCRIBERS)))
  report.line(`bare     ${(theirs / 1024).toFixed(1)} KiB each`)
  report.line(`service  ${(ours / 1024).toFixed(1)} KiB each, with a subscription`)
  target(
    report,
    `idle subscriber: ${(ours / theirs).toFixed(2)} times bare Bun`,
    ours / theirs,
    TARGETS.idle,
    'at most',
  )
}

function target(report: Report, text: string, value: number, bound: number, which = 'at least'): void {
  report.target(`${text}, target ${which} ${bound}`, which === 'at least' ? value >= bound : value <= bound)
}

/** Resident bytes per subscriber. */
async function grown(pid: number, open: () => Promise<Watchers>): Promise<number> {
  // A first time that does not count: it makes the allocator keep memory, which would be counted as the subscribers'.
  await (await open()).stop()
  await Bun.sleep(SETTLE_MS)
  const before = await residentBytes(pid)
  const watchers = await open()
  await Bun.sleep(SETTLE_MS)
  const after = await residentBytes(pid)
  await watchers.stop()
  return (after - before) / IDLE_SUBSCRIBERS
}

async function residentBytes(pid: number): Promise<number> {
  return Number(await Bun.$`ps -o rss= -p ${pid}`.text()) * 1024
}

function filler(bytes: number): string {
  return 'x'.repeat(bytes)
}
