import { type Frame, lastSeqOf } from '../journal.ts'
import type { ReadableSegment } from './segment-frames.ts'
import { type ResumePoint, startOf } from './walk.ts'

const READ_BYTES_MIN = 256 * 1024
const POINT_DISTANCE_BYTES = 128 * 1024

/** The segment files of a journal, in order. */
interface SegmentSource<Segment extends ReadableSegment> {
  readonly all: readonly Segment[]
  /** Reads the frames of a segment from `point` on, up to `limit` bytes or its end; also returns where to continue. */
  read(segment: Segment, point: ResumePoint, limit: number): Promise<{ frames: Frame[]; point: ResumePoint }>
}

/** Reads frames by position from the segment files. */
export class SegmentReader<Segment extends ReadableSegment> {
  /** Points in a segment where reading can resume, in rising order, so that lagging readers need not start over. */
  private readonly resumePoints = new WeakMap<Segment, ResumePoint[]>()

  constructor(private readonly segments: SegmentSource<Segment>) {}

  async read(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    for (const segment of [...this.segments.all]) {
      if (segment.lastSeq <= afterSeq) continue
      let point =
        this.resumePoints.get(segment)?.findLast(({ nextSeq }) => nextSeq - 1 <= afterSeq) ?? startOf(segment.firstSeq)
      while (point.at < segment.bytes) {
        const read = await this.segments.read(segment, point, Math.max(maxBytes, READ_BYTES_MIN))
        point = read.point
        this.remember(segment, point)
        const found = read.frames.filter((frame) => lastSeqOf(frame) > afterSeq)
        if (found.length > 0) return found
      }
    }
    return []
  }

  private remember(segment: Segment, point: ResumePoint): void {
    const points = this.resumePoints.get(segment) ?? []
    const below = points.findLastIndex(({ nextSeq }) => nextSeq <= point.nextSeq)
    if (point.at - (points[below]?.at ?? 0) < POINT_DISTANCE_BYTES) return
    points.splice(below + 1, 0, point)
    this.resumePoints.set(segment, points)
  }
}
