import { type FrameRead, readFrame, type StoredFrame } from './frame.ts'
import { type OldFrameRead, readOldFrame } from './old-frame.ts'
import { type FrameSeal, NO_CHECK } from './seal.ts'

/** Where in a segment reading can go on. */
export interface ReadPosition {
  /** A byte of the segment. */
  readonly at: number
  /** The position of the first row that stands there. */
  readonly nextSeq: number
  /** The check of the frame before; null after a hole, where the next frame may have a later position. */
  readonly before: Buffer | null
}

/** How the frames of a segment are written. */
export interface FrameFormat {
  /** Reads the frame at `at` of `bytes`, which is byte `place` of the segment. */
  read(bytes: Buffer, at: number, place: number): FrameRead | OldFrameRead
  /** The next place at or after `from` where a sound frame may start; -1 when there is none or it cannot be told. */
  find(bytes: Buffer, from: number): number
}

/** Where the frames of a segment begin. */
export function startOf(firstSeq: number): ReadPosition {
  return { at: 0, nextSeq: firstSeq, before: NO_CHECK }
}

export function sealedFormat(seal: FrameSeal): FrameFormat {
  return {
    read: (bytes, at, place) => readFrame(bytes, at, seal, place),
    find: (bytes, from) => bytes.indexOf(seal.marker, from),
  }
}

/** Anybody can make bytes that pass for old frames, so nothing is looked for behind damage. */
export const OLD_FORMAT: FrameFormat = { read: readOldFrame, find: () => -1 }

export interface Walk {
  readonly frames: readonly StoredFrame[]
  /** Where it stopped: behind the last sound frame. */
  readonly place: ReadPosition
  /** `short`: the bytes end within a frame, which needs `need` of them; `damage`: what stands there is no sound frame. */
  readonly stop: 'end' | 'short' | 'damage'
  readonly need: number
  /** Where to go on when only the block is damaged. */
  readonly behind: ReadPosition | undefined
}

/** Reads the sound frames of `bytes`, which stand at `start` of a segment, one after the other. */
export function walk(format: FrameFormat, bytes: Buffer, start: ReadPosition): Walk {
  const frames: StoredFrame[] = []
  let place = start
  const stopped = (stop: Walk['stop'], need = 0, behind?: ReadPosition): Walk => ({ frames, place, stop, need, behind })
  for (;;) {
    const at = place.at - start.at
    if (at >= bytes.length) return stopped('end')
    const read = format.read(bytes, at, place.at)
    if (read.status === 'short') return stopped('short', read.need)
    if (read.status === 'none' || !follows(read.head, place)) return stopped('damage')
    const { head } = read
    const before = 'check' in head ? head.check : NO_CHECK
    const next = { at: start.at + head.end, nextSeq: head.firstSeq + head.rows, before }
    if (read.status === 'damaged') return stopped('damage', 0, next)
    frames.push(read.frame)
    place = next
  }
}

/**
 * Where the next sound frame stands behind damage at `place`; undefined when there is none.
 * @param bytes of the segment from `place` on, to its end
 */
export function resume(format: FrameFormat, bytes: Buffer, place: ReadPosition): ReadPosition | undefined {
  for (let at = format.find(bytes, 1); at >= 0; at = format.find(bytes, at + 1)) {
    const read = format.read(bytes, at, place.at + at)
    const isSound = read.status === 'frame' || read.status === 'damaged'
    if (isSound && read.head.firstSeq >= place.nextSeq) return { ...place, at: place.at + at, before: null }
  }
  return undefined
}

interface Head {
  readonly firstSeq: number
  readonly before?: Buffer
}

function follows({ firstSeq, before }: Head, place: ReadPosition): boolean {
  if (place.before === null) return firstSeq >= place.nextSeq
  return firstSeq === place.nextSeq && (before === undefined || before.equals(place.before))
}
