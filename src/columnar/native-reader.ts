/**
 * Reads blocks of ClickHouse's `Native` format as the journal writes them (`event-block.ts`, `record-block.ts`), for those who
 * follow the journal instead of asking ClickHouse. Strings are decoded when asked for, so that rows nobody wants cost little.
 *
 * Nothing is copied up front: read what you need before the block's memory is used again.
 */
export class NativeBlock {
  readonly rows: number
  private readonly columns = new Map<string, Column>()

  constructor(bytes: Buffer) {
    const cursor = new Cursor(bytes)
    const columns = cursor.varint()
    this.rows = cursor.varint()
    for (let i = 0; i < columns; i++) {
      const name = cursor.string()
      const type = cursor.string()
      // Which log a row came from is known to whoever reads the log.
      if (type.startsWith('LowCardinality')) break
      this.columns.set(name, readColumn(cursor, type, this.rows))
    }
  }

  /** @throws RangeError for a column that the block has not got, which is a mistake of ours */
  strings(name: string): StringColumn {
    const column = this.columns.get(name)
    if (!(column instanceof StringColumn)) throw new RangeError(`the block has no column ${name} of strings`)
    return column
  }

  /** Whole numbers of up to 53 bits; those of an `Enum8` are its places. */
  numbers(name: string): NumberColumn {
    const column = this.columns.get(name)
    if (!(column instanceof NumberColumn)) throw new RangeError(`the block has no column ${name} of numbers`)
    return column
  }

  /** The whole row as an object, null where a value is; columns that the block has not got are absent. */
  row(index: number): Record<string, unknown> {
    const row: Record<string, unknown> = {}
    for (const [name, column] of this.columns) row[name] = column.at(index)
    return row
  }
}

interface Column {
  at(row: number): unknown
}

export class StringColumn implements Column {
  constructor(
    private readonly bytes: Buffer,
    /** Where each value begins and ends. */
    private readonly places: Uint32Array,
  ) {}

  at(row: number): string {
    return this.bytes.toString('utf8', this.places[row * 2], this.places[row * 2 + 1])
  }
}

export class NumberColumn implements Column {
  constructor(readonly at: (row: number) => number) {}
}

/** A position in a block that moves as values are read. */
class Cursor {
  at = 0

  constructor(readonly bytes: Buffer) {}

  varint(): number {
    let value = 0
    let unit = 1
    for (;;) {
      const byte = this.bytes[this.at++]
      value += (byte & 0x7f) * unit
      if (byte < 0x80) return value
      unit *= 0x80
    }
  }

  string(): string {
    const length = this.varint()
    this.at += length
    return this.bytes.toString('utf8', this.at - length, this.at)
  }

  /** Steps over `length` bytes; where they begin. */
  skip(length: number): number {
    this.at += length
    return this.at - length
  }
}

function readColumn(cursor: Cursor, type: string, rows: number): Column {
  const nullable = /^Nullable\((.+)\)$/.exec(type)
  if (nullable !== null) {
    const nulls = cursor.skip(rows)
    const values = readColumn(cursor, nullable[1], rows)
    const { bytes } = cursor
    return { at: (row) => (bytes[nulls + row] === 1 ? null : values.at(row)) }
  }
  const reader = type.startsWith('Enum8') ? READERS.Enum8 : READERS[type]
  if (reader === undefined) throw new RangeError(`a block of the journal has a column of type ${type}`)
  return reader(cursor, rows)
}

const READERS: Record<string, (cursor: Cursor, rows: number) => Column> = {
  UUID: (cursor, rows) => {
    const { bytes } = cursor
    const start = cursor.skip(rows * 16)
    return { at: (row) => uuidAt(bytes, start + row * 16) }
  },
  String: strings,
  Enum8: (cursor, rows) => {
    const { bytes } = cursor
    const start = cursor.skip(rows)
    return new NumberColumn((row) => bytes[start + row])
  },
  Int64: int64,
  UInt64: int64,
  "DateTime64(3, 'UTC')": int64,
  Float64: (cursor, rows) => {
    const { bytes } = cursor
    const start = cursor.skip(rows * 8)
    return new NumberColumn((row) => bytes.readDoubleLE(start + row * 8))
  },
  'Array(String)': (cursor, rows) => {
    const ends = int64(cursor, rows)
    const items = strings(cursor, rows === 0 ? 0 : ends.at(rows - 1))
    return {
      at: (row) => {
        const values: string[] = []
        for (let i = row === 0 ? 0 : ends.at(row - 1); i < ends.at(row); i++) values.push(items.at(i))
        return values
      },
    }
  },
}

function strings(cursor: Cursor, rows: number): StringColumn {
  const places = new Uint32Array(rows * 2)
  for (let row = 0; row < rows; row++) {
    const length = cursor.varint()
    places[row * 2] = cursor.skip(length)
    places[row * 2 + 1] = cursor.at
  }
  return new StringColumn(cursor.bytes, places)
}

function int64(cursor: Cursor, rows: number): NumberColumn {
  const { bytes } = cursor
  const start = cursor.skip(rows * 8)
  return new NumberColumn((row) => {
    const at = start + row * 8
    return bytes.readInt32LE(at + 4) * 2 ** 32 + bytes.readUInt32LE(at)
  })
}

/** Two halves, each a little-endian 64-bit integer. */
function uuidAt(bytes: Buffer, at: number): string {
  const hex = bytes.toString('hex', at, at + 16)
  let uuid = ''
  for (const index of UUID_ORDER) uuid += index < 0 ? '-' : hex.slice(index * 2, index * 2 + 2)
  return uuid
}

const UUID_ORDER = [7, 6, 5, 4, -1, 3, 2, -1, 1, 0, -1, 15, 14, -1, 13, 12, 11, 10, 9, 8]
