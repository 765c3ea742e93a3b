import { Bytes } from './bytes.ts'

/**
 * Parts of ClickHouse's `Native` format as used over HTTP: a block is its number of columns and rows, then each column's
 * name, type and values.
 */

export function blockHead(columns: number, rows: number): Buffer {
  const head = new Bytes(16)
  head.varint(columns)
  head.varint(rows)
  return head.view()
}

export function columnHead(name: string, type: string): Buffer {
  const head = new Bytes(64)
  head.string(name)
  head.string(type)
  return head.view()
}

/** Appends the `UInt64` values `first`, `first + 1`, … */
export function addRisingUInt64(column: Bytes, first: number, rows: number): void {
  const words = column.addWords(rows * 2)
  let low = first % 2 ** 32
  let high = Math.floor(first / 2 ** 32)
  for (let i = 0; i < words.length; i += 2) {
    words[i] = low
    words[i + 1] = high
    if (++low === 2 ** 32) {
      low = 0
      high++
    }
  }
}

/** Appends the same `Int64` or `DateTime64` `rows` times. */
export function addConstantInt64(column: Bytes, value: number, rows: number): void {
  const words = column.addWords(rows * 2)
  const high = Math.floor(value / 2 ** 32)
  for (let i = 0; i < words.length; i += 2) {
    words[i] = value
    words[i + 1] = high
  }
}

/**
 * A `LowCardinality(String)` column with the same value `rows` times: a dictionary with one entry and an index of one byte
 * per row, which is cheaper for the engine than a string per row.
 */
export function constantLowCardinality(value: string, rows: number): Buffer {
  const column = new Bytes(64 + value.length + rows)
  column.int64(1) // keys version: dictionaries come with the block
  column.int64(0x600) // 8-bit indexes; additional keys follow; the dictionary is new
  column.int64(1)
  column.string(value)
  column.int64(rows)
  column.reserve(rows)
  column.buffer.fill(0, column.length, column.length + rows)
  column.length += rows
  return column.view()
}
