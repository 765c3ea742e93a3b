/**
 * Visits the payloads of all events of one type in a block of events (see `event-block.ts`) without decoding the rest, for
 * consumers that read every block but need few of its rows.
 *
 * @param type the event type in UTF-8
 * @param visit gets the row, and where its payload starts and ends in `block`
 */
export function visitPayloads(
  block: Uint8Array,
  type: Uint8Array,
  visit: (row: number, start: number, end: number) => void,
): void {
  const cursor = new Cursor(block)
  const columns = cursor.varint()
  const rows = cursor.varint()
  let matches: readonly number[] = []
  for (let i = 0; i < columns; i++) {
    const name = cursor.text()
    const columnType = cursor.text()
    if (columnType !== 'String') cursor.at += widthOf(columnType) * rows
    else if (name === 'payload') {
      cursor.visit(matches, visit)
      return
    } else if (name === 'type') {
      matches = cursor.matches(rows, type)
      if (matches.length === 0) return
    } else cursor.skipStrings(rows)
  }
}

/** The size of a value, in bytes. */
function widthOf(columnType: string): number {
  if (columnType === 'UUID') return 16
  if (columnType.startsWith('Enum8')) return 1
  if (columnType === 'UInt64' || columnType.startsWith('DateTime64')) return 8
  throw new RangeError(`a block of events has a column of type ${columnType}`)
}

class Cursor {
  at = 0

  constructor(private readonly bytes: Uint8Array) {}

  varint(): number {
    const { bytes } = this
    let byte = bytes[this.at++]
    if (byte < 0x80) return byte
    let value = byte & 0x7f
    for (let unit = 0x80; ; unit *= 0x80) {
      byte = bytes[this.at++]
      value += (byte & 0x7f) * unit
      if (byte < 0x80) return value
    }
  }

  text(): string {
    const length = this.varint()
    this.at += length
    return String.fromCharCode(...this.bytes.subarray(this.at - length, this.at))
  }

  skipStrings(rows: number): void {
    for (let row = 0; row < rows; row++) this.skipString()
  }

  private skipString(): void {
    const length = this.varint()
    this.at += length
  }

  /** The rows whose value is `wanted`. */
  matches(rows: number, wanted: Uint8Array): readonly number[] {
    const found: number[] = []
    for (let row = 0; row < rows; row++) {
      const length = this.varint()
      if (length === wanted.length && this.startsWith(wanted)) found.push(row)
      this.at += length
    }
    return found
  }

  visit(rows: readonly number[], visit: (row: number, start: number, end: number) => void): void {
    let row = 0
    for (const wanted of rows) {
      for (; row < wanted; row++) this.skipString()
      const length = this.varint()
      visit(row++, this.at, this.at + length)
      this.at += length
    }
  }

  private startsWith(wanted: Uint8Array): boolean {
    for (let i = 0; i < wanted.length; i++) if (this.bytes[this.at + i] !== wanted[i]) return false
    return true
  }
}
