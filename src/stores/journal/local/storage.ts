import fs from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ApiError } from '../../../base/errors.ts'
import type { Log } from '../../../base/log.ts'
import { syncDir } from '../../../base/sync-dir.ts'
import type { Frame, Gap } from '../journal.ts'
import { type AppendPoint, NO_CHECK, type StoredFrame } from '../log/frame.ts'
import { type Consumers, SINK } from '../log/log-journal.ts'
import { PAGE_BYTES, PagePool } from '../log/pages.ts'
import { type Commit, dayOf, type LogStorage } from '../log/storage.ts'
import { ACKNOWLEDGED_NAME, AcknowledgedFile } from './acknowledged.ts'
import { openForWrites, replaceFile, rewrite, truncate, writeAll } from './files.ts'
import { Identity } from './identity.ts'
import { firstSeqOf, GAPS_NAME, SegmentFiles, segmentNames } from './segment-files.ts'
import {
  type FramesRead,
  type ReadableSegment,
  type ResumePoint,
  readDay,
  readFrames,
  resume,
  startOf,
  walk,
} from './walk.ts'
import { WriteProbe } from './write-probe.ts'

/** Copies of quarantined frames. */
const COPY_NAME = /^\d{16}\.segment\.\d+\.damaged$/
/** The file with the outbox ids of the newest frame of each kind before the last segment. */
const OUTBOX_NAME = 'outbox-ids'
const SEGMENT_BYTES = 32 * 1024 * 1024

/** A file of frames. `bytes` counts what is durable; anything after that was never acknowledged. */
interface Segment extends ReadableSegment {
  lastSeq: number
  bytes: number
  /** The day on which its rows were accepted, see {@link dayOf}; undefined for an empty segment. */
  day: number | undefined
  /** The check of its last frame; the next frame includes it. */
  check: Buffer
}

export interface LocalStorageOptions {
  readonly dir: string
  /** When a segment exceeds this size, the next one is started. */
  readonly segmentBytes?: number
  readonly log: Log
}

/**
 * Stores a journal in segment files. A segment holds rows of one day and one epoch, so that retention can delete the whole
 * file. This class does not interpret the frames.
 *
 * Reading goes from frame to frame. After a damaged block it continues where the valid head says; after a damaged head,
 * at the next frame whose keyed check proves that it was written at that offset. Bytes that callers report cannot pass
 * that check.
 */
export class LocalStorage extends SegmentFiles<Segment> implements LogStorage {
  readonly pool = new PagePool()
  /** The outbox ids of the newest frame of each kind. */
  readonly outboxIds = new Map<Frame['kind'], readonly string[]>()
  /** What {@link OUTBOX_NAME} has of them. */
  private storedOutboxIds = ''
  /** When the last rows were accepted, Unix milliseconds; 0 if that is not known. */
  receivedAt = 0
  /** Durable bytes of all segments. Read on every append, so it is maintained instead of computed. */
  bytes = 0
  private file: fs.promises.FileHandle | undefined
  /** Whether the last segment must not be written to any more. */
  private sealed = false
  /** A segment that may still have what a failed write has left behind its end. */
  private untidy: Segment | undefined
  private readonly segmentBytes: number
  private readonly probe: WriteProbe

  private constructor(
    { dir, segmentBytes = SEGMENT_BYTES, log }: LocalStorageOptions,
    override readonly identity: Identity,
    readonly acknowledged: AcknowledgedFile,
    private readonly consumers: Consumers,
  ) {
    super(dir, identity, log)
    this.segmentBytes = segmentBytes
    this.probe = new WriteProbe(dir)
  }

  /** Opens the directory, truncates a torn tail, and quarantines damaged frames of the last segment. */
  static async open(options: LocalStorageOptions, consumers: Consumers): Promise<LocalStorage> {
    const { dir, log } = options
    fs.mkdirSync(dir, { recursive: true })
    // Else a power failure might take away the whole directory, or a file that a killed process had begun.
    await syncDir(dirname(dir))
    await syncDir(dir)
    const names = segmentNames(dir)
    const identity = Identity.open(dir, names.length > 0)
    const acknowledged = AcknowledgedFile.open(join(dir, ACKNOWLEDGED_NAME), log)
    const storage = new LocalStorage(options, identity, acknowledged, consumers)
    await storage.recover(names)
    return storage
  }

