import { type Field, ThriftReader } from '../../clickhouse/thrift.ts'
import type { Format } from './args.ts'

/** Counts the rows of a result while it is streamed. */
export interface RowCount {
  add(chunk: Uint8Array): void
  /** Undefined if the data cannot be interpreted. */
  readonly rows: number | undefined
}

/** @returns undefined for a format whose rows cannot be counted while it is streamed: see {@link rowsOfParquet} */
export function createRowCount(format: Format): RowCount | undefined {
  if (format === 'ndjson') return new LineCount(0, false)
  if (format === 'csv') return new LineCount(1, true)
  return format === 'arrow' ? new ArrowCount() : undefined
}

/** The number of rows according to the footer of a Parquet file; undefined for any other file. */
export async function rowsOfParquet(path: string): Promise<number | undefined> {
  const file = Bun.file(path)
  try {
    const footerEnd = file.size - PARQUET_TAIL_BYTES
    const tail = Buffer.from(await file.slice(footerEnd, file.size).arrayBuffer())
    if (tail.toString('latin1', 4) !== PARQUET_MAGIC) return undefined
    const footer = file.slice(footerEnd - tail.readUInt32LE(0), footerEnd)
    const fields: Field[] = new ThriftReader(Buffer.from(await footer.arrayBuffer())).struct()
    const rows = fields.find(({ id }) => id === PARQUET_ROWS)?.value
    return typeof rows === 'bigint' ? Number(rows) : undefined
  } catch {
    // The file is complete; only its row count is unknown.
    return undefined
  }
}

/** The length of the footer, and the magic number. */
const PARQUET_TAIL_BYTES = 8
const PARQUET_MAGIC = 'PAR1'
/** The field `num_rows` of the footer. */
const PARQUET_ROWS = 3

const LINE_FEED = 0x0a
const QUOTE = 0x22

/** Each line is a row. In CSV, line feeds within quotes belong to values. */
class LineCount implements RowCount {
  private lines = 0
  private isQuoted = false

  constructor(
    private readonly headLines: number,
    private readonly hasQuotes: boolean,
  ) {}

  add(chunk: Uint8Array): void {
    for (const byte of chunk) {
      if (this.hasQuotes && byte === QUOTE) this.isQuoted = !this.isQuoted
      else if (byte === LINE_FEED && !this.isQuoted) this.lines++
    }
  }

  get rows(): number {
    return Math.max(0, this.lines - this.headLines)
  }
}

/** Adds up the lengths of the record batches of an Arrow IPC stream; their contents are skipped. */
class ArrowCount implements RowCount {
  private count = 0
  private isArrow = true
  /** The beginning of an incomplete message. */
  private pending = Buffer.alloc(0)
  /** Bytes of the current message's body that have not arrived yet. */
  private body = 0

  add(chunk: Uint8Array): void {
    let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    while (this.isArrow && rest.length > 0) {
      const skipped = Math.min(this.body, rest.length)
      this.body -= skipped
      rest = rest.subarray(skipped)
      if (this.body > 0 || rest.length === 0) return
      const message = this.pending.length === 0 ? rest : Buffer.concat([this.pending, rest])
      const end = messageEnd(message)
      if (end === undefined) this.isArrow = false
      else if (message.length < end) {
        this.pending = Buffer.from(message)
        return
      } else {
        this.pending = Buffer.alloc(0)
        if (end > MESSAGE_HEAD_BYTES) this.take(message.subarray(MESSAGE_HEAD_BYTES, end))
        rest = message.subarray(end)
      }
    }
  }

  get rows(): number | undefined {
    return this.isArrow ? this.count : undefined
  }

  private take(metadata: Buffer): void {
    try {
      const message = new FlatTable(metadata, metadata.readUInt32LE(0))
      this.body = message.int64(MESSAGE.bodyLength)
      if (message.byte(MESSAGE.headerType) === RECORD_BATCH) this.count += message.table(MESSAGE.header).int64(0)
    } catch {
      this.isArrow = false
    }
  }
}

/** A marker, and the length of the metadata that follow. */
const MESSAGE_HEAD_BYTES = 8
const MARKER = 0xffffffff
/** Fields of a message in Arrow's `Message.fbs`. */
const MESSAGE = { headerType: 1, header: 2, bodyLength: 3 }
const RECORD_BATCH = 3

/** The end of a message's metadata, or of its head if more is not known yet; undefined if it is not a message. */
function messageEnd(message: Buffer): number | undefined {
  if (message.length < MESSAGE_HEAD_BYTES) return MESSAGE_HEAD_BYTES
  return message.readUInt32LE(0) === MARKER ? MESSAGE_HEAD_BYTES + message.readUInt32LE(4) : undefined
}

/** A FlatBuffers table: a table of offsets gives the position of each field. */
class FlatTable {
  private readonly offsets: number

  constructor(
    private readonly data: Buffer,
    private readonly at: number,
  ) {
    this.offsets = at - data.readInt32LE(at)
  }

  byte(field: number): number {
    const at = this.positionOf(field)
    return at === undefined ? 0 : this.data.readUInt8(at)
  }

  int64(field: number): number {
    const at = this.positionOf(field)
    return at === undefined ? 0 : Number(this.data.readBigInt64LE(at))
  }

  table(field: number): FlatTable {
    const at = this.positionOf(field)
    if (at === undefined) throw new RangeError('the message has no header')
    return new FlatTable(this.data, at + this.data.readUInt32LE(at))
  }

  /** Undefined for a field with its default value. */
  private positionOf(field: number): number | undefined {
    const entry = 4 + 2 * field
    if (entry >= this.data.readUInt16LE(this.offsets)) return undefined
    const offset = this.data.readUInt16LE(this.offsets + entry)
    return offset === 0 ? undefined : this.at + offset
  }
}
