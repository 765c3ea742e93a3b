import { type Frame, lastSeqOf } from '../journal.ts'
import type { Segment, Segments } from './segments.ts'
import { type ResumePoint, startOf } from './walk.ts'

const COMMITS_MAX = 4_000
const READ_BYTES_MIN = 256 * 1024
const POINT_DISTANCE_BYTES = 128 * 1024

/**
 * Serves reads: the newest frames from memory, older ones from the segment files. Consumers that keep up never read from
 * disk.
 */
export class FrameTail {
  /** Entries before `first` are evicted already. */
  private frames: Frame[] = []
  private first = 0
  private commits: Commit[] = []
  private bytes = 0
  private wakers: (() => void)[] = []
  /** Points in a segment where reading can resume, in rising order, so that lagging readers need not start over. */
  private readonly resumePoints = new WeakMap<Segment, ResumePoint[]>()

  /**
   * @param bytesMax how much to keep in memory; the latest commit is always kept
   * @param drop called with the memory of each evicted commit and the position of its last row
   */
  constructor(
    private readonly segments: Segments,
    private readonly bytesMax: number,
    private readonly drop: (memory: Buffer, lastSeq: number) => void,
  ) {}

  /** Adds the frames of one commit, whose blocks are views into `memory`. */
  push(frames: readonly Frame[], memory: Buffer): void {
    this.frames.push(...frames)
    this.commits.push({ memory, frames: frames.length })
    this.bytes += memory.length
    this.evict((left) => left > 1 && (this.bytes > this.bytesMax || left > COMMITS_MAX))
    this.wake()
  }

  /** Evicts commits that have no row past `seq`. */
  forget(seq: number): void {
    this.evict((_left, lastSeq) => lastSeq <= seq)
  }

  /**
   * Evicts the oldest commits while `isOver` returns true.
   * @param isOver gets the number of commits left and the position of the oldest commit's last row
   */
  private evict(isOver: (left: number, lastSeq: number) => boolean): void {
    let evicted = 0
    for (; evicted < this.commits.length; evicted++) {
      const { memory, frames } = this.commits[evicted]
      const lastSeq = lastSeqOf(this.frames[this.first + frames - 1])
      if (!isOver(this.commits.length - evicted, lastSeq)) break
      this.first += frames
      this.bytes -= memory.length
      this.drop(memory, lastSeq)
    }
    if (evicted > 0) this.commits = this.commits.slice(evicted)
    if (this.first > this.frames.length / 2) {
      this.frames = this.frames.slice(this.first)
      this.first = 0
    }
  }

  /** Resolves all pending {@link next} calls. */
  wake(): void {
    const wakers = this.wakers
    this.wakers = []
    for (const wake of wakers) wake()
  }

  /** Resolves with the next {@link wake}, or when `signal` aborts. */
  next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        signal.removeEventListener('abort', wake)
        resolve()
      }
      signal.addEventListener('abort', wake, { once: true })
      this.wakers.push(wake)
    })
  }

  async read(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    return this.recent(afterSeq, maxBytes) ?? this.readSegments(afterSeq, maxBytes)
  }

  /** The frames in memory with rows after `afterSeq`; null when memory does not reach back that far. */
  recent(afterSeq: number, maxBytes: number): Frame[] | null {
    const oldest = this.frames[this.first]
    if (oldest === undefined || afterSeq + 1 < oldest.firstSeq) return null
    const found: Frame[] = []
    let bytes = 0
    for (let index = this.indexAfter(afterSeq); index < this.frames.length && bytes < maxBytes; index++) {
      found.push(this.frames[index])
      bytes += this.frames[index].block.length
    }
    return found
  }

  /** The first frame in memory with a row after `afterSeq`, by binary search. */
  private indexAfter(afterSeq: number): number {
    let low = this.first
    let high = this.frames.length
    while (low < high) {
      const middle = (low + high) >> 1
      const frame = this.frames[middle]
      if (lastSeqOf(frame) > afterSeq) high = middle
      else low = middle + 1
    }
    return low
  }

  private async readSegments(afterSeq: number, maxBytes: number): Promise<Frame[]> {
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

interface Commit {
  readonly memory: Buffer
  readonly frames: number
}
