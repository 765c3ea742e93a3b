import { expect, spyOn, test } from 'bun:test'
import { NIL_UUID } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { clearRows } from '../../src/service/store-marks/columnar-marks.ts'
import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { newEpoch } from '../../src/stores/journal/journal.ts'
import { SinkPositionFile } from '../../src/stores/sink/position.ts'
import { Sink, type SinkOptions, tokenMs } from '../../src/stores/sink/sink.ts'
import { ClusterSinkPosition } from '../../src/tenants/partitions/shared/positions.ts'
import { PartitionStore } from '../../src/tenants/partitions/shared/tables.ts'
import { MemoryPosition } from '../sim/stores.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { runRef } from '../support/events.ts'
import { eventually } from '../support/eventually.ts'
import { appendMarks, openLocal } from '../support/journals.ts'
import { freshDatabase } from '../support/postgres.ts'
import { seededRandom } from '../support/random.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** The sink and ClickHouse, when processes pause and tokens are forgotten. */

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)
const log = createLog('silent')
const NEVER_FAILS = { delay: async () => {}, failsBefore: () => false, failsAfter: () => false }
/** How many loads a table remembers here; otherwise 10,000. */
const WINDOW = 20

async function fixture() {
  const { client } = await freshColumnarDatabase()
  await client.command(`alter table events modify setting non_replicated_deduplication_window = ${WINDOW}`)
  const journal = await openLocal(await temporaryDirectory())
  atEnd(() => journal.close())
  await appendMarks(journal, [1, 2, 3])
  const position = new MemoryPosition(NEVER_FAILS)
  const clear: SinkOptions['clear'] = (afterSeq, throughSeq, ...rest) =>
    clearRows(client, journal, { afterSeq, throughSeq }, ...rest)
  const owner = (options: Partial<SinkOptions> = {}, announcedAgeMs = () => 0) => {
    const store = position.storeOf(++position.generation)
    return new Sink({ journal, log, client, clear, position: { ...store, announcedAgeMs }, ...options })
  }
  const count = async () => (await client.query<{ n: number }>('select count() as n from events'))[0]!.n
  /** The loads of other partitions push every token out. */
  const forgetTokens = async () => {
    const [frame] = await journal.read(0, 2 ** 20)
    const block = Buffer.from(frame!.block)
    for (let load = 0; load <= WINDOW; load++) await client.insertNative('events', [block], `other ${load}`)
    return (WINDOW + 1) * 3
  }
  return { client, journal, owner, count, forgetTokens }
}

type Fixture = Awaited<ReturnType<typeof fixture>>

/** Waits until an owner has stored its batch, and dies before it can store its position. */
async function diesAfterLoad({ client, owner }: Fixture): Promise<void> {
  const stuck = Promise.withResolvers<void>()
  const insertNative: ColumnarClient['insertNative'] = async (...load) => {
    await client.insertNative(...load)
    stuck.resolve()
    return new Promise(() => {})
  }
  owner({ client: { insertNative } })
  await stuck.promise
}

test('an owner that wakes in the middle of a load, after another one has loaded the batch long ago, stores nothing', async () => {
  const { client, owner, count, forgetTokens } = await fixture()
  const paused = Promise.withResolvers<AbortSignal>()
  const resumed = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  let repeats = 0
  const insertNative: ColumnarClient['insertNative'] = async (table, blocks, token, signal, beforeEnd) => {
    repeats++
    paused.resolve(signal!)
    await resumed.promise
    await client.insertNative(table, blocks, token, signal, beforeEnd).finally(ended.resolve)
  }
  const old = owner({ client: { insertNative } })
  const signal = await paused.promise
  const next = owner()
  expect(await next.waitForAll(60_000)).toBe(true)
  const others = await forgetTokens()
  // Its clock goes on: it learns that another process has taken over.
  await eventually(() => signal.aborted, { timeoutMs: 5_000 }).catch(() => {})
  resumed.resolve()
  await ended.promise
  await old.stop(0)
  expect([await count(), repeats]).toEqual([3 + others, 1])
  await next.stop(0)
})

