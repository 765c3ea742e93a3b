import { type Epoch, type Frame, type Gap, type JournalReader, lastSeqOf } from '../journal.ts'
import { epochAt } from './epochs.ts'
import { FrameTail } from './frame-tail.ts'
import type { StoredLog } from './storage.ts'

const FOLLOW_BYTES = 4 * 1024 * 1024
/** How much of the newest data stays in memory for consumers. */
const TAIL_BYTES = 48 * 1024 * 1024

/** Reads a log: the newest frames from memory, older ones from its storage. */
export abstract class LogReader implements JournalReader {
  protected readonly tail: FrameTail
  protected closed = false

  /** @param tailBytes how much of the newest data stays in memory for consumers */
  constructor(
    private readonly stored: StoredLog,
    protected durableSeq: number,
    tailBytes = TAIL_BYTES,
  ) {
    this.tail = new FrameTail(tailBytes, (memory, lastSeq) => this.evicted(memory, lastSeq))
  }

  /** Called with the memory of each commit that leaves memory, and the position of its last row. */
  protected evicted(_memory: Buffer, _lastSeq: number): void {}

  get epoch(): string {
    return this.lastEpoch.epoch
  }

  get epochs(): readonly Epoch[] {
    return this.stored.epochs
  }

  private get lastEpoch(): Epoch {
    const { epochs } = this.stored
    return epochs[epochs.length - 1]
  }

  get endSeq(): number {
    return this.durableSeq
  }

  get startSeq(): number {
    return Math.max(this.lastEpoch.firstSeq, this.storedStartSeq)
  }

  /** The oldest stored row of any epoch; past the end when there is none. */
  protected get storedStartSeq(): number {
    return this.stored.startSeq ?? this.durableSeq + 1
  }

  get gaps(): readonly Gap[] {
    return this.stored.gaps
  }

  epochAt(seq: number): string {
    return epochAt(this.stored.epochs, seq)
  }

  async read(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    return this.tail.recent(afterSeq, maxBytes) ?? this.stored.read(afterSeq, maxBytes)
  }

  recent(afterSeq: number, maxBytes: number): Frame[] | null {
    return afterSeq >= this.durableSeq ? [] : this.tail.recent(afterSeq, maxBytes)
  }

  waitPast(seq: number, signal: AbortSignal): Promise<void> {
    if (this.durableSeq > seq || this.closed || signal.aborted) return Promise.resolve()
    return this.tail.next(signal)
  }

  async *follow(afterSeq: number, signal: AbortSignal): AsyncGenerator<Frame> {
    let position = afterSeq
    while (!signal.aborted) {
      const end = this.durableSeq
      const frames = await this.read(position, FOLLOW_BYTES)
      for (const frame of frames) {
        if (signal.aborted) return
        yield frame
        position = lastSeqOf(frame)
      }
      if (frames.length > 0) continue
      if (this.closed) return
      // Everything up to there is a gap.
      position = Math.max(position, end)
      await this.waitPast(position, signal)
    }
  }
}
