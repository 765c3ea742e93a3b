import { describe, expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { type JournalReader, lastSeqOf } from '../../src/stores/journal/journal.ts'
import type { LocalJournal, LocalJournalOptions } from '../../src/stores/journal/local/journal.ts'
import { type LocalReader, type LocalReaderOptions, openLocalReader } from '../../src/stores/journal/local/reader.ts'
import { segmentNames } from '../../src/stores/journal/local/segment-files.ts'
import { closedAfterEach } from '../support/closed-after-each.ts'
import { eventually } from '../support/eventually.ts'
import { appendMarks, gapsOf, marksAfter, marksOf, openLocal } from '../support/journals.ts'
import { seededRandom } from '../support/random.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** Reading the files of a journal while another process writes them; here the writer is another object. */

const log = createLog('silent')
const track = closedAfterEach()

async function write(dir: string, options: Partial<LocalJournalOptions> = {}): Promise<LocalJournal> {
  return track(await openLocal(dir, { segmentBytes: 16_384, ...options }))
}

async function read(dir: string, options: Partial<LocalReaderOptions> = {}): Promise<LocalReader> {
  return track(await openLocalReader({ dir, log, ...options }))
}

/** What a consumer that follows the log has seen: each mark with its position. */
function following(reader: JournalReader, afterSeq: number) {
  const marks: [number, number][] = []
  const stopping = new AbortController()
  const ended = (async () => {
    for await (const frame of reader.follow(afterSeq, stopping.signal)) {
      const position = marks.at(-1)?.[0] ?? afterSeq
      if (lastSeqOf(frame) <= position) throw new Error('a frame was repeated')
      marksOf(frame).forEach((mark, index) => {
        if (frame.firstSeq + index > afterSeq) marks.push([frame.firstSeq + index, mark])
      })
    }
  })()
  const stop = () => {
    stopping.abort()
    return ended
  }
  return { marks, stop }
}

test('rows arrive once and in order, through many segments, for consumers that keep up and that lag', async () => {
  const random = seededRandom('journal reader')
  const dir = await temporaryDirectory()
  const journal = await write(dir)
  const expected: [number, number][] = []
  const append = async (calls: number) => {
    for (let call = 0; call < calls; call++) {
      const marks = Array.from({ length: random.int(1, 5) }, (_, index) => expected.length + index)
      const { firstSeq } = await appendMarks(journal, marks, undefined, random.pick([0, 0, 3_000, 40_000]))
      for (const [index, mark] of marks.entries()) expected.push([firstSeq + index, mark])
    }
  }
  await append(20)
  const consumers = []
  for (const tailBytes of [1, 50_000, 2 ** 30]) {
    const reader = await read(dir, { tailBytes })
    expect(reader.endSeq).toBe(journal.endSeq)
    for (const afterSeq of [0, random.int(1, reader.endSeq), reader.endSeq])
      consumers.push({ afterSeq, ...following(reader, afterSeq), reader })
    await append(20)
  }
  expect(segmentNames(dir).length).toBeGreaterThan(10)
  for (const { reader, marks, afterSeq, stop } of consumers) {
    expect(await reader.refreshEnd()).toBe(journal.endSeq)
    await eventually(() => marks.at(-1)?.[0] === journal.endSeq)
    await stop()
    expect(marks).toEqual(expected.filter(([seq]) => seq > afterSeq))
    expect(reader.gaps).toEqual([])
  }
})

test('only what was acknowledged is shown, also after the writer has ended at another point', async () => {
  const dir = await temporaryDirectory()
  const journal = await write(dir)
  await appendMarks(journal, [1, 2])
  const acknowledged = join(dir, 'acknowledged')
  const before = fs.readFileSync(acknowledged)
  await appendMarks(journal, [3])
  await journal.close()
  // As if the writer had ended before the acknowledgement.
  fs.writeFileSync(acknowledged, before)
  const reader = await read(dir)
  expect([reader.endSeq, await reader.refreshEnd()]).toEqual([2, 2])
  expect([...(await marksAfter(reader)).values()]).toEqual([1, 2])
  // The next writer finds the row intact, so it belongs to the journal.
  const next = await write(dir)
  expect(next.endSeq).toBe(3)
  await appendMarks(next, [4])
  await eventually(() => reader.endSeq === 4)
  expect([...(await marksAfter(reader)).values()]).toEqual([1, 2, 3, 4])
})

test('a new epoch is announced, with the gap before it', async () => {
  const dir = await temporaryDirectory()
  const journal = await write(dir)
  await appendMarks(journal, [1, 2])
  let epochs = 0
  const reader = await read(dir, { onEpoch: () => void epochs++ })
  await journal.close()
  const next = await write(dir, { decideStart: async () => ({ afterSeq: 10, loadedSeq: 2, newEpoch: true }) })
  await appendMarks(next, [3])
  expect(await reader.refreshEnd()).toBe(11)
  expect(epochs).toBe(1)
  expect([reader.epoch, reader.epochs, reader.gaps]).toEqual([next.epoch, next.epochs, next.gaps])
  expect([...(await marksAfter(reader))]).toEqual([
    [1, 1],
    [2, 2],
    [11, 3],
  ])
})

test('deleted rows are forgotten, in memory too', async () => {
  const dir = await temporaryDirectory()
  const journal = await write(dir)
  await appendMarks(journal, [1, 2, 3])
  const reader = await read(dir)
  await appendMarks(journal, [4])
  await eventually(() => reader.endSeq === 4)
  expect(await journal.cut()).toBe(4)
  expect(await journal.drop(4)).toBe(true)
  await appendMarks(journal, [5])
  await eventually(() => reader.startSeq === 5 && reader.endSeq === 5)
  expect([...(await marksAfter(reader)).values()]).toEqual([5])
  expect(reader.gaps).toEqual([])
})

test('no process has written yet', async () => {
  expect(openLocalReader({ dir: join(await temporaryDirectory(), 'none'), log })).rejects.toThrow('no process writes')
})

describe('damage', () => {
  test('acknowledged rows that cannot be read become a gap, and reading goes on after them', async () => {
    const dir = await temporaryDirectory()
    const journal = await write(dir)
    await appendMarks(journal, [1])
    const acknowledged = join(dir, 'acknowledged')
    const before = fs.readFileSync(acknowledged)
    const [name] = segmentNames(dir)
    const path = join(dir, name)
    const at = fs.statSync(path).size
    await appendMarks(journal, [2, 3])
    await appendMarks(journal, [4])
    const after = fs.readFileSync(acknowledged)
    fs.writeFileSync(acknowledged, before)
    const reader = await read(dir)
    expect(reader.endSeq).toBe(1)
    const seen = following(reader, 0)
    const file = fs.openSync(path, 'r+')
    fs.writeSync(file, Buffer.alloc(200), 0, 200, at)
    fs.closeSync(file)
    fs.writeFileSync(acknowledged, after)
    expect(await reader.refreshEnd()).toBe(4)
    await eventually(() => seen.marks.length === 2)
    await seen.stop()
    expect(seen.marks).toEqual([
      [1, 1],
      [4, 4],
    ])
    expect(gapsOf(reader)).toEqual([[1, 3]])
    expect(fs.readdirSync(dir).filter((each) => each.endsWith('.damaged'))).toEqual([])
  })
})
