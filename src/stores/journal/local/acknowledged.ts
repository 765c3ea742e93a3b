import fs from 'node:fs'
import { promisify } from 'node:util'
import type { Log } from '../../../base/log.ts'
import { SlotFile, type WriteSlot } from '../../../base/slot-file.ts'

/** The name of the file in the journal's directory. */
export const ACKNOWLEDGED_NAME = 'acknowledged'
const fdatasync = promisify(fs.fdatasync)
const LAYOUT = { slotBytes: 32, numbers: 2 }
const SYNC_INTERVAL_MS = 1_000

/**
 * Stores the last acknowledged position and when its row was accepted, which cannot be derived from frames that are
 * damaged, missing or deleted.
 *
 * Written with each commit, before the acknowledgement, but synced only once a second: waiting for a sync would double
 * the cost of a commit. Nothing is lost when the process crashes; a power failure loses at most the last second.
 */
export class AcknowledgedFile {
  private syncedAtMs = Number.NEGATIVE_INFINITY
  private syncing: Promise<unknown> | undefined
  private failing = false
  private closed = false

  private constructor(
    private readonly file: number,
    private readonly slots: SlotFile,
    private readonly log: Log,
    private readonly write: WriteSlot<number>,
  ) {}

  static open(path: string, log: Log, write?: WriteSlot<number>): AcknowledgedFile {
    const file = fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600)
    const bytes = Buffer.alloc(SlotFile.bytes(LAYOUT))
    const bytesRead = fs.readSync(file, bytes, 0, bytes.length, 0)
    // Allocates the space in advance, so that later writes succeed on a full disk.
    if (bytesRead < bytes.length) fs.writeSync(file, bytes, bytesRead, bytes.length - bytesRead, bytesRead)
    const slots = SlotFile.of(bytes, LAYOUT)
    return new AcknowledgedFile(file, slots, log, write ?? ((slot, at) => fs.writeSync(file, slot, 0, slot.length, at)))
  }

  /** The last position that was written. */
  get seq(): number {
    return this.slots.numbers[0]
  }

  /** When it was accepted, Unix milliseconds. */
  get receivedAt(): number {
    return this.slots.numbers[1]
  }

  /** Records that everything up to `seq` is durable and about to be acknowledged. */
  set(seq: number, receivedAt: number): void {
    try {
      this.slots.setNow([seq, receivedAt], this.write)
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
  const bytes = Buffer.alloc(SlotFile.bytes(LAYOUT))
  fs.readSync(file, bytes, 0, bytes.length, 0)
  return SlotFile.of(bytes, LAYOUT).numbers[0]
}
