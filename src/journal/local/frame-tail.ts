import type { Frame } from '../journal.ts'
import type { Segments } from './segments.ts'

/**
 * What consumers read from: the newest frames in memory, older ones from the segment files. Consumers that keep up never
 * touch the disk.
 */
export class FrameTail {
  /** Those before `first` have been dropped already. */
  private frames: Frame[] = []
  private first = 0
  private commits: Commit[] = []
  private bytes = 0
  private wakers: (() => void)[] = []
  /** Where in a segment each reader that is behind has come to, by the position it will ask for next. */
  private readonly places = new Map<number, { path: string; at: number }>()

  /**
   * @param bytesMax what to keep in memory; the latest commit in any case
   * @param drop told of the memory of each commit that leaves, and the position of its last row
   */
  constructor(
    private readonly segments: Segments,
    private readonly bytesMax: number,
    private readonly drop: (memory: Buffer, lastSeq: number) => void,
  ) {}

  /** Adds the frames of one commit, whose blocks lie in `memory`. */
  push(frames: readonly Frame[], memory: Buffer): void {
    this.frames.push(...frames)
    this.commits.push({ memory, frames: frames.length })
    this.bytes += memory.length
    let left = 0
    while (left < this.commits.length - 1 && (this.bytes > this.bytesMax || this.commits.length - left > COMMITS_MAX)) {
      const commit = this.commits[left++]
      this.first += commit.frames
      this.bytes -= commit.memory.length
      const last = this.frames[this.first - 1]
      this.drop(commit.memory, last.firstSeq + last.rows - 1)
    }
    if (left > 0) this.commits = this.commits.slice(left)
    if (this.first > this.frames.length / 2) {
      this.frames = this.frames.slice(this.first)
      this.first = 0
    }
    this.wake()
  }

  /** Wakes everyone who waits in {@link next}. */
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

  /** What memory has after `afterSeq`; null when it does not reach back that far. */
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
      if (frame.firstSeq + frame.rows - 1 > afterSeq) high = middle
      else low = middle + 1
    }
    return low
  }

  private async readSegments(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    const place = this.places.get(afterSeq)
    for (const segment of [...this.segments.all]) {
      if (segment.lastSeq <= afterSeq) continue
      let at = place?.path === segment.path ? place.at : 0
      while (at < segment.bytes) {
        const read = await this.segments.read(segment, at, Math.max(maxBytes, READ_BYTES_MIN))
        at = read.at
        const found = read.frames.filter((frame) => frame.firstSeq + frame.rows - 1 > afterSeq)
        if (found.length === 0) continue
        const last = found[found.length - 1]
        this.remember(afterSeq, last.firstSeq + last.rows - 1, segment.path, at)
        return found
      }
    }
    return []
  }

  private remember(from: number, to: number, path: string, at: number): void {
    this.places.delete(from)
    if (this.places.size >= PLACES_MAX) this.places.clear()
    this.places.set(to, { path, at })
  }
}

interface Commit {
  readonly memory: Buffer
  readonly frames: number
}

const COMMITS_MAX = 4_000
const READ_BYTES_MIN = 1024 * 1024
const PLACES_MAX = 1_000
