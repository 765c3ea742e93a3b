import { expect, test } from 'bun:test'
import { type FollowTiming, follow } from '../../src/cli/tail/follow.ts'
import { Client } from '../../src/client/index.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/service.ts'
import { activity, type Script, type ScriptedFeed, serveFeed, subscribedAt } from './scripted-feed.ts'
import { spawnStalled, spawnTail, spawnWithReader } from './tail-process.ts'

/** How a tail handles faults of the service, the network or its reader, played by a scripted server. */

const KEY = 'svc_ws_scripted'
const QUICK: FollowTiming = { pingEveryMs: 150, backoffMinMs: 10, backoffMaxMs: 50 }
/** For what must not happen: a busy machine may do nothing for a while. */
const PATIENT: FollowTiming = { ...QUICK, pingEveryMs: 1_000 }
const PINGS = 4

/** Follows a scripted feed in this process until `until` holds; returns the cursors it took and its notes. */
async function followed(
  script: Script,
  until: (cursors: readonly string[], feed: ScriptedFeed) => boolean,
  timing = QUICK,
) {
  const feed = serveFeed(script)
  const stop = new AbortController()
  const cursors: string[] = []
  const notes: string[] = []
  const { url } = feed
  const ended = follow({
    ...{ url, key: KEY, client: new Client({ url, key: KEY }), wanted: { filter: {} }, timing },
    start: async () => undefined,
    signal: stop.signal,
    take: (items) => cursors.push(...items.map((item) => item.activity.cursor)),
    full: () => null,
    note: (text) => notes.push(text),
  })
  await Promise.race([eventually(() => until(cursors, feed)), ended])
  stop.abort()
  await ended
  return { feed, cursors, notes }
}

test('detects a dead connection that never closed, and resumes', async () => {
  const { feed, cursors, notes } = await followed(
    {
      ignoresPings: true,
      subscribed(socket, { after }, nth) {
        socket.say(subscribedAt(after))
        socket.activities(nth * 2 + 1, nth * 2 + 2)
      },
    },
    (taken) => taken.length === 4,
  )
  expect(cursors).toEqual(['e.1', 'e.2', 'e.3', 'e.4'])
  expect(feed.subscriptions.map(({ after }) => after)).toEqual([undefined, 'e.2'])
  expect(feed.pings()).toBeGreaterThan(0)
  expect(notes).toEqual(['disconnected (nothing came for 0.15 s); reconnecting …', 'resumed, nothing missed'])
})

test('keeps a quiet feed whose pings are answered', async () => {
  const script: Script = { subscribed: (socket) => socket.say(subscribedAt(undefined)) }
  const { feed, notes } = await followed(script, (_, { pings }) => pings() >= PINGS, PATIENT)
  expect([feed.subscriptions.length, notes]).toEqual([1, []])
})

test('before the first activity it resumes where the subscription started', async () => {
  const { feed } = await followed(
    {
      subscribed(socket, _, nth) {
        socket.say({ op: 'subscribed', id: 'tail', cursor: `e.${7 + nth}`, recovered: nth > 0 })
        if (nth < 2) socket.close(4008, 'slow_consumer')
        else socket.activities(8, 8)
      },
    },
    (taken) => taken.length === 1,
  )
  // Not e.8, where the second subscription starts: what lies before it has not been received.
  expect(feed.subscriptions.map(({ after }) => after)).toEqual([undefined, 'e.7', 'e.7'])
})

test('waits for as long as the closing service asks', async () => {
  let closedAt = 0
  let backAt = 0
  const { notes } = await followed(
    {
      subscribed(socket, { after }, nth) {
        if (nth === 0) {
          socket.say(subscribedAt(undefined))
          socket.say({ op: 'closing', reason: 'shutdown', reconnect_after_ms: 300 })
          socket.close(1001, 'shutdown')
          closedAt = performance.now()
        } else {
          backAt = performance.now()
          socket.say(subscribedAt(after))
          socket.activities(1, 1)
        }
      },
    },
    (taken) => taken.length === 1,
  )
  expect(backAt - closedAt).toBeGreaterThanOrEqual(300)
  expect(notes).toEqual(['disconnected (shutdown); reconnecting …', 'resumed, nothing missed'])
})

test('reports lost history once', async () => {
  const { feed, cursors, notes } = await followed(
    {
      subscribed(socket, { after }, nth) {
        socket.say({ ...subscribedAt(after), recovered: nth === 2 })
        if (nth === 0) socket.activities(1, 1)
        if (nth === 1) socket.say({ op: 'gap', id: 'tail', after, resumed_at: 'e.5' })
        if (nth === 2) socket.activities(6, 6)
        else socket.close(4008, 'slow_consumer')
      },
    },
    (taken) => taken.length === 2,
  )
  expect(cursors).toEqual(['e.1', 'e.6'])
  expect(feed.subscriptions.map(({ after }) => after)).toEqual([undefined, 'e.1', 'e.5'])
  expect(notes).toEqual([
    'disconnected (slow_consumer); reconnecting …',
    'resumed',
    'gap: activities between e.1 and e.5 are lost',
    'disconnected (slow_consumer); reconnecting …',
    'resumed, nothing missed',
  ])
})

