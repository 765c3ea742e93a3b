import fs from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { crc32 } from 'node:zlib'

/** How far the sink has come: rows up to `loadedSeq` are in ClickHouse for certain; those up to `inFlightSeq` may be. */
export interface SinkPosition {
  readonly loadedSeq: number
  readonly inFlightSeq: number
}

/**
 * The sink's position on stable storage. Two slots are written in turn, so that a write torn by a power failure leaves
 * the one before it readable.
 */
export class SinkPositionFile {
  private constructor(
    private readonly file: FileHandle,
    private last: SinkPosition,
    private generation: number,
  ) {}

  /** Opens the file, or begins one at position 0. */
  static async open(path: string): Promise<SinkPositionFile> {
    const file = await open(path, fs.constants.O_RDWR | fs.constants.O_CREAT | (fs.constants.O_DSYNC ?? 0), 0o600)
    const bytes = Buffer.alloc(SLOT_BYTES * 2)
    await file.read(bytes, 0, bytes.length, 0)
    const slots = [bytes.subarray(0, SLOT_BYTES), bytes.subarray(SLOT_BYTES)].filter(isSound)
    const newest = slots.sort((a, b) => b.readDoubleLE(0) - a.readDoubleLE(0))[0]
    const loadedSeq = newest?.readDoubleLE(8) ?? 0
    const inFlightSeq = newest?.readDoubleLE(16) ?? 0
    return new SinkPositionFile(file, { loadedSeq, inFlightSeq }, newest?.readDoubleLE(0) ?? 0)
  }

  /** What the file says, without keeping it open. */
  static async read(path: string): Promise<SinkPosition> {
    const file = await SinkPositionFile.open(path)
    await file.close()
    return file.get()
  }

  get(): SinkPosition {
    return this.last
  }

  /** Durable once it resolves. One call at a time. */
  async set(position: SinkPosition): Promise<void> {
    this.generation++
    const slot = Buffer.alloc(SLOT_BYTES)
    slot.writeDoubleLE(this.generation, 0)
    slot.writeDoubleLE(position.loadedSeq, 8)
    slot.writeDoubleLE(position.inFlightSeq, 16)
    slot.writeUInt32LE(crc32(slot.subarray(0, 24)), 24)
    await this.file.write(slot, 0, SLOT_BYTES, (this.generation % 2) * SLOT_BYTES)
    this.last = position
  }

  close(): Promise<void> {
    return this.file.close()
  }
}

const SLOT_BYTES = 64

function isSound(slot: Buffer): boolean {
  return slot.readDoubleLE(0) > 0 && slot.readUInt32LE(24) === crc32(slot.subarray(0, 24))
}
