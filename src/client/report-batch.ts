/** The most bytes of a batch, unless it has only one report. The service takes 10 MiB, unless it is configured otherwise. */
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
 * Events or scores of one run, as the body of the call that reports them. Each is encoded once, when it is reported: text would
 * take several times as much memory and garbage collection.
 */
export class ReportBatch {
  /** The number of each report, see {@link SettledMark}. */
  readonly marks: number[] = []
  private bytes = new Uint8Array(SMALLEST_BYTES)
  private length: number
  /** Where each report ends. */
  private readonly ends: number[] = []
  private readonly headLength: number

  /** @param head the JSON of the call, up to the list of its reports */
  constructor(private readonly head: string) {
    this.headLength = ENCODER.encodeInto(head, this.bytes).written
    this.length = this.headLength
  }

  get count(): number {
    return this.marks.length
  }

  /** Bytes of the reports. */
  get size(): number {
    return this.length - this.headLength - Math.max(0, this.count - 1)
  }

  /** Whether a report of that many characters still fits into this batch. */
  hasRoomFor(characters: number, countMax: number): boolean {
    if (this.count === 0) return true
    return this.count < countMax && this.length + characters * BYTES_PER_UNIT_MAX + END.length < BATCH_BYTES
  }

  /** Adds a report. @returns how many bytes it takes */
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

  /** How many of the reports are not newer than that one. */
  countThrough(mark: number): number {
    let [low, high] = [0, this.count]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.marks[middle]! <= mark) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Bytes of the first reports. */
  sizeOf(count: number): number {
    return count === 0 ? 0 : this.ends[count - 1]! - this.headLength - (count - 1)
  }

  /** The batch without its first reports. */
  without(count: number): ReportBatch {
    const rest = this.slice(count, this.count)
    this.release()
    return rest
  }

  /** The two halves of the batch, each a batch of its own. */
  halves(): [ReportBatch, ReportBatch] {
    const middle = this.count >> 1
    return [this.slice(0, middle), this.slice(middle, this.count)]
  }

  /** Frees the memory; called once the service has answered. */
  release(): void {
    if (this.bytes.length === BATCH_BYTES && pool.length < POOLED_MAX) pool.push(this.bytes)
    this.bytes = new Uint8Array(0)
  }

  private slice(from: number, to: number): ReportBatch {
    const part = new ReportBatch(this.head)
    const start = from === 0 ? this.headLength : this.ends[from - 1]! + 1
    const reports = this.bytes.subarray(start, this.ends[to - 1])
    part.bytes = new Uint8Array(part.headLength + reports.length + END.length)
    part.bytes.set(this.bytes.subarray(0, this.headLength))
    part.bytes.set(reports, part.headLength)
    part.length = part.headLength + reports.length
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
