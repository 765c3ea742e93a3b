import { expect } from 'bun:test'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunRef } from '../../src/base/ids.ts'
import { Identity } from '../../src/stores/journal/local/identity.ts'
import type { LocalJournal } from '../../src/stores/journal/local/journal.ts'
import { segmentNames } from '../../src/stores/journal/local/segment-files.ts'
import { FrameSeal, readFrame } from '../../src/stores/journal/log/frame.ts'
import { batchOf, runRef } from './events.ts'
import { forgedFrame, runIdsOf } from './forged-frames.ts'
import { framesAfter, gapsOf, openLocal, textOf } from './journals.ts'
import type { Random } from './random.ts'
import { runRow, taskRow } from './rows.ts'

const PAGE_BYTES = 4096
const ROUNDS_PER_BASE = 100

/**
 * Repeatedly damages a journal's files in random ways and opens it. Every acknowledged frame whose bytes are intact
 * must be read back unchanged, nothing else may be, positions must continue right after the last one, and the gaps must
 * be exactly the missing frames.
 */
export async function corruptJournals(random: Random, rounds: number): Promise<void> {
  // In memory if possible: the disk would take ten times as long.
  const parent = fs.mkdtempSync(join(fs.existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'journal-corruption-'))
  try {
    let base = await buildBase(join(parent, 'base0'), random)
    for (let round = 0; round < rounds; round++) {
      if (round % ROUNDS_PER_BASE === ROUNDS_PER_BASE - 1) base = await buildBase(join(parent, `base${round}`), random)
      const dir = join(parent, 'copy')
      fs.cpSync(base.dir, dir, { recursive: true })
      const damage = corrupt(dir, random)
      await check(dir, base, damage).catch((error) => {
        throw new Error(`round ${round}, seed ${random.seed}: ${damage.join('; ')}: ${error.message}`, { cause: error })
      })
      fs.rmSync(dir, { recursive: true })
    }
  } finally {
    fs.rmSync(parent, { recursive: true })
  }
}

interface Base {
  readonly dir: string
  readonly endSeq: number
  /** By the position of the first row. */
  readonly frames: ReadonlyMap<number, BaseFrame>
}

interface BaseFrame {
  readonly file: string
  readonly at: number
  /** Header and block; padding does not matter. */
  readonly bytes: Buffer
  readonly rows: number
  readonly text: string
}

function open(dir: string): Promise<LocalJournal> {
  return openLocal(dir, { segmentBytes: 24_000, tailBytes: 1 })
}

/** A journal of several segments, with commits of several kinds and sizes, and rows with forged frames. */
async function buildBase(dir: string, random: Random): Promise<Base> {
  const journal = await open(dir)
  for (let commit = 0; commit < 30; commit++) {
    const payload = { text: 'x'.repeat(random.pick([1, 50, 3_000, 9_000])) }
    const appends: Promise<unknown>[] = [
      journal.appendEvents(batchOf(runRef(), new Array(random.int(1, 5)).fill({ type: 'a', payload }))),
    ]
    if (random.bool(0.4)) appends.push(journal.appendRuns([runRow(runRef())], [Bun.randomUUIDv7()]))
    if (random.bool(0.4)) appends.push(journal.appendTasks([taskRow(runRef())], [Bun.randomUUIDv7()]))
    if (random.bool(0.3)) appends.push(...forgery(journal, random))
    await Promise.all(appends)
  }
  await journal.close()
  return { dir, endSeq: journal.endSeq, frames: framesOf(dir) }
}

/** One call per run, so that the ids of adjacent rows form the bytes of a frame. */
function forgery(journal: LocalJournal, random: Random): Promise<unknown>[] {
  const firstSeq = random.pick([journal.endSeq + 1, journal.endSeq + 2, 1_000_000])
  const seal = new FrameSeal(Buffer.alloc(32), journal.epoch, firstSeq)
  const runs: RunRef[] = runIdsOf(forgedFrame(seal, firstSeq)).map((runId) => ({ ...runRef(), runId }))
  return runs.map((run) => journal.appendEvents(batchOf(run, [{ type: 'forged' }])))
}

function framesOf(dir: string): Map<number, BaseFrame> {
  const identity = Identity.open(dir, true)
  const frames = new Map<number, BaseFrame>()
  for (const file of segmentNames(dir)) {
    const bytes = fs.readFileSync(join(dir, file))
    const seal = identity.sealOf(Number.parseInt(file, 10))
    for (let at = 0; at < bytes.length; ) {
      const read = readFrame(bytes, at, seal, at)
      if (read.status !== 'frame') throw new Error(`no frame at ${at} of ${file}`)
      const { head, frame } = read
      const blockEnd = frame.block.byteOffset - bytes.byteOffset + frame.block.length
      const { rows } = frame
      frames.set(head.firstSeq, { file, at, bytes: bytes.subarray(at, blockEnd), rows, text: textOf(frame) })
      at = head.end
    }
  }
  expect(frames.size).toBeGreaterThan(30)
  return frames
}

