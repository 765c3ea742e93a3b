import { expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { Loops } from '../../src/base/loops.ts'
import { PendingRows } from '../../src/stores/journal/log/group-commit.ts'
import { PagePool } from '../../src/stores/journal/log/pages.ts'
import { createBatcher } from '../../src/stores/postgres/batcher.ts'
import { Sink } from '../../src/stores/sink/sink.ts'
import { eventually } from '../support/eventually.ts'

/** What no caller can cause: each check stops the damage, and none of them is silent. */

test('events without a run are not written', () => {
  const { events } = new PendingRows()
  events.rows = 1
  expect(() => events.build(1, 0, 'epoch')).toThrow('assertion failed: every event has a value in each column')
})

test('a commit buffer cannot be returned twice, which would give it to two commits', () => {
  const pool = new PagePool()
  const buffer = pool.take(10_000)
  pool.give(buffer)
  expect(() => pool.give(buffer)).toThrow('assertion failed: a commit buffer is returned to the pool once')
  expect(pool.take(10_000).buffer).toBe(buffer.buffer)
  expect(pool.take(10_000).buffer).not.toBe(buffer.buffer)
})

test('a statement that lacks results fails for all its items, instead of giving one the result of another', async () => {
  const batcher = createBatcher<number, number>({
    run: async (items) => items.slice(1),
    keyOf: String,
    bytesOf: () => 1,
  })
  const results = await Promise.allSettled([1, 2, 3].map((item) => batcher.submit(item)))
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
})

test('the sink loads nothing of a journal that returns rows again, and its loop reports it', async () => {
  const log = createLog('silent')
  const loops = new Loops(log)
  const position = { loadedSeq: 5, inFlightSeq: 5, reloads: 0, clearThroughSeq: 0 }
  const inserted: string[] = []
  const frame = { kind: 'event', firstSeq: 4, rows: 2, receivedAt: 0, runs: [], block: new Uint8Array(1) } as const
  const sink = new Sink({
    journal: {
      epoch: 'e',
      endSeq: 7,
      release() {},
      epochAt: () => 'e',
      waitPast: async () => {},
      read: async () => [frame],
    } as never,
    client: { insertNative: async (_table, _blocks, token) => void inserted.push(token) },
    position: { get: () => position, set: async () => {}, close: async () => {}, announcedAgeMs: () => 0 },
    log,
    loops,
  })
  await eventually(async () => loops.states()[0]!.failures > 1)
  expect(String(loops.states()[0]!.lastError)).toContain(
    'assertion failed: the journal returns each row once, in order',
  )
  expect(inserted).toEqual([])
  await sink.stop(0)
})