test('retries temporary errors, and exits on permanent ones', async () => {
  const failing = (code: string): Script => ({
    subscribed(socket, { after }, nth) {
      if (nth === 0) return socket.say({ op: 'error', id: 'tail', code, message: 'not now' })
      socket.say(subscribedAt(after))
      socket.activities(1, 1)
    },
  })
  const { notes } = await followed(failing('UNAVAILABLE'), (taken) => taken.length === 1)
  expect(notes).toEqual(['not now; retrying …', 'connected'])
  const never = () => false
  await expect(followed(failing('VALIDATION_ERROR'), never)).rejects.toThrow('VALIDATION_ERROR: not now')
  const closing = (code: number): Script => ({ subscribed: (socket) => socket.close(code, 'why') })
  await expect(followed(closing(4001), never)).rejects.toThrow('the key was revoked or expired')
  await expect(followed(closing(4003), never)).rejects.toThrow('the key may no longer use this feed: why')
  const refusing = (status: number): Script => ({ refuse: () => new Response('<p>', { status }), subscribed() {} })
  await expect(followed(refusing(403), never)).rejects.toThrow('rejected the key: status 403')
  await expect(followed(refusing(404), never)).rejects.toThrow('is it the URL of the service?')
})

test('waits for a service that is not running yet', async () => {
  const port = freePort()
  const tail = spawnTail(`http://127.0.0.1:${port}`, KEY, '--json')
  await eventually(() => tail.notes() !== '')
  expect(tail.notes()).toBe(`no service responds at http://127.0.0.1:${port}; retrying …\n`)
  const full = { data: null, error: { code: 'RATE_LIMITED', message: 'too many feeds' } }
  serveFeed({
    port,
    refuse: (nth) => (nth < 2 ? Response.json(full, { status: 429 }) : null),
    subscribed(socket) {
      socket.say(subscribedAt(undefined))
      socket.activities(1, 1)
    },
  })
  await eventually(() => tail.lines().length === 1)
  expect(tail.notes()).toEndWith('\nconnected\n')
  tail.signal('SIGINT')
  expect(await tail.exited).toBe(0)
})

test('--json passes on activities byte for byte', async () => {
  const text = JSON.stringify(activity(1, { n: 0 })).replace(
    '{"n":0}',
    '{"n": 12345678901234567890, "one":1.0 ,"s":"]}\\""}',
  )
  const { url } = serveFeed({
    subscribed(socket) {
      socket.say(subscribedAt(undefined))
      socket.say(`{"op":"activity","skipped":3,"items":[ ${text},${text} ],"id":"tail"}`)
    },
  })
  const tail = spawnTail(url, KEY, '--json', '--max-per-second', '2')
  await eventually(() => tail.lines().length === 2)
  tail.signal('SIGTERM')
  expect([await tail.exited, tail.lines()]).toEqual([0, [text, text]])
  expect(tail.notes()).toBe('3 more skipped (limit of 2 per second)\n')
})

test('ends quietly when its reader exits', async () => {
  const { url } = serveFeed({
    subscribed(socket) {
      socket.say(subscribedAt(undefined))
      const timer = setInterval(() => socket.activities(1, 1), 5)
      setTimeout(() => clearInterval(timer), 5_000).unref()
    },
  })
  const tail = spawnWithReader(url, KEY, 3)
  await tail.exited
  expect([tail.lines().length, tail.notes()]).toEqual([3, 'exit code 0\n'])
})

test('a stalled reader causes backpressure instead of buffering; it misses nothing and gets nothing twice', async () => {
  const LAST = 30_000
  const payload = { text: 'x'.repeat(1_000) }
  const feed = serveFeed({
    subscribed(socket, { after }) {
      socket.say(subscribedAt(after))
      const from = Number(after?.slice(2) ?? 0) + 1
      for (let n = from; n <= LAST; n += 100) socket.activities(n, Math.min(LAST, n + 99), payload)
      socket.close(4001, 'key_invalid')
    },
  })
  const tail = spawnStalled(feed.url, KEY, '--json')
  await eventually(() => feed.closed() === 1)
  expect([feed.subscriptions.length, tail.lines()]).toEqual([1, []])
  tail.release()
  await tail.exited
  expect(feed.subscriptions.length).toBeGreaterThan(1)
  const inOrder = Array.from({ length: LAST }, (_, n) => n + 1)
  expect(tail.lines().map((line) => JSON.parse(line).event.seq)).toEqual(inOrder)
  expect(tail.notes()).toBe('the key was revoked or expired\n')
})
