import { type Frame, lastSeqOf } from '../journal.ts'

const COMMITS_MAX = 4_000

/** The newest frames of a log, in memory. Consumers that keep up read nothing else. */
export class FrameTail {
  /** Entries before `first` are evicted already. */
  private frames: Frame[] = []
  private first = 0
  private commits: StoredCommit[] = []
  private bytes = 0
  private wakers: (() => void)[] = []

  /**
   * @param bytesMax how much to keep in memory; the latest commit is always kept
   * @param drop called with the memory of each evicted commit and the position of its last row
   */
  constructor(
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
}

interface StoredCommit {
  readonly memory: Buffer
  readonly frames: number
}
