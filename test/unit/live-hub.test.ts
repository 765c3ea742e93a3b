import { expect, test } from 'bun:test'
import { systemClock } from '../../src/base/clock.ts'
import { ApiError } from '../../src/base/errors.ts'
import { runKey } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import type { Subscription } from '../../src/feeds/live/channel.ts'
import { type Filter, parseFilter } from '../../src/feeds/live/filter.ts'
import type { History, HistoryQuery } from '../../src/feeds/live/history.ts'
import { Hub, SENT_BYTES_MAX } from '../../src/feeds/live/hub.ts'
import { MATCHES_MAX } from '../../src/feeds/live/matching.ts'
import { type Outlet, type Packet, PacketCache } from '../../src/feeds/live/packet.ts'
import { type LookUpSessions, SessionsUnavailable } from '../../src/feeds/live/run-sessions.ts'
import { type LocalJournal, openLocalJournal } from '../../src/stores/journal/local/journal.ts'
import { batchOf, runRef } from '../support/events.ts'
import { eventually } from '../support/eventually.ts'
import { noSessions } from '../support/matching.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** Behavior of the hub that no client can trigger at will. */

const log = createLog('silent')
const EVERYTHING = parseFilter({}, 'filter', { agentId: null, runId: null })
/** Longer than the hub's time slice. */
const BUSY_MS = 7
const FILTERS = 2_500
const EVENTS = 5_000
const TYPES = 100
const SLOW_FILTERS = 200
const MANY_FILTERS = 1_000
const SHARED_FILTERS = 3

function outlet(overrides: Partial<Outlet>): Outlet {
  return { send: () => true, gap() {}, caughtUp() {}, failed() {}, ...overrides }
}

/** A hub on a journal, which it sees as `seen` of it. */
async function hubOn(
  options: Partial<ConstructorParameters<typeof Hub>[0]> = {},
  seen = (journal: LocalJournal) => journal,
) {
  const dir = await temporaryDirectory()
  const journal = await openLocalJournal({ dir, maxBytes: 1 << 30, keepBytes: 1 << 30, clock: systemClock, log })
  const history = { read: () => Promise.reject(new Error('not asked for')) }
  const hub = new Hub({
    journal: seen(journal),
    history,
    lookUpSessions: noSessions,
    log,
    filtersPerWorkspace: 1,
    ...options,
  })
  atEnd(() => hub.stop().then(() => journal.close()))
  const run = runRef()
  return { journal, hub, run, workspaceId: run.workspaceId }
}

