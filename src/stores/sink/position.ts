import fs from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { SlotFile, type WriteSlot } from '../../base/slot-file.ts'

const LAYOUT = { slotBytes: 64, numbers: 5 }

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
  /** Whether the unfinished batch was announced so long ago that ClickHouse may have forgotten its token. */
  readonly isStale?: boolean
}

/** The sink's position in a local file. */
export class SinkPositionFile implements SinkPositionStore {
  private closing: Promise<void> | undefined

  private constructor(
    private readonly file: FileHandle,
    private readonly slots: SlotFile,
    private readonly write: WriteSlot<Promise<number>>,
  ) {}

  /** Opens the file in the journal's directory; a new one starts at position 0. */
  static async open(dir: string, write?: WriteSlot<Promise<number>>): Promise<SinkPositionFile> {
    const path = join(dir, 'sink.position')
    const file = await open(path, fs.constants.O_RDWR | fs.constants.O_CREAT | (fs.constants.O_DSYNC ?? 0), 0o600)
    const bytes = Buffer.alloc(SlotFile.bytes(LAYOUT))
    await file.read(bytes, 0, bytes.length, 0)
    const durably: WriteSlot<Promise<number>> = async (slot, at) =>
      (await file.write(slot, 0, slot.length, at)).bytesWritten
    return new SinkPositionFile(file, SlotFile.of(bytes, LAYOUT), write ?? durably)
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
    const { loadedSeq, inFlightSeq, reloads, clearThroughSeq } = { ...this.get(), ...changes }
    const [generation = 0] = this.slots.numbers
    await this.slots.set([generation + 1, loadedSeq, inFlightSeq, reloads, clearThroughSeq], this.write)
  }

  /** May be called again: whoever opened the file closes it if the sink did not come to it. */
  close(): Promise<void> {
    this.closing ??= this.file.close()
    return this.closing
  }
}
