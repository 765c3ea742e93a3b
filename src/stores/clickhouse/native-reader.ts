import { lookup } from '../../base/lookup.ts'

/** The order in which ClickHouse stores the bytes of a UUID; -1 is a dash of its text. */
const UUID_ORDER = [7, 6, 5, 4, -1, 3, 2, -1, 1, 0, -1, 15, 14, -1, 13, 12, 11, 10, 9, 8]

const NONE: ReadonlySet<string> = new Set()

/**
 * Reads the journal's blocks in ClickHouse's `Native` format (`event-block.ts`, `record-block.ts`), for consumers of the
 * journal. Strings are decoded on access, so that rows without a subscriber cost little.
 *
 * Nothing is copied: read all values before the block's memory is reused.
 */
export class NativeBlock {
  readonly rows: number
  private readonly columns = new Map<string, Column>()

  /** @throws RangeError for a block that is cut off, or has a column of a type that the journal does not write */
  constructor(bytes: Buffer) {
    const cursor = new Cursor(bytes)
    const columns = cursor.varint()
    this.rows = cursor.varint()
    for (let i = 0; i < columns; i++) {
      const name = cursor.string()
      const type = cursor.string()
      // The epoch is the last column and is known to the reader of the journal.
      if (type.startsWith('LowCardinality')) break
      this.columns.set(name, readColumn(cursor, type, this.rows))
    }
  }

  /** @throws RangeError for a column that the block does not have */
  strings(name: string): StringColumn {
    const column = this.columns.get(name)
    if (!(column instanceof StringColumn)) throw new RangeError(`the block has no column ${name} of strings`)
    return column
  }

  /** Integers of up to 53 bits; for an `Enum8`, its numeric values. */
  numbers(name: string): NumberColumn {
    const column = this.columns.get(name)
    if (!(column instanceof NumberColumn)) throw new RangeError(`the block has no column ${name} of numbers`)
    return column
  }

  /** A column of UUIDs or nulls. If the block does not have it, every row is null. */
  uuids(name: string): UuidColumn {
    return (this.columns.get(name) ?? NO_UUIDS) as UuidColumn
  }

  /** The row as an object, without some columns. Columns that the block does not have are absent. */
  row(index: number, without: ReadonlySet<string> = NONE): Record<string, unknown> {
    const row: Record<string, unknown> = {}
    for (const [name, column] of this.columns) if (!without.has(name)) row[name] = column.at(index)
    return row
  }
}

interface Column {
  at(row: number): unknown
}

interface UuidColumn extends Column {
  at(row: number): string | null
}

const NO_UUIDS: UuidColumn = { at: () => null }

class StringColumn implements Column {
  constructor(
    private readonly bytes: Buffer,
    /** Start and end offset of each value. */
    private readonly offsets: Uint32Array,
  ) {}

  at(row: number): string {
    return this.bytes.toString('utf8', this.offsets[row * 2], this.offsets[row * 2 + 1])
  }
}

class NumberColumn implements Column {
  constructor(readonly at: (row: number) => number) {}
}

/** A position in a block that moves as values are read. */
class Cursor {
  at = 0

  constructor(readonly bytes: Buffer) {}

  varint(): number {
    let byte = this.bytes[this.at++]
    if (byte < 0x80) return byte
    let value = 0
    for (let unit = 1; ; unit *= 0x80) {
      if (byte === undefined) throw cutOff()
      value += (byte & 0x7f) * unit
      if (byte < 0x80) return value
      byte = this.bytes[this.at++]
    }
  }

  string(): string {
    const start = this.skip(this.varint())
    return this.bytes.toString('utf8', start, this.at)
  }

  /** Skips `length` bytes. @returns where they begin. @throws RangeError when the block ends before them */
  skip(length: number): number {
    this.at += length
    if (this.at > this.bytes.length) throw cutOff()
    return this.at - length
  }
}

function cutOff(): RangeError {
  return new RangeError('a block of the journal is cut off')
}

function readColumn(cursor: Cursor, type: string, rows: number): Column {
  const nullable = /^Nullable\((.+)\)$/.exec(type)
  if (nullable !== null) {
    const nulls = cursor.skip(rows)
    const values = readColumn(cursor, nullable[1], rows)
    const { bytes } = cursor
    return { at: (row) => (bytes[nulls + row] === 1 ? null : values.at(row)) }
  }
  const reader = READERS.get(type.startsWith('Enum8') ? 'Enum8' : type)
  if (reader === undefined) throw new RangeError(`a block of the journal has a column of type ${type}`)
  return reader(cursor, rows)
}

