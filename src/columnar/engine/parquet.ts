/**
 * Joins Parquet files with the same columns into one, as they come: the pages are passed on as they are, and the places in
 * the footers move along. So a result becomes one file without ever being in memory or on disk as a whole, which
 * the engine's own streaming cannot do: it makes a file of each block. Page indexes and bloom filters must be off, because
 * they hold places, too.
 */
export class ParquetJoin {
  private first: Field[] | undefined
  private readonly rowGroups: Buffer[] = []
  private rows = 0n
  private written = 0

  /** @param file a complete Parquet file @returns what comes next of the joined one */
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

const MAGIC = Buffer.from('PAR1')
/** Length of the footer and the magic. */
const TAIL_BYTES = 8

/** Ids of the fields that we touch, by the structs of `parquet.thrift`. */
const FILE = { rows: 3, rowGroups: 4 }
const ROW_GROUP = { columns: 1, fileOffset: 5, ordinal: 7 }
const COLUMN = { fileOffset: 2, metaData: 3 }
const COLUMN_META = { dataPage: 9, indexPage: 10, dictionaryPage: 11 }
/** What would hold places that are not moved: offset and column index, bloom filter. */
const COLUMN_INDEXES = [4, 6]
const COLUMN_BLOOM_FILTER = 14

function encodeRowGroup(group: readonly Field[], moved: bigint): Buffer {
  const columns = listOf(group, ROW_GROUP.columns).map((column) => moveColumn(column as Field[], moved))
  const out = new ThriftWriter()
  out.struct(
    move(group, [ROW_GROUP.fileOffset], moved)
      // Optional, and only right within one file.
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

/** Zero means that there is none. */
function move(fields: readonly Field[], ids: readonly number[], moved: bigint): Field[] {
  return fields.map((field) =>
    ids.includes(field.id) && field.value !== 0n ? { ...field, value: (field.value as bigint) + moved } : field,
  )
}

function fieldOf(fields: readonly Field[], id: number): Field {
  const field = fields.find((each) => each.id === id)
  if (field === undefined) throw new Error(`a Parquet footer without its field ${id}`)
  return field
}

function listOf(fields: readonly Field[], id: number): readonly Value[] {
  return (fieldOf(fields, id).value as List).items
}

/** Thrift's compact protocol, as far as Parquet's footers use it. */
const TYPE = { true: 1, false: 2, byte: 3, i16: 4, i32: 5, i64: 6, double: 7, binary: 8, list: 9, set: 10, struct: 12 }

interface Field {
  readonly id: number
  readonly type: number
  readonly value: Value
}
interface List {
  readonly elementType: number
  readonly items: readonly Value[]
}
/** Integers as bigints; texts, and doubles as they lie there, as bytes; in a list, structs that are encoded already, too. */
type Value = bigint | boolean | Buffer | List | Field[]

class ThriftReader {
  private at = 0

  constructor(private readonly data: Buffer) {}

  struct(): Field[] {
    const fields: Field[] = []
    for (let id = 0; ; ) {
      const head = this.data[this.at++]
      if (head === 0) return fields
      id = head >> 4 === 0 ? Number(this.zigzag()) : id + (head >> 4)
      const type = head & 15
      fields.push({ id, type, value: type === TYPE.true ? true : type === TYPE.false ? false : this.value(type) })
    }
  }

  private value(type: number): Value {
    switch (type) {
      case TYPE.byte:
        return this.take(1)
      case TYPE.i16:
      case TYPE.i32:
      case TYPE.i64:
        return this.zigzag()
      case TYPE.double:
        return this.take(8)
      case TYPE.binary:
        return this.take(Number(this.varint()))
      case TYPE.list:
      case TYPE.set:
        return this.list()
      case TYPE.struct:
        return this.struct()
      default:
        throw new Error(`a Parquet footer with Thrift type ${type}`)
    }
  }

  private list(): List {
    const head = this.data[this.at++]
    const size = head >> 4 === 15 ? Number(this.varint()) : head >> 4
    const elementType = head & 15
    // In a list, a boolean is a byte of its own.
    const isBoolean = elementType === TYPE.true || elementType === TYPE.false
    const items = Array.from({ length: size }, () => (isBoolean ? this.take(1) : this.value(elementType)))
    return { elementType, items }
  }

  private take(length: number): Buffer {
    this.at += length
    return this.data.subarray(this.at - length, this.at)
  }

  private varint(): bigint {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = this.data[this.at++]
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }

  private zigzag(): bigint {
    const value = this.varint()
    return (value >> 1n) ^ -(value & 1n)
  }
}

class ThriftWriter {
  private readonly parts: Uint8Array[] = []

  bytes(): Buffer {
    return Buffer.concat(this.parts)
  }

  struct(fields: readonly Field[]): void {
    let last = 0
    for (const { id, type, value } of fields) {
      const step = id - last
      if (step > 0 && step < 16) this.byte((step << 4) | type)
      else {
        this.byte(type)
        this.zigzag(BigInt(id))
      }
      last = id
      if (typeof value !== 'boolean') this.value(type, value)
    }
    this.byte(0)
  }

  private value(type: number, value: Value): void {
    if (typeof value === 'bigint') this.zigzag(value)
    else if (Buffer.isBuffer(value)) {
      if (type === TYPE.binary) this.varint(BigInt(value.length))
      this.parts.push(value)
    } else if (Array.isArray(value)) this.struct(value)
    else this.list(value as List)
  }

  private list({ elementType, items }: List): void {
    if (items.length < 15) this.byte((items.length << 4) | elementType)
    else {
      this.byte((15 << 4) | elementType)
      this.varint(BigInt(items.length))
    }
    for (const item of items) this.value(elementType, item)
  }

  private byte(value: number): void {
    this.parts.push(Uint8Array.of(value))
  }

  private zigzag(value: bigint): void {
    this.varint(BigInt.asUintN(64, (value << 1n) ^ (value >> 63n)))
  }

  private varint(value: bigint): void {
    let rest = value
    for (; rest > 127n; rest >>= 7n) this.byte(Number(rest & 127n) | 128)
    this.byte(Number(rest))
  }
}
