import { expect, test } from 'bun:test'
import { ApiError } from '../../src/base/errors.ts'
import { mint } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { startAlertScheduler } from '../../src/sql/alerts/scheduler.ts'
import { AlertStore } from '../../src/sql/alerts/store.ts'
import type { Analytics, AsOfSession } from '../../src/sql/analytics/analytics.ts'
import { eventually } from '../support/eventually.ts'
import { partitionWith } from '../support/partitions.ts'
import { freshDatabase } from '../support/postgres.ts'
import { atEnd } from '../support/teardown.ts'

/** When alerts are evaluated, on a real Postgres with queries that answer as a test wants (docs/alerts.md). */

const MINUTE = 60_000
const START = Date.UTC(2026, 0, 31)

type Answer = (query: string, asOf: number, workspaceId: string) => number | Promise<number>

async function rig(answer: Answer, { loaded = async () => true }: { loaded?: () => Promise<boolean> } = {}) {
  const { sql } = await freshDatabase()
  const clock = { ms: START, now: () => clock.ms }
  const asked: string[] = []
  const asOf = ({ workspaceId }: { workspaceId: string }): AsOfSession => ({
    async run({ query, asOf: tick, rows }) {
      const columns = [{ name: 'n', type: 'UInt64' }]
      if (rows === 0) return { columns, rows: [] }
      asked.push(`${query} ${(tick - START) / MINUTE}`)
      return { columns, rows: [[await answer(query, tick, workspaceId)]] }
    },
    [Symbol.dispose]: () => {},
  })
  const analytics = { asOf } as unknown as Analytics
  const journal = { hold: async () => () => {}, endSeq: 7 }
  const partitions = partitionWith({ journal: journal as never, sink: { waitFor: loaded } })
  const deps = { sql, clock, analytics, partitions, log: createLog('error'), onChange: () => {}, secondMs: 1_000 }
  const store = new AlertStore(deps)
  const workspace = async () => {
    const [{ workspace_id }] = await sql<[{ workspace_id: string }]>`
      insert into workspaces (workspace_id, name, created_at, updated_at)
      values (gen_random_uuid(), 'one', now(), now()) returning workspace_id`
    return { workspaceId: workspace_id, partition: 0 } as never
  }
  const create = (caller: never, query: string, more: object = {}) => {
    const body = { name: query, query, every: '1m', condition: { column: 'n', op: '>', value: 5 } as const, ...more }
    return store.create(caller, body, mint, new AbortController().signal)
  }
  const start = () => {
    // Looks for due alerts every 10 ms instead of every second.
    const poll = { ...deps, store, pollMs: 10 }
    const stop = startAlertScheduler(poll)
    atEnd(stop)
    return stop
  }
  const events = async () =>
    (
      await sql<{ body: { parse(): { type: string; payload: string } } }[]>`select body from outbox order by outbox_id`
    ).map(({ body }) => {
      const { type, payload } = body.parse()
      const { at, state } = JSON.parse(payload)
      return `${type} ${state} ${(Date.parse(at) - START) / MINUTE}`
    })
  return { clock, store, asked, workspace, create, start, events }
}

test('each tick counts once, whatever number of processes evaluate it, and missed ticks are evaluated in order', async () => {
  const { clock, asked, workspace, create, start, events } = await rig((_, tick) =>
    ((tick - START) / MINUTE) % 3 === 0 ? 9 : 1,
  )
  await create(await workspace(), 'a')
  const stops = [start(), start(), start()]
  clock.ms += MINUTE + 1
  await eventually(() => expect(asked).toContain('a 1'))
  for (const stop of stops) await stop()
  clock.ms += 10 * MINUTE
  start()
  start()
  await eventually(() => expect(asked).toContain('a 11'))
  await eventually(async () =>
    expect(await events()).toEqual([3, 6, 9].flatMap((n) => [`alert.fired firing ${n}`, `alert.resolved ok ${n + 1}`])),
  )
  const order = [...new Set(asked)]
  expect(order).toEqual(Array.from({ length: 11 }, (_, n) => `a ${n + 1}`))
})

