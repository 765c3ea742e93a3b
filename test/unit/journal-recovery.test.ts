import { expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import type { LocalJournal } from '../../src/stores/journal/local/journal.ts'
import { segmentNames } from '../../src/stores/journal/local/segment-files.ts'
import { FrameSeal } from '../../src/stores/journal/log/frame.ts'
import type { SinkOptions } from '../../src/stores/sink/sink.ts'
import { closedAfterEach } from '../support/closed-after-each.ts'
import { batchOf, runRef } from '../support/events.ts'
import { forgedFrame, runIdsOf } from '../support/forged-frames.ts'
import { framesAfter, gapsOf, openLocal } from '../support/journals.ts'
import { runRow, taskRow } from '../support/rows.ts'
import { startSink } from '../support/sink.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** How a journal recovers files left behind by a crash, a disk error or an attacker. */

const PAGE_BYTES = 4096
const track = closedAfterEach()

async function open(...args: Parameters<typeof openLocal>): Promise<LocalJournal> {
  return track(await openLocal(...args))
}

function append(journal: LocalJournal, count = 1, run = runRef()) {
  return journal.appendEvents(batchOf(run, new Array(count).fill({ type: 'mark' })))
}

/** The first position of each run's rows in each frame. */
async function positionsOf(journal: LocalJournal): Promise<number[]> {
  return (await framesAfter(journal)).flatMap(({ firstSeq, runs }) =>
    runs.map((_, index) => runs.slice(0, index).reduce((seq, { rows }) => seq + rows, firstSeq)),
  )
}

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
  const name = join(dir, segmentNames(dir)[0])
  const whole = fs.readFileSync(name)
  // The column of run ids holds the forged frame, byte for byte.
  expect(whole.indexOf(forged)).toBeGreaterThan(PAGE_BYTES)
  for (const damage of DAMAGES) {
    fs.writeFileSync(name, damage(Buffer.from(whole)))
    const again = await open(dir)
    expect(await positionsOf(again)).toEqual([1])
    expect([again.endSeq, gapsOf(again)]).toEqual([lastSeq, [[1, lastSeq]]])
    await again.close()
    for (const file of segmentNames(dir)) fs.rmSync(join(dir, file))
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
  change(join(dir, segmentNames(dir)[0]), (bytes) => bytes.fill(7, PAGE_BYTES + 200, PAGE_BYTES + 220))
  const again = await open(dir)
  expect([again.endSeq, gapsOf(again)]).toEqual([8, [[3, 8]]])
  expect(await append(again)).toEqual({ firstSeq: 9, lastSeq: 9 })
  expect(await positionsOf(again)).toEqual([1, 9])
  expect(fs.readdirSync(dir).filter((name) => name.endsWith('.damaged'))).toHaveLength(1)
})

test('the time of acceptance comes from the last frame when the acknowledged position is lost', async () => {
  const dir = await temporaryDirectory()
  const atMs = Date.UTC(2026, 0, 31)
  const journal = await open(dir, { clock: { now: () => atMs } })
  await append(journal)
  await journal.close()
  fs.rmSync(join(dir, 'acknowledged'))
  const again = await open(dir, { clock: { now: () => atMs - 30_000 } })
  await append(again)
  expect((await framesAfter(again)).map(({ receivedAt }) => receivedAt)).toEqual([atMs, atMs])
})

test('a recovery that ends within a page starts a new segment, and the first append succeeds', async () => {
  const dir = await temporaryDirectory()
  const journal = await open(dir)
  // One commit of two frames.
  await Promise.all([journal.appendRuns([runRow(runRef())], [Bun.randomUUIDv7()]), append(journal, 2)])
  await journal.close()
  const name = join(dir, segmentNames(dir)[0])
  change(name, (bytes) => bytes.fill(0, bytes.lastIndexOf('mark') - 10))
  fs.rmSync(join(dir, 'acknowledged'))
  const again = await open(dir)
  expect(again.endSeq).toBe(1)
  expect(fs.statSync(name).size % PAGE_BYTES).not.toBe(0)
  expect(await append(again)).toEqual({ firstSeq: 2, lastSeq: 2 })
  expect(segmentNames(dir)).toHaveLength(2)
  await again.close()
  const third = await open(dir)
  expect(await positionsOf(third)).toEqual([1, 2])
})

