import { lookup } from '../../../base/lookup.ts'
import { JSON_DOCUMENTS } from '../protocol.ts'
import { ParquetJoin } from './parquet.ts'

/**
 * Joins the blocks of a result: the engine streams a result block by block, and each block is a complete document with
 * its own header and footer.
 */
export interface Stitcher {
  /** @returns the next bytes of the joined result; may be empty */
  add(answer: Buffer): Buffer
  /** The bytes after the last block. */
  end(): Buffer
}

/** Small, because several copies of a block are in memory. */
const BLOCK_ROWS = 8_192

const EMPTY = Buffer.alloc(0)

/** Formats that are a plain sequence of rows or blocks. */
const ROWS_ONLY = new Set(
  `CSV TSV TabSeparated TSVRaw TabSeparatedRaw TSKV JSONEachRow JSONLines NDJSON JSONCompactEachRow JSONStringsEachRow
   JSONCompactStringsEachRow RowBinary Native MsgPack BSONEachRow`.split(/\s+/),
)

/** Length of the header of formats that begin with column names, or names and types. */
const HEADS = lookup<(answer: Buffer) => number>({
  ...headed('CSV', csvLines),
  ...headed('TSV', lines),
  ...headed('TabSeparated', lines),
  ...headed('JSONCompactEachRow', lines),
  ...headed('JSONCompactStringsEachRow', lines),
  RowBinaryWithNames: (answer) => binaryStrings(answer, 1),
  RowBinaryWithNamesAndTypes: (answer) => binaryStrings(answer, 2),
})

const QUOTE = 0x22
const LINE_FEED = 0x0a

/** Line breaks in strings are escaped, so these cannot occur in data. */
const JSON_DATA = '\t"data":\n\t['
const JSON_DATA_END = '\n\t],\n\n\t"rows": '

const MESSAGE_HEAD_BYTES = 8
const ARROW_END = Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])

/** Undefined for formats whose blocks cannot be joined. */
export function createStitcher(format: string): Stitcher | undefined {
  if (ROWS_ONLY.has(format)) return { add: (answer) => answer, end: () => EMPTY }
  const headLength = HEADS.get(format)
  if (headLength !== undefined) return new HeadOnce(headLength)
  if (JSON_DOCUMENTS.has(format)) return new JsonJoin()
  if (format === 'ArrowStream') return new ArrowJoin()
  return format === 'Parquet' ? new ParquetJoin() : undefined
}

/** Settings that make the blocks of a format joinable and large enough. */
export function streamSettings(format: string): Readonly<Record<string, string>> {
  if (format !== 'Parquet') return { max_block_size: String(BLOCK_ROWS) }
  return {
    output_format_parquet_write_page_index: '0',
    output_format_parquet_write_bloom_filter: '0',
    // A block becomes a row group; readers prefer large ones.
    preferred_block_size_bytes: String(16 * 1024 * 1024),
  }
}

function headed(format: string, length: (answer: Buffer, count: number) => number) {
  return {
    [`${format}WithNames`]: (answer: Buffer) => length(answer, 1),
    [`${format}WithNamesAndTypes`]: (answer: Buffer) => length(answer, 2),
  }
}

/** Length of the first `count` lines; line breaks in names are escaped. */
function lines(answer: Buffer, count: number): number {
  let end = 0
  for (let i = 0; i < count; i++) end = answer.indexOf('\n', end) + 1
  return end
}

/** Like {@link lines}, but line breaks may be quoted. Quotes in names are doubled, so toggling at each quote works. */
function csvLines(answer: Buffer, count: number): number {
  let isQuoted = false
  let left = count
  for (let i = 0; i < answer.length; i++) {
    if (answer[i] === QUOTE) isQuoted = !isQuoted
    else if (answer[i] === LINE_FEED && !isQuoted && --left === 0) return i + 1
  }
  return answer.length
}

/** Length of the column count and `textsPerColumn` strings per column. */
function binaryStrings(answer: Buffer, textsPerColumn: number): number {
  let at = 0
  const varint = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = answer[at++]
      value += (byte & 127) * 2 ** shift
      if (byte < 128) return value
    }
  }
  const texts = varint() * textsPerColumn
  for (let i = 0; i < texts; i++) {
    const length = varint()
    at += length
  }
  return at
}

/** Removes the header of every block except the first. */
class HeadOnce implements Stitcher {
  private head: Buffer | undefined

  constructor(private readonly headLength: (answer: Buffer) => number) {}

  add(answer: Buffer): Buffer {
    if (this.head === undefined) {
      this.head = Buffer.from(answer.subarray(0, this.headLength(answer)))
      return answer
    }
    return withoutHead(answer, this.head)
  }

  end(): Buffer {
    return EMPTY
  }
}

/** Joins JSON documents: columns, rows and row count. The statistics at the end are omitted; they describe single blocks. */
class JsonJoin implements Stitcher {
  private hasBegun = false
  private rows = 0

  add(answer: Buffer): Buffer {
    // With latin1, string indexes equal byte offsets.
    const text = answer.toString('latin1')
    const rowsAt = text.indexOf(JSON_DATA) + JSON_DATA.length
    const rowsEnd = text.lastIndexOf(JSON_DATA_END)
    const count = Number(/^\d+/.exec(text.slice(rowsEnd + JSON_DATA_END.length))?.[0])
    const before = this.rows
    this.rows += count
    if (!this.hasBegun) {
      this.hasBegun = true
      return answer.subarray(0, rowsEnd)
    }
    if (count === 0) return EMPTY
    const rows = answer.subarray(rowsAt, rowsEnd)
    return before > 0 ? Buffer.concat([Buffer.from(','), rows]) : rows
  }

  end(): Buffer {
    return this.hasBegun ? Buffer.from(`${JSON_DATA_END}${this.rows}\n}\n`) : EMPTY
  }
}

/** An Arrow stream is a schema, batches and an end mark. */
class ArrowJoin implements Stitcher {
  private schema: Buffer | undefined

  add(answer: Buffer): Buffer {
    const batches = answer.subarray(0, -ARROW_END.length)
    if (this.schema === undefined) {
      this.schema = Buffer.from(answer.subarray(0, MESSAGE_HEAD_BYTES + answer.readInt32LE(4)))
      return batches
    }
    return withoutHead(batches, this.schema)
  }

  end(): Buffer {
    return this.schema === undefined ? EMPTY : ARROW_END
  }
}

function withoutHead(answer: Buffer, head: Buffer): Buffer {
  if (!answer.subarray(0, head.length).equals(head)) throw new Error('the blocks of one result have different columns')
  return answer.subarray(head.length)
}
