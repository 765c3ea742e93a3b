import fs from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { type FrameSeal, NO_CHECK, readFrame, type StoredFrame, type ValidHead } from '../log/frame.ts'
import { dayOf } from '../log/storage.ts'
import { readBytes, readStart } from './files.ts'

/** A segment file, as far as it may be read. */
export interface ReadableSegment {
  readonly path: string
  readonly firstSeq: number
  /** 0 for an empty segment. */
  readonly lastSeq: number
  /** Anything after these was never acknowledged. */
  readonly bytes: number
  readonly seal: FrameSeal
}

/** Where reading of a segment can resume. */
export interface ResumePoint {
  /** Byte offset in the segment. */
  readonly at: number
  /** The position of the first row there. */
  readonly nextSeq: number
  /** The check of the previous frame; null after missing frames, when the next frame may have a later position. */
  readonly before: Buffer | null
}

/** Enough for the head of most frames. */
const FIRST_BYTES = 16 * 1024
const NO_END = Number.POSITIVE_INFINITY

/** The beginning of a segment. */
export function startOf(firstSeq: number): ResumePoint {
  return { at: 0, nextSeq: firstSeq, before: NO_CHECK }
}

interface Walk {
  readonly frames: readonly StoredFrame[]
  /** Where it stopped: after the last valid frame. */
  readonly point: ResumePoint
  /** `short`: the bytes end within a frame of `need` bytes; `damage`: there is no valid frame at this point. */
  readonly stop: 'end' | 'short' | 'damage'
  readonly need: number
  /** Where to resume when only the block is damaged. */
  readonly afterDamage: ResumePoint | undefined
}

/**
 * Reads consecutive valid frames of `bytes`, which begin at `start` of a segment.
 * @param throughSeq where to stop: frames that begin after it count as the end
 */
export function walk(seal: FrameSeal, bytes: Buffer, start: ResumePoint, throughSeq = NO_END): Walk {
  const frames: StoredFrame[] = []
  let point = start
  const stopped = (stop: Walk['stop'], need = 0, afterDamage?: ResumePoint): Walk => ({
    frames,
    point,
    stop,
    need,
    afterDamage,
  })
  for (;;) {
    const at = point.at - start.at
    if (at >= bytes.length) return stopped('end')
    const read = readFrame(bytes, at, seal, point.at)
    if (read.status === 'short') return stopped('short', read.need)
    if (read.status === 'none' || !follows(read.head, point)) return stopped('damage')
    const { head } = read
    if (head.firstSeq > throughSeq) return stopped('end')
    const next = { at: start.at + head.end, nextSeq: head.firstSeq + head.rows, before: head.check }
    if (read.status === 'damaged') return stopped('damage', 0, next)
    frames.push(read.frame)
    point = next
  }
}

/** {@link walk} through about `limit` of the `rest` bytes that a file has after `point`; through a whole frame if it is larger. */
export async function walkFile(
  file: FileHandle,
  seal: FrameSeal,
  point: ResumePoint,
  { limit, rest, throughSeq }: { readonly limit: number; readonly rest: number; readonly throughSeq?: number },
): Promise<Walk & { readonly memory: Buffer }> {
  const memory = await readBytes(file, point.at, Math.min(limit, rest))
  const found = walk(seal, memory, point, throughSeq)
  if (found.frames.length > 0 || found.stop !== 'short' || found.need > rest) return { ...found, memory }
  const whole = await readBytes(file, point.at, found.need)
  return { ...walk(seal, whole, point, throughSeq), memory: whole }
}

/**
 * Where the next valid frame after the damage at `point` begins; undefined when there is none.
 * @param bytes of the segment from `point` on, to its end
 */
export function resume(seal: FrameSeal, bytes: Buffer, point: ResumePoint): ResumePoint | undefined {
  for (let at = bytes.indexOf(seal.marker, 1); at >= 0; at = bytes.indexOf(seal.marker, at + 1)) {
    const read = readFrame(bytes, at, seal, point.at + at)
    const isValid = read.status === 'frame' || read.status === 'damaged'
    if (isValid && read.head.firstSeq >= point.nextSeq) return { ...point, at: point.at + at, before: null }
  }
  return undefined
}

function follows({ firstSeq, before }: ValidHead, point: ResumePoint): boolean {
  if (point.before === null) return firstSeq >= point.nextSeq
  return firstSeq === point.nextSeq && before.equals(point.before)
}

/** Positions after `afterSeq`, up to `throughSeq`. */
interface Range {
  readonly afterSeq: number
  readonly throughSeq: number
}

export interface FramesRead {
  readonly frames: StoredFrame[]
  /** Where to continue. */
  readonly point: ResumePoint
  /** Positions whose rows are missing there; may be empty ranges. */
  readonly missing: readonly Range[]
  /** The bytes that were skipped because they hold no valid frame, and where they are in the file. */
  readonly damage?: { readonly at: number; readonly bytes: Buffer }
}

/** Reads the frames of a segment from `point` on, in order, up to `limit` bytes or its end. Skips what is damaged. */
export async function readFrames(segment: ReadableSegment, point: ResumePoint, limit: number): Promise<FramesRead> {
  // Rows may be appended while this reads.
  const { lastSeq, bytes: end, seal } = segment
  const rest = end - point.at
  const upTo = (expectedSeq: number, foundSeq: number): Range => ({
    afterSeq: expectedSeq - 1,
    throughSeq: Math.min(lastSeq, foundSeq - 1),
  })
  const file = await open(segment.path, 'r')
  try {
    const found = await walkFile(file, seal, point, { limit, rest })
    const [first] = found.frames
    if (first !== undefined) {
      const missing = [upTo(point.nextSeq, first.firstSeq)]
      if (found.point.at >= end) missing.push(upTo(found.point.nextSeq, lastSeq + 1))
      // A failed write may have left rows that a later segment holds.
      return { frames: found.frames.filter(({ firstSeq }) => firstSeq <= lastSeq), point: found.point, missing }
    }
    // Damage, or a truncated file.
    const toEnd = await readBytes(file, point.at, rest)
    const next = found.afterDamage ?? resume(seal, toEnd, point) ?? { at: end, nextSeq: lastSeq + 1, before: null }
    const damage = { at: point.at, bytes: toEnd.subarray(0, next.at - point.at) }
    const missing = [upTo(point.nextSeq, next.at < end ? next.nextSeq : lastSeq + 1)]
    return { frames: [], point: next, missing, damage }
  } finally {
    await file.close()
  }
}

/** The day of the first frame, for retention; undefined when its head is damaged. */
export function readDay(path: string, seal: FrameSeal): number | undefined {
  let read = readFrame(readStart(path, FIRST_BYTES), 0, seal, 0)
  const isHeadShort = read.status === 'short' && read.receivedAt === undefined
  if (read.status === 'short' && isHeadShort)
    read = readFrame(readStart(path, Math.min(read.need, fs.statSync(path).size)), 0, seal, 0)
  if (read.status === 'none') return undefined
  const receivedAt = read.status === 'short' ? read.receivedAt : read.head.receivedAt
  return receivedAt === undefined ? undefined : dayOf(receivedAt)
}
