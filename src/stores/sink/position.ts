import fs from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { uptime } from 'node:os'
import { join } from 'node:path'
import { stopwatch } from '../../base/clock.ts'
import { SlotFile, type WriteSlot } from '../../base/slot-file.ts'
import { syncDir } from '../../base/sync-dir.ts'

const LAYOUT = { slotBytes: 64, numbers: 6 }

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
  /**
   * Updates the given fields; durable when it resolves. One call at a time.
   * @throws Error when another process has taken over the position
   */
  set(changes: Partial<SinkPosition>): Promise<void>
  close(): Promise<void>
  /** How long ago the batch that was unfinished when this was opened was first announced, at least, in milliseconds. */
  announcedAgeMs(): number
}

/** Whether two positions are of the same batch, before or after it was loaded. */
function isSameBatch(one: SinkPosition, other: SinkPosition): boolean {
  return one.inFlightSeq === other.inFlightSeq && one.reloads === other.reloads
}

/** Milliseconds since the machine has started. All its processes agree, and nobody can set it. */
const sinceBootMs = () => uptime() * 1000

/** The sink's position in a local file. */
export class SinkPositionFile implements SinkPositionStore {
  readonly announcedAgeMs: () => number
  private closing: Promise<void> | undefined

  private constructor(
    private readonly file: FileHandle,
    private readonly slots: SlotFile,
    private readonly write: WriteSlot<Promise<number>>,
    private readonly bootMs: () => number,
  ) {
    const ageMs = bootMs() - slots.numbers[5]
    const openedFor = stopwatch()
    // Before the machine was started again.
    this.announcedAgeMs = ageMs < 0 ? () => Number.POSITIVE_INFINITY : () => ageMs + openedFor()
  }

  /** Opens the file in the journal's directory; a new one starts at position 0. @param bootMs milliseconds since the machine has started */
  static async open(
    dir: string,
    write?: WriteSlot<Promise<number>>,
    bootMs: () => number = sinceBootMs,
  ): Promise<SinkPositionFile> {
    const path = join(dir, 'sink.position')
    const file = await open(path, fs.constants.O_RDWR | fs.constants.O_CREAT | (fs.constants.O_DSYNC ?? 0), 0o600)
    // Else a power failure might take away its name, and the next start would load every row again.
    await syncDir(dir)
    const bytes = Buffer.alloc(SlotFile.bytes(LAYOUT))
    await file.read(bytes, 0, bytes.length, 0)
    const durably: WriteSlot<Promise<number>> = async (slot, at) =>
      (await file.write(slot, 0, slot.length, at)).bytesWritten
    return new SinkPositionFile(file, SlotFile.of(bytes, LAYOUT), write ?? durably, bootMs)
  }

  /** Reads the position without keeping the file open. */
  static async read(dir: string): Promise<SinkPosition> {
    const file = await SinkPositionFile.open(dir)
    await file.close()
    return file.get()
  }

  get(): SinkPosition {
    const [, loadedSeq = 0, inFlightSeq = 0, reloads = 0, clearThroughSeq = 0] = this.slots.numbers
    return { loadedSeq, inFlightSeq, reloads, clearThroughSeq }
  }

  async set(changes: Partial<SinkPosition>): Promise<void> {
    const before = this.get()
    const position = { ...before, ...changes }
    const { loadedSeq, inFlightSeq, reloads, clearThroughSeq } = position
    const { numbers } = this.slots
    const announcedMs = isSameBatch(before, position) ? numbers[5] : this.bootMs()
    await this.slots.set([numbers[0] + 1, loadedSeq, inFlightSeq, reloads, clearThroughSeq, announcedMs], this.write)
  }

  /** May be called again: whoever opened the file closes it if the sink did not come to it. */
  close(): Promise<void> {
    this.closing ??= this.file.close()
    return this.closing
  }
}
