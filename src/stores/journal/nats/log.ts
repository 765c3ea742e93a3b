import type { Log } from '../../../base/log.ts'
import { type Epoch, type Frame, type Gap, lastSeqOf, withEpoch } from '../journal.ts'
import { GapList, type StoredLog } from '../log/storage.ts'
import { Chain, type ChainedLog, type ChainPoint, type ChainStep } from './chain.ts'
import type { StreamMessage } from './message.ts'
import { answered, BehindError, MESSAGE_OVERHEAD_BYTES, type NatsStreamOptions, Stream } from './stream.ts'

/** How long a read waits for an answer of NATS: elections and restarts take some seconds. */
const READ_SETTLE_MS = 5_000
/** Messages requested at once: by bytes, because a server disconnects a client that reads too slowly. */
const BYTES_AT_ONCE = 4 * 1024 * 1024
const MESSAGES_AT_ONCE = 16
const MESSAGE_BYTES_AT_FIRST = 1024 * 1024
/** Resume points are about this far apart, so that a lagging reader reads little twice. */
const POINT_DISTANCE_BYTES = 256 * 1024
const POINTS_MAX = 4_096
/** A search ends when this few messages are left: reading them is as fast. */
const SEARCH_ENDS_AT = 4

export interface NatsLogOptions extends NatsStreamOptions {
  /** In order; the last one is the current epoch. */
  readonly epochs: readonly Epoch[]
  /** The gaps that are known already. */
  readonly gaps?: readonly Gap[]
  /** Called when rows are found missing, with the gap and the list of all, which the caller should store. */
  readonly onGap?: (gap: Gap, all: readonly Gap[]) => void
  /** How much of the newest data stays in memory for consumers. */
  readonly tailBytes?: number
  readonly log: Log
}

/** What the owner of a stream and its readers have in common: it reads commits by position. */
export class NatsLog implements StoredLog, ChainedLog {
  readonly gapList: GapList
  readonly sealKey: Buffer
  epochs: readonly Epoch[]
  /** The position of the oldest row, or of the next one; undefined until it is known. */
  startSeq: number | undefined
  /** The last message of a whole commit; 0 when there is none. */
  endStreamSeq = 0
  private readonly chain: Chain
  /** Where reading can resume, in rising order. */
  private points: ChainPoint[] = []
  /** Moving average, to choose how many messages are requested at once. */
  private messageBytes = MESSAGE_BYTES_AT_FIRST

  private constructor(
    readonly stream: Stream,
    { log, onGap, sealKey, epochs, gaps = [] }: NatsLogOptions,
    /** Rows up to here are in ClickHouse. */
    readonly loadedSeq: () => number,
    private readonly onEpoch: (epoch: Epoch) => void,
  ) {
    this.sealKey = sealKey
    this.epochs = epochs
    this.gapList = new GapList(gaps, log, (gap, all) => onGap?.(gap, all))
    this.chain = new Chain(this, log)
  }

  /**
   * Opens the log; reads nothing yet.
   * @param onEpoch called when the stream is found to have a newer epoch than the caller knows
   */
  static async open(
    options: NatsLogOptions,
    loadedSeq: () => number,
    onEpoch: (epoch: Epoch) => void = () => {},
  ): Promise<NatsLog> {
    return new NatsLog(await Stream.open(options), options, loadedSeq, onEpoch)
  }

  /** Makes an epoch the current one if it is newer. */
  adopt(epoch: Epoch): void {
    if (epoch.epoch === this.epoch.epoch || epoch.firstSeq <= this.epoch.firstSeq) return
    this.epochs = withEpoch(this.epochs, epoch)
    this.onEpoch(epoch)
  }

  get gaps(): readonly Gap[] {
    return this.gapList.all
  }

  /** @throws ApiError UNAVAILABLE when NATS does not answer */
  read(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    return answered(READ_SETTLE_MS, () => this.readNow(afterSeq, maxBytes))
  }

  get epoch(): Epoch {
    return this.epochs[this.epochs.length - 1]
  }

  private async readNow(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    let point = await this.pointFor(afterSeq)
    const frames: Frame[] = []
    let bytes = 0
    while (bytes < maxBytes && point.streamSeq <= this.endStreamSeq) {
      const found = await this.steps(point, this.endStreamSeq, maxBytes - bytes)
      if (found.length === 0) {
        if (frames.length > 0) break
        // Everything up to `endStreamSeq` was acknowledged: what a leader does not have yet is not a gap.
        throw new BehindError(this.stream.name, point.streamSeq)
      }
      for (const step of found) {
        point = step.next
        if (step.kind !== 'commit') continue
        const { frames: read, memory } = step.commit
        const wanted = read.filter((frame) => lastSeqOf(frame) > afterSeq)
        if (wanted.length > 0) bytes += memory.length
        frames.push(...wanted)
      }
      this.remember(point)
    }
    return frames
  }

