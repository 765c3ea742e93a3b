import { crc32 } from 'node:zlib'
import type { StoredFrame } from '../log/frame.ts'
import { KINDS, RUN_BYTES, readRuns, uuidOf } from '../log/frame.ts'

/**
 * Frames in the format before "ARJ2", read only. Their checks are not keyed, so they are read in order and never
 * searched for. All integers are little-endian.
 *
 * ```
 *  0  magic "ARJ1"            20  kind (u8), 3 bytes zero      40  first seq (f64)
 *  4  head length (u32)       24  rows (u32)                   48  received at, Unix ms (f64)
 *  8  block length (u32)      28  runs (u32)                  56  runs: 12 words of ids, rows (u32) each
 * 12  CRC-32 of the head      32  outbox ids (u32)                 outbox ids (f64 each)
 *     (bytes 4–11, then 20–)  36  padding after the block (u32)    then the block, then padding
 * 16  CRC-32 of the block
 * ```
 */
const HEAD_BYTES_MIN = 56
const ID_BYTES = 8
const MAGIC = Buffer.from('ARJ1')

export type OldFrameRead =
  | { readonly status: 'frame'; readonly head: OldHead; readonly frame: StoredFrame }
  | { readonly status: 'short'; readonly need: number; readonly receivedAt?: number }
  | { readonly status: 'damaged'; readonly head: OldHead }
  | { readonly status: 'none' }

/** The contents of a verified head; `end` is where in the bytes the next frame starts. */
export interface OldHead {
  readonly firstSeq: number
  readonly rows: number
  readonly receivedAt: number
  readonly end: number
}

/** Whether a segment with these first bytes has the old format. */
export function isOldSegment(bytes: Buffer): boolean {
  return bytes.length >= MAGIC.length && bytes.compare(MAGIC, 0, 4, 0, 4) === 0
}

/** Reads the frame that starts at `at`, like `readFrame` for the current format. */
export function readOldFrame(bytes: Buffer, at: number): OldFrameRead {
  const left = bytes.length - at
  if (left < HEAD_BYTES_MIN) return { status: 'short', need: HEAD_BYTES_MIN }
  if (bytes.compare(MAGIC, 0, 4, at, at + 4) !== 0) return { status: 'none' }
  const length = bytes.readUInt32LE(at + 4)
  const runs = bytes.readUInt32LE(at + 28)
  const outboxIds = bytes.readUInt32LE(at + 32)
  if (length !== HEAD_BYTES_MIN + runs * RUN_BYTES + outboxIds * ID_BYTES) return { status: 'none' }
  if (left < length) return { status: 'short', need: length }
  const check = crc32(bytes.subarray(at + 20, at + length), crc32(bytes.subarray(at + 4, at + 12)))
  if (bytes.readUInt32LE(at + 12) !== check) return { status: 'none' }
  const blockEnd = at + length + bytes.readUInt32LE(at + 8)
  const end = blockEnd + bytes.readUInt32LE(at + 36)
  const receivedAt = bytes.readDoubleLE(at + 48)
  if (bytes.length < blockEnd) return { status: 'short', need: blockEnd - at, receivedAt }
  const head = { firstSeq: bytes.readDoubleLE(at + 40), rows: bytes.readUInt32LE(at + 24), receivedAt, end }
  const block = bytes.subarray(at + length, blockEnd)
  if (crc32(block) !== bytes.readUInt32LE(at + 16)) return { status: 'damaged', head }
  const described = {
    kind: KINDS[bytes.readUInt32LE(at + 20)],
    firstSeq: head.firstSeq,
    rows: head.rows,
    receivedAt,
    runs: readRuns(bytes, at + HEAD_BYTES_MIN, runs),
    outboxIds: readIds(bytes, at + HEAD_BYTES_MIN + runs * RUN_BYTES, outboxIds),
  }
  return { status: 'frame', head, frame: { ...described, block } }
}

/** Old outbox ids were numbers; this converts them as the outbox migration (0007) did. */
function readIds(bytes: Buffer, at: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) =>
    uuidOf(
      bytes
        .readDoubleLE(at + index * ID_BYTES)
        .toString(16)
        .padStart(32, '0'),
    ),
  )
}
