/** The most bytes of a batch, unless it has only one event. The service takes 10 MiB, unless it is configured otherwise. */
const BATCH_BYTES = 512 * 1024
const SMALLEST_BYTES = 2 * 1024
/** Buffers of full size kept for reuse: allocating one costs more than filling it. */
const POOLED_MAX = 24
/** A UTF-16 unit takes at most three bytes of UTF-8. */
const BYTES_PER_UNIT_MAX = 3
const COMMA = 0x2c
const ENCODER = new TextEncoder()
const END = ENCODER.encode(']}')

const pool: Uint8Array<ArrayBuffer>[] = []

/**
 * Events of one run, as the body of the call that reports them. Each is encoded once, when it is reported: text would take
 * several times as much memory and garbage collection.
 */
export class EventBatch {
  /** The number of each event, see {@link SettledMark}. */
  readonly marks: number[] = []
  private bytes = new Uint8Array(SMALLEST_BYTES)
  private length: number
  /** Where each event ends. */
  private readonly ends: number[] = []
  private readonly headLength: number

  constructor(private readonly runId: string) {
    this.headLength = ENCODER.encodeInto(`{"run_id":"${runId}","events":[`, this.bytes).written
    this.length = this.headLength
  }

  get count(): number {
    return this.marks.length
  }

  /** Bytes of the events. */
  get size(): number {
    return this.length - this.headLength - Math.max(0, this.count - 1)
  }

  /** Whether an event of that many characters still fits into this batch. */
  hasRoomFor(characters: number, eventsMax: number): boolean {
    if (this.count === 0) return true
    return this.count < eventsMax && this.length + characters * BYTES_PER_UNIT_MAX + END.length < BATCH_BYTES
  }

  /** Adds an event. @returns how many bytes it takes */
  add(text: string, mark: number): number {
    const needed = this.length + text.length * BYTES_PER_UNIT_MAX + 1 + END.length
    if (needed > this.bytes.length) this.grow(needed)
    if (this.marks.length > 0) this.bytes[this.length++] = COMMA
    const { written } = ENCODER.encodeInto(text, this.bytes.subarray(this.length))
    this.length += written
    this.marks.push(mark)
    this.ends.push(this.length)
    return written
  }

  /** The JSON of the call. Valid until {@link release}. */
  body(): Uint8Array<ArrayBuffer> {
    this.bytes.set(END, this.length)
    return this.bytes.subarray(0, this.length + END.length)
  }

  /** The two halves of the batch, each a batch of its own. */
  halves(): [EventBatch, EventBatch] {
    const middle = this.count >> 1
    return [this.slice(0, middle), this.slice(middle, this.count)]
  }

  /** Frees the memory; called once the service has answered. */
  release(): void {
    if (this.bytes.length === BATCH_BYTES && pool.length < POOLED_MAX) pool.push(this.bytes)
    this.bytes = new Uint8Array(0)
  }

  private slice(from: number, to: number): EventBatch {
    const part = new EventBatch(this.runId)
    const start = from === 0 ? this.headLength : this.ends[from - 1]! + 1
    const events = this.bytes.subarray(start, this.ends[to - 1])
    part.bytes = new Uint8Array(part.headLength + events.length + END.length)
    part.bytes.set(this.bytes.subarray(0, this.headLength))
    part.bytes.set(events, part.headLength)
    part.length = part.headLength + events.length
    for (let i = from; i < to; i++) {
      part.marks.push(this.marks[i]!)
      part.ends.push(this.ends[i]! - start + part.headLength)
    }
    return part
  }

  private grow(needed: number): void {
    const size = Math.max(needed, Math.min(this.bytes.length * 16, BATCH_BYTES))
    const larger = (size === BATCH_BYTES ? pool.pop() : undefined) ?? new Uint8Array(size)
    larger.set(this.bytes.subarray(0, this.length))
    this.bytes = larger
  }
}
