const MAGIC = Buffer.from('PAR1')
/** Length of the footer and the magic. */
const TAIL_BYTES = 8

/** Ids of fields of `FileMetaData` in `parquet.thrift`. */
const FILE = { rows: 3, rowGroups: 4 }

/** How to rewrite the fields of a struct, by their ids in `parquet.thrift`; other fields are copied. */
interface Rules {
  readonly [id: number]: 'moved' | 'dropped' | 'refused' | Rules
}
/** Offsets of the data, index and dictionary pages, and of the bloom filter. */
const COLUMN_META_DATA: Rules = { 9: 'moved', 10: 'moved', 11: 'moved', 14: 'refused' }
/** Offsets of the file, of the offset index and of the column index. */
const COLUMN: Rules = { 2: 'moved', 3: COLUMN_META_DATA, 4: 'refused', 6: 'refused' }
/** The ordinal is optional, and only valid within one file. */
const ROW_GROUP: Rules = { 1: COLUMN, 5: 'moved', 7: 'dropped' }

/** Types of Thrift's compact protocol that Parquet footers use. */
const TYPE = { true: 1, false: 2, byte: 3, i16: 4, i32: 5, i64: 6, double: 7, binary: 8, list: 9, set: 10, struct: 12 }

/** A field of a struct, whose value stays encoded unless it is modified. */
interface Field {
  readonly id: number
  readonly type: number
  readonly value: Buffer
}

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
    const footer = fieldsOf(file.subarray(footerAt))
    // Each file begins with the magic; only the first one's is passed on.
    const pages = file.subarray(this.first === undefined ? 0 : MAGIC.length, footerAt)
    const moved = BigInt(this.first === undefined ? 0 : this.written - MAGIC.length)
    for (const { id, value } of footer) {
      if (id === FILE.rows) this.rows += new ThriftReader(value).integer()
      if (id === FILE.rowGroups)
        this.rowGroups.push(...itemsOf(value).map((group) => rewritten(group, TYPE.struct, ROW_GROUP, moved)))
    }
    this.first ??= footer
    this.written += pages.length
    return pages
  }

  /** The footer. At least one file has been added. */
  end(): Buffer {
    if (this.first === undefined) return Buffer.alloc(0)
    const footer = struct(
      this.first.map((field) => {
        if (field.id === FILE.rows) return { ...field, value: integer(this.rows) }
        return field.id === FILE.rowGroups ? { ...field, value: structs(this.rowGroups) } : field
      }),
    )
    const tail = Buffer.alloc(TAIL_BYTES)
    tail.writeUInt32LE(footer.length)
    MAGIC.copy(tail, 4)
    return Buffer.concat([footer, tail])
  }
}

/** Rewrites an encoded value. @param moved how far the offsets have moved; an offset of zero means that there is none */
function rewritten(value: Buffer, type: number, rule: Rules[number] | undefined, moved: bigint): Buffer {
  if (rule === undefined || rule === 'dropped') return value
  if (rule === 'refused') throw new Error('a Parquet file with page indexes or bloom filters cannot be joined')
  if (rule === 'moved') {
    const offset = new ThriftReader(value).integer()
    return offset === 0n ? value : integer(offset + moved)
  }
  if (type === TYPE.list) return structs(itemsOf(value).map((item) => rewritten(item, TYPE.struct, rule, moved)))
  const kept = fieldsOf(value).filter(({ id }) => rule[id] !== 'dropped')
  return struct(kept.map((field) => ({ ...field, value: rewritten(field.value, field.type, rule[field.id], moved) })))
}

function fieldsOf(value: Buffer): Field[] {
  return new ThriftReader(value).struct()
}

function itemsOf(value: Buffer): Buffer[] {
  return new ThriftReader(value).list()
}

/** Splits encoded values into the values that they contain. */
class ThriftReader {
  private at = 0

  constructor(private readonly data: Buffer) {}

  struct(): Field[] {
    const fields: Field[] = []
    for (let id = 0; ; ) {
      const head = this.data[this.at++]
      if (head === 0) return fields
      id = head >> 4 === 0 ? Number(this.integer()) : id + (head >> 4)
      const type = head & 15
      const start = this.at
      // A boolean is part of the type.
      if (type !== TYPE.true && type !== TYPE.false) this.skip(type)
      fields.push({ id, type, value: this.data.subarray(start, this.at) })
    }
  }

  list(): Buffer[] {
    const head = this.data[this.at++]
    const size = head >> 4 === 15 ? Number(this.varint()) : head >> 4
    return Array.from({ length: size }, () => {
      const start = this.at
      this.skip(head & 15)
      return this.data.subarray(start, this.at)
    })
  }

  integer(): bigint {
    const value = this.varint()
    return (value >> 1n) ^ -(value & 1n)
  }

  private skip(type: number): void {
    if (type === TYPE.struct) this.struct()
    else if (type === TYPE.list || type === TYPE.set) this.list()
    else if (type === TYPE.i16 || type === TYPE.i32 || type === TYPE.i64) this.varint()
    else if (type === TYPE.binary) {
      const length = Number(this.varint())
      this.at += length
    } else if (type === TYPE.double) this.at += 8
    // In a list, a boolean takes one byte.
    else if (type === TYPE.byte || type === TYPE.true || type === TYPE.false) this.at += 1
    else throw new Error(`unsupported Thrift type ${type} in a Parquet footer`)
  }

  private varint(): bigint {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = this.data[this.at++]
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }
}

/** The ids of Parquet's fields rise by less than 16. */
function struct(fields: readonly Field[]): Buffer {
  const parts = fields.flatMap(({ id, type, value }, i) => [
    Buffer.of(((id - (fields[i - 1]?.id ?? 0)) << 4) | type),
    value,
  ])
  return Buffer.concat([...parts, Buffer.of(0)])
}

function structs(items: readonly Buffer[]): Buffer {
  const { length } = items
  const head = length < 15 ? [(length << 4) | TYPE.struct] : [(15 << 4) | TYPE.struct, ...varint(BigInt(length))]
  return Buffer.concat([Buffer.from(head), ...items])
}

function integer(value: bigint): Buffer {
  return Buffer.from(varint(BigInt.asUintN(64, (value << 1n) ^ (value >> 63n))))
}

function varint(value: bigint): number[] {
  return value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)]
}
