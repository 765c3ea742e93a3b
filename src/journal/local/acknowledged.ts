import fs from 'node:fs'
import { promisify } from 'node:util'
import { crc32 } from 'node:zlib'
import type { Log } from '../../log.ts'

/** The name of the file in the journal's directory. */
export const ACKNOWLEDGED_NAME = 'acknowledged'
const fdatasync = promisify(fs.fdatasync)
const SLOT_BYTES = 16
const SYNC_INTERVAL_MS = 1_000

/**
 * Stores the last acknowledged position, which cannot be derived from frames that are damaged or missing.
 *
 * Written with each commit, before the acknowledgement, but synced only once a second: waiting for a sync would double
 * the cost of a commit. Nothing is lost when the process crashes; a power failure loses at most the last second.
 * Two slots are written alternately, so that a torn write leaves the previous one readable.
 */
export class AcknowledgedFile {
  private syncedAtMs = Number.NEGATIVE_INFINITY
  private syncing: Promise<unknown> | undefined
  private readonly slot = Buffer.alloc(SLOT_BYTES)
  private failing = false
  private slotIndex = 0
  private closed = false

  private constructor(
    private readonly file: number,
    private last: number,
    private readonly log: Log,
  ) {}

  static open(path: string, log: Log): AcknowledgedFile {
    const file = fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600)
    const bytes = Buffer.alloc(SLOT_BYTES * 2)
    const bytesRead = fs.readSync(file, bytes, 0, bytes.length, 0)
    // Allocates the space in advance, so that later writes succeed on a full disk.
    if (bytesRead < bytes.length) fs.writeSync(file, bytes, 0, bytes.length, 0)
    return new AcknowledgedFile(file, newestOf(bytes), log)
  }

  get seq(): number {
    return this.last
  }

  /** Records that everything up to `seq` is durable and about to be acknowledged. */
  note(seq: number): void {
    this.last = seq
    this.slot.writeDoubleLE(seq, 0)
    this.slot.writeUInt32LE(crc32(this.slot.subarray(0, 8)), 8)
    this.slotIndex = 1 - this.slotIndex
    try {
      fs.writeSync(this.file, this.slot, 0, SLOT_BYTES, this.slotIndex * SLOT_BYTES)
      this.failing = false
    } catch (error) {
      if (!this.failing) this.log.warn('journal: cannot write the acknowledged position', { error })
      this.failing = true
    }
    if (this.syncing === undefined && performance.now() - this.syncedAtMs > SYNC_INTERVAL_MS) this.sync()
  }

  async close(): Promise<void> {
    if (this.closed) return
    this.closed = true
    await this.syncing
    await fdatasync(this.file).catch(() => {})
    fs.closeSync(this.file)
  }

  private sync(): void {
    this.syncing = fdatasync(this.file)
      .catch((error) => this.log.warn('journal: cannot sync the acknowledged position', { error }))
      .finally(() => {
        this.syncedAtMs = performance.now()
        this.syncing = undefined
      })
  }
}

/** Reads the position of a journal that another process writes, from its open file. */
export function readAcknowledged(file: number): number {
  const bytes = Buffer.alloc(SLOT_BYTES * 2)
  fs.readSync(file, bytes, 0, bytes.length, 0)
  return newestOf(bytes)
}

function newestOf(bytes: Buffer): number {
  const slots = [bytes.subarray(0, SLOT_BYTES), bytes.subarray(SLOT_BYTES)].filter(isValid)
  return Math.max(0, ...slots.map((slot) => slot.readDoubleLE(0)))
}

function isValid(slot: Buffer): boolean {
  return slot.readDoubleLE(0) > 0 && slot.readUInt32LE(8) === crc32(slot.subarray(0, 8))
}
