import { afterEach, describe, expect, test } from 'bun:test'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/clock.ts'
import { type LocalJournal, openLocalJournal } from '../../src/journal/local/journal.ts'
import { createLog } from '../../src/log.ts'
import { batchOf, runRef } from '../support/events.ts'
import { eventually } from '../support/eventually.ts'
import { corruptJournals } from '../support/journal-corruption.ts'
import { seededRandom } from '../support/random.ts'

/** `bun run test:long corruption` has many more. */
const CORRUPTIONS = 400
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

/** Appends one call of events with `marks` in their payloads. */
function append(journal: LocalJournal, marks: readonly number[], run = runRef()) {
  return journal.appendEvents(
    batchOf(
      run,
      marks.map((mark) => ({ type: 'mark', payload: { mark: `<${mark}>` } })),
    ),
  )
}

/** Every mark in the journal by position, as a consumer that starts at `afterSeq` sees them. */
async function marksAfter(journal: LocalJournal, afterSeq: number): Promise<Map<number, number>> {
  const marks = new Map<number, number>()
  let position = afterSeq
  for (;;) {
    const frames = await journal.read(position, 10_000)
    if (frames.length === 0) return marks
    for (const frame of frames) {
      const found = [
        ...Buffer.from(frame.block)
          .toString('latin1')
          .matchAll(/<(\d+)>/g),
      ].map(([, mark]) => Number(mark))
      expect(found.length).toBe(frame.rows)
      expect(frame.spans.reduce((sum, span) => sum + span.rows, 0)).toBe(frame.rows)
      found.forEach((mark, index) => {
        if (frame.firstSeq + index > afterSeq) marks.set(frame.firstSeq + index, mark)
      })
      position = frame.firstSeq + frame.rows - 1
    }
  }
}

const segmentsOf = (dir: string) =>
  fs
    .readdirSync(dir)
    .filter((name) => name.endsWith('.segment'))
    .sort()
    .map((name) => join(dir, name))
const lastSegment = (dir: string) => segmentsOf(dir).at(-1)!

