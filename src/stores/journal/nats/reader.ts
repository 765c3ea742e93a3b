import type { Epoch, JournalReader } from '../journal.ts'
import { LogFollower } from '../log/log-reader.ts'
import { shuttingDown } from '../log/storage.ts'
import type { ChainPoint } from './chain.ts'
import { NatsLog, type NatsLogOptions, type ReadStep } from './log.ts'
import { checkAt, findEnd } from './log-end.ts'
import { unavailableUnless } from './stream.ts'

/** How often a reader asks for new messages whose announcement was lost, and for deleted ones. */
const INSPECT_MS = 500
/** A leader that has just been elected may lack the newest messages; up to 27 s were seen while servers were being killed. */
const BEHIND_MAX_MS = 60_000
/** A stream with another time of creation, and shorter than what was read, counts as replaced after this part of that time. */
const OTHER_BEHIND_PART = 12
/** How long a reader waits for what others have seen of the log. */
const SEEN_MS = 10_000
const SEEN_POLL_MS = 20
const READ_BYTES = 8 * 1024 * 1024

export interface NatsReaderOptions extends NatsLogOptions {
  /** Rows up to here are in ClickHouse, as far as the caller knows; for gaps. */
  readonly loadedSeq?: () => number
  /** A stream that lacks for this long what was read of it counts as set back. */
  readonly behindMaxMs?: number
  /** Called when the owner has begun a new epoch, which this reader shows already. */
  readonly onEpoch?: (epoch: Epoch) => void
}

/**
 * Opens a journal in a JetStream stream for reading, as any number of nodes may do.
 * @throws ApiError UNAVAILABLE when NATS does not answer, or no process has created the stream yet
 */
export async function openNatsReader(options: NatsReaderOptions): Promise<NatsReader> {
  const log = await NatsLog.open(options, options.loadedSeq ?? (() => 0), options.onEpoch)
  const { created } = await unavailableUnless(log.stream.info())
  const end = await unavailableUnless(findEnd(log))
  const { nextSeq, streamSeq } = await unavailableUnless(log.firstPoint())
  if (end.epoch !== undefined) log.adopt(end.epoch)
  log.startSeq = nextSeq
  log.endStreamSeq = end.intactStreamSeq
  if (end.intactStreamSeq === 0) return new NatsReader(log, { streamSeq, nextSeq, before: null }, created, options)
  const point = { streamSeq: end.intactStreamSeq + 1, nextSeq: end.intactSeq + 1, before: end.check }
  return new NatsReader(log, point, created, options)
}

/** Follows the stream of another node's journal, with its own memory of the newest frames. */
export class NatsReader extends LogFollower implements JournalReader {
  /** The last message that is known to be stored. */
  private knownStreamSeq: number
  /** The last message that its publisher has announced: it was acknowledged. */
  private announcedStreamSeq = 0
  /** Whole commits up to this message have been read: what follows is not whole. */
  private readStreamSeq = 0
  private inspectAtMs = Number.NEGATIVE_INFINITY
  private firstStreamSeq = 0
  /** Since when the stream has been shorter than what was read of it, on the monotonic clock. */
  private behindSinceMs = Number.POSITIVE_INFINITY
  private readonly stopListening: () => void

  constructor(
    private readonly log: NatsLog,
    /** Where the next message will be. */
    private point: ChainPoint,
    /** When the stream was created. */
    private created: string,
    private readonly options: NatsReaderOptions,
  ) {
    super(log, point.nextSeq - 1, options)
    this.knownStreamSeq = point.streamSeq - 1
    this.stopListening = log.stream.onEndAnnounced((streamSeq) => {
      this.announcedStreamSeq = Math.max(this.announcedStreamSeq, streamSeq)
      this.noteEnd(streamSeq)
    })
    this.begin()
  }

  /**
   * The end of the stream as its leader knows it, once this reader has read up to there. A leader that has just been elected
   * may lack the newest messages: this waits a while for those that were announced, and for a position that somebody has seen.
   * @throws ApiError UNAVAILABLE when NATS does not answer
   */
  async refreshEnd(seenSeq = 0): Promise<number> {
    if (this.closed) throw shuttingDown()
    const deadlineMs = performance.now() + SEEN_MS
    const { last_seq: streamSeq } = (await unavailableUnless(this.log.stream.info())).state
    if (this.point.streamSeq <= streamSeq) {
      this.noteEnd(streamSeq)
      await this.whenRead(streamSeq)
    }
    const isBehind = () => this.point.streamSeq <= this.announcedStreamSeq || this.endSeq < seenSeq
    while (isBehind() && !this.closed && performance.now() < deadlineMs) await Bun.sleep(SEEN_POLL_MS)
    return this.endSeq
  }

