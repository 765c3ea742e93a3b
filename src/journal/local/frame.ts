import { crc32 } from 'node:zlib'
import { spanWords, uuidFromWords } from '../../columnar/bytes.ts'
import type { ActivityKind, Frame, Span } from '../journal.ts'

/**
 * The layout of a frame in a segment file. All integers are little-endian.
 *
 * ```
 *  0  magic "ARJ1"            20  kind (u8), form of ids (u8)  40  first seq (f64)
 *  4  head length (u32)       24  rows (u32)                   48  received at, Unix ms (f64)
 *  8  block length (u32)      28  spans (u32)                  56  spans: 12 words of ids, rows (u32) each
 * 12  CRC-32 of the head      32  outbox ids (u32)                 outbox ids (16 bytes each)
 *     (bytes 4–11, then 20–)  36  padding after the block (u32)    then the block, then padding
 * 16  CRC-32 of the block
 * ```
 *
 * Form 0 of outbox ids is what earlier versions wrote: 8 bytes each (f64), numbers that a restored database gives again.
 *
 * The head has a checksum of its own, so that a damaged block can be stepped over by a length that is known to be right.
 */

export const FRAME_HEAD_BYTES_MIN = 56
const SPAN_BYTES = 52
const UUID_BYTES = 16
/** Bytes of an outbox id, by form. */
const ID_BYTES = [8, UUID_BYTES] as const
const FORM_OF_UUIDS = 1
const MAGIC = Buffer.from('ARJ1')
const KINDS: readonly ActivityKind[] = ['event', 'task', 'run']

/** A frame that is being written. */
export interface FrameDraft extends Omit<Frame, 'block'> {
  readonly outboxIds: readonly string[]
  readonly blockBytes: number
  /** Bytes to leave free behind the block: a commit ends on a page of the disk. */
  padding: number
}

/** A frame with what only recovery needs. */
export interface StoredFrame extends Frame {
  readonly outboxIds: readonly string[]
}

export function frameBytes(draft: FrameDraft): number {
  return headBytes(draft.spans.length, draft.outboxIds.length * UUID_BYTES) + draft.blockBytes + draft.padding
}

function headBytes(spans: number, idBytes: number): number {
  return FRAME_HEAD_BYTES_MIN + spans * SPAN_BYTES + idBytes
}

/**
 * Writes the frame at `at`, its block put together from `pieces`.
 * @returns the block, a view into `target`
 */
export function writeFrame(target: Buffer, at: number, draft: FrameDraft, pieces: readonly Buffer[]): Buffer {
  const head = headBytes(draft.spans.length, draft.outboxIds.length * UUID_BYTES)
  const block = target.subarray(at + head, at + head + draft.blockBytes)
  let filled = 0
  for (const piece of pieces) filled += piece.copy(block, filled)
  MAGIC.copy(target, at)
  target.writeUInt32LE(head, at + 4)
  target.writeUInt32LE(draft.blockBytes, at + 8)
  target.writeUInt32LE(crc32(block), at + 16)
  target.writeUInt32LE(KINDS.indexOf(draft.kind) | (FORM_OF_UUIDS << 8), at + 20)
  target.writeUInt32LE(draft.rows, at + 24)
  target.writeUInt32LE(draft.spans.length, at + 28)
  target.writeUInt32LE(draft.outboxIds.length, at + 32)
  target.writeUInt32LE(draft.padding, at + 36)
  target.writeDoubleLE(draft.firstSeq, at + 40)
  target.writeDoubleLE(draft.receivedAt, at + 48)
  let place = at + FRAME_HEAD_BYTES_MIN
  for (const span of draft.spans) place = writeSpan(target, place, span)
  for (const id of draft.outboxIds) place += target.write(id.replaceAll('-', ''), place, 'hex')
  target.writeUInt32LE(headCrc(target, at, head), at + 12)
  return block
}

function writeSpan(target: Buffer, at: number, span: Span): number {
  const words = spanWords(span)
  for (let i = 0; i < 12; i++) target.writeUInt32LE(words[i], at + i * 4)
  return target.writeUInt32LE(span.rows, at + 48)
}

