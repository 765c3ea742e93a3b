import { eventually } from '../support/eventually.ts'
import type { Bench } from './parts.ts'
import { quiet } from './quiet.ts'
import { ms, whole } from './report.ts'
import { subscribe, type Watchers } from './watchers.ts'

const SOCKETS = 25
const FILTERS_PER_SOCKET = 100
const FILTERS = SOCKETS * FILTERS_PER_SOCKET
const EVENTS = 5_000
const TYPES = 100
const LAG_TARGET_MS = 100
const TIMEOUT_MS = 20_000
const POLL_MS = 5

/** One call while many subscriptions with different filters are open: its cost, and how long it blocks other calls. */
export async function measureFilters(bench: Bench): Promise<void> {
  await distinctFilters(
    bench,
    'each event matches 25 of them',
    (i) => [`type.${i % TYPES}`, `none.${i}`],
    FILTERS / TYPES,
  )
  await distinctFilters(bench, 'each event matches all', (i) => ['type.*', `none.${i}`], FILTERS)
}

/**
 * @param typesOf the types of the filter with this number
 * @param matches number of filters that an event matches
 */
async function distinctFilters(
  { service, report }: Bench,
  what: string,
  typesOf: (index: number) => string[],
  matches: number,
): Promise<void> {
  const title = `feeds: ${whole(FILTERS)} distinct filters × ${whole(EVENTS)} events in one call, ${what}`
  report.heading(title)
  const [agent] = service.agents
  const filters = Array.from({ length: FILTERS }, (_, i) => ({ type: typesOf(i) }))
  const messages = filters.map((filter, id) => JSON.stringify({ op: 'subscribe', id: `${id}`, filter }))
  const events = Array.from({ length: EVENTS }, (_, n) => ({ type: `type.${n % TYPES}`, payload: { n } }))
  await quiet(service)
  const request = `GET /api/v1/live HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${service.workspaceKey}\r\n`
  const shape = { requests: [request], messages, perConnection: FILTERS_PER_SOCKET, count: SOCKETS, trigger: '' }
  const watchers = await subscribe({ port: service.port, ...shape })
  await eventually(async () => (await subscriptions(service.port)) === FILTERS)

  let isOver = false
  const lag = maxLag(service.port, () => isOver)
  const startedMs = performance.now()
  const body = { run_id: agent!.runIds[0]!, events }
  const answer = await fetch(`http://127.0.0.1:${service.port}/api/ingest/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${agent!.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(await answer.text())
  const answeredMs = performance.now() - startedMs
  const delivered = await settled(watchers, EVENTS * matches)
  const seconds = (performance.now() - startedMs) / 1000
  isOver = true
  const lagMs = await lag
  await watchers.stop()
  report.line(
    `the call was answered after ${ms(answeredMs)}; ${whole(delivered)} of ${whole(EVENTS * matches)} deliveries`,
  )
  report.line(`${whole(delivered / seconds)} deliveries/s`)
  report.target(
    `${title}: another call waited ${ms(lagMs)} at most, target ${ms(LAG_TARGET_MS)}`,
    lagMs <= LAG_TARGET_MS,
  )
}

/** The longest response time of another call until `isOver`: how long the event loop is blocked, as clients see it. */
async function maxLag(port: number, isOver: () => boolean): Promise<number> {
  let max = 0
  while (!isOver()) {
    const startedMs = performance.now()
    await (await fetch(`http://127.0.0.1:${port}/healthz`)).text()
    max = Math.max(max, performance.now() - startedMs)
    await Bun.sleep(POLL_MS)
  }
  return max
}

async function subscriptions(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return Number(/^feed_subscriptions (\d+)/m.exec(text)?.[1])
}

/** Waits until all activities have arrived, or no more arrive: a machine that is too busy closes slow readers. */
async function settled(watchers: Watchers, expected: number): Promise<number> {
  let items = 0
  let changedMs = performance.now()
  while (items < expected && performance.now() - changedMs < TIMEOUT_MS) {
    await Bun.sleep(POLL_MS)
    const { items: now } = await watchers.count()
    if (now !== items) changedMs = performance.now()
    items = now
  }
  return items
}