  get endSeq(): number {
    const last = this.list.at(-1)
    if (last === undefined) return 0
    return last.lastSeq === 0 ? last.firstSeq - 1 : last.lastSeq
  }

  bytesAfter(seq: number): number {
    let bytes = 0
    for (const segment of this.list) if (segment.lastSeq > seq) bytes += segment.bytes
    return bytes
  }

  /** A failing disk is noticed by the write. */
  refusal(): ApiError | undefined {
    return undefined
  }

  appendPoint(firstSeq: number, receivedAt: number): AppendPoint | Promise<AppendPoint> {
    const day = dayOf(receivedAt)
    const last = this.list.at(-1)
    const isRoomy = last !== undefined && last.bytes < this.segmentBytes && (last.day ?? day) === day
    const isInLine = last !== undefined && (last.bytes > 0 || last.firstSeq === firstSeq)
    if (!isRoomy || !isInLine || this.sealed) return this.create(firstSeq).then(appendPointOf)
    if (this.file !== undefined) return appendPointOf(last)
    return openForWrites(last.path, 0).then((file) => {
      this.file = file
      return appendPointOf(last)
    })
  }

  /** On failure none of the frames is stored, and the next write goes to a new segment. */
  async write({ buffer, endSeq, check, outboxIds }: Commit, receivedAt: number): Promise<void> {
    const segment = this.list[this.list.length - 1]
    try {
      await writeAll(this.file!, buffer, segment.bytes)
    } catch (error) {
      await this.abandon(segment)
      throw error
    }
    segment.bytes += buffer.length
    this.bytes += buffer.length
    segment.lastSeq = endSeq
    segment.day = dayOf(receivedAt)
    segment.check = check
    for (const [kind, ids] of outboxIds) if (ids.length > 0) this.outboxIds.set(kind, ids)
    this.acknowledged.set(endSeq, receivedAt)
    this.probe.succeeded()
  }

  failed(bytes: number): void {
    this.probe.failed(bytes)
  }

  /**
   * Closes the last segment and creates the next one, for rows from `firstSeq` on. The new file preserves the journal's
   * position even after all earlier segments have been deleted.
   */
  async begin(firstSeq: number): Promise<void> {
    const last = this.list.at(-1)
    if (last === undefined || (last.bytes === 0 && last.firstSeq === firstSeq)) return
    await this.create(firstSeq)
  }

  trim(seq: number, keepBytes: number): void {
    for (;;) {
      const [oldest, next] = this.list
      if (next === undefined || oldest.lastSeq > seq || this.bytes - oldest.bytes < keepBytes) return
      this.dropOldest()
    }
  }

  /** Permanently deletes the segments, except the last, that hold no row past `seq`, and their quarantined copies. */
  async dropThrough(seq: number): Promise<void> {
    while (this.list.length > 1 && this.list[0].lastSeq <= seq) this.dropOldest()
    const { dir } = this
    for (const name of fs.readdirSync(dir)) {
      const isCopy = COPY_NAME.test(name) && Number.parseInt(name, 10) < (this.list[0]?.firstSeq ?? 0)
      if (isCopy) fs.rmSync(join(dir, name), { force: true })
    }
    await syncDir(dir)
  }

  async lastSeqBefore(beforeMs: number): Promise<number | undefined> {
    return this.list.findLast(({ day }) => day !== undefined && day < dayOf(beforeMs))?.lastSeq
  }

  check(): Promise<void> {
    return this.probe.check()
  }

  async close(): Promise<void> {
    await this.closeFile()
    await this.acknowledged.close()
  }

  protected loadedSeq(): number {
    return this.consumers.seqOf(SINK)
  }

