import { type Field, type List, ThriftReader, ThriftWriter, TYPE, type Value } from './thrift.ts'

const MAGIC = Buffer.from('PAR1')
/** Length of the footer and the magic. */
const TAIL_BYTES = 8

/** Ids of the modified fields, by the structs of `parquet.thrift`. */
const FILE = { rows: 3, rowGroups: 4 }
const ROW_GROUP = { columns: 1, fileOffset: 5, ordinal: 7 }
const COLUMN = { fileOffset: 2, metaData: 3 }
const COLUMN_META = { dataPage: 9, indexPage: 10, dictionaryPage: 11 }
/** Fields with offsets that are not adjusted: offset and column index, bloom filter. */
const COLUMN_INDEXES = [4, 6]
const COLUMN_BLOOM_FILTER = 14

/**
 * Joins a stream of Parquet files with the same columns into one: pages are passed through unchanged, and offsets in the
 * footers are adjusted. So a result becomes one file without being buffered as a whole; the engine's streaming makes a
 * file of each block. Page indexes and bloom filters must be off, because they contain offsets, too.
 */
export class ParquetJoin {
  private first: Field[] | undefined
  private readonly rowGroups: Buffer[] = []
  private rows = 0n
  private written = 0

  /** @param file a complete Parquet file @returns the next bytes of the joined file */
  add(file: Buffer): Buffer {
    const footerAt = file.length - TAIL_BYTES - file.readUInt32LE(file.length - TAIL_BYTES)
    const footer = new ThriftReader(file.subarray(footerAt)).struct()
    // Each file begins with the magic; only the first one's is passed on.
    const pages = file.subarray(this.first === undefined ? 0 : MAGIC.length, footerAt)
    const moved = BigInt(this.first === undefined ? 0 : this.written - MAGIC.length)
    for (const group of listOf(footer, FILE.rowGroups)) this.rowGroups.push(encodeRowGroup(group as Field[], moved))
    this.rows += fieldOf(footer, FILE.rows).value as bigint
    this.first ??= footer
    this.written += pages.length
    return pages
  }

  /** The footer. At least one file has been added. */
  end(): Buffer {
    if (this.first === undefined) return Buffer.alloc(0)
    const out = new ThriftWriter()
    const groups = { elementType: TYPE.struct, items: this.rowGroups }
    out.struct(
      this.first.map((field) => {
        if (field.id === FILE.rows) return { ...field, value: this.rows }
        return field.id === FILE.rowGroups ? { ...field, value: groups } : field
      }),
    )
    const footer = out.bytes()
    const tail = Buffer.alloc(TAIL_BYTES)
    tail.writeUInt32LE(footer.length)
    MAGIC.copy(tail, 4)
    return Buffer.concat([footer, tail])
  }
}

function encodeRowGroup(group: readonly Field[], moved: bigint): Buffer {
  const columns = listOf(group, ROW_GROUP.columns).map((column) => moveColumn(column as Field[], moved))
  const out = new ThriftWriter()
  out.struct(
    move(group, [ROW_GROUP.fileOffset], moved)
      // Optional, and only valid within one file.
      .filter(({ id }) => id !== ROW_GROUP.ordinal)
      .map((field) =>
        field.id === ROW_GROUP.columns ? { ...field, value: { elementType: TYPE.struct, items: columns } } : field,
      ),
  )
  return out.bytes()
}

function moveColumn(column: readonly Field[], moved: bigint): Field[] {
  const meta = fieldOf(column, COLUMN.metaData).value as Field[]
  if (column.some(({ id }) => COLUMN_INDEXES.includes(id)) || meta.some(({ id }) => id === COLUMN_BLOOM_FILTER)) {
    throw new Error('a Parquet file with page indexes or bloom filters cannot be joined')
  }
  return move(column, [COLUMN.fileOffset], moved).map((field) =>
    field.id === COLUMN.metaData ? { ...field, value: move(meta, Object.values(COLUMN_META), moved) } : field,
  )
}

/** Adjusts offsets; zero means that there is none. */
function move(fields: readonly Field[], ids: readonly number[], moved: bigint): Field[] {
  return fields.map((field) =>
    ids.includes(field.id) && field.value !== 0n ? { ...field, value: (field.value as bigint) + moved } : field,
  )
}

function fieldOf(fields: readonly Field[], id: number): Field {
  const field = fields.find((each) => each.id === id)
  if (field === undefined) throw new Error(`a Parquet footer lacks field ${id}`)
  return field
}

function listOf(fields: readonly Field[], id: number): readonly Value[] {
  return (fieldOf(fields, id).value as List).items
}
