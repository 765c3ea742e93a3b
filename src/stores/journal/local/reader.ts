import fs from 'node:fs'
import { join } from 'node:path'
import { lastSeqOf } from '../journal.ts'
import { LogFollower, type LogFollowerOptions } from '../log/log-reader.ts'
import { shuttingDown } from '../log/storage.ts'
import { ACKNOWLEDGED_NAME } from './acknowledged.ts'
import { FollowedLog, type FollowedSegment } from './followed-log.ts'
import { type ResumePoint, startOf } from './walk.ts'

/** How often a reader looks for commits whose notification was lost, and for deleted segments. */
const INSPECT_MS = 500
const READ_BYTES = 8 * 1024 * 1024
/** How long acknowledged rows may be unreadable before they count as damaged. */
const DAMAGED_AFTER_MS = 1_000
const RETRY_MS = 5

export interface LocalReaderOptions extends LogFollowerOptions {
  /** The directory of the journal. */
  readonly dir: string
  /** Called when the writer has begun a new epoch, which this reader shows already. */
  readonly onEpoch?: () => void
}

/**
 * Opens a journal in local files for reading, while another process writes it.
 * @throws ApiError UNAVAILABLE when no process has created it yet
 */
export async function openLocalReader(options: LocalReaderOptions): Promise<LocalReader> {
  const log = FollowedLog.open(options.dir, options.log)
  try {
    const endSeq = log.acknowledgedSeq
    log.readSegments()
    const at = await endOf(log, endSeq)
    return new LocalReader(log, endSeq, at, options)
  } catch (error) {
    await log.close()
    throw error
  }
}

/** Where reading continues. */
interface ReadPoint {
  readonly segment: FollowedSegment
  readonly point: ResumePoint
}

/** Where the first frame after `endSeq` will be. */
async function endOf(log: FollowedLog, endSeq: number): Promise<ReadPoint | undefined> {
  const segment = log.segmentOf(endSeq + 1)
  if (segment === undefined) return undefined
  let point = startOf(segment.firstSeq)
  while (point.nextSeq <= endSeq) {
    const found = await log.walk(segment, point, READ_BYTES, endSeq)
    if (found === null || found.frames.length === 0) break
    point = found.point
  }
  // After damage, the next frame may have a later position.
  return { segment, point: point.nextSeq > endSeq ? point : { ...point, before: null } }
}

/** Follows the segment files of another process's journal, with its own memory of the newest frames. */
export class LocalReader extends LogFollower {
  private inspectAtMs = Number.NEGATIVE_INFINITY
  /** When the next frame was first found unreadable, on the monotonic clock; 0 while it can be read. */
  private stuckSinceMs = 0
  private shownEpoch: string
  private readonly watcher: fs.FSWatcher

  constructor(
    private readonly log: FollowedLog,
    endSeq: number,
    /** Where the next frame will be; undefined while there are no segments. */
    private at: ReadPoint | undefined,
    private readonly options: LocalReaderOptions,
  ) {
    super(log, endSeq, options)
    this.shownEpoch = this.epoch
    this.hold(endSeq)
    // Written with each commit.
    this.watcher = fs.watch(join(options.dir, ACKNOWLEDGED_NAME), () => this.wake())
    this.watcher.on('error', () => {})
    this.begin()
  }

  /**
   * The last acknowledged position, once this reader has read up to there.
   * @throws ApiError UNAVAILABLE when it cannot be read
   */
  async refreshEnd(): Promise<number> {
    if (this.closed) throw shuttingDown()
    const seq = this.log.acknowledgedSeq
    if (this.endSeq >= seq) return this.endSeq
    return this.whenRead(seq)
  }

  /** Stops following the files; calls that wait are rejected. */
  async close(): Promise<void> {
    if (this.closed) return
    this.watcher.close()
    await this.end()
    await this.log.close()
  }

  protected intervalMs(): number {
    return this.stuckSinceMs > 0 ? RETRY_MS : INSPECT_MS
  }

