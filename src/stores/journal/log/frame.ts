import { crc32 } from 'node:zlib'
import { assert } from '../../../base/assert.ts'
import { uuidFromWords } from '../../clickhouse/bytes.ts'
import { runWords } from '../blocks/ids.ts'
import type { Frame, RunRows } from '../journal.ts'
import { KINDS, kindOfFrame } from '../kinds.ts'

/**
 * The layout of a frame. All integers are little-endian.
 *
 * ```
 *  0  marker: "ARJ1", epoch (8 bytes, keyed)   56  kind (u8), 3 bytes zero       80  first seq (f64)
 * 12  head length (u32)                        60  rows (u32)                    88  received at, Unix ms (f64)
 * 16  check of this head (16 bytes, keyed)     64  runs (u32)                   96  runs: 12 words of ids, rows (u32)
 * 32  check of the frame before (16 bytes)     68  outbox ids (u32)                  outbox ids (16 bytes each)
 * 48  block length (u32)                       72  padding after the block (u32)     then the block, then padding
 * 52  CRC-32 of the block                      76  4 bytes zero
 * ```
 *
 * The head has its own check, so that a reader can skip a damaged block by a verified length. The check covers the check
 * of the previous frame, and the frame's byte offset in its segment file or its commit's payload, see {@link FrameSeal}.
 */

/** Length of {@link FrameSeal.marker}. */
const MARKER_BYTES = 12
/** Length of a frame's check. */
export const CHECK_BYTES = 16
/** The previous check of the first frame of a segment or stream. */
export const NO_CHECK = Buffer.alloc(CHECK_BYTES)

const MAGIC = Buffer.from('ARJ1')
const LOCATION_BYTES = 16
const FRAME_HEAD_BYTES_MIN = 96
const RUN_BYTES = 52
export const UUID_BYTES = 16
const HEAD_LENGTH_AT = MARKER_BYTES
const CHECK_AT = 16
const BEFORE_AT = CHECK_AT + CHECK_BYTES

/** A frame to be written. */
export interface FrameDraft extends Omit<Frame, 'block'> {
  readonly outboxIds: readonly string[]
  readonly blockBytes: number
  /** Zero bytes after the block, so that a commit ends at a page boundary. */
  padding: number
}

/** A frame with the data that only recovery needs. */
export interface StoredFrame extends Frame {
  readonly outboxIds: readonly string[]
}

/** The length of a frame, with its padding. */
export function frameBytes(draft: FrameDraft): number {
  return headBytes(draft.runs.length, draft.outboxIds.length) + draft.blockBytes + draft.padding
}

function headBytes(runs: number, outboxIds: number): number {
  return FRAME_HEAD_BYTES_MIN + runs * RUN_BYTES + outboxIds * UUID_BYTES
}

/** Where a frame is written: its byte offset in the segment or payload, and the check of the previous frame. */
export interface AppendPoint {
  readonly seal: FrameSeal
  readonly at: number
  readonly before: Buffer
}

/**
 * Writes the frame at `at` of `target`; its block is the concatenation of `pieces`.
 * @returns the block, a view into `target`, and the check that the next frame includes
 */
export function writeFrame(
  target: Buffer,
  at: number,
  draft: FrameDraft,
  pieces: readonly Uint8Array[],
  { seal, at: offset, before }: AppendPoint,
): { block: Buffer; check: Buffer } {
  const head = target.subarray(at, at + headBytes(draft.runs.length, draft.outboxIds.length))
  const block = target.subarray(at + head.length, at + head.length + draft.blockBytes)
  let filled = 0
  for (const piece of pieces) {
    block.set(piece, filled)
    filled += piece.length
  }
  seal.marker.copy(head)
  head.writeUInt32LE(head.length, HEAD_LENGTH_AT)
  before.copy(head, BEFORE_AT)
  head.writeUInt32LE(draft.blockBytes, 48)
  head.writeUInt32LE(crc32(block), 52)
  head.writeUInt32LE(KINDS[draft.kind].frame, 56)
  head.writeUInt32LE(draft.rows, 60)
  head.writeUInt32LE(draft.runs.length, 64)
  head.writeUInt32LE(draft.outboxIds.length, 68)
  head.writeUInt32LE(draft.padding, 72)
  head.writeUInt32LE(0, 76)
  head.writeDoubleLE(draft.firstSeq, 80)
  head.writeDoubleLE(draft.receivedAt, 88)
  let end = FRAME_HEAD_BYTES_MIN
  for (const run of draft.runs) end = writeRun(head, end, run)
  for (const id of draft.outboxIds) end += head.write(id.replaceAll('-', ''), end, 'hex')
  // The rest of pooled memory holds rows of other workspaces.
  assert(filled === draft.blockBytes && end === head.length, 'a frame fills its place')
  const check = checkOf(seal, offset, head)
  check.copy(head, CHECK_AT)
  return { block, check }
}

function writeRun(target: Buffer, at: number, run: RunRows): number {
  const words = runWords(run)
  for (let i = 0; i < 12; i++) target.writeUInt32LE(words[i], at + i * 4)
  return target.writeUInt32LE(run.rows, at + 48)
}

function checkOf(seal: FrameSeal, offset: number, head: Buffer): Buffer {
  return seal.check(offset, head.subarray(0, CHECK_AT), head.subarray(BEFORE_AT))
}

