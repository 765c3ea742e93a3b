import { Bytes } from '../../clickhouse/bytes.ts'
import type { EventColumns } from '../rows.ts'

const EMPTY_OBJECT = Buffer.from('{}')
/** From this size on, a second copy costs more than keeping track of where the bytes are. */
const LONG_BYTES_MIN = 1024

/** A payload that is not copied before the block is written. */
interface LongPayload {
  readonly bytes: Uint8Array
  /** Its position: after this many of the copied bytes. */
  readonly after: number
}

/** The size of a column at some time, see {@link PayloadColumn.truncate}. */
interface Size {
  readonly copied: number
  readonly longs: number
  readonly longBytes: number
}

/**
 * The payloads of an event block, a column of type `String`. Short ones are copied as they are added. Long ones remain in
 * the bodies of their calls, if those stay in memory: a waiting commit may have many megabytes of them, and copying those
 * twice takes longer than validating them.
 */
export class PayloadColumn {
  /** Lengths of all payloads and bytes of the short ones. */
  private readonly copied = new Bytes()
  private longs: LongPayload[] = []
  private longBytes = 0

  get length(): number {
    return this.copied.length + this.longBytes
  }

  add({ text, body }: EventColumns, start: number, end: number): void {
    if (start < 0) this.copied.slice(EMPTY_OBJECT, 0, EMPTY_OBJECT.length)
    else if (body === undefined || end - start < LONG_BYTES_MIN) this.copied.slice(text, start, end)
    else {
      this.copied.varint(end - start)
      this.longs.push({ bytes: body.subarray(start, end), after: this.copied.length })
      this.longBytes += end - start
    }
  }

  string(payload: string): void {
    this.copied.string(payload)
  }

  /** The column as pieces to be concatenated. They are views: use them before {@link truncate}. */
  pieces(): Uint8Array[] {
    const { copied, longs } = this
    if (longs.length === 0) return [copied.view()]
    const pieces: Uint8Array[] = []
    let at = 0
    for (const { bytes, after } of longs) {
      pieces.push(copied.buffer.subarray(at, after), bytes)
      at = after
    }
    pieces.push(copied.buffer.subarray(at, copied.length))
    return pieces
  }

  get size(): Size {
    return { copied: this.copied.length, longs: this.longs.length, longBytes: this.longBytes }
  }

  /** Removes what was added since the column had this size. */
  truncate({ copied, longs, longBytes }: Size): void {
    this.copied.length = copied
    this.longs.length = longs
    this.longBytes = longBytes
  }

  clear(): void {
    this.copied.clear()
    this.longs = []
    this.longBytes = 0
  }
}