  protected hasRead(seq: number): boolean {
    return seq <= this.durableSeq
  }

  /** Reads everything that was acknowledged. */
  protected async readAll(): Promise<void> {
    if (performance.now() - this.inspectAtMs > INSPECT_MS) this.inspect()
    const acknowledgedSeq = this.log.acknowledgedSeq
    while (!this.closed && this.durableSeq < acknowledgedSeq && (await this.step(acknowledgedSeq)));
  }

  /** Looks for deleted segments. What is in memory of them is deleted, too. */
  private inspect(): void {
    this.log.readSegments()
    const { startSeq } = this.log
    if (startSeq !== undefined) this.tail.forget(startSeq - 1)
    this.inspectAtMs = performance.now()
  }

  /** Reads some frames, or goes on to the next segment. @returns false when neither is possible at the moment */
  private async step(throughSeq: number): Promise<boolean> {
    const { at } = this
    if (at !== undefined && (await this.readFrom(at, throughSeq))) return true
    // The list is read before the file is read again, so that a segment with a successor is read to its end.
    this.inspect()
    const next = at === undefined ? this.log.segmentOf(this.durableSeq + 1) : this.log.segmentAfter(at.segment)
    if (at !== undefined && (await this.readFrom(at, throughSeq))) return true
    if (next !== undefined && next !== at?.segment) return this.enter(next)
    if (this.stuckSinceMs === 0) this.stuckSinceMs = performance.now()
    if (at === undefined || performance.now() - this.stuckSinceMs < DAMAGED_AFTER_MS) return false
    return this.skipDamage(at, throughSeq)
  }

  private async readFrom({ segment, point }: ReadPoint, throughSeq: number): Promise<boolean> {
    const found = await this.log.walk(segment, point, READ_BYTES, throughSeq)
    if (found === null || found.frames.length === 0) return false
    const [first] = found.frames
    if (first.firstSeq > this.durableSeq + 1) this.skipTo(first.firstSeq - 1)
    this.at = { segment, point: found.point }
    this.durableSeq = lastSeqOf(found.frames[found.frames.length - 1])
    this.hold(this.durableSeq)
    this.tail.push(found.frames, found.memory)
    this.stuckSinceMs = 0
    return true
  }

  /** Goes on to a segment. Rows before it that could not be read are deleted or lost. */
  private enter(segment: FollowedSegment): boolean {
    if (segment.firstSeq > this.durableSeq + 1) this.skipTo(segment.firstSeq - 1)
    this.at = { segment, point: startOf(segment.firstSeq) }
    this.stuckSinceMs = 0
    this.tail.wake()
    const { epoch } = this
    if (epoch !== this.shownEpoch) this.options.onEpoch?.()
    this.shownEpoch = epoch
    return true
  }

  private async skipDamage({ segment, point }: ReadPoint, throughSeq: number): Promise<boolean> {
    const read = await this.log.walkDamaged(segment, point, throughSeq)
    if (read === null) return false
    this.options.log.error('journal: rows that were acknowledged cannot be read', {
      segment: segment.path,
      at: point.at,
    })
    this.at = { segment, point: read.point }
    if (read.point.nextSeq > throughSeq) this.skipTo(throughSeq)
    this.stuckSinceMs = 0
    return true
  }

  /** The rows up to `seq` cannot be read. What is in memory must have no hole. */
  private skipTo(seq: number): void {
    this.tail.forget(Number.POSITIVE_INFINITY)
    const isDeleted = (this.log.startSeq ?? 0) > seq
    if (!isDeleted) this.log.addGap(this.durableSeq, seq)
    this.durableSeq = seq
    this.hold(seq)
    this.tail.wake()
  }

  /** Marks the rows of the current segment up to `seq` as readable from its file. */
  private hold(seq: number): void {
    if (this.at === undefined) return
    const { segment, point } = this.at
    segment.lastSeq = Math.max(segment.firstSeq - 1, seq)
    segment.bytes = point.at
  }
}
