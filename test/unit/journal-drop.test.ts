import { expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { type LocalJournal, openLocalJournal } from '../../src/journal/local/journal.ts'
import { batchOf, runRef } from '../support/events.ts'
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
