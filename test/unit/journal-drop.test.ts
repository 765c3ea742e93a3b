import { expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { type LocalJournal, openLocalJournal } from '../../src/journal/local/journal.ts'
import { createLog } from '../../src/log.ts'
import { batchOf, runRef } from '../support/events.ts'
import { seededRandom } from '../support/random.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** Early removal of journal rows: for erased workspaces, and at the end of retention. */

const DAY_MS = 86_400_000
const ERASED_TEXT = 'this must not stay'

class SetClock {
  ms = Date.UTC(2026, 0, 1, 12)
  now(): number {
    return this.ms
  }
}

function open(dir: string, clock = new SetClock(), sizes: { segmentBytes?: number; tailBytes?: number } = {}) {
  return openLocalJournal({ dir, maxBytes: 2 ** 40, keepBytes: 2 ** 40, clock, log: createLog('silent'), ...sizes })
}

function append(journal: LocalJournal, text: string, count = 1, run = runRef()) {
  return journal.appendEvents(batchOf(run, new Array(count).fill({ type: 'mark', payload: { text } })))
}

/** The payload of each row, as text, in order. */
async function textsAfter(journal: LocalJournal, afterSeq: number): Promise<string[]> {
  const texts: string[] = []
  for (let position = afterSeq; position < journal.endSeq; ) {
    const frames = await journal.read(position, 1e6)
    if (frames.length === 0) throw new Error(`nothing after ${position} of ${journal.endSeq}`)
    for (const frame of frames) {
      const found = Buffer.from(frame.block)
        .toString('latin1')
        .matchAll(/"text":"([^"]*)"/g)
      texts.push(...[...found].map(([, text]) => text))
      position = frame.firstSeq + frame.rows - 1
    }
  }
  return texts
}

const filesOf = (dir: string) => fs.readdirSync(dir).map((name) => join(dir, name))
const filesWith = (dir: string, text: string) => filesOf(dir).filter((path) => fs.readFileSync(path).includes(text))
const segmentsOf = (dir: string) => filesOf(dir).filter((path) => path.endsWith('.segment')).length

test('drop removes rows before a cut from memory and disk; positions continue, also after reopening', async () => {
  const dir = await temporaryDirectory()
  const journal = await open(dir)
  await append(journal, ERASED_TEXT, 10)
  const seq = await journal.cut()
  expect(seq).toBe(10)
  expect(filesWith(dir, ERASED_TEXT)).toHaveLength(1)
  expect(await journal.drop(seq)).toBe(true)
  expect(filesWith(dir, ERASED_TEXT)).toEqual([])
  expect([journal.startSeq, journal.endSeq]).toEqual([11, 10])
  expect(journal.recent(0, 1e6)).toBeNull()
  expect(await journal.read(0, 1e6)).toEqual([])
  await journal.close()

  const again = await open(dir)
  expect([again.startSeq, again.endSeq, again.epoch]).toEqual([11, 10, journal.epoch])
  expect(await append(again, 'later')).toEqual({ firstSeq: 11, lastSeq: 11 })
  expect(again.recent(10, 1e6)).toHaveLength(1)
  expect(await textsAfter(again, 10)).toEqual(['later'])
  await again.close()
})

test('a cut covers everything accepted before it and loses no concurrent append', async () => {
  const random = seededRandom('journal cuts')
  for (let round = 0; round < 15; round++) {
    const dir = await temporaryDirectory()
    const sizes = { segmentBytes: random.pick([1, 4_096, 1e9]), tailBytes: random.pick([1, 1e9]) }
    const journal = await open(dir, new SetClock(), sizes)
    const appends: Promise<unknown>[] = []
    const before: Promise<{ lastSeq: number }>[] = []
    let seq = 0
    for (let i = 0; i < 40; i++) {
      const appended = append(journal, `${i}`, random.int(1, 5))
      appends.push(appended)
      if (i < 20) before.push(appended)
      if (i === 19) appends.push(journal.cut().then((cut) => (seq = cut)))
      if (random.bool(0.3)) await Bun.sleep(0)
    }
    await Promise.all(appends)
    expect(Math.max(...(await Promise.all(before)).map(({ lastSeq }) => lastSeq))).toBeLessThanOrEqual(seq)
    const kept = await textsAfter(journal, seq)
    expect(await journal.drop(seq)).toBe(true)
    expect(journal.startSeq).toBe(seq + 1)
    expect(await textsAfter(journal, seq)).toEqual(kept)
    expect(kept).toHaveLength(journal.endSeq - seq)
    await journal.close()
    const again = await open(dir)
    expect(await textsAfter(again, seq)).toEqual(kept)
    await again.close()
  }
})

test('does not drop rows that a consumer has not read yet', async () => {
  const dir = await temporaryDirectory()
  const journal = await open(dir)
  journal.release('sink', 0)
  await append(journal, ERASED_TEXT, 3)
  const seq = await journal.cut()
  expect(await journal.drop(seq)).toBe(false)
  expect(await textsAfter(journal, 0)).toEqual([ERASED_TEXT, ERASED_TEXT, ERASED_TEXT])
  journal.release('sink', 3)
  expect(await journal.drop(seq)).toBe(true)
  await journal.close()
})

test('drops copies of damaged data together with their segment', async () => {
  const dir = await temporaryDirectory()
  const journal = await open(dir)
  await append(journal, ERASED_TEXT)
  await append(journal, 'b')
  await journal.close()
  const [path] = filesWith(dir, ERASED_TEXT)
  const bytes = fs.readFileSync(path)
  bytes[bytes.indexOf(ERASED_TEXT) - 3] ^= 1
  fs.writeFileSync(path, bytes)
  const again = await open(dir)
  expect(filesOf(dir).filter((name) => name.endsWith('.damaged'))).toHaveLength(1)
  expect(await again.drop(await again.cut())).toBe(true)
  expect(filesWith(dir, ERASED_TEXT)).toEqual([])
  await again.close()
})

test('expiry drops whole days, also in a journal without recent writes', async () => {
  const clock = new SetClock()
  const dir = await temporaryDirectory()
  const journal = await open(dir, clock)
  for (let day = 0; day < 4; day++) {
    await append(journal, `day ${day}`)
    clock.ms += DAY_MS
  }
  expect(segmentsOf(dir)).toBe(4)
  await journal.expire(clock.ms - 2 * DAY_MS)
  expect(journal.startSeq).toBe(3)
  await journal.close()

  const again = await open(dir, clock)
  await again.expire(clock.ms - 2 * DAY_MS)
  expect(await textsAfter(again, 2)).toEqual(['day 2', 'day 3'])
  await again.expire(clock.ms)
  expect([again.startSeq, again.endSeq]).toEqual([5, 4])
  expect(filesWith(dir, 'day 3')).toEqual([])
  await again.expire(clock.ms + 100 * DAY_MS)
  expect(await append(again, 'day 4')).toEqual({ firstSeq: 5, lastSeq: 5 })
  await again.close()
})

test('a blocked workspace can append no more events; earlier ones stay, and other workspaces continue', async () => {
  const journal = await open(await temporaryDirectory())
  const run = runRef()
  const before = append(journal, 'before', 1, run)
  journal.refuse(run.workspaceId)
  await expect(append(journal, 'after', 1, run)).rejects.toMatchObject({ code: 'FORBIDDEN' })
  await append(journal, 'other')
  await before
  expect(await textsAfter(journal, 0)).toEqual(['before', 'other'])
  await journal.close()
})