test('an owner that wakes right before the end of a load, before any of its timers, stores nothing', async () => {
  const { client, owner, count, forgetTokens } = await fixture()
  const paused = Promise.withResolvers<void>()
  const resumed = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<unknown>()
  const insertNative: ColumnarClient['insertNative'] = async (table, blocks, token, _signal, beforeEnd) => {
    const wake = async () => {
      paused.resolve()
      await resumed.promise
      await beforeEnd!()
    }
    const { signal } = new AbortController()
    const load = client.insertNative(table, blocks, token, signal, wake)
    load.then(() => ended.resolve('stored'), ended.resolve)
    return load
  }
  const timers = spyOn(globalThis, 'setInterval').mockReturnValue(0 as never)
  const old = owner({ client: { insertNative } })
  await paused.promise
  timers.mockRestore()
  const next = owner()
  expect(await next.waitForAll(60_000)).toBe(true)
  const others = await forgetTokens()
  // Its last answer is older than it may be at the end of a load.
  await Bun.sleep(1_100)
  resumed.resolve()
  expect(await ended.promise).toMatchObject({ cause: { message: 'another owner has taken over' } })
  expect(await count()).toBe(3 + others)
  await old.stop(0)
  await next.stop(0)
})

test('a batch whose token may be forgotten is not repeated under it: what exists of it is deleted first', async () => {
  const world = await fixture()
  await diesAfterLoad(world)
  const others = await world.forgetTokens()
  const next = world.owner({ tokenMs: 1_000 }, () => 1_001)
  expect(await next.waitForAll(60_000)).toBe(true)
  // Rows of the other loads are copies of the same positions here.
  expect([others > 0, await world.count()]).toEqual([true, 3])
  await next.stop(0)
})

test('a batch is repeated under its token while ClickHouse remembers that, or if nobody else can have pushed it out', async () => {
  for (const [tokenMs, ageMs] of [
    [1_000, 999],
    [undefined, Number.POSITIVE_INFINITY],
  ] as const) {
    const world = await fixture()
    await diesAfterLoad(world)
    const deleted: number[] = []
    const clear = async (afterSeq: number) => void deleted.push(afterSeq)
    const next = world.owner({ tokenMs, clear }, () => ageMs)
    expect(await next.waitForAll(60_000)).toBe(true)
    expect([await world.count(), deleted]).toEqual([3, []])
    await next.stop(0)
  }
})

test('an owner that repeats a load for too long does not repeat it under a token that may be forgotten', async () => {
  const { client, owner, count, forgetTokens } = await fixture()
  const tokens: string[] = []
  const insertNative: ColumnarClient['insertNative'] = async (table, blocks, token, ...rest) => {
    tokens.push(token)
    if (tokens.length !== 2) await client.insertNative(table, blocks, token, ...rest)
    else await forgetTokens()
    if (tokens.length === 2) await Bun.sleep(300)
    if (tokens.length <= 2) throw new Error('the answer is lost')
  }
  const sink = owner({ tokenMs: 300, client: { insertNative } })
  expect(await sink.waitForAll(60_000)).toBe(true)
  // Rows of the other loads are copies of the same positions here.
  expect([await count(), tokens.length, new Set(tokens).size]).toEqual([3, 3, 2])
  await sink.stop(0)
})

test('a reload that is asked for while a batch is put back is not forgotten', async () => {
  const { client, owner, count } = await fixture()
  const store = new MemoryPosition(NEVER_FAILS).storeOf(0)
  let asked: Promise<void> | undefined
  const set: typeof store.set = async (changes) => {
    if (changes.reloads === 1) asked = sink.reload(0)
    await store.set(changes)
  }
  let loads = 0
  const insertNative: ColumnarClient['insertNative'] = async (...load) => {
    await client.insertNative(...load)
    if (++loads === 1) throw new Error('the answer is lost')
  }
  const sink: Sink = owner({ tokenMs: 0, client: { insertNative }, position: { ...store, set } })
  await eventually(() => expect(store.get()).toMatchObject({ loadedSeq: 3, reloads: 2 }))
  await asked
  expect(await count()).toBe(3)
  await sink.stop(0)
})