test('a tick that is put off while its alert is read waits for what was accepted by then', async () => {
  let loads = 0
  let isBehind = false
  const caughtUp = Promise.withResolvers<boolean>()
  const loaded = () => {
    loads++
    return isBehind ? caughtUp.promise : Promise.resolve(true)
  }
  const { clock, store, asked, workspace, create, start } = await rig(() => 1, { loaded })
  await create(await workspace(), 'a')
  const [reading, read] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const load = store.load.bind(store)
  store.load = async (...args) => {
    reading.resolve()
    await read.promise
    return load(...args)
  }
  start()
  clock.ms += MINUTE + 1
  await reading.promise
  const before = loads
  isBehind = true
  clock.ms += 10_000 * MINUTE
  read.resolve()
  await eventually(() => expect(loads).toBeGreaterThan(before))
  expect(asked).toEqual([])
  caughtUp.resolve(true)
  await eventually(() => expect(asked.length).toBeGreaterThan(0))
})

test('ticks too long ago are skipped, and the alert says so', async () => {
  const { clock, store, asked, workspace, create, start } = await rig(() => 1)
  const caller = await workspace()
  const { alert_id } = await create(caller, 'a', { every: '1d' })
  clock.ms += 2_000 * 86_400_000
  start()
  await eventually(() => expect(asked.length).toBeGreaterThan(0))
  expect(asked[0]).toBe(`a ${561 * 1_440}`)
  // Stored with the tick, which is still being evaluated.
  await eventually(async () =>
    expect((await store.get(caller, alert_id)).error).toMatch(
      /^skipped the evaluations from 2026-02-01T00:00:00.000Z to /,
    ),
  )
})

test('slow queries of one workspace do not delay the alerts of another', async () => {
  const { promise: slow, resolve: end } = Promise.withResolvers<number>()
  const { clock, asked, workspace, create, start } = await rig((query) => (query.startsWith('slow') ? slow : 1))
  const [busy, other] = [await workspace(), await workspace()]
  for (let n = 0; n < 30; n++) await create(busy, `slow ${n}`)
  await create(other, 'quick')
  start()
  clock.ms += MINUTE + 1
  await eventually(() => expect(asked).toContain('quick 1'))
  clock.ms += MINUTE
  await eventually(() => expect(asked).toContain('quick 2'))
  await eventually(() => expect(asked.filter((query) => query.startsWith('slow')).length).toBe(2))
  end(1)
})

test('a tick waits until everything of its time is loaded, and for a free slot', async () => {
  let isLoaded = false
  let failures = 2
  const loaded = async () => isLoaded
  const answer = () => {
    if (failures-- > 0) throw new ApiError('RATE_LIMITED', 'busy')
    return 9
  }
  const { clock, store, asked, workspace, create, start, events } = await rig(answer, { loaded })
  const caller = await workspace()
  const { alert_id } = await create(caller, 'a', { on_error: 'alert' })
  start()
  clock.ms += MINUTE + 1
  await Bun.sleep(100)
  expect(asked).toEqual([])
  isLoaded = true
  await eventually(async () => expect(await events()).toEqual(['alert.fired firing 1']))
  expect(asked).toEqual(['a 1', 'a 1', 'a 1'])
  expect((await store.get(caller, alert_id)).error).toBeNull()
})

test('an edit, or the end of an alert, ends its states', async () => {
  const { clock, store, workspace, create, start, events } = await rig(() => 9)
  const caller = await workspace()
  const { alert_id } = await create(caller, 'a')
  start()
  const options = { version: undefined, signal: new AbortController().signal }
  const fires = async (count: number) => {
    clock.ms += MINUTE + 1
    await eventually(async () => expect((await events()).filter((each) => each.includes('fired')).length).toBe(count))
  }
  await fires(1)
  await store.edit(caller, alert_id, { renotify: '1h' }, options)
  expect((await events()).length).toBe(1)
  await store.edit(caller, alert_id, { by: [] }, options)
  await fires(2)
  await store.edit(caller, alert_id, { enabled: false }, options)
  await store.edit(caller, alert_id, { enabled: true }, options)
  await fires(3)
  await store.delete(caller, alert_id, undefined)
  const types = (await events()).map((event) => event.split(' ')[0])
  expect(types).toEqual(Array(3).fill(['alert.fired', 'alert.resolved']).flat())
})