test('outbox ids are known after a crash, however many segments have followed them, or have been deleted', async () => {
  const dir = await temporaryDirectory()
  const ids = Array.from({ length: 3 }, () => crypto.randomUUID())
  const journal = await open(dir, { segmentBytes: 1 })
  journal.release('sink', 0)
  await journal.appendRuns([runRow(runRef())], [ids[0]])
  for (let segment = 0; segment < 4; segment++) await append(journal)
  await journal.appendTasks([taskRow(runRef())], [ids[1]])
  await journal.appendRuns([runRow(runRef())], [ids[2]])
  for (const isDeleted of [false, true]) {
    for (let segment = 0; segment < 4; segment++) await append(journal)
    if (isDeleted) {
      journal.release('sink', journal.endSeq)
      expect(await journal.drop(await journal.cut())).toBe(true)
    }
    // A process that is killed leaves what it has written.
    const copy = await temporaryDirectory()
    fs.cpSync(dir, copy, { recursive: true })
    expect((await open(copy)).lastOutboxIds().toSorted()).toEqual([ids[1], ids[2]].toSorted())
  }
})

test('a sink loads the rows of two epochs apart: each batch belongs to one, which its token names', async () => {
  const dir = await temporaryDirectory()
  const first = await open(dir)
  await append(first, 3)
  await first.close()
  const second = await open(dir, { decideStart: async () => ({ afterSeq: 20, loadedSeq: 20, newEpoch: true }) })
  await append(second, 2)
  const tokens: string[] = []
  const client: SinkOptions['client'] = { insertNative: async (_table, _blocks, token) => void tokens.push(token) }
  const sink = await startSink({ journal: second, client, dir, log: createLog('silent'), intervalMs: 1 })
  expect(await sink.waitFor(22, 10_000)).toBe(true)
  expect(tokens).toEqual([`${first.epoch}-0-3`, `${second.epoch}-3-22`])
  await sink.stop(0)
})

test('a sink skips a gap at the end, so that nothing waits for rows that never come', async () => {
  const dir = await temporaryDirectory()
  const journal = await open(dir, { decideStart: async () => ({ afterSeq: 5, loadedSeq: 0, newEpoch: false }) })
  const client: SinkOptions['client'] = { insertNative: async () => {} }
  const sink = await startSink({ journal, client, dir, log: createLog('silent'), intervalMs: 1 })
  expect(await sink.waitFor(5, 10_000)).toBe(true)
  await sink.stop(0)
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

test('what is dropped is on the disk no more, not even in copies of damaged data', async () => {
  const dir = await temporaryDirectory()
  const text = 'this must not stay'
  const run = runRef()
  const filesWith = () => fs.readdirSync(dir).filter((name) => fs.readFileSync(join(dir, name)).includes(text))
  const journal = await open(dir)
  await journal.appendEvents(batchOf(run, [{ type: 'mark', payload: { text } }]))
  await append(journal)
  expect(filesWith()).toHaveLength(1)
  await journal.close()
  change(join(dir, filesWith()[0]), (bytes) => bytes.fill(7, bytes.indexOf(text) - 3, bytes.indexOf(text) - 2))
  const again = await open(dir)
  expect(filesWith().filter((name) => name.endsWith('.damaged'))).toHaveLength(1)
  expect(await again.drop(await again.cut())).toBe(true)
  expect(filesWith()).toEqual([])
})

test('a damaged frame of an earlier segment is set aside with a copy when it is read', async () => {
  const dir = await temporaryDirectory()
  const journal = await open(dir)
  for (let segment = 0; segment < 3; segment++) {
    await append(journal, 2)
    await journal.cut()
  }
  await journal.close()
  change(join(dir, segmentNames(dir)[0]), (bytes) => bytes.fill(7, 200, 220))
  const again = await open(dir)
  expect(await positionsOf(again)).toEqual([3, 5])
  expect(gapsOf(again)).toEqual([[0, 2]])
  expect(fs.readdirSync(dir).filter((name) => name.endsWith('.damaged'))).toHaveLength(1)
})
