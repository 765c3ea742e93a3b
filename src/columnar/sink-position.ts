import fs from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'

const SLOT_BYTES = 64
const CHECK_AT = 60
/** Offset of the check in slots of earlier versions. */
const OLD_CHECK_AT = 24
const BEGINNING: SinkPosition = { loadedSeq: 0, inFlightSeq: 0, reloads: 0, clearThroughSeq: 0 }

/** The sink's progress: rows up to `loadedSeq` are in ClickHouse; rows up to `inFlightSeq` may be. */
export interface SinkPosition {
  readonly loadedSeq: number
  readonly inFlightSeq: number
  /** Number of reloads. Part of every deduplication token, so that reloaded rows are not treated as a repeat. */
  readonly reloads: number
  /** Rows after `loadedSeq` up to here may exist from an earlier load and must be deleted first; 0 when there are none. */
  readonly clearThroughSeq: number
}

/** The sink's position on stable storage. */
export interface SinkPositionStore {
  get(): SinkPosition
  /** Updates the given fields; durable when it resolves. One call at a time. */
  set(changes: Partial<SinkPosition>): Promise<void>
  close(): Promise<void>
}

/**
 * The sink's position in a local file. Two slots are written alternately, so that a torn write leaves the previous one
 * readable.
 */
export class SinkPositionFile implements SinkPositionStore {
  private constructor(
    private readonly file: FileHandle,
    private last: SinkPosition,
    private generation: number,
  ) {}

  /** Opens the file in the journal's directory; a new one starts at position 0. */
  static async open(dir: string): Promise<SinkPositionFile> {
    const path = join(dir, 'sink.position')
    const file = await open(path, fs.constants.O_RDWR | fs.constants.O_CREAT | (fs.constants.O_DSYNC ?? 0), 0o600)
    const bytes = Buffer.alloc(SLOT_BYTES * 2)
    await file.read(bytes, 0, bytes.length, 0)
    const slots = [bytes.subarray(0, SLOT_BYTES), bytes.subarray(SLOT_BYTES)]
    const read = slots.map(readSlot).filter((slot) => slot !== undefined)
    const newest = read.sort((a, b) => b.generation - a.generation)[0]
    return new SinkPositionFile(file, newest?.position ?? BEGINNING, newest?.generation ?? 0)
  }

  /** Reads the position without keeping the file open. */
  static async read(dir: string): Promise<SinkPosition> {
    const file = await SinkPositionFile.open(dir)
    await file.close()
    return file.get()
  }

  get(): SinkPosition {
    return this.last
  }

  async set(changes: Partial<SinkPosition>): Promise<void> {
    const position = { ...this.last, ...changes }
    // After a failed write the same slot is written again: the other slot holds the only valid position.
    const generation = this.generation + 1
    const slot = Buffer.alloc(SLOT_BYTES)
    const numbers = [generation, position.loadedSeq, position.inFlightSeq, position.reloads, position.clearThroughSeq]
    numbers.forEach((value, index) => {
      slot.writeDoubleLE(value, index * 8)
    })
    slot.writeUInt32LE(crc32(slot.subarray(0, CHECK_AT)), CHECK_AT)
    const { bytesWritten } = await this.file.write(slot, 0, SLOT_BYTES, (generation % 2) * SLOT_BYTES)
    if (bytesWritten < SLOT_BYTES) throw new Error('the sink position was written only partially')
    this.generation = generation
    this.last = position
  }

  close(): Promise<void> {
    return this.file.close()
  }
}

/** Undefined for a slot that was never written, or torn. */
function readSlot(slot: Buffer): { generation: number; position: SinkPosition } | undefined {
  const isSound = (at: number) => slot.readDoubleLE(0) > 0 && slot.readUInt32LE(at) === crc32(slot.subarray(0, at))
  const isNew = isSound(CHECK_AT)
  if (!isNew && !isSound(OLD_CHECK_AT)) return undefined
  const [generation, loadedSeq, inFlightSeq] = [0, 8, 16].map((at) => slot.readDoubleLE(at))
  if (!isNew) return { generation, position: { ...BEGINNING, loadedSeq, inFlightSeq } }
  const [reloads, clearThroughSeq] = [24, 32].map((at) => slot.readDoubleLE(at))
  return { generation, position: { loadedSeq, inFlightSeq, reloads, clearThroughSeq } }
}
