import { expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { type LocalJournal, type LocalJournalOptions, openLocalJournal } from '../../src/journal/local/journal.ts'
import { FrameSeal } from '../../src/journal/log/frame.ts'
import type { SinkOptions } from '../../src/sink/sink.ts'
import { batchOf, runRef } from '../support/events.ts'
import { forgedFrame, runIdsOf } from '../support/forged-frames.ts'
import { runRow } from '../support/rows.ts'
import { startSink } from '../support/sink.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** How a journal recovers files left behind by a crash, a disk error or an attacker. */

const PAGE_BYTES = 4096

function open(dir: string, options: Partial<LocalJournalOptions> = {}) {
  const sizes = { maxBytes: 2 ** 40, keepBytes: 2 ** 40 }
  return openLocalJournal({ dir, ...sizes, clock: systemClock, log: createLog('silent'), ...options })
}

function append(journal: LocalJournal, count = 1, run = runRef()) {
  return journal.appendEvents(batchOf(run, new Array(count).fill({ type: 'mark' })))
}

/** The positions that can be read, each with its run id. */
async function spansOf(journal: LocalJournal): Promise<[number, string][]> {
  const spans: [number, string][] = []
  for (let position = 0; ; ) {
    const frames = await journal.read(position, 1e6)
    if (frames.length === 0) return spans
    for (const frame of frames) {
      position = frame.firstSeq
      for (const { runId, rows } of frame.runs) {
        spans.push([position, runId])
        position += rows
      }
      position--
    }
  }
}

const segmentsOf = (dir: string) => fs.readdirSync(dir).filter((name) => name.endsWith('.segment'))
const positionsOf = async (journal: LocalJournal) => (await spansOf(journal)).map(([seq]) => seq)
const gapsOf = ({ gaps }: LocalJournal) => gaps.map(({ afterSeq, throughSeq }) => [afterSeq, throughSeq])

function change(path: string, work: (bytes: Buffer) => Buffer | undefined): void {
  const bytes = fs.readFileSync(path)
  fs.writeFileSync(path, work(bytes) ?? bytes)
}

test("a frame with an attacker's key that callers hide in the rows of a real frame is never recovered, wherever that frame is torn", async () => {
  const dir = await temporaryDirectory()
  const journal = await open(dir)
  await append(journal)
  const forged = forgedFrame(new FrameSeal(Buffer.alloc(32, 1), journal.epoch, 1), 1_000_000)
  const victims = runIdsOf(forged)
  const calls = await Promise.all(victims.map((runId) => append(journal, 1, { ...runRef(), runId })))
  const { lastSeq } = calls[calls.length - 1]
  await journal.close()
  const name = join(dir, segmentsOf(dir)[0])
  const whole = fs.readFileSync(name)
  // The column of run ids holds the forged frame, byte for byte.
  expect(whole.indexOf(forged)).toBeGreaterThan(PAGE_BYTES)
  for (const damage of DAMAGES) {
    fs.writeFileSync(name, damage(Buffer.from(whole)))
    const again = await open(dir)
    expect(await positionsOf(again)).toEqual([1])
    expect([again.endSeq, gapsOf(again)]).toEqual([lastSeq, [[1, lastSeq]]])
    await again.close()
    for (const file of segmentsOf(dir)) fs.rmSync(join(dir, file))
    fs.rmSync(join(dir, 'gaps'))
  }
})

/** Ways to damage the second commit. */
const DAMAGES: ((bytes: Buffer) => Buffer)[] = [
  (bytes) => bytes.fill(0, PAGE_BYTES, PAGE_BYTES + 96),
  (bytes) => bytes.fill(0, PAGE_BYTES, PAGE_BYTES + 512),
  (bytes) => Buffer.from(bytes.fill(255, PAGE_BYTES + 4, PAGE_BYTES + 8).subarray(0, -100)),
  (bytes) => bytes.subarray(0, -(PAGE_BYTES + 1)),
]

test('a newest frame damaged after its acknowledgement becomes a gap; its positions are not reused', async () => {
  const dir = await temporaryDirectory()
  const journal = await open(dir)
  await append(journal, 3)
  await append(journal, 5)
  await journal.close()
  change(join(dir, segmentsOf(dir)[0]), (bytes) => bytes.fill(7, PAGE_BYTES + 200, PAGE_BYTES + 220))
  const again = await open(dir)
  expect([again.endSeq, gapsOf(again)]).toEqual([8, [[3, 8]]])
  expect(await append(again)).toEqual({ firstSeq: 9, lastSeq: 9 })
  expect(await positionsOf(again)).toEqual([1, 9])
  expect(fs.readdirSync(dir).filter((name) => name.endsWith('.damaged'))).toHaveLength(1)
  await again.close()
})

test('a recovery that ends within a page starts a new segment, and the first append succeeds', async () => {
  const dir = await temporaryDirectory()
  const journal = await open(dir)
  // One commit of two frames.
  await Promise.all([journal.appendRuns([runRow(runRef())], [Bun.randomUUIDv7()]), append(journal, 2)])
  await journal.close()
  const name = join(dir, segmentsOf(dir)[0])
  change(name, (bytes) => bytes.fill(0, bytes.lastIndexOf('mark') - 10))
  fs.rmSync(join(dir, 'acknowledged'))
  const again = await open(dir)
  expect(again.endSeq).toBe(1)
  expect(fs.statSync(name).size % PAGE_BYTES).not.toBe(0)
  expect(await append(again)).toEqual({ firstSeq: 2, lastSeq: 2 })
  expect(segmentsOf(dir)).toHaveLength(2)
  await again.close()
  const third = await open(dir)
  expect(await positionsOf(third)).toEqual([1, 2])
  await third.close()
})

test('a new epoch continues in the same directory: consumers read earlier rows, feeds start at the new epoch', async () => {
  const dir = await temporaryDirectory()
  const first = await open(dir)
  await append(first, 3)
  await first.close()
  const second = await open(dir, { decideStart: async () => ({ afterSeq: 20, loadedSeq: 20, newEpoch: true }) })
  expect(second.epoch).not.toBe(first.epoch)
  expect(second.epochs.map(({ epoch, firstSeq }) => [epoch, firstSeq])).toEqual([
    [first.epoch, 1],
    [second.epoch, 21],
  ])
  expect([second.startSeq, second.epochAt(20), second.epochAt(21)]).toEqual([21, first.epoch, second.epoch])
  await append(second, 2)
  expect(await positionsOf(second)).toEqual([1, 21])

  // Each batch belongs to one epoch, named by its token.
  const tokens: string[] = []
  const client: SinkOptions['client'] = { insertNative: async (_table, _blocks, token) => void tokens.push(token) }
  const sink = await startSink({ journal: second, client, dir, log: createLog('silent'), intervalMs: 1 })
  expect(await sink.waitFor(22, 10_000)).toBe(true)
  expect(tokens).toEqual([`${first.epoch}-0-3`, `${second.epoch}-3-22`])
  await sink.stop(0)
  await second.close()
})

test('a sink skips a gap at the end, so that nothing waits for rows that never come', async () => {
  const dir = await temporaryDirectory()
  const journal = await open(dir, { decideStart: async () => ({ afterSeq: 5, loadedSeq: 0, newEpoch: false }) })
  const client: SinkOptions['client'] = { insertNative: async () => {} }
  const sink = await startSink({ journal, client, dir, log: createLog('silent'), intervalMs: 1 })
  expect(await sink.waitFor(5, 10_000)).toBe(true)
  await sink.stop(0)
  await journal.close()
})

test('a journal does not open without its frame key, and one copy of the key is enough', async () => {
  const dir = await temporaryDirectory()
  const journal = await open(dir)
  await append(journal)
  await journal.close()
  fs.writeFileSync(join(dir, 'epoch'), 'damaged')
  const again = await open(dir)
  expect([again.epoch, await positionsOf(again)]).toEqual([journal.epoch, [1]])
  await again.close()
  fs.rmSync(join(dir, 'epoch'))
  fs.rmSync(join(dir, 'epoch.copy'))
  await expect(open(dir)).rejects.toThrow('restore it from a backup')
})