  /**
   * Reads the commits and state messages from `point` on, up to the message `throughStreamSeq` or about `maxBytes`, at
   * least one. None when only a part of a group is there.
   */
  async steps(point: ChainPoint, throughStreamSeq: number, maxBytes: number): Promise<ReadStep[]> {
    const messages = await this.fetch(point.streamSeq, throughStreamSeq, maxBytes)
    const steps: ReadStep[] = []
    for (let at = point; at.streamSeq - point.streamSeq < messages.length; ) {
      const rest = messages.slice(at.streamSeq - point.streamSeq)
      if (rest.includes(null)) {
        const { first_seq } = (await this.stream.info()).state
        // Deleted during this read, because its rows are released: it is not missing.
        if (first_seq > point.streamSeq) return [{ kind: 'deleted', next: await this.firstPoint() }]
      }
      const step = this.chain.step(at, rest)
      if (step.kind === 'incomplete') {
        const from = point.streamSeq + messages.length
        if (steps.length > 0 || from > throughStreamSeq) break
        const through = Math.min(step.untilStreamSeq - 1, throughStreamSeq, from + MESSAGES_AT_ONCE - 1)
        const more = await this.fetchAll(from, through)
        if (more.length === 0) break
        messages.push(...more)
        continue
      }
      at = step.next
      steps.push(step)
    }
    return steps
  }

  /** Messages from `from` on; null for those that the stream does not have. */
  private async fetch(from: number, through: number, maxBytes: number): Promise<(StreamMessage | null)[]> {
    const bytes = Math.min(BYTES_AT_ONCE, maxBytes)
    const count = Math.min(MESSAGES_AT_ONCE, Math.ceil(bytes / this.messageBytes))
    const messages = await this.fetchAll(from, Math.min(through, from + count - 1))
    for (const message of messages) {
      if (message !== null) this.messageBytes += (message.data.length + MESSAGE_OVERHEAD_BYTES - this.messageBytes) / 8
    }
    return messages
  }

  /** Up to the first message that the stream's leader does not have yet. */
  private async fetchAll(from: number, through: number): Promise<(StreamMessage | null)[]> {
    const found = await Promise.all(
      Array.from({ length: through - from + 1 }, (_, index) =>
        this.stream.find(from + index).catch((error) => {
          if (error instanceof BehindError) return undefined
          throw error
        }),
      ),
    )
    const behind = found.indexOf(undefined)
    return (behind < 0 ? found : found.slice(0, behind)) as (StreamMessage | null)[]
  }

  /** Where to begin to read the rows after `afterSeq`. */
  private async pointFor(afterSeq: number): Promise<ChainPoint> {
    const above = this.points.findIndex(({ nextSeq }) => nextSeq - 1 > afterSeq)
    const below = above < 0 ? this.points.at(-1) : this.points[above - 1]
    const until = above < 0 ? this.endStreamSeq + 1 : this.points[above].streamSeq
    if (below !== undefined && until - below.streamSeq <= this.pointDistance * 2) return below
    const found = await this.search(afterSeq, below, until)
    this.remember(found)
    return found
  }

  /** Searches by the positions in the headers, between `below` (or the first message) and the message `until`. */
  private async search(afterSeq: number, below: ChainPoint | undefined, until: number): Promise<ChainPoint> {
    const { stream } = this
    const first = await this.firstPoint()
    let best = below !== undefined && below.streamSeq >= first.streamSeq ? below : first
    for (let low = best.streamSeq, high = until; high - low > SEARCH_ENDS_AT; ) {
      const middle = (low + high) >> 1
      const head = (await stream.find(middle))?.head
      // Without positions here, reading begins at the last known point.
      if (head === undefined || head.kind === 'fence') break
      if (head.firstSeq - 1 > afterSeq) high = middle
      else {
        low = middle
        best = { streamSeq: head.groupSeq, nextSeq: head.firstSeq, before: null }
      }
    }
    return best
  }

  /** The first message of the stream; past its end when it is empty. */
  async firstPoint(): Promise<ChainPoint> {
    const { stream } = this
    for (;;) {
      const { first_seq: streamSeq, last_seq } = (await stream.info()).state
      const first = streamSeq > last_seq ? null : await stream.find(streamSeq)
      // Deleted in between.
      if (first === null && (await stream.info()).state.first_seq > streamSeq) continue
      return { streamSeq, nextSeq: first?.head?.firstSeq || 1, before: null }
    }
  }

  /** Forgets the messages before `streamSeq`, which are deleted. */
  forget(streamSeq: number): void {
    this.points = this.points.filter((point) => point.streamSeq >= streamSeq)
  }

  /** In messages; no more than what is requested at once. */
  private get pointDistance(): number {
    return Math.min(MESSAGES_AT_ONCE, Math.ceil(POINT_DISTANCE_BYTES / this.messageBytes))
  }

  private remember(point: ChainPoint): void {
    const below = this.points.findLastIndex(({ streamSeq }) => streamSeq <= point.streamSeq)
    const distance = point.streamSeq - (this.points[below]?.streamSeq ?? Number.NEGATIVE_INFINITY)
    if (distance < this.pointDistance) return
    this.points.splice(below + 1, 0, point)
    if (this.points.length > POINTS_MAX) this.points = this.points.filter((_, index) => index % 2 === 0)
  }
}

/** One step of reading; `deleted`: the messages up to `next` were deleted. */
export type ReadStep =
  | Exclude<ChainStep, { readonly kind: 'incomplete' }>
  | { readonly kind: 'deleted'; readonly next: ChainPoint }
