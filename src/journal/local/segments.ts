import fs from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Log } from '../../log.ts'
import { FRAME_HEAD_BYTES_MIN, findFrame, readFrame, receivedAtOf, type StoredFrame } from './frame.ts'

/** A file of frames. `bytes` counts what is durable; whatever stands behind that was never acknowledged. */
export interface Segment {
  readonly path: string
  readonly firstSeq: number
  /** 0 for an empty segment. */
  lastSeq: number
  bytes: number
  /** When its rows were accepted, see {@link dayOf}; undefined for an empty segment. */
  day: number | undefined
}

export interface SegmentsOptions {
  readonly dir: string
  /** A segment that has grown past this is closed and the next one begun. */
  readonly segmentBytes: number
  readonly log: Log
}

/** The day (UTC) of a moment in Unix milliseconds, counted from 1970. */
export function dayOf(ms: number): number {
  return Math.floor(ms / 86_400_000)
}

/**
 * The segment files of one journal. Writes are synchronous to the disk (`O_DSYNC`), so that a write that has returned is
 * on stable storage. A segment holds rows of one day, so that retention can drop it whole. Knows nothing of what the
 * frames mean.
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
    fs.mkdirSync(options.dir, { recursive: true })
    const segments = new Segments(options)
    const names = fs.readdirSync(options.dir).filter((name) => SEGMENT_NAME.test(name))
    for (const name of names.sort()) {
      const path = join(options.dir, name)
      const bytes = fs.statSync(path).size
      segments.list.push({ path, firstSeq: Number.parseInt(name, 10), lastSeq: 0, bytes, day: readDay(path) })
    }
    segments.list.forEach((segment, index) => {
      const next = segments.list[index + 1]
      if (next !== undefined) segment.lastSeq = next.firstSeq - 1
    })
    await segments.recoverLast()
    segments.bytes = segments.list.reduce((sum, segment) => sum + segment.bytes, 0)
    // The records before a crash may have been the last of their segment.
    const previous = segments.list.at(-2)
    if (previous !== undefined) segments.recovered.unshift(...(await segments.read(previous, 0, previous.bytes)).frames)
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
   * Writes frames that hold the rows `firstSeq` to `lastSeq`; resolves once they are on stable storage. On failure
   * nothing of them counts, and the next write goes to a new segment.
   *
   * @param receivedAt when the rows were accepted, Unix milliseconds
   */
  async write(frames: Buffer, firstSeq: number, lastSeq: number, receivedAt: number): Promise<void> {
    const day = dayOf(receivedAt)
    const segment = await this.writable(firstSeq, day)
    try {
      await writeAll(this.file!, frames, segment.bytes)
    } catch (error) {
      await this.abandon(segment)
      throw error
    }
    segment.bytes += frames.length
    this.bytes += frames.length
    segment.lastSeq = lastSeq
    segment.day = day
  }

  /**
   * Ends the last segment. The next one, for rows from `firstSeq` on, is there at once, so that the journal's position
   * is known even when everything before it has been dropped. Never during a write.
   */
  async begin(firstSeq: number): Promise<void> {
    const last = this.list.at(-1)
    if (last === undefined || last.bytes === 0) return
    this.sealed = true
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
    await this.file?.close()
    this.file = undefined
  }

  /** The frames of a segment from byte `at` on, in order; stops at `limit` bytes read or the end of what is durable. */
  async read(segment: Segment, at: number, limit: number): Promise<{ frames: StoredFrame[]; at: number }> {
    const file = await open(segment.path, 'r')
    try {
      const bytes = await readBytes(file, at, Math.min(limit, segment.bytes - at))
      const { frames, end, need } = this.parse(segment, bytes, at)
      if (frames.length > 0 || need === 0) return { frames, at: end }
      // One frame larger than the limit: read it whole.
      const whole = await readBytes(file, end, Math.min(need, segment.bytes - end))
      const again = this.parse(segment, whole, end)
      if (again.frames.length === 0 && again.end === end)
        return { frames: [], at: this.skipDamage(segment, whole, end) }
      return { frames: again.frames, at: again.end }
    } finally {
      await file.close()
    }
  }

  /** The sound frames of `bytes`, which stand at `base` in the segment. Damage is set aside and stepped over. */
  private parse(segment: Segment, bytes: Buffer, base: number): { frames: StoredFrame[]; end: number; need: number } {
    const frames: StoredFrame[] = []
    let at = 0
    while (at < bytes.length) {
      const read = readFrame(bytes, at)
      if (read.status === 'short') return { frames, end: base + at, need: read.need }
      if (read.status === 'frame') {
        // A write that failed half-way may have left rows that a later segment holds for good.
        if (segment.lastSeq === 0 || read.frame.firstSeq <= segment.lastSeq) frames.push(read.frame)
        at = read.end
      } else {
        const next = read.end ?? findFrame(bytes, at + 1)
        const end = next < 0 || next > bytes.length ? bytes.length : next
        this.quarantine(segment, bytes.subarray(at, end), base + at)
        at = end
      }
    }
    return { frames, end: base + at, need: 0 }
  }

  /** A frame that claims more bytes than its segment has: its head is damaged beyond what its checksum shows. */
  private skipDamage(segment: Segment, bytes: Buffer, at: number): number {
    const next = findFrame(bytes, 1)
    const end = next < 0 ? bytes.length : next
    this.quarantine(segment, bytes.subarray(0, end), at)
    return at + end
  }

  private quarantine(segment: Segment, bytes: Buffer, at: number): void {
    const path = `${segment.path}.${at}.damaged`
    if (fs.existsSync(path)) return
    fs.writeFileSync(path, bytes)
    this.options.log.error('journal: a damaged frame was set aside; every other frame is intact', {
      segment: segment.path,
      at,
      bytes: bytes.length,
      copy: path,
    })
  }

  /** Finds the end of what was acknowledged in the last segment. Only its tail can be torn: writes go one by one. */
  private async recoverLast(): Promise<void> {
    const segment = this.list.at(-1)
    if (segment === undefined) return
    const bytes = fs.readFileSync(segment.path)
    let at = 0
    let sound = 0
    const damaged: [number, number][] = []
    while (at < bytes.length) {
      const read = readFrame(bytes, at)
      if (read.status === 'frame') {
        this.recovered.push(read.frame)
        segment.lastSeq = read.frame.firstSeq + read.frame.rows - 1
        at = sound = read.end
        continue
      }
      const next = read.status === 'bad' && read.end !== undefined ? read.end : findFrame(bytes, at + 1)
      const end = next < 0 || next > bytes.length ? bytes.length : next
      damaged.push([at, end])
      at = end
    }
    for (const [from, to] of damaged) if (to <= sound) this.quarantine(segment, bytes.subarray(from, to), from)
    segment.bytes = sound
    if (sound === 0) segment.day = undefined
    if (sound < bytes.length) {
      this.options.log.warn('journal: cut off a torn tail that was never acknowledged', {
        segment: segment.path,
        bytes: bytes.length - sound,
      })
      await truncate(segment.path, sound)
    }
  }

  /** The segment that takes the next write, its file open. */
  private async writable(firstSeq: number, day: number): Promise<Segment> {
    const last = this.list.at(-1)
    const isRoomy = last !== undefined && last.bytes < this.options.segmentBytes && (last.day ?? day) === day
    if (!isRoomy || this.sealed) return this.create(firstSeq)
    this.file ??= await openForWrites(last.path, 0)
    return last
  }

  private async create(firstSeq: number): Promise<Segment> {
    await this.close()
    const path = join(this.options.dir, `${String(firstSeq).padStart(16, '0')}.segment`)
    this.file = await openForWrites(path, fs.constants.O_CREAT | fs.constants.O_TRUNC)
    await syncDir(this.options.dir)
    const segment: Segment = { path, firstSeq, lastSeq: 0, bytes: 0, day: undefined }
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
    // An empty one would stand in the way of its successor, which begins at the same position.
    if (segment.bytes === 0) this.list.pop()
  }
}

