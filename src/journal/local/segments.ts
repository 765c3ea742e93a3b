import fs from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../base/log.ts'
import { type AppendPoint, readFrame, type StoredFrame } from '../log/frame.ts'
import { PAGE_BYTES } from '../log/pages.ts'
import { type FrameSeal, NO_CHECK } from '../log/seal.ts'
import { dayOf } from '../log/storage.ts'
import { openForWrites, readStart, syncDir, truncate, writeAll } from './files.ts'
import { type ReadableSegment, readFrames } from './segment-frames.ts'
import { type ResumePoint, resume, startOf, walk } from './walk.ts'

const SEGMENT_NAME = /^\d{16}\.segment$/
/** Copies of quarantined frames. */
const COPY_NAME = /^\d{16}\.segment\.\d+\.damaged$/
/** Enough for the head of most frames. */
const FIRST_BYTES = 16 * 1024

/** A file of frames. `bytes` counts what is durable; anything after that was never acknowledged. */
export interface Segment extends ReadableSegment {
  lastSeq: number
  bytes: number
  /** The day on which its rows were accepted, see {@link dayOf}; undefined for an empty segment. */
  day: number | undefined
  /** The check of its last frame; the next frame includes it. */
  check: Buffer
}

interface SegmentsOptions {
  readonly dir: string
  /** When a segment exceeds this size, the next one is started. */
  readonly segmentBytes: number
  /** Returns the seal for the frames of the segment that begins at `firstSeq`. */
  readonly sealOf: (firstSeq: number) => FrameSeal
  /** Called when rows are found missing: those after `afterSeq`, up to `throughSeq`. */
  readonly onGap: (afterSeq: number, throughSeq: number) => void
  /** Positions up to here have been acknowledged. */
  readonly acknowledgedSeq: number
  readonly log: Log
}

/** The names of the segments in `dir`, in order. */
export function segmentNames(dir: string): string[] {
  return fs
    .readdirSync(dir)
    .filter((name) => SEGMENT_NAME.test(name))
    .sort()
}

/**
 * The segment files of one journal. A segment holds rows of one day and one epoch, so that retention can delete the whole
 * file. This class does not interpret the frames.
 *
 * Reading goes from frame to frame. After a damaged block it continues where the valid head says; after a damaged head,
 * at the next frame whose keyed check proves that it was written at that offset. Bytes that callers report cannot pass
 * that check.
 */
export class Segments {
  /** Frames of the last two segments, for recovery. */
  readonly recovered: StoredFrame[] = []
  private file: fs.promises.FileHandle | undefined
  /** Whether the last segment must not be written to any more. */
  private sealed = false
  private readonly list: Segment[] = []
  /** Durable bytes of all segments. Read on every append, so it is maintained instead of computed. */
  bytes = 0

  private constructor(private readonly options: SegmentsOptions) {}

  /** Opens the directory, truncates a torn tail, and quarantines damaged frames of the last segment. */
  static async open(options: SegmentsOptions): Promise<Segments> {
    const segments = new Segments(options)
    for (const name of segmentNames(options.dir)) segments.list.push(segments.openSegment(join(options.dir, name)))
    segments.list.forEach((segment, index) => {
      const next = segments.list[index + 1]
      if (next === undefined) return
      segment.lastSeq = next.firstSeq - 1
      // An empty segment is never read, so its gap is reported here.
      if (segment.bytes === 0) options.onGap(segment.firstSeq - 1, segment.lastSeq)
    })
    await segments.recoverLast()
    segments.bytes = segments.list.reduce((sum, segment) => sum + segment.bytes, 0)
    // The newest records before a crash may be in the previous segment.
    const previous = segments.list.at(-2)
    if (previous !== undefined) segments.recovered.unshift(...(await segments.readAll(previous)))
    return segments
  }

  get all(): readonly Segment[] {
    return this.list
  }

  get endSeq(): number {
    const last = this.list.at(-1)
    if (last === undefined) return 0
    return last.lastSeq === 0 ? last.firstSeq - 1 : last.lastSeq
  }