/** The contents of a verified head. */
export interface ValidHead {
  readonly firstSeq: number
  readonly rows: number
  readonly receivedAt: number
  /** The frame's check, and that of the previous frame. */
  readonly check: Buffer
  readonly before: Buffer
  /** Where in the bytes the next frame starts; past their end when only the padding is missing. */
  readonly end: number
}

type FrameRead =
  | { readonly status: 'frame'; readonly head: ValidHead; readonly frame: StoredFrame }
  /** The bytes end before the frame does; `need` bytes are required. The time is known once the head is complete. */
  | { readonly status: 'short'; readonly need: number; readonly receivedAt?: number }
  /** The block is damaged, the head is valid. */
  | { readonly status: 'damaged'; readonly head: ValidHead }
  /** Not a frame of this segment or commit at this offset, or its head is damaged. */
  | { readonly status: 'none' }

/**
 * Reads the frame that starts at `at` of `bytes`.
 * @param offset byte offset of the frame in its segment, or in its commit's payload
 */
export function readFrame(bytes: Buffer, at: number, seal: FrameSeal, offset: number): FrameRead {
  const left = bytes.length - at
  if (left < FRAME_HEAD_BYTES_MIN) return { status: 'short', need: FRAME_HEAD_BYTES_MIN }
  if (bytes.compare(seal.marker, 0, MARKER_BYTES, at, at + MARKER_BYTES) !== 0) return { status: 'none' }
  const length = bytes.readUInt32LE(at + HEAD_LENGTH_AT)
  const runs = bytes.readUInt32LE(at + 64)
  const outboxIds = bytes.readUInt32LE(at + 68)
  if (length !== headBytes(runs, outboxIds)) return { status: 'none' }
  if (left < length) return { status: 'short', need: length }
  const bytesOfHead = bytes.subarray(at, at + length)
  const check = checkOf(seal, offset, bytesOfHead)
  if (!check.equals(bytesOfHead.subarray(CHECK_AT, BEFORE_AT))) return { status: 'none' }
  const blockEnd = at + length + bytes.readUInt32LE(at + 48)
  const end = blockEnd + bytes.readUInt32LE(at + 72)
  const receivedAt = bytesOfHead.readDoubleLE(88)
  if (bytes.length < blockEnd) return { status: 'short', need: blockEnd - at, receivedAt }
  const described = readHead(bytesOfHead, runs, outboxIds)
  const before = Buffer.from(bytesOfHead.subarray(BEFORE_AT, BEFORE_AT + CHECK_BYTES))
  const head = { firstSeq: described.firstSeq, rows: described.rows, receivedAt, check, before, end }
  const block = bytes.subarray(at + length, blockEnd)
  if (crc32(block) !== bytes.readUInt32LE(at + 52)) return { status: 'damaged', head }
  return { status: 'frame', head, frame: { ...described, block } }
}

function readHead(head: Buffer, runs: number, outboxIds: number): Omit<StoredFrame, 'block'> {
  return {
    kind: kindOfFrame(head.readUInt32LE(56)),
    rows: head.readUInt32LE(60),
    firstSeq: head.readDoubleLE(80),
    receivedAt: head.readDoubleLE(88),
    runs: readRuns(head, FRAME_HEAD_BYTES_MIN, runs),
    outboxIds: readIds(head, FRAME_HEAD_BYTES_MIN + runs * RUN_BYTES, outboxIds),
  }
}

function readRuns(bytes: Buffer, at: number, count: number): RunRows[] {
  const words = new Uint32Array(12)
  return Array.from({ length: count }, (_, index) => {
    const start = at + index * RUN_BYTES
    for (let i = 0; i < 12; i++) words[i] = bytes.readUInt32LE(start + i * 4)
    return {
      workspaceId: uuidFromWords(words, 0),
      agentId: uuidFromWords(words, 4),
      runId: uuidFromWords(words, 8),
      rows: bytes.readUInt32LE(start + 48),
    }
  })
}

/** The UUIDs that are stored from `at` on. */
export function readIds(bytes: Buffer, at: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const start = at + index * UUID_BYTES
    return uuidOf(bytes.toString('hex', start, start + UUID_BYTES))
  })
}

/** A UUID from its 32 hexadecimal digits. */
function uuidOf(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/**
 * Distinguishes the frames of one segment, or of one commit in a stream, from any other bytes. The journal's key is
 * secret, so callers cannot forge a frame within the data they report.
 */
export class FrameSeal {
  /** The first bytes of each frame: a magic number and a keyed hash of the epoch. */
  readonly marker: Buffer
  private readonly location = Buffer.alloc(LOCATION_BYTES)

  /** @param locationSeq the position that names the segment, or the stream sequence of the commit */
  constructor(
    private readonly key: Buffer,
    epoch: string,
    locationSeq: number,
  ) {
    this.marker = Buffer.concat([MAGIC, keyed(key).update(`epoch ${epoch}`).digest()]).subarray(0, MARKER_BYTES)
    this.location.writeDoubleLE(locationSeq, 0)
  }

  /**
   * The keyed check of a frame at byte `at` of the segment or payload. A frame that was copied elsewhere does not pass.
   * @param parts the checked parts of its head, in order
   */
  check(at: number, ...parts: readonly Buffer[]): Buffer {
    this.location.writeDoubleLE(at, 8)
    const hasher = keyed(this.key).update(this.location)
    for (const part of parts) hasher.update(part)
    return hasher.digest().subarray(0, CHECK_BYTES)
  }
}

function keyed(key: Buffer): Bun.CryptoHasher {
  return new Bun.CryptoHasher('sha256', key)
}
