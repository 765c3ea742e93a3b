import { afterEach, describe, expect, test } from 'bun:test'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { openLocalJournal } from '../../src/journal/local/journal.ts'
import { corruptJournals } from '../support/journal-corruption.ts'
import { appendMarks, marksAfter } from '../support/journals.ts'
import { hasNats } from '../support/nats.ts'
import { seededRandom } from '../support/random.ts'
import { corruptStreams } from '../support/stream-corruption.ts'

/** `bun run test:long corruption` has many more. */
const CORRUPTIONS = 150
const STREAM_CORRUPTIONS = 24
const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)
const dirs: string[] = []
afterEach(() => {
  for (const dir of dirs.splice(0)) fs.rmSync(dir, { recursive: true, force: true })
})

function freshDir(): string {
  const dir = fs.mkdtempSync(join(tmpdir(), 'journal-'))
  dirs.push(dir)
  return dir
}

function open(
  dir: string,
  options: { maxBytes?: number; keepBytes?: number; segmentBytes?: number; paceBytes?: number } = {},
) {
  return openLocalJournal({
    dir,
    maxBytes: 2 ** 40,
    keepBytes: 2 ** 40,
    segmentBytes: 16_384,
    clock: systemClock,
    log: createLog('silent'),
    ...options,
  })
}

const segmentsOf = (dir: string) =>
  fs
    .readdirSync(dir)
    .filter((name) => name.endsWith('.segment'))
    .sort()
    .map((name) => join(dir, name))
const lastSegment = (dir: string) => segmentsOf(dir).at(-1)!

describe(`the local journal (SEED=${SEED})`, () => {
  test('a tail torn at any byte loses only what was not acknowledged', async () => {
    const random = seededRandom('journal', SEED)
    const dir = freshDir()
    const first = await open(dir, { segmentBytes: 1e9 })
    await appendMarks(first, [1, 2])
    const kept = fs.statSync(lastSegment(dir)).size
    const acknowledged = fs.readFileSync(join(dir, 'acknowledged'))
    await appendMarks(first, [3, 4, 5])
    await first.close()
    const whole = fs.readFileSync(lastSegment(dir))
    for (let i = 0; i < 40; i++) {
      const cut = kept + random.int(0, whole.length - kept - 1)
      // After a power failure the disk may hold anything behind the cut.
      const rubbish = Buffer.from(Array.from({ length: random.int(0, 199) }, () => random.int(0, 255)))
      for (const path of segmentsOf(dir).slice(1)) fs.rmSync(path)
      fs.writeFileSync(lastSegment(dir), Buffer.concat([whole.subarray(0, cut), rubbish]))
      fs.writeFileSync(join(dir, 'acknowledged'), acknowledged)
      const journal = await open(dir, { segmentBytes: 1e9 })
      const survivors = [...(await marksAfter(journal)).values()]
      // The torn call may be complete if only the padding behind it was lost; never partial.
      expect([
        [1, 2],
        [1, 2, 3, 4, 5],
      ]).toContainEqual(survivors)
      const { firstSeq } = await appendMarks(journal, [6])
      expect(firstSeq).toBe(survivors.length + 1)
      await journal.close()
      const again = await open(dir, { segmentBytes: 1e9 })
      expect([...(await marksAfter(again)).values()]).toEqual([...survivors, 6])
      await again.close()
    }
  })

  test('sets a damaged frame aside with a copy, and keeps every other frame', async () => {
    const random = seededRandom('journal', SEED)
    for (let i = 0; i < 40; i++) {
      const dir = freshDir()
      const journal = await open(dir, { segmentBytes: 8_192 })
      for (let mark = 1; mark <= 12; mark++) await appendMarks(journal, [mark])
      await journal.close()
      const segments = fs
        .readdirSync(dir)
        .filter((name) => name.endsWith('.segment'))
        .sort()
      const path = join(dir, segments[random.int(0, segments.length - 2)])
      const bytes = fs.readFileSync(path)
      let hit = random.int(0, bytes.length - 1)
      // Zeros may be padding, which nothing depends on.
      while (bytes[hit] === 0) hit = random.int(0, bytes.length - 1)
      bytes[hit] ^= random.int(1, 255)
      fs.writeFileSync(path, bytes)
      const reopened = await open(dir)
      const marks = await marksAfter(reopened)
      expect(marks.size).toBe(11)
      for (const [seq, mark] of marks) expect(mark).toBe(seq)
      expect(fs.readdirSync(dir).some((name) => name.endsWith('.damaged'))).toBe(true)
      await reopened.close()
    }
  })
})

test('random corruption of the files: intact frames survive, nothing is forged, positions neither skip nor repeat', async () => {
  await corruptJournals(seededRandom('corruption', SEED), CORRUPTIONS)
})

test('a failed write is rejected, and the journal continues once the disk works again', async () => {
  const dir = freshDir()
  const journal = await open(dir, { segmentBytes: 1 })
  await appendMarks(journal, [1])
  fs.renameSync(dir, `${dir}-away`)
  await expect(appendMarks(journal, [2])).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  fs.renameSync(`${dir}-away`, dir)
  expect(await appendMarks(journal, [3])).toEqual({ firstSeq: 2, lastSeq: 2 })
  expect([...(await marksAfter(journal))]).toEqual([
    [1, 1],
    [2, 3],
  ])
  await journal.close()
  await expect(appendMarks(journal, [4])).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})

test.skipIf(!hasNats)(
  'random damage of a stream: intact commits survive, nothing is forged, positions neither skip nor repeat',
  async () => {
    await corruptStreams(seededRandom('streams', SEED), STREAM_CORRUPTIONS)
  },
  120_000,
)
