import fs from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../../base/log.ts'
import { type Epoch, type Frame, type Gap, lastSeqOf } from '../journal.ts'
import { GapList, type StoredLog } from '../log/storage.ts'
import type { Identity } from './identity.ts'
import { type FramesRead, type ReadableSegment, type ResumePoint, startOf } from './walk.ts'

const SEGMENT_NAME = /^\d{16}\.segment$/
/** The file with the list of gaps. */
export const GAPS_NAME = 'gaps'
const READ_BYTES_MIN = 256 * 1024
const POINT_DISTANCE_BYTES = 128 * 1024

/** The names of the segments in `dir`, in order. */
export function segmentNames(dir: string): string[] {
  return fs
    .readdirSync(dir)
    .filter((name) => SEGMENT_NAME.test(name))
    .sort()
}

/** The position in the name of a segment. */
export function firstSeqOf(path: string): number {
  return Number.parseInt(path.slice(path.lastIndexOf('/') + 1), 10)
}

/** The segment files of a journal, read by position. */
export abstract class SegmentFiles<Segment extends ReadableSegment> implements StoredLog {
  /** In order. */
  protected readonly list: Segment[] = []
  protected readonly gapList: GapList
  /** Points in a segment where reading can resume, in rising order, so that lagging readers need not start over. */
  private readonly resumePoints = new WeakMap<Segment, ResumePoint[]>()

  constructor(
    protected readonly dir: string,
    protected identity: Identity,
    protected readonly log: Log,
  ) {
    this.gapList = new GapList(this.readGaps(), log, (_gap, all) => this.gapsChanged(all))
  }

  /** {@link readFrames}, of a segment that may be damaged or deleted. */
  protected abstract readPart(segment: Segment, point: ResumePoint, limit: number): Promise<FramesRead>
  /** Rows up to here are in ClickHouse, as far as is known. */
  protected abstract loadedSeq(): number
  /** Called after each new gap. */
  protected gapsChanged(_all: readonly Gap[]): void {}

  get epochs(): readonly Epoch[] {
    return this.identity.epochs
  }

  get gaps(): readonly Gap[] {
    return this.gapList.all
  }

  get startSeq(): number | undefined {
    return this.list[0]?.firstSeq
  }

  /** Records rows that were found missing: those after `afterSeq`, up to `throughSeq`. */
  addGap(afterSeq: number, throughSeq: number, loadedSeq = this.loadedSeq()): void {
    this.gapList.add({ afterSeq, throughSeq, loadedSeq })
  }

  async read(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    for (const segment of [...this.list]) {
      if (segment.lastSeq <= afterSeq) continue
      let point =
        this.resumePoints.get(segment)?.findLast(({ nextSeq }) => nextSeq - 1 <= afterSeq) ?? startOf(segment.firstSeq)
      while (point.at < segment.bytes) {
        const read = await this.readFrom(segment, point, Math.max(maxBytes, READ_BYTES_MIN))
        point = read.point
        this.remember(segment, point)
        const found = read.frames.filter((frame) => lastSeqOf(frame) > afterSeq)
        if (found.length > 0) return found
      }
    }
    return []
  }

  /** Reads the frames of a segment from `point` on, up to `limit` bytes or its end; also returns where to continue. */
  protected async readFrom(segment: Segment, point: ResumePoint, limit: number): Promise<FramesRead> {
    const read = await this.readPart(segment, point, limit)
    for (const { afterSeq, throughSeq } of read.missing) this.addGap(afterSeq, throughSeq)
    return read
  }

  /** Reads the stored list of gaps. */
  protected readGaps(): readonly Gap[] {
    const path = join(this.dir, GAPS_NAME)
    if (!fs.existsSync(path)) return []
    try {
      return JSON.parse(fs.readFileSync(path, 'utf8'))
    } catch (error) {
      const message = 'journal: cannot read the list of gaps; gaps within the files will be found again'
      this.log.error(message, { path, error })
      return []
    }
  }

  private remember(segment: Segment, point: ResumePoint): void {
    const points = this.resumePoints.get(segment) ?? []
    const below = points.findLastIndex(({ nextSeq }) => nextSeq <= point.nextSeq)
    if (point.at - (points[below]?.at ?? 0) < POINT_DISTANCE_BYTES) return
    points.splice(below + 1, 0, point)
    this.resumePoints.set(segment, points)
  }
}
