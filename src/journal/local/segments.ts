import fs from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../log.ts'
import { openForWrites, readBytes, readStart, syncDir, truncate, writeAll } from './files.ts'
import type { FramePosition, StoredFrame } from './frame.ts'
import { isOldSegment } from './old-frame.ts'
import { PAGE_BYTES } from './pages.ts'
import { type FrameSeal, NO_CHECK } from './seal.ts'
import { type FrameFormat, OLD_FORMAT, type ReadPosition, resume, sealedFormat, startOf, walk } from './walk.ts'

/** A file of frames. `bytes` counts what is durable; whatever stands behind that was never acknowledged. */
export interface Segment {
  readonly path: string
  readonly firstSeq: number
  /** 0 for an empty segment. */
  lastSeq: number
  bytes: number
  /** When its rows were accepted, see {@link dayOf}; undefined for an empty segment. */
  day: number | undefined
  readonly seal: FrameSeal
  readonly format: FrameFormat
  /** The check of its last frame, for the next one. */
  check: Buffer
}

export interface SegmentsOptions {
  readonly dir: string
  /** A segment that has grown past this is closed and the next one begun. */
  readonly segmentBytes: number
  /** What seals the frames of the segment that begins at `firstSeq`. */
  readonly sealOf: (firstSeq: number) => FrameSeal
  /** Told when rows are found missing: those after `afterSeq`, up to `throughSeq`. */
  readonly onGap: (afterSeq: number, throughSeq: number) => void
  /** Positions up to here have been acknowledged. */
  readonly acknowledgedSeq: number
  readonly log: Log
}

/** The day (UTC) of a moment in Unix milliseconds, counted from 1970. */
export function dayOf(ms: number): number {
  return Math.floor(ms / 86_400_000)
}

/** The names of the segments in `dir`, in order. */
export function segmentNames(dir: string): string[] {
  return fs
    .readdirSync(dir)
    .filter((name) => SEGMENT_NAME.test(name))
    .sort()
}

/**
 * The segment files of one journal. A segment holds rows of one day, so that retention can drop it whole, and of one epoch.
 * Knows nothing of what the frames mean.
 *
 * Reading goes from frame to frame. Behind damage it goes on where the head says, when that is sound; otherwise at the
 * next frame whose keyed check proves that it was written to that very place. Bytes that callers report can never be that.
 */
export class Segments {
  /** Frames of the last two segments; the journal takes what it needs from them. */
  readonly recovered: StoredFrame[] = []
  private file: fs.promises.FileHandle | undefined
  /** The last segment must not be written to any more. */
  private sealed = false
  private readonly list: Segment[] = []
  /** Of all segments, what is durable. Asked for with every append, so it is kept and not summed up. */
  bytes = 0

  private constructor(private readonly options: SegmentsOptions) {}