function headCrc(bytes: Buffer, at: number, head: number): number {
  return crc32(bytes.subarray(at + 20, at + head), crc32(bytes.subarray(at + 4, at + 12)))
}

export type FrameRead =
  /** A sound frame; `end` is where the next one starts. */
  | { readonly status: 'frame'; readonly frame: StoredFrame; readonly end: number }
  /** The bytes end before the frame does; `need` bytes from its start would show more. */
  | { readonly status: 'short'; readonly need: number }
  /** Not a frame, or damaged; `end` is known when only the block is. */
  | { readonly status: 'bad'; readonly end: number | undefined }

/** Reads the frame that starts at `at`. */
export function readFrame(bytes: Buffer, at: number): FrameRead {
  const left = bytes.length - at
  if (left < FRAME_HEAD_BYTES_MIN) return { status: 'short', need: FRAME_HEAD_BYTES_MIN }
  if (bytes.compare(MAGIC, 0, 4, at, at + 4) !== 0) return { status: 'bad', end: undefined }
  const head = bytes.readUInt32LE(at + 4)
  const spans = bytes.readUInt32LE(at + 28)
  const outboxIds = bytes.readUInt32LE(at + 32)
  if (head !== headBytes(spans, outboxIds * (ID_BYTES[bytes[at + 21]] ?? 0))) return { status: 'bad', end: undefined }
  if (left < head) return { status: 'short', need: head }
  if (bytes.readUInt32LE(at + 12) !== headCrc(bytes, at, head)) return { status: 'bad', end: undefined }
  const blockEnd = at + head + bytes.readUInt32LE(at + 8)
  const end = blockEnd + bytes.readUInt32LE(at + 36)
  if (bytes.length < end) return { status: 'short', need: end - at }
  const block = bytes.subarray(at + head, blockEnd)
  if (crc32(block) !== bytes.readUInt32LE(at + 16)) return { status: 'bad', end }
  return { status: 'frame', end, frame: { ...readHead(bytes, at, spans, outboxIds), block } }
}

function readHead(bytes: Buffer, at: number, spans: number, outboxIds: number): Omit<StoredFrame, 'block'> {
  const words = new Uint32Array(12)
  const idsAt = at + FRAME_HEAD_BYTES_MIN + spans * SPAN_BYTES
  return {
    kind: KINDS[bytes[at + 20]],
    rows: bytes.readUInt32LE(at + 24),
    firstSeq: bytes.readDoubleLE(at + 40),
    receivedAt: bytes.readDoubleLE(at + 48),
    spans: Array.from({ length: spans }, (_, index) => {
      const place = at + FRAME_HEAD_BYTES_MIN + index * SPAN_BYTES
      for (let i = 0; i < 12; i++) words[i] = bytes.readUInt32LE(place + i * 4)
      return {
        workspaceId: uuidFromWords(words, 0),
        agentId: uuidFromWords(words, 4),
        runId: uuidFromWords(words, 8),
        rows: bytes.readUInt32LE(place + 48),
      }
    }),
    outboxIds: Array.from({ length: outboxIds }, (_, index) => readId(bytes, idsAt, index, bytes[at + 21])),
  }
}

function readId(bytes: Buffer, idsAt: number, index: number, form: number): string {
  const at = idsAt + index * ID_BYTES[form]
  if (form === FORM_OF_UUIDS) return uuidOf(bytes.toString('hex', at, at + UUID_BYTES))
  // As the migration of the outbox names the rows of then.
  return uuidOf(bytes.readDoubleLE(at).toString(16).padStart(32, '0'))
}

function uuidOf(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** When the rows of a frame were accepted, from the first bytes of its head; undefined when this is no frame. */
export function receivedAtOf(head: Buffer): number | undefined {
  return head.compare(MAGIC, 0, 4, 0, 4) === 0 ? head.readDoubleLE(48) : undefined
}

/** The next place at or after `from` that looks like the start of a frame; -1 when there is none. */
export function findFrame(bytes: Buffer, from: number): number {
  return bytes.indexOf(MAGIC, from)
}