  /**
   * Where to write the frames with the rows from `firstSeq` on, accepted at `receivedAt`. Call {@link write} before
   * calling this again.
   */
  appendPoint(firstSeq: number, receivedAt: number): AppendPoint | Promise<AppendPoint> {
    const day = dayOf(receivedAt)
    const last = this.list.at(-1)
    const isRoomy = last !== undefined && last.bytes < this.options.segmentBytes && (last.day ?? day) === day
    const isInLine = last !== undefined && (last.bytes > 0 || last.firstSeq === firstSeq)
    if (!isRoomy || !isInLine || this.sealed) return this.create(firstSeq).then(appendPointOf)
    if (this.file !== undefined) return appendPointOf(last)
    return openForWrites(last.path, 0).then((file) => {
      this.file = file
      return appendPointOf(last)
    })
  }

  /**
   * Writes frames with the rows up to `lastSeq` at {@link appendPoint}; resolves once they are on stable storage. On
   * failure none of them is stored, and the next write goes to a new segment.
   *
   * @param check of the last frame
   */
  async write(frames: Buffer, lastSeq: number, receivedAt: number, check: Buffer): Promise<void> {
    const segment = this.list[this.list.length - 1]
    try {
      await writeAll(this.file!, frames, segment.bytes)
    } catch (error) {
      await this.abandon(segment)
      throw error
    }
    segment.bytes += frames.length
    this.bytes += frames.length
    segment.lastSeq = lastSeq
    segment.day = dayOf(receivedAt)
    segment.check = check
  }

  /**
   * Closes the last segment and creates the next one, for rows from `firstSeq` on. The new file preserves the journal's
   * position even after all earlier segments have been deleted. Must not be called during a write.
   */
  async begin(firstSeq: number): Promise<void> {
    const last = this.list.at(-1)
    if (last === undefined || (last.bytes === 0 && last.firstSeq === firstSeq)) return
    await this.create(firstSeq)
  }

  /** Permanently deletes the segments, except the last, that hold no row past `seq`, and their quarantined copies. */
  async dropThrough(seq: number): Promise<void> {
    while (this.list.length > 1 && this.list[0].lastSeq <= seq) this.dropOldest()
    const { dir } = this.options
    for (const name of fs.readdirSync(dir)) {
      const isCopy = COPY_NAME.test(name) && Number.parseInt(name, 10) < (this.list[0]?.firstSeq ?? 0)
      if (isCopy) fs.rmSync(join(dir, name), { force: true })
    }
    await syncDir(dir)
  }

  /** Deletes the oldest segment. Must not be the one that is being written to. */
  dropOldest(): void {
    const oldest = this.list.shift()
    if (oldest === undefined) return
    this.bytes -= oldest.bytes
    fs.rmSync(oldest.path, { force: true })
  }

  async close(): Promise<void> {
    const { file } = this
    this.file = undefined
    await file?.close()
  }

  /** Reads the frames of a segment from `point` on, in order, up to `limit` bytes or the end of what is durable. */
  async read(
    segment: Segment,
    point: ResumePoint,
    limit: number,
  ): Promise<{ frames: StoredFrame[]; point: ResumePoint }> {
    const { frames, point: next, missing, damage } = await readFrames(segment, point, limit)
    if (damage !== undefined) this.quarantine(segment, damage.bytes, damage.at)
    for (const { afterSeq, throughSeq } of missing) this.options.onGap(afterSeq, throughSeq)
    return { frames, point: next }
  }

  private async readAll(segment: Segment): Promise<StoredFrame[]> {
    const frames: StoredFrame[] = []
    let point = startOf(segment.firstSeq)
    while (point.at < segment.bytes) {
      const read = await this.read(segment, point, segment.bytes)
      frames.push(...read.frames)
      point = read.point
    }
    return frames
  }

  private quarantine(segment: Segment, bytes: Buffer, at: number): void {
    const path = `${segment.path}.${at}.damaged`
    if (fs.existsSync(path) || bytes.length === 0) return
    const details = { segment: segment.path, at, bytes: bytes.length, copy: path }
    this.options.log.error('journal: quarantined a damaged frame; all other frames are intact', details)
    try {
      fs.writeFileSync(path, bytes, { mode: 0o600 })
    } catch (error) {
      this.options.log.error('journal: cannot copy a damaged frame', { copy: path, error })
    }
  }

