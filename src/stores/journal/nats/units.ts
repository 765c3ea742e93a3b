import { dayOf } from '../log/storage.ts'
import { MESSAGE_OVERHEAD_BYTES, type Stream } from './stream.ts'

/** Consecutive messages that are deleted together. A unit that is written holds rows of one day. */
interface Unit {
  /** Its first message. */
  readonly streamSeq: number
  /** The position of its first row. */
  readonly firstSeq: number
  bytes: number
  /** The day on which its last rows were accepted, see {@link dayOf}; undefined when there are none. */
  day: number | undefined
}

/** The messages of earlier owners are divided into about this many units. */
const FOUND_UNITS = 32

/** What a stream holds, in units of deletion. */
export class Units {
  /** In order. The last one is the current one: rows are added to it. */
  private readonly list: Unit[] = []
  /** Bytes of all units. Read on every append, so it is maintained instead of computed. */
  bytes = 0

  /** @param unitBytes when a unit exceeds this size, the next one is started */
  constructor(private readonly unitBytes: number) {}

  /** The position of the oldest row, or of the next one when there are no rows. */
  get startSeq(): number | undefined {
    return this.list[0]?.firstSeq
  }

  get hasRows(): boolean {
    return this.list.at(-1)?.day !== undefined
  }

  /** Begins the next unit with the message at `streamSeq`. */
  begin(streamSeq: number, firstSeq: number): void {
    this.list.push({ streamSeq, firstSeq, bytes: 0, day: undefined })
  }

  /** Counts a commit whose messages begin at `streamSeq`. */
  add(streamSeq: number, firstSeq: number, bytes: number, receivedAt: number): void {
    const day = dayOf(receivedAt)
    if (this.isNext(receivedAt)) this.begin(streamSeq, firstSeq)
    const unit = this.list[this.list.length - 1]
    unit.day = day
    unit.bytes += bytes
    this.bytes += bytes
  }

  /** Whether a commit at this time begins the next unit. */
  isNext(receivedAt: number): boolean {
    const day = dayOf(receivedAt)
    const last = this.list.at(-1)
    return last === undefined || last.bytes > this.unitBytes || (last.day ?? day) !== day
  }

  /** Bytes of the units with rows after `seq`. */
  bytesAfter(seq: number): number {
    let bytes = 0
    for (let index = this.list.length - 1; index >= 0; index--) {
      const next = this.list[index + 1]
      if (next !== undefined && next.firstSeq - 1 <= seq) break
      bytes += this.list[index].bytes
    }
    return bytes
  }

  /**
   * Forgets the oldest units without rows past `seq` while at least `keepBytes` remain; never the current one.
   * @returns the first message that stays, if any unit was forgotten
   */
  forget(seq: number, keepBytes: number): number | undefined {
    let forgotten = 0
    for (; forgotten < this.list.length - 1; forgotten++) {
      const { bytes } = this.list[forgotten]
      if (this.list[forgotten + 1].firstSeq - 1 > seq || this.bytes - bytes < keepBytes) break
      this.bytes -= bytes
    }
    if (forgotten === 0) return undefined
    this.list.splice(0, forgotten)
    return this.list[0].streamSeq
  }

  /** The last position of the units whose rows were all accepted on days before that of `beforeMs`. */
  lastSeqBefore(beforeMs: number, endSeq: number): number | undefined {
    const isExpired = ({ day }: Unit) => day !== undefined && day < dayOf(beforeMs)
    const last = this.list.findLastIndex(isExpired)
    if (last < 0) return undefined
    return last === this.list.length - 1 ? endSeq : this.list[last + 1].firstSeq - 1
  }

  /**
   * Divides what the stream held before the units of this owner, by looking at a few of its messages: by size, and
   * exactly where a new day begins. The bytes of each unit are estimated.
   */
  async load(stream: Stream): Promise<void> {
    const own = [...this.list]
    const { first_seq, last_seq, bytes } = (await stream.info()).state
    const end = own[0]?.streamSeq ?? last_seq + 1
    const found = first_seq < end ? await this.findUnits(stream, { first_seq, end, bytes }) : []
    this.list.splice(0, this.list.length, ...found, ...own)
    this.bytes = this.list.reduce((sum, unit) => sum + unit.bytes, 0)
  }

  /** The messages from `first_seq` to before `end` in units. */
  private async findUnits(
    stream: Stream,
    { first_seq, end, bytes }: { first_seq: number; end: number; bytes: number },
  ) {
    const first = await markAt(stream, first_seq)
    const last = await markAt(stream, end - 1)
    if (first === undefined || last === undefined) return []
    const messageBytes = bytes / (end - first_seq)
    const messagesMax = Math.max(this.unitBytes, bytes / FOUND_UNITS) / messageBytes
    const marks = [first, ...(await divide(stream, first, last, messagesMax))]
    if (marks[marks.length - 1].day !== last.day) marks.push(last)
    return marks.map(({ streamSeq, firstSeq, day }, index): Unit => {
      const next = marks[index + 1] ?? { ...last, streamSeq: end }
      const messages = next.streamSeq - streamSeq
      // Whole numbers: a sum of fractions is off by a little, so that the last unit would seem to hold more than all do.
      return { streamSeq, firstSeq, day: messages === 1 ? day : next.day, bytes: Math.round(messageBytes * messages) }
    })
  }
}

type Mark = Pick<Unit, 'streamSeq' | 'firstSeq'> & { readonly day: number }

async function markAt(stream: Stream, streamSeq: number): Promise<Mark | undefined> {
  const head = (await stream.find(streamSeq))?.head
  if (head === undefined || head.kind === 'fence') return undefined
  return { streamSeq: head.groupSeq, firstSeq: head.firstSeq, day: dayOf(head.receivedAt) }
}

/** Where units begin between two messages: none has more than `messagesMax` messages, or messages of several days. */
async function divide(stream: Stream, low: Mark, high: Mark, messagesMax: number): Promise<Mark[]> {
  const messages = high.streamSeq - low.streamSeq
  if (messages <= messagesMax && low.day === high.day) return []
  const middle = await markAt(stream, low.streamSeq + Math.ceil(messages / 2))
  if (middle === undefined || middle.streamSeq <= low.streamSeq || middle.streamSeq >= high.streamSeq) return []
  const below = await divide(stream, low, middle, messagesMax)
  return [...below, middle, ...(await divide(stream, middle, high, messagesMax))]
}

/** What a message takes in the stream, about. */
export function storedBytes(payloadBytes: number, messages: number): number {
  return payloadBytes + messages * MESSAGE_OVERHEAD_BYTES
}
