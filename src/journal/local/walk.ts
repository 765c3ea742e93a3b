import { readFrame, type StoredFrame, type ValidHead } from '../log/frame.ts'
import { type FrameSeal, NO_CHECK } from '../log/seal.ts'

/** Where reading of a segment can resume. */
export interface ResumePoint {
  /** Byte offset in the segment. */
  readonly at: number
  /** The position of the first row there. */
  readonly nextSeq: number
  /** The check of the previous frame; null after missing frames, when the next frame may have a later position. */
  readonly before: Buffer | null
}

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
