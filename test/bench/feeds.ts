import { measureFilters } from './filters.ts'
import { runLoad } from './load.ts'
import type { Bench } from './parts.ts'
import { alternate, quiet } from './quiet.ts'
import { median, ms, percentile, type Report, whole } from './report.ts'
import { type BenchService, eventsLoad, startScript } from './servers.ts'
import type { Counted, Plan } from './subscribers.ts'
import { barePlan, type FeedKind, planOf, subscribe, type Watchers } from './watchers.ts'

const SUBSCRIBERS = 1_000
const IDLE_SUBSCRIBERS = 5_000
const EVENTS_PER_CALL = 10
const REPORTERS = 4
const DELAY_MESSAGES = 50
const TARGETS = { ws: 0.85, sse: 0.85, delay: 3, idle: 1.5 }
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

async function deliveries(bench: Bench, barePort: number, kind: FeedKind): Promise<void> {
  const { service, report, seconds } = bench
  report.heading(`feeds: ${NAME[kind]} deliveries to ${whole(SUBSCRIBERS)} subscribers`)
  let frameBytes = 0
  const pairs = await alternate(
    bench,
    async () => {
      const { bytes, frames } = await delivered(service, kind, seconds)
      frameBytes = Math.round(bytes / SUBSCRIBERS / frames)
      return bytes / seconds / frameBytes
    },
    async () => (await flood(barePort, kind, frameBytes, seconds)) / seconds / frameBytes,
  )
  const ratio = median(pairs.map(([ours, bare]) => ours / bare))
  const of = (values: readonly number[]) => whole(median(values)).padStart(9)
  report.line(`bare     ${of(pairs.map(([, bare]) => bare))} deliveries/s of ${whole(frameBytes)} bytes`)
  report.line(`service  ${of(pairs.map(([ours]) => ours))} deliveries/s, reported by ${REPORTERS} connections`)
  target(report, `${NAME[kind]} deliveries: ${ratio.toFixed(2)} of bare Bun`, ratio, TARGETS[kind])
}

/** What the subscribers received while events were reported. */
export async function delivered(service: BenchService, kind: FeedKind, seconds: number) {
  const load = eventsLoad(service, service.port, EVENTS_PER_CALL, { connections: REPORTERS, seconds })
  return during(await planOf(service, kind, SUBSCRIBERS), () => runLoad(load))
}

/** The bytes that the subscribers of the bare server received. */
async function flood(port: number, kind: FeedKind, frameBytes: number, seconds: number): Promise<number> {
  const url = `http://127.0.0.1:${port}/publish/${kind}?seconds=${seconds}`
  const body = 'x'.repeat(frameBytes)
  return (await during(barePlan(port, kind, SUBSCRIBERS), () => fetch(url, { method: 'POST', body }))).bytes
}

/** What subscribers receive during some work. */
async function during(plan: Plan, work: () => Promise<unknown>): Promise<Pick<Counted, 'bytes' | 'frames'>> {
  const watchers = await subscribe(plan)
  const before = await watchers.count()
  await work()
  const after = await watchers.count()
  await watchers.stop()
  return { bytes: after.bytes - before.bytes, frames: after.frames - before.frames }
}

async function delay(bench: Bench, barePort: number): Promise<void> {
  const { service, report } = bench
  report.heading(`feeds: from the call to each of ${whole(SUBSCRIBERS)} WebSocket subscribers`)
  const delays = async (plan: Plan) => {
    const watchers = await subscribe(plan)
    const all = await watchers.delays(DELAY_MESSAGES)
    await watchers.stop()
    return { p50: percentile(all, 0.5), p99: percentile(all, 0.99) }
  }
  const pairs = await alternate(
    bench,
    () => delays(barePlan(barePort, 'ws', SUBSCRIBERS)),
    async () => delays(await planOf(service, 'ws', SUBSCRIBERS)),
  )
  const ratio = median(pairs.map(([bare, ours]) => ours.p99 / bare.p99))
  const [p99, p50] = [median(pairs.map(([, ours]) => ours.p99)), median(pairs.map(([, ours]) => ours.p50))]
  report.line(`bare     p99 ${ms(median(pairs.map(([bare]) => bare.p99)))}`)
  report.line(`service  p99 ${ms(p99)}, p50 ${ms(p50)}`)
  const text = `delay to subscribers: p99 ${ratio.toFixed(2)} times that of bare Bun`
  target(report, text, ratio, TARGETS.delay, 'at most')
}

async function idleMemory({ service, report }: Bench): Promise<void> {
  report.heading(`feeds: memory of ${whole(IDLE_SUBSCRIBERS)} WebSockets that are idle`)
  const bare = await startScript('bare-feeds.ts', [])
  await quiet(service)
  const theirs = await grown(bare.pid, () => subscribe(barePlan(bare.port, 'ws', IDLE_SUBSCRIBERS)))
  const ours = await grown(service.pid, async () => subscribe(await planOf(service, 'ws', IDLE_SUBSCRIBERS)))
  report.line(`bare     ${(theirs / 1024).toFixed(1)} KiB each`)
  report.line(`service  ${(ours / 1024).toFixed(1)} KiB each, with a subscription`)
  const ratio = ours / theirs
  target(report, `idle subscriber: ${ratio.toFixed(2)} times bare Bun`, ratio, TARGETS.idle, 'at most')
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
