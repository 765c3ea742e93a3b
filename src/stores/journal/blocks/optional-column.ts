import { Bytes } from '../../clickhouse/bytes.ts'
import { columnHead } from '../../clickhouse/native.ts'
import { SCORE_CELLS, type ScoreColumns } from '../rows.ts'

const INITIAL_BYTES = 4 * 1024
/** The data types of scores with a value: numbers and booleans. */
const NUMERIC_MAX = 2

/** Scratch space: a number and its words. */
const number = new Float64Array(1)
const words = new Uint32Array(number.buffer)

/**
 * A `Nullable` column in which most rows have no value. A block in which none has one omits the column, which ClickHouse
 * fills with nulls.
 */
export class OptionalColumn {
  /** 1 for null. Shorter than the block if its last rows are null. */
  readonly nulls = new Bytes(INITIAL_BYTES)
  readonly values = new Bytes(INITIAL_BYTES)
  private readonly head: Buffer

  /** @param nullBytes length of a null among the values, which is of zeros */
  private constructor(
    name: string,
    type: string,
    private readonly nullBytes: number,
  ) {
    this.head = columnHead(name, `Nullable(${type})`)
  }

  static ofTexts(name: string): OptionalColumn {
    return new OptionalColumn(name, 'String', 1)
  }

  static ofNumbers(name: string): OptionalColumn {
    return new OptionalColumn(name, 'Float64', 8)
  }

  static ofUuids(name: string): OptionalColumn {
    return new OptionalColumn(name, 'UUID', 16)
  }

  get isEmpty(): boolean {
    return this.nulls.length === 0
  }

  /**
   * Adds the values of scores, which are ranges of their text.
   * @param before the rows that the block has before them
   * @param cell of their ranges
   */
  texts(before: number, { text, cells }: ScoreColumns, rows: readonly number[], cell: number): void {
    for (let i = 0; i < rows.length; i++) {
      const at = rows[i] * SCORE_CELLS.count + cell
      if (cells[at] < 0) continue
      this.begin(before + i)
      this.values.slice(text, cells[at], cells[at + 1])
    }
  }

  /** The same for ids of tasks. */
  uuids(before: number, { text, cells }: ScoreColumns, rows: readonly number[], cell: number): void {
    for (let i = 0; i < rows.length; i++) {
      const at = rows[i] * SCORE_CELLS.count + cell
      if (cells[at] < 0) continue
      this.begin(before + i)
      this.values.uuid(text.toString('latin1', cells[at], cells[at + 1]))
    }
  }

  /** The same for values, of those scores that have one. */
  numbers(before: number, { cells, value }: ScoreColumns, rows: readonly number[]): void {
    const hasValue = (row: number) => cells[row * SCORE_CELLS.count + SCORE_CELLS.dataType] <= NUMERIC_MAX
    if (!rows.some(hasValue)) return
    this.pad(before)
    const { nulls, values } = this
    nulls.reserve(rows.length)
    const target = values.addWords(rows.length * 2)
    for (let i = 0; i < rows.length; i++) {
      const isNull = !hasValue(rows[i])
      number[0] = isNull ? 0 : value[rows[i]]
      target[i * 2] = words[0]
      target[i * 2 + 1] = words[1]
      nulls.buffer[nulls.length++] = isNull ? 1 : 0
    }
  }

  /** The column as pieces to be concatenated. They are views: use them before the column changes. */
  pieces(rows: number): Buffer[] {
    this.pad(rows)
    return [this.head, this.nulls.view(), this.values.view()]
  }

  private begin(before: number): void {
    this.pad(before)
    this.nulls.byte(0)
  }

  /** Fills the column up to this many rows with nulls. */
  private pad(rows: number): void {
    const missing = rows - this.nulls.length
    if (missing <= 0) return
    fill(this.nulls, missing, 1)
    fill(this.values, missing * this.nullBytes, 0)
  }
}

function fill(column: Bytes, bytes: number, value: number): void {
  column.reserve(bytes)
  column.buffer.fill(value, column.length, column.length + bytes)
  column.length += bytes
}