  /** Opens the directory, cuts off a torn tail, and sets damaged frames of the last segment aside. */
  static async open(options: SegmentsOptions): Promise<Segments> {
    const segments = new Segments(options)
    for (const name of segmentNames(options.dir)) segments.list.push(segments.openSegment(join(options.dir, name)))
    segments.list.forEach((segment, index) => {
      const next = segments.list[index + 1]
      if (next === undefined) return
      segment.lastSeq = next.firstSeq - 1
      // Nobody would come to read it.
      if (segment.bytes === 0) options.onGap(segment.firstSeq - 1, segment.lastSeq)
    })
    await segments.recoverLast()
    segments.bytes = segments.list.reduce((sum, segment) => sum + segment.bytes, 0)
    // The records before a crash may have been the last of their segment.
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
   * Where the frames with the rows from `firstSeq` on go, which are accepted at `receivedAt`. Call {@link write} before
   * asking again.
   */
  place(firstSeq: number, receivedAt: number): FramePosition | Promise<FramePosition> {
    const day = dayOf(receivedAt)
    const last = this.list.at(-1)
    const isRoomy = last !== undefined && last.bytes < this.options.segmentBytes && (last.day ?? day) === day
    const isInLine = last !== undefined && (last.bytes > 0 || last.firstSeq === firstSeq)
    if (!isRoomy || !isInLine || this.sealed) return this.create(firstSeq).then(placeIn)
    if (this.file !== undefined) return placeIn(last)
    return openForWrites(last.path, 0).then((file) => {
      this.file = file
      return placeIn(last)
    })
  }

  /**
   * Writes frames that hold the rows up to `lastSeq` to where {@link place} said; resolves once they are on stable
   * storage. On failure nothing of them counts, and the next write goes to a new segment.
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
   * Ends the last segment. The next one, for rows from `firstSeq` on, is there at once, so that the journal's position
   * is known even when everything before it has been dropped. Never during a write.
   */
  async begin(firstSeq: number): Promise<void> {
    const last = this.list.at(-1)
    if (last === undefined || (last.bytes === 0 && last.firstSeq === firstSeq)) return
    await this.create(firstSeq)
  }

  /** Deletes all segments but the last that hold nothing past `seq`, and what was set aside of them, for good. */
  async dropThrough(seq: number): Promise<void> {
    while (this.list.length > 1 && this.list[0].lastSeq <= seq) this.dropOldest()
    const { dir } = this.options
    for (const name of fs.readdirSync(dir)) {
      const isCopy = COPY_NAME.test(name) && Number.parseInt(name, 10) < (this.list[0]?.firstSeq ?? 0)
      if (isCopy) fs.rmSync(join(dir, name), { force: true })
    }
    await syncDir(dir)
  }

  /** Deletes the oldest segment. Never the one that is written to. */
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

  /** The frames of a segment from `place` on, in order; stops at `limit` bytes read or the end of what is durable. */
  async read(
    segment: Segment,
    place: ReadPosition,
    limit: number,
  ): Promise<{ frames: StoredFrame[]; place: ReadPosition }> {
    // Rows may be appended while this reads.
    const { lastSeq, bytes: end } = segment
    const rest = end - place.at
    const file = await open(segment.path, 'r')
    try {
      let bytes = await readBytes(file, place.at, Math.min(limit, rest))
      let found = walk(segment.format, bytes, place)
      if (found.frames.length === 0 && found.stop === 'short' && found.need <= rest) {
        // One frame larger than the limit: read it whole.
        bytes = await readBytes(file, place.at, found.need)
        found = walk(segment.format, bytes, place)
      }
      const [first] = found.frames
      if (first !== undefined) {
        this.noteGap(lastSeq, place.nextSeq, first.firstSeq)
        if (found.place.at >= end) this.noteGap(lastSeq, found.place.nextSeq, lastSeq + 1)
        // A write that failed half-way may have left rows that a later segment holds for good.
        return { frames: found.frames.filter(({ firstSeq }) => firstSeq <= lastSeq), place: found.place }
      }
      // Damage, or a file that is shorter than it was.
      const toEnd = await readBytes(file, place.at, rest)
      const next = found.behind ??
        resume(segment.format, toEnd, place) ?? { at: end, nextSeq: lastSeq + 1, before: null }
      this.quarantine(segment, toEnd.subarray(0, next.at - place.at), place.at)
      this.noteGap(lastSeq, place.nextSeq, next.at < end ? next.nextSeq : lastSeq + 1)
      return { frames: [], place: next }
    } finally {
      await file.close()
    }
  }

  /** @param lastSeq of the segment: what is behind it is no row of its own */
  private noteGap(lastSeq: number, expectedSeq: number, foundSeq: number): void {
    this.options.onGap(expectedSeq - 1, Math.min(lastSeq, foundSeq - 1))
  }

  private async readAll(segment: Segment): Promise<StoredFrame[]> {
    const frames: StoredFrame[] = []
    let place = startOf(segment.firstSeq)
    while (place.at < segment.bytes) {
      const read = await this.read(segment, place, segment.bytes)
      frames.push(...read.frames)
      place = read.place
    }
    return frames
  }

  private quarantine(segment: Segment, bytes: Buffer, at: number): void {
    const path = `${segment.path}.${at}.damaged`
    if (fs.existsSync(path) || bytes.length === 0) return
    const details = { segment: segment.path, at, bytes: bytes.length, copy: path }
    this.options.log.error('journal: a damaged frame was set aside; every other frame is intact', details)
    try {
      fs.writeFileSync(path, bytes, { mode: 0o600 })
    } catch (error) {
      this.options.log.error('journal: no copy could be made of a damaged frame', { copy: path, error })
    }
  }

  /** Finds the end of what was acknowledged in the last segment. Only its tail can be torn: writes go one by one. */
  private async recoverLast(): Promise<void> {
    const segment = this.list.at(-1)
    if (segment === undefined) return
    const bytes = fs.readFileSync(segment.path)
    let place = startOf(segment.firstSeq)
    let damaged: ReadPosition | undefined
    let sound = place
    for (;;) {
      const found = walk(segment.format, bytes.subarray(place.at), place)
      if (found.frames.length > 0) {
        this.recovered.push(...found.frames)
        if (damaged !== undefined) this.quarantine(segment, bytes.subarray(damaged.at, place.at), damaged.at)
        this.options.onGap(sound.nextSeq - 1, found.frames[0].firstSeq - 1)
        damaged = undefined
        sound = found.place
      }
      if (found.stop === 'end') break
      damaged ??= found.place
      const next = found.behind ?? resume(segment.format, bytes.subarray(found.place.at), found.place)
      if (next === undefined) break
      place = next
    }
    segment.lastSeq = sound.at === 0 ? 0 : sound.nextSeq - 1
    segment.check = sound.before ?? NO_CHECK
    segment.day = this.recovered.length > 0 ? dayOf(this.recovered[0].receivedAt) : undefined
    await this.cutTail(segment, bytes, Math.min(sound.at, bytes.length))
  }

  private async cutTail(segment: Segment, bytes: Buffer, sound: number): Promise<void> {
    segment.bytes = sound
    // Writes go to whole pages, and old segments are not written to.
    if (sound % PAGE_BYTES !== 0 || segment.format === OLD_FORMAT) this.sealed = true
    if (sound === bytes.length) return
    if (this.endSeq < this.options.acknowledgedSeq) this.quarantine(segment, bytes.subarray(sound), sound)
    else {
      this.options.log.warn('journal: cut off a torn tail that was never acknowledged', {
        segment: segment.path,
        bytes: bytes.length - sound,
      })
    }
    await truncate(segment.path, sound)
  }

  private openSegment(path: string): Segment {
    const firstSeq = Number.parseInt(path.slice(path.lastIndexOf('/') + 1), 10)
    const seal = this.options.sealOf(firstSeq)
    const format = isOldSegment(readStart(path, FIRST_BYTES)) ? OLD_FORMAT : sealedFormat(seal)
    const day = readDay(path, format)
    return { path, firstSeq, lastSeq: 0, bytes: fs.statSync(path).size, day, seal, format, check: NO_CHECK }
  }

  private async create(firstSeq: number): Promise<Segment> {
    this.sealed = true
    await this.close()
    const { dir, sealOf } = this.options
    // An empty one holds nothing but a position, and this one's is known better.
    if (this.list.at(-1)?.bytes === 0) fs.rmSync(this.list.pop()!.path, { force: true })
    const path = join(dir, `${String(firstSeq).padStart(16, '0')}.segment`)
    this.file = await openForWrites(path, fs.constants.O_CREAT | fs.constants.O_TRUNC)
    await syncDir(dir)
    const seal = sealOf(firstSeq)
    const empty = { lastSeq: 0, bytes: 0, day: undefined, check: NO_CHECK }
    const segment: Segment = { path, firstSeq, ...empty, seal, format: sealedFormat(seal) }
    this.list.push(segment)
    this.sealed = false
    return segment
  }

  /** After a failed write: cut what it may have left, and never write to that file again. */
  private async abandon(segment: Segment): Promise<void> {
    await this.close().catch(() => {})
    this.sealed = true
    try {
      await truncate(segment.path, segment.bytes)
    } catch (error) {
      this.options.log.error('journal: could not cut a failed write', { segment: segment.path, error })
    }
  }
}

function placeIn({ seal, bytes, check }: Segment): FramePosition {
  return { seal, at: bytes, before: check }
}

const SEGMENT_NAME = /^\d{16}\.segment$/
/** Of damage that was set aside. */
const COPY_NAME = /^\d{16}\.segment\.\d+\.damaged$/
/** Room for the head of most frames. */
const FIRST_BYTES = 16 * 1024

/** The day of the first frame, if that is sound: retention goes by it. */
function readDay(path: string, format: FrameFormat): number | undefined {
  let read = format.read(readStart(path, FIRST_BYTES), 0, 0)
  const isHeadShort = read.status === 'short' && read.receivedAt === undefined
  if (read.status === 'short' && isHeadShort)
    read = format.read(readStart(path, Math.min(read.need, fs.statSync(path).size)), 0, 0)
  if (read.status === 'none') return undefined
  const receivedAt = read.status === 'short' ? read.receivedAt : read.head.receivedAt
  return receivedAt === undefined ? undefined : dayOf(receivedAt)
}