test('the age of a batch is that of its first announcement, by the clock of Postgres, through all owners that repeat it', async () => {
  const { sql } = await freshDatabase()
  const rows = new PartitionStore(sql)
  await rows.create({ count: 1, home: null, epochOf: newEpoch, highestSeq: async () => 0 })
  const claim = async (agoSeconds?: number) => {
    await sql`update journal_partitions set owner = null`
    if (agoSeconds !== undefined)
      await sql`update journal_partitions set announced_at = now() - make_interval(secs => ${agoSeconds}), reported_at = now()`
    return new ClusterSinkPosition(rows, (await rows.claim(Bun.randomUUIDv7(), 1, [], []))[0]!)
  }
  const isBetween = (position: ClusterSinkPosition, fromMs: number) => {
    const ageMs = position.announcedAgeMs()
    return ageMs >= fromMs && ageMs < fromMs + 30_000
  }
  expect((await claim()).announcedAgeMs()).toBe(Number.POSITIVE_INFINITY)
  const first = await claim()
  await first.set({ inFlightSeq: 5 })
  expect(isBetween(await claim(), 0)).toBe(true)
  const second = await claim(90)
  expect(isBetween(second, 90_000)).toBe(true)
  // It repeats the batch, and asks whether it is still the owner.
  await second.set({ inFlightSeq: 5 })
  await second.set({})
  const third = await claim()
  expect(isBetween(third, 90_000)).toBe(true)
  await third.set({ loadedSeq: 0, inFlightSeq: 0, reloads: 1, clearThroughSeq: 5 })
  await third.set({ clearThroughSeq: 0 })
  await third.set({ inFlightSeq: 5 })
  expect(isBetween(await claim(), 0)).toBe(true)
  // The answer to its position is lost, so it announces the batch again.
  const fourth = await claim(90)
  const unanswered = Object.assign(Object.create(ClusterSinkPosition.prototype), fourth)
  await unanswered.set({ loadedSeq: 5 })
  await fourth.set({})
  expect(isBetween(await claim(), 90_000)).toBe(true)
  // The clock was set back.
  expect((await claim(-90)).announcedAgeMs()).toBe(Number.POSITIVE_INFINITY)
})

test('a position that arrives late, after later ones, changes nothing', async () => {
  const { sql } = await freshDatabase()
  /** Statements that the server has yet to get: the connection was given up meanwhile. */
  const late: (() => PromiseLike<unknown>)[] = []
  let isStalled = false
  const stalling = new Proxy(sql, {
    apply(target, self, args) {
      if (!isStalled) return Reflect.apply(target as never, self, args)
      late.push(() => Reflect.apply(target as never, self, args) as PromiseLike<unknown>)
      return Promise.reject(new Error('no response from Postgres'))
    },
  })
  const rows = new PartitionStore(stalling)
  await rows.create({ count: 1, home: null, epochOf: newEpoch, highestSeq: async () => 0 })
  const claim = async () => (await rows.claim(Bun.randomUUIDv7(), 1, [], []))[0]!
  const owner = new ClusterSinkPosition(rows, await claim())
  await owner.set({ inFlightSeq: 5 })
  isStalled = true
  // It asks whether it still is the owner; then it has loaded the batch.
  await expect(owner.set({})).rejects.toThrow('no response')
  await expect(owner.set({ loadedSeq: 5 })).rejects.toThrow('no response')
  isStalled = false
  await owner.set({ loadedSeq: 5 })
  await owner.set({ inFlightSeq: 9 })
  for (const arrive of late) await arrive()
  await sql`update journal_partitions set owner = null`
  const next = await claim()
  expect(next.position).toEqual({ loadedSeq: 5, inFlightSeq: 9, reloads: 0, clearThroughSeq: 0 })
  await new ClusterSinkPosition(rows, next).set({ loadedSeq: 9 })
  expect(await rows.loadedSeq(0)).toBe(9)
  for (const arrive of late) await arrive()
  expect(await rows.loadedSeq(0)).toBe(9)
})

test('the age of a batch in a file is that of its first announcement, unless the machine was started again', async () => {
  const dir = await temporaryDirectory()
  let bootMs = 1_000_000
  const open = () => SinkPositionFile.open(dir, undefined, () => bootMs)
  const first = await open()
  await first.set({ inFlightSeq: 5 })
  await first.close()
  bootMs += 90_000
  const second = await open()
  expect(second.announcedAgeMs()).toBeGreaterThanOrEqual(90_000)
  expect(second.announcedAgeMs()).toBeLessThan(120_000)
  await second.set({ inFlightSeq: 5 })
  await second.close()
  const third = await open()
  expect(third.announcedAgeMs()).toBeGreaterThanOrEqual(90_000)
  await third.set({ inFlightSeq: 6 })
  await third.close()
  const fourth = await open()
  expect(fourth.announcedAgeMs()).toBeLessThan(30_000)
  await fourth.close()
  bootMs = 5_000
  const restarted = await open()
  expect(restarted.announcedAgeMs()).toBe(Number.POSITIVE_INFINITY)
  await restarted.close()
})