  /** Stops following the stream; calls that wait are rejected. */
  async close(): Promise<void> {
    this.stopListening()
    await this.end()
  }

  protected intervalMs(): number {
    return INSPECT_MS
  }

  protected hasRead(streamSeq: number): boolean {
    return streamSeq <= this.readStreamSeq
  }

  /** The stream is known to have the messages up to `streamSeq`. */
  private noteEnd(streamSeq: number): void {
    if (streamSeq > this.knownStreamSeq) this.knownStreamSeq = streamSeq
    this.wake()
  }

  /** Reads every whole commit that is stored. */
  protected async readAll(): Promise<void> {
    if (performance.now() - this.inspectAtMs > INSPECT_MS) await this.inspect()
    while (!this.closed) {
      const known = this.knownStreamSeq
      const steps = this.point.streamSeq > known ? [] : await this.log.steps(this.point, known, READ_BYTES)
      for (const step of steps) this.take(step)
      if (steps.length > 0) continue
      // The last group is not complete; more of it may have become known meanwhile.
      this.readStreamSeq = known
      return
    }
  }

  /** Asks for messages whose announcement was lost, and for deleted ones. */
  private async inspect(): Promise<void> {
    const { created, state } = await this.log.stream.info()
    const { first_seq, last_seq } = state
    const { behindMaxMs = BEHIND_MAX_MS } = this.options
    const now = performance.now()
    const isBehind = last_seq < this.point.streamSeq - 1
    if (!isBehind) this.behindSinceMs = Number.POSITIVE_INFINITY
    else if (this.behindSinceMs > now) this.behindSinceMs = now
    const isOther = this.created !== created
    const waitMs = isOther ? behindMaxMs / OTHER_BEHIND_PART : behindMaxMs
    const isReplaced = isBehind ? now - this.behindSinceMs > waitMs : isOther && !(await this.hasWhatWasRead())
    if (isReplaced) this.restart(first_seq, last_seq)
    if (isReplaced || !isBehind) this.created = created
    if (last_seq > this.knownStreamSeq) this.knownStreamSeq = last_seq
    if (first_seq > this.firstStreamSeq) {
      this.firstStreamSeq = first_seq
      this.start((await this.log.firstPoint()).nextSeq)
    }
    this.inspectAtMs = performance.now()
  }

  /** Whether the stream ends where reading has: servers that have just started say another time of its creation for a moment. */
  private async hasWhatWasRead(): Promise<boolean> {
    const { before, streamSeq } = this.point
    if (streamSeq === 1) return true
    return before !== null && (await checkAt(this.log, streamSeq - 1))?.equals(before) === true
  }

  /** Reads the stream from its beginning, because it is another one or was set back. Positions continue. */
  private restart(firstStreamSeq: number, lastStreamSeq: number): void {
    const { nextSeq, streamSeq } = this.point
    this.options.log.error('journal: the stream was replaced or set back; reading it from its beginning', {
      stream: this.log.stream.name,
      end_seq: this.endSeq,
      messages: { read_through: streamSeq - 1, first: firstStreamSeq, last: lastStreamSeq },
    })
    this.point = { streamSeq: firstStreamSeq, nextSeq, before: null, readSeq: nextSeq - 1 }
    this.knownStreamSeq = lastStreamSeq
    this.announcedStreamSeq = 0
    this.readStreamSeq = 0
    this.firstStreamSeq = 0
    this.behindSinceMs = Number.POSITIVE_INFINITY
    this.log.forget(Number.POSITIVE_INFINITY)
  }

  /** Forgets the rows before `startSeq`, which are deleted. */
  private start(startSeq: number): void {
    this.log.startSeq = startSeq
    this.tail.forget(startSeq - 1)
  }

  private take(step: ReadStep): void {
    const { next } = step
    this.point = next
    this.log.endStreamSeq = next.streamSeq - 1
    const firstSeq = step.kind === 'commit' ? step.commit.head.firstSeq : next.nextSeq
    // What is in memory must have no hole: those who read only from there would not learn of the gap.
    if (firstSeq !== this.durableSeq + 1) this.tail.forget(Number.POSITIVE_INFINITY)
    if (step.kind === 'commit') {
      this.durableSeq = step.commit.head.endSeq
      this.tail.push(step.commit.frames, step.commit.memory)
      return
    }
    if (step.kind === 'deleted') this.start(next.nextSeq)
    this.durableSeq = next.nextSeq - 1
    this.tail.wake()
  }
}
