import { open } from 'node:fs/promises'
import type { StoredFrame } from '../log/frame.ts'
import type { FrameSeal } from '../log/seal.ts'
import { readBytes } from './files.ts'
import { type ResumePoint, resume, walk } from './walk.ts'

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
    let bytes = await readBytes(file, point.at, Math.min(limit, rest))
    let found = walk(seal, bytes, point)
    if (found.frames.length === 0 && found.stop === 'short' && found.need <= rest) {
      // The frame is larger than the limit: read all of it.
      bytes = await readBytes(file, point.at, found.need)
      found = walk(seal, bytes, point)
    }
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
    return {
      frames: [],
      point: next,
      missing: [upTo(point.nextSeq, next.at < end ? next.nextSeq : lastSeq + 1)],
      damage,
    }
  } finally {
    await file.close()
  }
}