test('a token is trusted for a minute at most, and for as long as the loads of all partitions leave it among 10,000', () => {
  expect([1, 12, 24, 120, 1_024].map((partitions) => Math.floor(tokenMs(partitions) / 1000))).toEqual([
    60, 58, 58, 58, 6,
  ])
})

test('an owner that wakes before it deletes rows to load them again leaves alone what another one has loaded', async () => {
  const { client, journal, owner, count } = await fixture()
  const paused = Promise.withResolvers<void>()
  const resumed = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<unknown>()
  const old = owner({
    async clear(afterSeq, throughSeq, _signal, confirm) {
      paused.resolve()
      await resumed.promise
      // None of its timers has run yet.
      const { signal } = new AbortController()
      const cleared = clearRows(client, journal, { afterSeq, throughSeq }, signal, confirm)
      cleared.then(() => ended.resolve('deleted'), ended.resolve)
      return cleared
    },
  })
  expect(await old.waitForAll(60_000)).toBe(true)
  await old.reload(0)
  await paused.promise
  const next = owner()
  expect(await next.waitForAll(60_000)).toBe(true)
  resumed.resolve()
  const outcome = await ended.promise
  expect([await count(), String(outcome)]).toEqual([3, 'Error: another owner has taken over'])
  await old.stop(0)
  await next.stop(0)
})

test('repeats of a load that run at the same time store it once', async () => {
  const { client, journal, count } = await fixture()
  const [frame] = await journal.read(0, 2 ** 20)
  const block = Buffer.from(frame!.block)
  const loads = Array.from({ length: 12 }, (_, n) => client.insertNative('events', [block], `load ${n % 3}`))
  await Promise.all(loads)
  expect(await count()).toBe(3 * 3)
})

const ODD = [
  ...[
    '',
    '\ud800',
    '\0',
    '{"input":',
    '9'.repeat(400),
    '2299-12-31T23:59:59.999Z',
    '9999-99-99',
    '-1',
    'x'.repeat(1_000),
  ],
  ...[
    null,
    true,
    -0,
    1e308,
    5e-324,
    2 ** 64,
    [],
    {},
    [[]],
    ['\udfff', 1, null],
    { '': { '': '' } },
    { input: '\ud800' },
  ],
]
const MEMBERS = [
  'approval_id',
  'request_id',
  'decided_by',
  'decision',
  'tool',
  'input',
  'edited_input',
  'question',
  'options',
]
const MORE_MEMBERS = ['answer', 'comment', 'requested_at', 'expires_at', 'alert_id', 'series', 'state', 'value', 'at']
/** Those that views copy, parts of their payloads too. */
const TYPES = [
  'approval.requested',
  'approval.decided',
  'input.requested',
  'input.answered',
  'alert.fired',
  'other',
  '\ud800',
]

test(`nothing that a row can hold is refused by ClickHouse, however odd: no row can stop the others (SEED=${SEED})`, async () => {
  const { client, journal, owner, count } = await fixture()
  const random = seededRandom('odd rows', SEED)
  const odd = (depth: number): unknown => {
    if (depth === 0 || random.bool(0.7)) return random.pick<unknown>(ODD)
    return Object.fromEntries([...MEMBERS, ...MORE_MEMBERS].map((name) => [name, odd(depth - 1)]))
  }
  const { workspaceId: workspace_id, agentId: agent_id, runId: run_id } = runRef()
  // Workspace events are those that become states of alerts.
  const subjects = [
    { agent_id, run_id },
    { agent_id: NIL_UUID, run_id: NIL_UUID },
  ]
  const rows = Array.from({ length: 300 }, (_, n) => ({
    ...{ workspace_id, ...random.pick(subjects), type: random.pick(TYPES), level: 2 },
    event_id: `event ${n}`,
    // The first and the last time that callers may report.
    occurred_at: random.pick([Date.UTC(1900, 0, 1), Date.UTC(2300, 0, 1) - 1, Date.now()]),
    payload: random.bool(0.1) ? random.pick(['', '{', '[1', 'null', '"x"']) : JSON.stringify(odd(3)),
  }))
  await journal.appendSystemEvents(rows, [])
  const sink = owner()
  expect(await sink.waitForAll(60_000)).toBe(true)
  expect(await count()).toBe(3 + rows.length)
  const copies = 'select (select count() from pauses) as pauses, (select count() from alert_states) as states'
  const [{ pauses, states }] = (await client.query<{ pauses: number; states: number }>(copies)) as [never]
  expect([pauses > 0, states > 0]).toEqual([true, true])
  await sink.stop(0)
})