test('a subscription catches up with everything before its start, even while live ones lag behind', async () => {
  const { journal, hub, run, workspaceId } = await hubOn()
  let liveSeq = 0
  const busy = (packet: Packet) => {
    const endMs = performance.now() + BUSY_MS
    while (performance.now() < endMs);
    liveSeq = packet.lastSeq
    return true
  }
  hub.subscribe({ workspaceId, filter: EVERYTHING, afterSeq: 0, outlet: outlet({ send: busy }) })

  const early: object[] = []
  let starts = 0
  let caughtUp = 0
  /** Starts at the position of the live subscription, where a subscription may go live. */
  function begin(): void {
    const { endSeq } = journal
    if (liveSeq === 0 || liveSeq === endSeq) return
    starts++
    let gotSeq = liveSeq
    const send = (packet: Packet) => {
      gotSeq = packet.lastSeq
      return true
    }
    const done = () => {
      if (gotSeq < endSeq) early.push({ gotSeq, endSeq })
      caughtUp++
      setImmediate(() => hub.unsubscribe(subscription))
    }
    const subscription = hub.subscribe({
      workspaceId,
      filter: EVERYTHING,
      afterSeq: liveSeq,
      outlet: outlet({ send, caughtUp: done }),
    })
  }

  let isReporting = true
  const beginning = (async () => {
    while (isReporting) {
      begin()
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  const events = Array.from({ length: 100 }, () => ({ type: 'e', payload: { text: 'x'.repeat(2_000) } }))
  const report = async () => {
    for (let i = 0; i < 5; i++) await journal.appendEvents(batchOf(run, events))
  }
  await Promise.all([report(), report(), report(), report()])
  await eventually(() => hub.lag() === 0)
  isReporting = false
  await beginning
  await eventually(() => caughtUp === starts)
  expect(starts).toBeGreaterThan(0)
  expect(early).toEqual([])
})

test('2,500 filters and a call of 5,000 events: the event loop stays responsive, and each filter gets its events in order', async () => {
  // Each reading of the clock is a millisecond later, so that the counts do not depend on the machine.
  let nowMs = 0
  const now = () => nowMs++
  const { journal, hub, run, workspaceId } = await hubOn({ filtersPerWorkspace: FILTERS, now })
  let turns = 0
  let sent = { turn: 0, count: 0, most: 0 }
  const got = Array.from({ length: FILTERS }, (): number[] => [])
  got.forEach((mine, n) => {
    const send = ({ items }: Packet) => {
      const count = sent.turn === turns ? sent.count + 1 : 1
      sent = { turn: turns, count, most: Math.max(sent.most, count) }
      mine.push(...items.map(({ seq }) => seq))
      return true
    }
    const filter = parseFilter({ type: [`type.${n % TYPES}`, `none.${n}`] }, 'filter', { agentId: null, runId: null })
    hub.subscribe({ workspaceId, filter, afterSeq: 0, outlet: outlet({ send }) })
  })
  await eventually(() => hub.counts().behind === 0)
  let isOver = false
  const turning = (async () => {
    for (; !isOver; turns++) await new Promise((resolve) => setImmediate(resolve))
  })()
  await journal.appendEvents(
    batchOf(
      run,
      Array.from({ length: EVENTS }, (_, n) => ({ type: `type.${n % TYPES}` })),
    ),
  )
  await eventually(() => got.every((mine) => mine.length === EVENTS / TYPES))
  isOver = true
  await turning
  // A time slice is 5 ms, so about as many clock readings, and one packet is sent for each.
  expect(sent.most).toBeLessThanOrEqual(10)
  expect(turns).toBeGreaterThan(FILTERS / 10)
  got.forEach((mine, n) => {
    expect(mine).toEqual(Array.from({ length: EVENTS / TYPES }, (_, i) => i * TYPES + (n % TYPES) + 1))
  })
})

test('outlets that fill up during a long call resume where they stopped: everything, once, in order', async () => {
  const random = seededRandom('live hub of slow outlets')
  const { journal, hub, run, workspaceId } = await hubOn({ filtersPerWorkspace: SLOW_FILTERS })
  const got = Array.from({ length: SLOW_FILTERS }, (): number[] => [])
  got.forEach((mine, n) => {
    const send = ({ items }: Packet) => {
      if (random.bool(0.2)) {
        setTimeout(() => hub.resume(subscription), random.int(0, 3))
        return false
      }
      mine.push(...items.map(({ seq }) => seq))
      return true
    }
    const filter = parseFilter({ type: ['type.*', `none.${n}`] }, 'filter', { agentId: null, runId: null })
    const subscription = hub.subscribe({ workspaceId, filter, afterSeq: 0, outlet: outlet({ send }) })
  })
  await eventually(() => hub.counts().behind === 0)
  const calls = [2_000, 1, 700, 50]
  for (const count of calls) {
    const events = Array.from({ length: count }, (_, n) => ({ type: `type.${n}` }))
    await journal.appendEvents(batchOf(run, events))
  }
  const all = Array.from({ length: journal.endSeq }, (_, n) => n + 1)
  // More than fits in memory, so that it is sent in several pieces.
  expect(all.length * SLOW_FILTERS).toBeGreaterThan(3 * MATCHES_MAX)
  await eventually(() => got.every((mine) => mine.length >= all.length), { timeoutMs: 50_000 })
  for (const mine of got) expect(mine).toEqual(all)
})

/** A connection whose outlets share packets; its queue is full at random, for some milliseconds. */
class SharedConnection {
  isFull = false
  readonly subscriptions: Subscription[] = []
  /** What each of its subscriptions received; and how much was sent although it was full. */
  readonly got: number[][] = []
  sentWhenFull = 0

  constructor(
    private readonly hub: Hub,
    private readonly topics: Map<string, Set<(packet: Packet) => void>>,
    private readonly random: Random,
  ) {}

  subscribe(workspaceId: string, filter: Filter, key: string): void {
    const mine: number[] = []
    this.got.push(mine)
    const take = (packet: Packet) => {
      if (this.isFull) this.sentWhenFull++
      mine.push(...packet.items.map(({ seq }) => seq))
    }
    const isFull = () => this.isFull
    const connection = {
      get isFull() {
        return isFull()
      },
      enter: (topic: string) => void this.topics.set(topic, (this.topics.get(topic) ?? new Set()).add(take)),
      exit: (topic: string) => void this.topics.get(topic)!.delete(take),
      sent: () => this.sent(),
    }
    const publish = (topic: string, packet: Packet) => {
      for (const each of this.topics.get(topic)!) each(packet)
    }
    const send = (packet: Packet) => {
      if (this.isFull) return false
      take(packet)
      this.sent()
      return true
    }
    const sharing = { key, connection, publish }
    const to = outlet({ send, sharing })
    this.subscriptions.push(this.hub.subscribe({ workspaceId, filter, afterSeq: 0, outlet: to }))
  }

  private sent(): void {
    if (this.isFull || !this.random.bool(0.1)) return
    this.isFull = true
    setTimeout(() => this.drain(), this.random.int(0, 20))
  }

  private drain(): void {
    this.isFull = false
    for (const subscription of this.subscriptions) this.hub.resume(subscription)
  }
}

test('connections that share packets and fill up get nothing while full, and then everything, once, in order', async () => {
  const random = seededRandom('live hub of shared packets')
  const { journal, hub, run, workspaceId } = await hubOn({ filtersPerWorkspace: SHARED_FILTERS })
  const filters = Array.from({ length: SHARED_FILTERS }, (_, n) =>
    parseFilter({ type: ['type.*', `none.${n}`] }, 'filter', { agentId: null, runId: null }),
  )
  const topics = new Map<string, Set<(packet: Packet) => void>>()
  const connections = Array.from({ length: 100 }, () => new SharedConnection(hub, topics, random))
  // Several channels for each, so that one fills up while another is being sent.
  for (const connection of connections)
    for (const [n, filter] of filters.entries()) connection.subscribe(workspaceId, filter, `"${n}"`)
  await eventually(() => hub.counts().behind === 0)
  for (let call = 0; call < 60; call++) {
    const count = call % 20 === 0 ? 300 : random.int(1, 5)
    const events = Array.from({ length: count }, (_, n) => ({ type: `type.${n}`, payload: { text: 'x'.repeat(500) } }))
    await journal.appendEvents(batchOf(run, events))
    await Bun.sleep(random.int(0, 2))
  }
  const all = Array.from({ length: journal.endSeq }, (_, n) => n + 1)
  const got = connections.flatMap((connection) => connection.got)
  await eventually(() => got.every((mine) => mine.length >= all.length), { timeoutMs: 50_000 })
  for (const mine of got) expect(mine).toEqual(all)
  expect(connections.map(({ sentWhenFull }) => sentWhenFull)).toEqual(connections.map(() => 0))
  await eventually(() => hub.counts().behind === 0)
})

test('a workspace with a thousand filters is left to replay, so that another gets its event in between', async () => {
  const isHeld = Promise.withResolvers<void>()
  // The hub begins once both have reported, so that what it sends first does not depend on time.
  const options = { filtersPerWorkspace: MANY_FILTERS }
  const { journal, hub, run: busy } = await hubOn(options, (journal) => heldUntil(journal, isHeld.promise))
  const other = runRef()
  let bytes = 0
  const got = Array.from({ length: MANY_FILTERS }, (): number[] => [])
  got.forEach((mine, n) => {
    const send = (packet: Packet) => {
      bytes += packet.length
      mine.push(...packet.items.map(({ seq }) => seq))
      return true
    }
    const filter = parseFilter({ type: ['type.*', `none.${n}`] }, 'filter', { agentId: null, runId: null })
    hub.subscribe({ workspaceId: busy.workspaceId, filter, afterSeq: 0, outlet: outlet({ send }) })
  })
  /** What the busy workspace had been sent when the other one got its event, and its replay. */
  const before: Record<string, number> = {}
  const watch = (name: string, afterSeq: number) => {
    const send = () => {
      before[name] ??= bytes
      if (name === 'live') watch('replayed', 0)
      return true
    }
    hub.subscribe({ workspaceId: other.workspaceId, filter: EVERYTHING, afterSeq, outlet: outlet({ send }) })
  }
  watch('live', 0)
  await eventually(() => hub.counts().behind === 0)
  const events = Array.from({ length: 300 }, (_, n) => ({ type: `type.${n}`, payload: { text: 'x'.repeat(500) } }))
  await journal.appendEvents(batchOf(busy, events))
  await journal.appendEvents(batchOf(other, [{ type: 'type.other' }]))
  isHeld.resolve()
  await eventually(() => got.every((mine) => mine.length >= events.length))
  for (const mine of got) expect(mine).toEqual(events.map((_, n) => n + 1))
  await eventually(() => before.replayed !== undefined)
  // One delivery, and the turns of replay in between.
  expect(before.live).toBeLessThan(2 * SENT_BYTES_MAX)
  expect(before.replayed).toBeLessThan(3 * SENT_BYTES_MAX)
  expect(bytes).toBeGreaterThan(6 * SENT_BYTES_MAX)
  await eventually(() => hub.counts().behind === 0)
})

test('a subscription goes live once the last live one has left, which lagged behind the journal', async () => {
  const isHeld = Promise.withResolvers<void>()
  const { journal, hub, run, workspaceId } = await hubOn({}, (journal) => heldUntil(journal, isHeld.promise))
  const subscribe = (mine: Outlet) =>
    hub.subscribe({ workspaceId, filter: EVERYTHING, afterSeq: journal.endSeq, outlet: mine })
  const first = subscribe(outlet({}))
  await eventually(() => hub.counts().behind === 0)
  await journal.appendEvents(batchOf(run, [{ type: 'e' }]))
  const seqs: number[] = []
  subscribe(outlet({ send: ({ items }) => seqs.push(...items.map(({ seq }) => seq)) > 0 }))
  // Replay finds it up to date, but ahead of the live one.
  for (let n = 0; n < 3; n++) await new Promise((resolve) => setImmediate(resolve))
  hub.unsubscribe(first)
  isHeld.resolve()
  await eventually(() => hub.counts().behind === 0)
  await journal.appendEvents(batchOf(run, [{ type: 'e' }]))
  await eventually(() => seqs.length > 0)
  expect(seqs).toEqual([2])
})

test('a cache of packets shares equal lists, and forgets them after a few long ones', () => {
  const cache = new PacketCache('epoch')
  const list = (seq: number, text: string) => [{ seq, text, kind: 'event', endsRun: false, isRecount: false }] as const
  const [short, long] = [list(1, '{}'), 'x'.repeat(2 ** 20)]
  const first = cache.packetsOf(short)
  for (let seq = 2; seq < 10; seq++) cache.packetsOf(list(seq, long))
  expect(cache.packetsOf([...short])).toBe(first)
  cache.packetsOf(list(10, long))
  expect(cache.packetsOf(short)).not.toBe(first)
})

test('reads of history are shared between workspaces', async () => {
  const reads: { workspaceId: string; finish: () => void }[] = []
  const history = {
    async read({ workspaceId, afterSeq }: HistoryQuery) {
      const done = Promise.withResolvers<void>()
      reads.push({ workspaceId, finish: done.resolve })
      await done.promise
      return { items: [], throughSeq: afterSeq }
    },
  }
  const { journal, hub, run: busy } = await hubOn({ history }, (journal) => beginningAfter(journal, 1))
  const other = runRef()
  await journal.appendEvents(batchOf(busy, [{ type: 'e' }]))
  const subscribe = ({ workspaceId }: typeof busy) =>
    hub.subscribe({ workspaceId, filter: EVERYTHING, afterSeq: 0, outlet: outlet({}) })
  for (let n = 0; n < 20; n++) subscribe(busy)
  await eventually(() => reads.length === 4)
  const mine = subscribe(other)
  reads[0]!.finish()
  await eventually(() => reads.length === 5)
  expect(reads.map(({ workspaceId }) => workspaceId === other.workspaceId)).toEqual([false, false, false, false, true])
  hub.unsubscribe(mine)
})

test('a replay from ClickHouse survives a read that takes long and fails, and one that ClickHouse refuses', async () => {
  let nowMs = 0
  const failures = [new ApiError('UNAVAILABLE', 'no answer within 30 s'), new Error('memory limit exceeded')]
  const history = {
    async read({ untilSeq }: HistoryQuery) {
      const failure = failures.shift()
      if (failure === undefined) return { items: [], throughSeq: untilSeq }
      // Longer than a replay waits for ClickHouse once it has failed.
      if (failure instanceof ApiError) nowMs += 30_000
      throw failure
    },
  }
  const { journal, hub, run, workspaceId } = await hubOn({ history, now: () => nowMs }, (journal) =>
    beginningAfter(journal, 1),
  )
  await journal.appendEvents(batchOf(run, [{ type: 'e' }]))
  const seen: string[] = []
  const mine = outlet({ caughtUp: () => void seen.push('caught up'), failed: ({ message }) => void seen.push(message) })
  hub.subscribe({ workspaceId, filter: EVERYTHING, afterSeq: 0, outlet: mine })
  await eventually(() => seen.length > 0)
  expect(seen).toEqual(['caught up'])
})

/** The journal, whose growth the hub does not see before `ready`. */
function heldUntil(journal: LocalJournal, ready: Promise<void>): LocalJournal {
  return changed(journal, 'waitPast', async (seq: number, signal: AbortSignal) => {
    await ready
    return journal.waitPast(seq, signal)
  })
}

/** The journal as if its files began after this position. */
function beginningAfter(journal: LocalJournal, seq: number): LocalJournal {
  return changed(journal, 'startSeq', seq + 1)
}

function changed<Name extends keyof LocalJournal>(journal: LocalJournal, name: Name, value: LocalJournal[Name]) {
  return new Proxy(journal, {
    get(target, asked) {
      if (asked === name) return value
      const own = Reflect.get(target, asked)
      return typeof own === 'function' ? own.bind(target) : own
    },
  })
}

test('a feed whose activity the journal does not give at the moment fails, to be resumed: it is told no gap', async () => {
  const { journal, hub, run, workspaceId } = await hubOn({}, (whole) => {
    const nothing = { read: async () => [], recent: () => null }
    return new Proxy(whole, { get: (of, name) => Reflect.get(name in nothing ? nothing : of, name, of) })
  })
  await journal.appendEvents(batchOf(run, [{ type: 'e' }]))
  const told: unknown[] = []
  const { promise, resolve } = Promise.withResolvers<ApiError>()
  const observed = outlet({ gap: (...gap) => told.push(gap), failed: resolve })
  hub.subscribe({ workspaceId, filter: EVERYTHING, afterSeq: 0, outlet: observed })
  expect(await promise).toMatchObject({ code: 'UNAVAILABLE' })
  expect(told).toEqual([])
})

test('a replay from ClickHouse waits for as long as the sessions of runs cannot be looked up', async () => {
  let reads = 0
  const history: History = {
    async read({ untilSeq }) {
      if (++reads <= 2) throw new SessionsUnavailable('away')
      return { items: [], throughSeq: untilSeq }
    },
  }
  // Each look at the clock is later than any deadline.
  let nowMs = 0
  const options = { history, now: () => (nowMs += 60_000) }
  const { journal, hub, run, workspaceId } = await hubOn(options, (journal) => beginningAfter(journal, 2))
  await journal.appendEvents(batchOf(run, new Array(4).fill({ type: 'step' })))
  const seqs: number[] = []
  const failures: string[] = []
  const send = ({ items }: Packet) => {
    seqs.push(...items.map(({ seq }) => seq))
    return true
  }
  const failed = ({ message }: Error) => void failures.push(message)
  hub.subscribe({ workspaceId, filter: EVERYTHING, afterSeq: 0, outlet: outlet({ send, failed }) })
  await eventually(() => seqs.length > 0 || failures.length > 0)
  expect({ seqs, failures, reads }).toEqual({ seqs: [3, 4], failures: [], reads: 3 })
})

test('feeds that need no session do not wait for one that cannot be looked up, and its feed gets all of it later', async () => {
  const answer = Promise.withResolvers<void>()
  const rows = { session_id: 'it', external_user_id: null }
  const lookUpSessions: LookUpSessions = async (runs) => {
    await answer.promise
    return new Map(runs.map(({ workspaceId, runId }) => [runKey(workspaceId, runId), rows]))
  }
  const { journal, hub, run, workspaceId } = await hubOn({ lookUpSessions, filtersPerWorkspace: 2 })
  const [others, ours] = [[] as number[], [] as number[]]
  let live = 0
  const take = (seqs: number[]) =>
    outlet({ send: ({ items }) => seqs.push(...items.map(({ seq }) => seq)) > 0, caughtUp: () => void live++ })
  const bySession = parseFilter({ session_id: 'it' }, 'filter', { agentId: null, runId: null })
  hub.subscribe({ workspaceId, filter: EVERYTHING, afterSeq: 0, outlet: take(others) })
  hub.subscribe({ workspaceId, filter: bySession, afterSeq: 0, outlet: take(ours) })
  await eventually(() => live === 2)
  await journal.appendEvents(batchOf(run, new Array(3).fill({ type: 'step' })))
  await eventually(() => others.length === 3)
  expect(ours).toEqual([])
  answer.resolve()
  await eventually(() => ours.length === 3)
  expect(ours).toEqual(others)
})