const SEGMENT_NAME = /^\d{16}\.segment$/
/** Of damage that was set aside. */
const COPY_NAME = /^\d{16}\.segment\.\d+\.damaged$/
const WRITE_SYNCED = fs.constants.O_WRONLY | (fs.constants.O_DSYNC ?? fs.constants.O_SYNC)
const PAST_THE_CACHE = fs.constants.O_DIRECT ?? 0

/**
 * Writes go past the page cache where the file system allows it: filling fresh cache pages cost ten times the processor
 * time of the write itself (measured on ext4: 965 µs against 100 µs a megabyte), and nobody reads them back.
 */
async function openForWrites(path: string, flags: number): Promise<fs.promises.FileHandle> {
  try {
    return await open(path, WRITE_SYNCED | PAST_THE_CACHE | flags, 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error
    return await open(path, WRITE_SYNCED | flags, 0o600)
  }
}

/** `fs.write` as it is: the promise form of a handle costs the event loop twice as much. */
const write = promisify(fs.write)

async function writeAll(file: fs.promises.FileHandle, bytes: Buffer, at: number): Promise<void> {
  let written = 0
  while (written < bytes.length) {
    const { bytesWritten } = await write(file.fd, bytes, written, bytes.length - written, at + written)
    written += bytesWritten
  }
}

async function readBytes(file: fs.promises.FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(Math.max(length, 0))
  let filled = 0
  while (filled < bytes.length) {
    const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, at + filled)
    if (bytesRead === 0) return bytes.subarray(0, filled)
    filled += bytesRead
  }
  return bytes
}

/** The day of the first frame; undefined when there is none. */
function readDay(path: string): number | undefined {
  const head = Buffer.alloc(FRAME_HEAD_BYTES_MIN)
  const file = fs.openSync(path, 'r')
  const bytesRead = fs.readSync(file, head, 0, head.length, 0)
  fs.closeSync(file)
  const receivedAt = bytesRead < head.length ? undefined : receivedAtOf(head)
  return receivedAt === undefined ? undefined : dayOf(receivedAt)
}

async function truncate(path: string, bytes: number): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.truncate(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Makes a new file's name durable. */
async function syncDir(dir: string): Promise<void> {
  const handle = await open(dir, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