  protected override gapsChanged(all: readonly Gap[]): void {
    try {
      replaceFile(join(this.dir, GAPS_NAME), JSON.stringify(all))
    } catch (error) {
      this.log.error('journal: cannot store a gap', { error })
    }
  }

  protected async readPart(segment: Segment, point: ResumePoint, limit: number): Promise<FramesRead> {
    const read = await readFrames(segment, point, limit)
    if (read.damage !== undefined) this.quarantine(segment, read.damage.bytes, read.damage.at)
    return read
  }

  /** Deletes the oldest segment. Must not be the one that is being written to. */
  private dropOldest(): void {
    const oldest = this.list.shift()
    if (oldest === undefined) return
    this.bytes -= oldest.bytes
    fs.rmSync(oldest.path, { force: true })
  }

  private async closeFile(): Promise<void> {
    const { file } = this
    this.file = undefined
    await file?.close()
  }

  private async recover(names: readonly string[]): Promise<void> {
    for (const name of names) this.list.push(this.openSegment(join(this.dir, name)))
    this.list.forEach((segment, index) => {
      const next = this.list[index + 1]
      if (next === undefined) return
      segment.lastSeq = next.firstSeq - 1
      // An empty segment is never read, so its gap is reported here.
      if (segment.bytes === 0) this.addGap(segment.firstSeq - 1, segment.lastSeq)
    })
    const newest = await this.recoverLast()
    this.bytes = this.list.reduce((sum, segment) => sum + segment.bytes, 0)
    this.readOutboxIds()
    // The last segment may have been created by a version that stored no such file.
    const previous = this.list.at(-2)
    const frames = previous === undefined ? newest : [...(await this.readAll(previous)), ...newest]
    for (const { kind, outboxIds } of frames) if (outboxIds.length > 0) this.outboxIds.set(kind, outboxIds)
    // After a power failure the file may lack its last second; retention may have deleted the frames.
    this.receivedAt = Math.max(this.acknowledged.receivedAt, frames.at(-1)?.receivedAt ?? 0)
  }

  /** The outbox ids of earlier segments, which may be deleted: their outbox rows may not be. */
  private readOutboxIds(): void {
    const path = join(this.dir, OUTBOX_NAME)
    if (!fs.existsSync(path)) return
    try {
      const text = fs.readFileSync(path, 'utf8')
      for (const [kind, ids] of JSON.parse(text)) this.outboxIds.set(kind, ids)
      this.storedOutboxIds = text
    } catch (error) {
      this.log.error('journal: cannot read the outbox ids; changes of runs and tasks may be appended twice', {
        path,
        error,
      })
    }
  }

  private async keepOutboxIds(): Promise<void> {
    const text = JSON.stringify([...this.outboxIds])
    if (this.outboxIds.size === 0 || text === this.storedOutboxIds) return
    const path = join(this.dir, OUTBOX_NAME)
    await writeFile(`${path}.new`, text, { mode: 0o600, flush: true })
    await rename(`${path}.new`, path)
    this.storedOutboxIds = text
  }

  private async readAll(segment: Segment): Promise<StoredFrame[]> {
    const frames: StoredFrame[] = []
    let point = startOf(segment.firstSeq)
    while (point.at < segment.bytes) {
      const read = await this.readFrom(segment, point, segment.bytes)
      frames.push(...read.frames)
      point = read.point
    }
    return frames
  }

  private quarantine(segment: Segment, bytes: Buffer, at: number): void {
    const path = `${segment.path}.${at}.damaged`
    if (fs.existsSync(path) || bytes.length === 0) return
    const details = { segment: segment.path, at, bytes: bytes.length, copy: path }
    this.log.error('journal: quarantined a damaged frame; all other frames are intact', details)
    try {
      fs.writeFileSync(path, bytes, { mode: 0o600 })
    } catch (error) {
      this.log.error('journal: cannot copy a damaged frame', { copy: path, error })
    }
  }