  /** Finds the end of the acknowledged data in the last segment. Writes are sequential, so only the tail can be torn. */
  private async recoverLast(): Promise<void> {
    const segment = this.list.at(-1)
    if (segment === undefined) return
    const bytes = fs.readFileSync(segment.path)
    let point = startOf(segment.firstSeq)
    let damaged: ResumePoint | undefined
    let valid = point
    for (;;) {
      const found = walk(segment.seal, bytes.subarray(point.at), point)
      if (found.frames.length > 0) {
        this.recovered.push(...found.frames)
        if (damaged !== undefined) this.quarantine(segment, bytes.subarray(damaged.at, point.at), damaged.at)
        this.options.onGap(valid.nextSeq - 1, found.frames[0].firstSeq - 1)
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
    segment.day = this.recovered.length > 0 ? dayOf(this.recovered[0].receivedAt) : undefined
    await this.truncateTail(segment, bytes, Math.min(valid.at, bytes.length))
  }

  private async truncateTail(segment: Segment, bytes: Buffer, valid: number): Promise<void> {
    segment.bytes = valid
    // Writes start at page boundaries.
    if (valid % PAGE_BYTES !== 0) this.sealed = true
    if (valid === bytes.length) return
    if (this.endSeq < this.options.acknowledgedSeq) this.quarantine(segment, bytes.subarray(valid), valid)
    else {
      this.options.log.warn('journal: truncated a torn tail that was never acknowledged', {
        segment: segment.path,
        bytes: bytes.length - valid,
      })
    }
    await truncate(segment.path, valid)
  }

  private openSegment(path: string): Segment {
    const firstSeq = firstSeqOf(path)
    const seal = this.options.sealOf(firstSeq)
    const day = readDay(path, seal)
    return { path, firstSeq, lastSeq: 0, bytes: fs.statSync(path).size, day, seal, check: NO_CHECK }
  }

  private async create(firstSeq: number): Promise<Segment> {
    this.sealed = true
    await this.close()
    const { dir, sealOf } = this.options
    // An empty segment only records a position, which the new one supersedes.
    if (this.list.at(-1)?.bytes === 0) fs.rmSync(this.list.pop()!.path, { force: true })
    const path = join(dir, `${String(firstSeq).padStart(16, '0')}.segment`)
    this.file = await openForWrites(path, fs.constants.O_CREAT | fs.constants.O_TRUNC)
    await syncDir(dir)
    const empty = { lastSeq: 0, bytes: 0, day: undefined, check: NO_CHECK }
    const segment: Segment = { path, firstSeq, ...empty, seal: sealOf(firstSeq) }
    this.list.push(segment)
    this.sealed = false
    return segment
  }

  /** After a failed write: truncates what it may have left, and stops writing to that file. */
  private async abandon(segment: Segment): Promise<void> {
    await this.close().catch(() => {})
    this.sealed = true
    try {
      await truncate(segment.path, segment.bytes)
    } catch (error) {
      this.options.log.error('journal: cannot truncate a failed write', { segment: segment.path, error })
    }
  }
}

/** The position in the name of a segment. */
export function firstSeqOf(path: string): number {
  return Number.parseInt(path.slice(path.lastIndexOf('/') + 1), 10)
}

function appendPointOf({ seal, bytes, check }: Segment): AppendPoint {
  return { seal, at: bytes, before: check }
}

/** The day of the first frame, for retention; undefined when its head is damaged. */
function readDay(path: string, seal: FrameSeal): number | undefined {
  let read = readFrame(readStart(path, FIRST_BYTES), 0, seal, 0)
  const isHeadShort = read.status === 'short' && read.receivedAt === undefined
  if (read.status === 'short' && isHeadShort)
    read = readFrame(readStart(path, Math.min(read.need, fs.statSync(path).size)), 0, seal, 0)
  if (read.status === 'none') return undefined
  const receivedAt = read.status === 'short' ? read.receivedAt : read.head.receivedAt
  return receivedAt === undefined ? undefined : dayOf(receivedAt)
}