const READERS = lookup<(cursor: Cursor, rows: number) => Column>({
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
  Bool: (cursor, rows) => {
    const { bytes } = cursor
    const start = cursor.skip(rows)
    return { at: (row) => bytes[start + row] === 1 }
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
})

function strings(cursor: Cursor, rows: number): StringColumn {
  // Each takes a byte at least: a damaged count allocates nothing.
  if (rows > cursor.bytes.length - cursor.at) throw cutOff()
  const offsets = new Uint32Array(rows * 2)
  for (let row = 0; row < rows; row++) {
    offsets[row * 2] = cursor.skip(cursor.varint())
    offsets[row * 2 + 1] = cursor.at
  }
  return new StringColumn(cursor.bytes, offsets)
}

function int64(cursor: Cursor, rows: number): NumberColumn {
  const { bytes } = cursor
  const start = cursor.skip(rows * 8)
  return new NumberColumn((row) => {
    const at = start + row * 8
    return bytes.readInt32LE(at + 4) * 2 ** 32 + bytes.readUInt32LE(at)
  })
}

/** An event in a block. */
interface EventInBlock {
  readonly row: number
  /** Where its payload starts and ends in the block. */
  readonly start: number
  readonly end: number
  /** Unix milliseconds. */
  readonly occurredAt: number
}

/**
 * Finds all events of one type in a block of events (see `event-block.ts`) without decoding the rest, for consumers that
 * read every block but need few of its rows.
 *
 * @param type the event type in UTF-8
 */
export function eventsOfType(block: Buffer, type: Uint8Array): readonly EventInBlock[] {
  const cursor = new Cursor(block)
  const columns = cursor.varint()
  const rows = cursor.varint()
  let matches: readonly number[] = []
  let payloads: readonly Omit<EventInBlock, 'occurredAt'>[] = []
  for (let i = 0; i < columns; i++) {
    const name = cursor.string()
    const columnType = cursor.string()
    if (name === 'occurred_at') {
      const times = int64(cursor, rows)
      return payloads.map(({ row, start, end }) => ({ row, start, end, occurredAt: times.at(row) }))
    }
    if (columnType !== 'String') cursor.at += widthOf(columnType) * rows
    else if (name === 'payload') payloads = stringsAt(cursor, rows, matches)
    else if (name === 'type') {
      matches = rowsWith(cursor, rows, type)
      if (matches.length === 0) return []
    } else for (let row = 0; row < rows; row++) cursor.skip(cursor.varint())
  }
  return []
}

/** The size of a value, in bytes. */
function widthOf(columnType: string): number {
  if (columnType === 'UUID') return 16
  if (columnType.startsWith('Enum8')) return 1
  if (columnType === 'UInt64' || columnType.startsWith('DateTime64')) return 8
  throw new RangeError(`a block of events has a column of type ${columnType}`)
}

/** The rows of a column of strings whose value is `wanted`. */
function rowsWith(cursor: Cursor, rows: number, wanted: Uint8Array): readonly number[] {
  const found: number[] = []
  const { bytes } = cursor
  for (let row = 0; row < rows; row++) {
    const start = cursor.skip(cursor.varint())
    let same = 0
    while (same < wanted.length && bytes[start + same] === wanted[same]) same++
    if (same === wanted.length && cursor.at - start === same) found.push(row)
  }
  return found
}

/** Where the strings of these rows are in a column of strings. */
function stringsAt(cursor: Cursor, rows: number, wanted: readonly number[]) {
  const found: { row: number; start: number; end: number }[] = []
  for (let row = 0; row < rows; row++) {
    const start = cursor.skip(cursor.varint())
    if (row === wanted[found.length]) found.push({ row, start, end: cursor.at })
  }
  return found
}

/** Two halves, each a little-endian 64-bit integer. */
function uuidAt(bytes: Buffer, at: number): string {
  const hex = bytes.toString('hex', at, at + 16)
  let uuid = ''
  for (const index of UUID_ORDER) uuid += index < 0 ? '-' : hex.slice(index * 2, index * 2 + 2)
  return uuid
}
