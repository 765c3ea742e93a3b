import fs from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError } from '../../../base/errors.ts'
import type { Log } from '../../../base/log.ts'
import { ACKNOWLEDGED_NAME, readAcknowledged } from './acknowledged.ts'
import { Identity } from './identity.ts'
import { firstSeqOf, SegmentFiles, segmentNames } from './segment-files.ts'
import { type FramesRead, type ReadableSegment, type ResumePoint, readFrames, walkFile } from './walk.ts'

/** A segment that another process may be writing. */
export interface FollowedSegment extends ReadableSegment {
  lastSeq: number
  bytes: number
}

/**
 * The files of a journal that another process writes. Changes nothing, and reads only what was acknowledged: of the last
 * segment only what has been followed counts.
 */
export class FollowedLog extends SegmentFiles<FollowedSegment> {
  /** The segment that is followed, open. */
  private current: { readonly path: string; readonly file: FileHandle } | undefined

  private constructor(
    dir: string,
    identity: Identity,
    private readonly acknowledged: number,
    log: Log,
  ) {
    super(dir, identity, log)
  }

  /** Opens the files in `dir`. @throws ApiError UNAVAILABLE when no process has created them yet */
  static open(dir: string, log: Log): FollowedLog {
    const identity = fs.existsSync(dir) ? Identity.read(dir) : undefined
    const path = join(dir, ACKNOWLEDGED_NAME)
    if (identity === undefined || !fs.existsSync(path)) {
      throw new ApiError('UNAVAILABLE', 'no process writes the journal yet; try again', { retryAfterSeconds: 1 })
    }
    return new FollowedLog(dir, identity, fs.openSync(path, 'r'), log)
  }

  /** The last position that was acknowledged. */
  get acknowledgedSeq(): number {
    return readAcknowledged(this.acknowledged)
  }

  /** The segment that holds `seq`, or the first one after it; undefined when there is none. */
  segmentOf(seq: number): FollowedSegment | undefined {
    return this.list.findLast(({ firstSeq }) => firstSeq <= seq) ?? this.list[0]
  }

  /** The next segment; undefined for the last one. */
  segmentAfter(segment: FollowedSegment): FollowedSegment | undefined {
    return this.list[this.list.indexOf(segment) + 1]
  }

  /** Looks for new and deleted segments. */
  readSegments(): void {
    const known = new Map(this.list.map((segment) => [segment.path, segment]))
    const found = segmentNames(this.dir).map((name) => {
      const path = join(this.dir, name)
      return known.get(path) ?? this.openSegment(path)
    })
    this.list.splice(0, this.list.length, ...found)
    // An open file would keep what was deleted on the disk.
    if (this.current !== undefined && !found.some(({ path }) => path === this.current?.path)) void this.closeCurrent()
    for (const [index, segment] of this.list.slice(0, -1).entries())
      this.finish(segment, this.list[index + 1].firstSeq - 1)
  }

  /** Reads the epochs and the gaps, which change when a process begins to write. */
  private readState(): void {
    this.identity = Identity.read(this.dir) ?? this.identity
    for (const gap of this.readGaps()) this.gapList.add(gap)
  }

  /** Unknown in this process, so no row counts as loaded. */
  protected loadedSeq(): number {
    return 0
  }

  /**
   * Reads frames at the end of what is known of a segment, up to about `limit` bytes.
   * @param throughSeq positions after it are not acknowledged
   * @returns null when the segment was deleted
   */
  async walk({ path, seal }: FollowedSegment, point: ResumePoint, limit: number, throughSeq: number) {
    const file = await ifExists(() => this.openCurrent(path))
    if (file === null) return null
    return walkFile(file, seal, point, { limit, rest: fs.fstatSync(file.fd).size - point.at, throughSeq })
  }

  /** Like {@link walk}, but continues after what is damaged. */
  async walkDamaged(segment: FollowedSegment, point: ResumePoint, throughSeq: number): Promise<FramesRead | null> {
    return ifExists(() => {
      const { size: bytes } = fs.statSync(segment.path)
      return readFrames({ ...segment, bytes, lastSeq: throughSeq }, point, bytes)
    })
  }

  /** Closes the open files. */
  async close(): Promise<void> {
    fs.closeSync(this.acknowledged)
    await this.closeCurrent()
  }

  private async closeCurrent(): Promise<void> {
    const { current } = this
    this.current = undefined
    await current?.file.close()
  }

  private async openCurrent(path: string): Promise<FileHandle> {
    if (this.current?.path !== path) {
      const file = await open(path, 'r')
      await this.closeCurrent()
      this.current = { path, file }
    }
    return this.current.file
  }

  protected async readPart(segment: FollowedSegment, point: ResumePoint, limit: number): Promise<FramesRead> {
    const read = await ifExists(() => readFrames(segment, point, limit))
    // Deleted: its rows are in ClickHouse.
    return read ?? { frames: [], point: { ...point, at: segment.bytes }, missing: [] }
  }

  private openSegment(path: string): FollowedSegment {
    const firstSeq = firstSeqOf(path)
    // It may be the first one of a new epoch.
    this.readState()
    return { path, firstSeq, lastSeq: 0, bytes: 0, seal: this.identity.sealOf(firstSeq) }
  }

  /** A segment that has a successor is complete. */
  private finish(segment: FollowedSegment, lastSeq: number): void {
    segment.lastSeq = lastSeq
    segment.bytes = fs.statSync(segment.path, { throwIfNoEntry: false })?.size ?? segment.bytes
  }
}

/** Null when a file does not exist any more. */
async function ifExists<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work()
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return null
    throw error
  }
}