/** @returns a description for the failure message */
function corrupt(dir: string, random: Random): string[] {
  return Array.from({ length: random.int(1, 3) }, () => {
    const names = segmentNames(dir)
    const name = random.bool() ? names[names.length - 1] : random.pick(names)
    const bytes = fs.readFileSync(join(dir, name))
    const how = random.pick(Object.keys(DAMAGES))
    const [changed, what] = DAMAGES[how](bytes, random)
    fs.writeFileSync(join(dir, name), changed)
    return `${how} ${what} of ${name} (${bytes.length})`
  })
}

const DAMAGES: Record<string, (bytes: Buffer, random: Random) => [Buffer, string]> = {
  'flipped bits': (bytes, random) => {
    if (bytes.length === 0) return [bytes, 'nothing']
    const positions = Array.from({ length: random.int(1, 4) }, () => random.int(0, bytes.length - 1))
    for (const at of positions) bytes[at] ^= 1 << random.int(0, 7)
    return [bytes, `at ${positions}`]
  },
  truncation: (bytes, random) => {
    const at = random.bool() ? random.int(0, bytes.length) : page(random.int(0, bytes.length))
    return [bytes.subarray(0, at), `at ${at}`]
  },
  'swapped pages': (bytes, random) => {
    const [a, b] = [page(random.int(0, bytes.length)), page(random.int(0, bytes.length))]
    const kept = Buffer.from(bytes.subarray(a, a + PAGE_BYTES))
    if (Math.max(a, b) + PAGE_BYTES > bytes.length) return [bytes, 'nothing']
    bytes.copyWithin(a, b, b + PAGE_BYTES)
    kept.copy(bytes, b)
    return [bytes, `at ${a} and ${b}`]
  },
  'duplicated page': (bytes, random) => {
    const [from, to] = [page(random.int(0, bytes.length)), page(random.int(0, bytes.length))]
    const isInserted = random.bool(0.3)
    const copy = Buffer.from(bytes.subarray(from, from + PAGE_BYTES))
    const rest = bytes.subarray(isInserted ? to : to + PAGE_BYTES)
    return [Buffer.concat([bytes.subarray(0, to), copy, rest]), `from ${from} to ${to}, inserted: ${isInserted}`]
  },
  'zeroed tail': (bytes, random) => {
    const at = random.int(0, bytes.length)
    return [bytes.fill(0, at), `from ${at}`]
  },
  'random bytes': (bytes, random) => {
    const at = random.int(0, bytes.length)
    const rubbish = Buffer.from(random.bytes(random.int(1, 200)))
    return [Buffer.concat([bytes.subarray(0, at), rubbish, bytes.subarray(at + rubbish.length)]), `at ${at}`]
  },
}

function page(at: number): number {
  return Math.floor(at / PAGE_BYTES) * PAGE_BYTES
}

async function check(dir: string, base: Base, damage: readonly string[]): Promise<void> {
  expect(damage.length).toBeGreaterThan(0)
  const files = new Map(segmentNames(dir).map((name) => [name, fs.readFileSync(join(dir, name))]))
  const isIntact = ({ file, at, bytes }: BaseFrame) =>
    files
      .get(file)
      ?.subarray(at, at + bytes.length)
      .equals(bytes)
  const intact = [...base.frames].filter(([, frame]) => isIntact(frame)).map(([firstSeq]) => firstSeq)
  const journal = await open(dir)
  const read = await readAll(journal)
  expect(intact.filter((firstSeq) => !read.has(firstSeq))).toEqual([])
  expect([...read].filter(([firstSeq, text]) => base.frames.get(firstSeq)?.text !== text)).toEqual([])
  expect(gapsOf(journal)).toEqual(missing(base, read))
  const { firstSeq } = await journal.appendEvents(batchOf(runRef(), [{ type: 'next' }]))
  expect(firstSeq).toBe(base.endSeq + 1)
  const whole = await readAll(journal)
  await journal.close()

  const again = await open(dir)
  expect(await readAll(again)).toEqual(whole)
  expect(again.endSeq).toBe(base.endSeq + 1)
  expect(gapsOf(again)).toEqual(missing(base, read))
  await again.close()
}

/** What is read of each frame, by its position. */
async function readAll(journal: LocalJournal): Promise<Map<number, string>> {
  return new Map((await framesAfter(journal)).map((frame) => [frame.firstSeq, textOf(frame)]))
}

/** The ranges of positions without a frame. */
function missing({ frames }: Base, read: ReadonlyMap<number, string>): [number, number][] {
  const gaps: [number, number][] = []
  for (const [firstSeq, { rows }] of frames) {
    if (read.has(firstSeq)) continue
    const last = gaps.at(-1)
    if (last?.[1] === firstSeq - 1) last[1] = firstSeq + rows - 1
    else gaps.push([firstSeq - 1, firstSeq + rows - 1])
  }
  return gaps
}