  /**
   * Finds the end of the acknowledged data in the last segment. Writes are sequential, so only the tail can be torn.
   * @returns its frames
   */
  private async recoverLast(): Promise<readonly StoredFrame[]> {
    const frames: StoredFrame[] = []
    const segment = this.list.at(-1)
    if (segment === undefined) return frames
    const bytes = fs.readFileSync(segment.path)
    let point = startOf(segment.firstSeq)
    let damaged: ResumePoint | undefined
    let valid = point
    for (;;) {
      const found = walk(segment.seal, bytes.subarray(point.at), point)
      if (found.frames.length > 0) {
        frames.push(...found.frames)
        if (damaged !== undefined) this.quarantine(segment, bytes.subarray(damaged.at, point.at), damaged.at)
        this.addGap(valid.nextSeq - 1, found.frames[0].firstSeq - 1)
        damaged = undefined
        valid = found.point
      }
      if (found.stop === 'end') break
      damaged ??= found.point
      const next = found.afterDamage ?? resume(segment.seal, bytes.subarray(found.point.at), found.point)
      if (next === undefined) break
      point = next
    }
    segment.lastSeq = valid.at === 0 ? 0 : valid.nextSeq - 1
    segment.check = valid.before ?? NO_CHECK
    segment.day = frames.length > 0 ? dayOf(frames[0].receivedAt) : undefined
    await this.truncateTail(segment, bytes, Math.min(valid.at, bytes.length))
    // Readers get its rows from now on.
    if (this.endSeq > this.acknowledged.seq) await rewrite(segment.path, bytes.subarray(0, segment.bytes))
    return frames
  }

  private async truncateTail(segment: Segment, bytes: Buffer, valid: number): Promise<void> {
    segment.bytes = valid
    // Writes start at page boundaries.
    if (valid % PAGE_BYTES !== 0) this.sealed = true
    if (valid === bytes.length) return
    if (this.endSeq < this.acknowledged.seq) this.quarantine(segment, bytes.subarray(valid), valid)
    else {
      this.log.warn('journal: truncated a torn tail that was never acknowledged', {
        segment: segment.path,
        bytes: bytes.length - valid,
      })
    }
    await truncate(segment.path, valid)
  }

  private openSegment(path: string): Segment {
    const firstSeq = firstSeqOf(path)
    const seal = this.identity.sealOf(firstSeq)
    const day = readDay(path, seal)
    return { path, firstSeq, lastSeq: 0, bytes: fs.statSync(path).size, day, seal, check: NO_CHECK }
  }

  private async create(firstSeq: number): Promise<Segment> {
    this.sealed = true
    await this.closeFile()
    // Readers in other processes would take what was refused for the rows that get its positions next.
    if (this.untidy !== undefined) await truncate(this.untidy.path, this.untidy.bytes)
    this.untidy = undefined
    await this.keepOutboxIds()
    const { dir, identity } = this
    // An empty segment only records a position, which the new one supersedes.
    if (this.list.at(-1)?.bytes === 0) fs.rmSync(this.list.pop()!.path, { force: true })
    const path = join(dir, `${String(firstSeq).padStart(16, '0')}.segment`)
    this.file = await openForWrites(path, fs.constants.O_CREAT | fs.constants.O_TRUNC)
    await syncDir(dir)
    const empty = { lastSeq: 0, bytes: 0, day: undefined, check: NO_CHECK }
    const segment: Segment = { path, firstSeq, ...empty, seal: identity.sealOf(firstSeq) }
    this.list.push(segment)
    this.sealed = false
    return segment
  }

  /** After a failed write: truncates what it may have left, and stops writing to that file. */
  private async abandon(segment: Segment): Promise<void> {
    await this.closeFile().catch(() => {})
    this.sealed = true
    try {
      await truncate(segment.path, segment.bytes)
    } catch (error) {
      this.untidy = segment
      this.log.error('journal: cannot truncate a failed write; it is tried again before the next one', {
        segment: segment.path,
        error,
      })
    }
  }
}

function appendPointOf({ seal, bytes, check }: Segment): AppendPoint {
  return { seal, at: bytes, before: check }
}
