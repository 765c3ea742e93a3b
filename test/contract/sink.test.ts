import { expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import type { ColumnarClient } from '../../src/clickhouse/client.ts'
import { Sink, type SinkOptions } from '../../src/sink/sink.ts'
import { clearRows } from '../../src/store-marks/columnar-marks.ts'
import { MemoryPosition } from '../sim/stores.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { appendMarks, openLocal } from '../support/journals.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** The sink and ClickHouse, when processes pause and tokens are forgotten. */

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
  const owner = (options: Partial<SinkOptions> = {}, isStale = false) => {
    const store = position.storeOf(++position.generation, () => false)
    return new Sink({ journal, log, client, position: { ...store, isStale }, ...options })
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

test('an owner that wakes in the middle of a load, after another one has loaded the batch long ago, stores nothing', async () => {
  const { client, owner, count, forgetTokens } = await fixture()
  const paused = Promise.withResolvers<AbortSignal>()
  const resumed = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  let repeats = 0
  const insertNative: ColumnarClient['insertNative'] = async (table, blocks, token, signal) => {
    repeats++
    paused.resolve(signal!)
    await resumed.promise
    await client.insertNative(table, blocks, token, signal).finally(ended.resolve)
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

test('a batch whose token may be forgotten is not repeated under it: what exists of it is deleted first', async () => {
  const { client, journal, owner, count, forgetTokens } = await fixture()
  const stuck = Promise.withResolvers<void>()
  const insertNative: ColumnarClient['insertNative'] = async (table, blocks, token, signal) => {
    await client.insertNative(table, blocks, token, signal)
    stuck.resolve()
    // It dies before it can store the position.
    return new Promise(() => {})
  }
  owner({ client: { insertNative } })
  await stuck.promise
  const others = await forgetTokens()
  const clear: SinkOptions['clear'] = (afterSeq, throughSeq, signal) =>
    clearRows(client, journal, { afterSeq, throughSeq }, signal)
  const next = owner({ clear }, true)
  expect(await next.waitForAll(60_000)).toBe(true)
  // Rows of the other loads are copies of the same positions here.
  expect([others > 0, await count()]).toEqual([true, 3])
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
