import fs from 'node:fs'
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
  private generation = 0

  private constructor(
    private readonly file: number,
    private last: SinkPosition,
  ) {}

  /** Opens the file, or begins one at position 0. */
  static open(path: string): SinkPositionFile {
    const file = fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT | (fs.constants.O_DSYNC ?? 0), 0o600)
    const bytes = Buffer.alloc(SLOT_BYTES * 2)
    fs.readSync(file, bytes, 0, bytes.length, 0)
    const slots = [bytes.subarray(0, SLOT_BYTES), bytes.subarray(SLOT_BYTES)].filter(isSound)
    const newest = slots.sort((a, b) => b.readDoubleLE(0) - a.readDoubleLE(0))[0]
    const position = new SinkPositionFile(file, {
      loadedSeq: newest?.readDoubleLE(8) ?? 0,
      inFlightSeq: newest?.readDoubleLE(16) ?? 0,
    })
    position.generation = newest?.readDoubleLE(0) ?? 0
    return position
  }

  get(): SinkPosition {
    return this.last
  }

  /** Durable when it returns. A few dozen bytes, once a batch: not worth a trip to another thread. */
  set(position: SinkPosition): void {
    this.generation++
    const slot = Buffer.alloc(SLOT_BYTES)
    slot.writeDoubleLE(this.generation, 0)
    slot.writeDoubleLE(position.loadedSeq, 8)
    slot.writeDoubleLE(position.inFlightSeq, 16)
    slot.writeUInt32LE(crc32(slot.subarray(0, 24)), 24)
    fs.writeSync(this.file, slot, 0, SLOT_BYTES, (this.generation % 2) * SLOT_BYTES)
    this.last = position
  }

  close(): void {
    fs.closeSync(this.file)
  }
}

const SLOT_BYTES = 64

function isSound(slot: Buffer): boolean {
  return slot.readDoubleLE(0) > 0 && slot.readUInt32LE(24) === crc32(slot.subarray(0, 24))
}
