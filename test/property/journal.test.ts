import { expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { segmentNames } from '../../src/stores/journal/local/segment-files.ts'
import { corruptJournals } from '../support/journal-corruption.ts'
import { appendMarks, marksAfter, openLocal } from '../support/journals.ts'
import { hasNats } from '../support/nats.ts'
import { seededRandom } from '../support/random.ts'
import { corruptStreams } from '../support/stream-corruption.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** `bun run test:long corruption` has many more. */
const CORRUPTIONS = 150
const STREAM_CORRUPTIONS = 24
const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)
const segmentsOf = (dir: string) => segmentNames(dir).map((name) => join(dir, name))
const lastSegment = (dir: string) => segmentsOf(dir).at(-1)!

test('a tail torn at any byte loses only what was not acknowledged', async () => {
  const random = seededRandom('journal', SEED)
  const dir = await temporaryDirectory()
  const first = await openLocal(dir, { segmentBytes: 1e9 })
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
    const journal = await openLocal(dir, { segmentBytes: 1e9 })
    const survivors = [...(await marksAfter(journal)).values()]
    // The torn call may be complete if only the padding behind it was lost; never partial.
    expect([
      [1, 2],
      [1, 2, 3, 4, 5],
    ]).toContainEqual(survivors)
    const { firstSeq } = await appendMarks(journal, [6])
    expect(firstSeq).toBe(survivors.length + 1)
    await journal.close()
    const again = await openLocal(dir, { segmentBytes: 1e9 })
    expect([...(await marksAfter(again)).values()]).toEqual([...survivors, 6])
    await again.close()
  }
})

test('random corruption of the files: intact frames survive, nothing is forged, positions neither skip nor repeat', async () => {
  await corruptJournals(seededRandom('corruption', SEED), CORRUPTIONS)
})

test('a failed write is rejected, and the journal continues once the disk works again', async () => {
  const dir = await temporaryDirectory()
  const journal = await openLocal(dir, { segmentBytes: 1 })
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

test('what a failed write has left is gone before its positions are given to other rows', async () => {
  const dir = await temporaryDirectory()
  const journal = await openLocal(dir)
  await appendMarks(journal, [1])
  const [name] = segmentNames(dir)
  const path = join(dir, name!)
  const { size } = fs.statSync(path)
  // The write fails, and so does the truncation.
  await Reflect.get(Reflect.get(journal, 'storage'), 'file').close()
  fs.renameSync(path, `${path}.away`)
  for (const mark of [2, 3]) await expect(appendMarks(journal, [mark])).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  fs.renameSync(`${path}.away`, path)
  fs.appendFileSync(path, Buffer.alloc(10_000, 7))
  expect(await appendMarks(journal, [4])).toEqual({ firstSeq: 2, lastSeq: 2 })
  expect(fs.statSync(path).size).toBe(size)
  await journal.close()
})

test.skipIf(!hasNats)(
  'random damage of a stream: intact commits survive, nothing is forged, positions neither skip nor repeat',
  async () => {
    await corruptStreams(seededRandom('streams', SEED), STREAM_CORRUPTIONS)
  },
  120_000,
)
