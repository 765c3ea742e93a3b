import { type Frame, lastSeqOf } from '../journal.ts'
import type { Segment, Segments } from './segments.ts'
import { type ReadPosition, startOf } from './walk.ts'

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
  /** Where in a segment reading can begin, in rising order: readers that are behind come again and again. */
  private readonly places = new WeakMap<Segment, ReadPosition[]>()

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
    this.letGo((left) => left > 1 && (this.bytes > this.bytesMax || left > COMMITS_MAX))
    this.wake()
  }

  /** Lets go of commits with nothing past `seq` in them. */
  forget(seq: number): void {
    this.letGo((_left, lastSeq) => lastSeq <= seq)
  }

  /**
   * Lets go of the oldest commits while `isOver`.
   * @param isOver is told how many commits are left, and the position of the last row of the oldest
   */
  private letGo(isOver: (left: number, lastSeq: number) => boolean): void {
    let gone = 0
    for (; gone < this.commits.length; gone++) {
      const { memory, frames } = this.commits[gone]
      const lastSeq = lastSeqOf(this.frames[this.first + frames - 1])
      if (!isOver(this.commits.length - gone, lastSeq)) break
      this.first += frames
      this.bytes -= memory.length
      this.drop(memory, lastSeq)
    }
    if (gone > 0) this.commits = this.commits.slice(gone)
    if (this.first > this.frames.length / 2) {
      this.frames = this.frames.slice(this.first)
      this.first = 0
    }
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
      if (lastSeqOf(frame) > afterSeq) high = middle
      else low = middle + 1
    }
    return low
  }

  private async readSegments(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    for (const segment of [...this.segments.all]) {
      if (segment.lastSeq <= afterSeq) continue
      let place =
        this.places.get(segment)?.findLast(({ nextSeq }) => nextSeq - 1 <= afterSeq) ?? startOf(segment.firstSeq)
      while (place.at < segment.bytes) {
        const read = await this.segments.read(segment, place, Math.max(maxBytes, READ_BYTES_MIN))
        place = read.place
        this.remember(segment, place)
        const found = read.frames.filter((frame) => lastSeqOf(frame) > afterSeq)
        if (found.length > 0) return found
      }
    }
    return []
  }

  private remember(segment: Segment, place: ReadPosition): void {
    const places = this.places.get(segment) ?? []
    const below = places.findLastIndex(({ nextSeq }) => nextSeq <= place.nextSeq)
    if (place.at - (places[below]?.at ?? 0) < PLACE_DISTANCE_BYTES) return
    places.splice(below + 1, 0, place)
    this.places.set(segment, places)
  }
}

interface Commit {
  readonly memory: Buffer
  readonly frames: number
}

const COMMITS_MAX = 4_000
const READ_BYTES_MIN = 256 * 1024
const PLACE_DISTANCE_BYTES = 128 * 1024