describe(`the local journal (SEED=${SEED})`, () => {
  test('concurrent appends are read back once, in order, across reopenings, from any position', async () => {
    const random = seededRandom('journal', SEED)
    const dir = freshDir()
    const expected = new Map<number, number>()
    let mark = 0
    for (let round = 0; round < 6; round++) {
      const journal = await open(dir)
      for (let burst = 0; burst < 10; burst++) {
        await Promise.all(
          Array.from({ length: random.int(1, 8) }, async () => {
            const marks = Array.from({ length: random.int(1, 5) }, () => mark++)
            const { firstSeq, lastSeq } = await append(journal, marks)
            expect(lastSeq - firstSeq + 1).toBe(marks.length)
            marks.forEach((value, index) => {
              expect(expected.has(firstSeq + index)).toBe(false)
              expected.set(firstSeq + index, value)
            })
          }),
        )
      }
      expect(journal.endSeq).toBe(expected.size)
      const from = random.int(0, journal.endSeq - 1)
      const wanted = new Map([...expected].filter(([seq]) => seq > from).sort(([a], [b]) => a - b))
      expect([...(await marksAfter(journal, from))]).toEqual([...wanted])
      await journal.close()
    }
  })

  test('a tail torn at any byte loses only what was not acknowledged', async () => {
    const random = seededRandom('journal', SEED)
    const dir = freshDir()
    const first = await open(dir, { segmentBytes: 1e9 })
    await append(first, [1, 2])
    const kept = fs.statSync(lastSegment(dir)).size
    const acknowledged = fs.readFileSync(join(dir, 'acknowledged'))
    await append(first, [3, 4, 5])
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
      const survivors = [...(await marksAfter(journal, 0)).values()]
      // The torn call may be complete if only the padding behind it was lost; never partial.
      expect([
        [1, 2],
        [1, 2, 3, 4, 5],
      ]).toContainEqual(survivors)
      const { firstSeq } = await append(journal, [6])
      expect(firstSeq).toBe(survivors.length + 1)
      await journal.close()
      const again = await open(dir, { segmentBytes: 1e9 })
      expect([...(await marksAfter(again, 0)).values()]).toEqual([...survivors, 6])
      await again.close()
    }
  })

  test('sets a damaged frame aside with a copy, and keeps every other frame', async () => {
    const random = seededRandom('journal', SEED)
    for (let i = 0; i < 40; i++) {
      const dir = freshDir()
      const journal = await open(dir, { segmentBytes: 8_192 })
      for (let mark = 1; mark <= 12; mark++) await append(journal, [mark])
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
      const marks = await marksAfter(reopened, 0)
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

test('a full journal rejects appends with a Retry-After, and accepts them again once ClickHouse has caught up', async () => {
  const journal = await open(freshDir(), { maxBytes: 40_000, keepBytes: 0, segmentBytes: 8_192 })
  journal.release('sink', 0)
  let refusal: unknown
  for (let i = 0; i < 200 && refusal === undefined; i++) await append(journal, [i]).catch((error) => (refusal = error))
  expect(refusal).toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 5 })
  expect(journal.bytes).toBeLessThan(60_000)
  const kept = await marksAfter(journal, 0)
  expect(kept.size).toBe(journal.endSeq)
  journal.release('sink', journal.endSeq)
  await append(journal, [1_000])
  expect(journal.bytes).toBeLessThan(20_000)
  await journal.close()
})

test('a failed write is rejected, and the journal continues once the disk works again', async () => {
  const dir = freshDir()
  const journal = await open(dir, { segmentBytes: 1 })
  await append(journal, [1])
  fs.renameSync(dir, `${dir}-away`)
  await expect(append(journal, [2])).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  fs.renameSync(`${dir}-away`, dir)
  expect(await append(journal, [3])).toEqual({ firstSeq: 2, lastSeq: 2 })
  expect([...(await marksAfter(journal, 0))]).toEqual([
    [1, 1],
    [2, 3],
  ])
  await journal.close()
  await expect(append(journal, [4])).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})

test('keeps the outbox ids of the last frames across reopenings', async () => {
  const dir = freshDir()
  const journal = await open(dir)
  const task = {
    workspace_id: Bun.randomUUIDv7(),
    agent_id: Bun.randomUUIDv7(),
    run_id: Bun.randomUUIDv7(),
    task_id: Bun.randomUUIDv7(),
    parent_task_id: null,
    name: 'n',
    status: 'running',
    input: null,
    output: null,
    error_message: null,
    created_at: 1,
    updated_at: 1,
  }
  const ids = [crypto.randomUUID(), crypto.randomUUID()]
  await journal.appendTasks([task, task], ids)
  expect(journal.lastOutboxIds()).toEqual(ids)
  // Until a new segment has started.
  while (fs.readdirSync(dir).filter((name) => name.endsWith('.segment')).length < 2) await append(journal, [1])
  await journal.close()
  const reopened = await open(dir)
  expect(reopened.lastOutboxIds()).toEqual(ids)
  expect(reopened.epoch).toBe(journal.epoch)
  await reopened.close()
})

test('a follower sees existing and new frames, and stops on abort', async () => {
  const journal = await open(freshDir())
  await append(journal, [1])
  const stop = new AbortController()
  const seen: number[] = []
  const following = (async () => {
    for await (const frame of journal.follow(0, stop.signal)) {
      seen.push(frame.firstSeq)
      if (seen.length === 3) stop.abort()
    }
  })()
  await append(journal, [2])
  await append(journal, [3])
  await following
  expect(seen).toEqual([1, 2, 3])
  await journal.close()
})

test('slows commits to the pace of a slow consumer, but does not wait for one that is away', async () => {
  const timeOf = async (advances: boolean) => {
    const journal = await open(freshDir(), { paceBytes: 4_096 })
    for (let i = 0; i < 3; i++) await append(journal, [i])
    const started = performance.now()
    for (let i = 0; i < 3; i++) {
      if (advances) journal.release('sink', 1)
      await append(journal, [i])
    }
    await journal.close()
    return performance.now() - started
  }
  // Each of the three commits waits for the maximum of a tenth of a second.
  expect(await timeOf(true)).toBeGreaterThanOrEqual(300)
  // A busy machine delays some attempts, not all.
  await eventually(async () => (await timeOf(false)) < 300)
})
