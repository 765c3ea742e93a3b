import { Bytes } from '../../clickhouse/bytes.ts'

const ID_WORDS = 4
const ID_BYTES = ID_WORDS * 4

/**
 * The column `task_id` of an event block, of type `Nullable(UUID)`. Most events name no task. A block in which none does
 * omits the column, which ClickHouse fills with nulls.
 */
export class TaskIdColumn {
  /** All zero for none. Shorter than the block if its last rows have none. */
  private readonly ids = new Bytes(0)
  private readonly nulls = new Bytes(0)

  get isEmpty(): boolean {
    return this.ids.length === 0
  }

  /**
   * Appends the task ids of an ingested batch.
   * @param ids of the whole batch, four words each, all zero for none
   * @param rows indexes of the events to append, in order; undefined: the first `count`
   * @param before the rows that the block already has
   */
  add(ids: Uint32Array, rows: readonly number[] | undefined, count: number, before: number): void {
    this.pad(before)
    const target = this.ids.addWords(count * ID_WORDS)
    for (let i = 0; i < count; i++) {
      const from = (rows === undefined ? i : rows[i]) * ID_WORDS
      for (let word = 0; word < ID_WORDS; word++) target[i * ID_WORDS + word] = ids[from + word]
    }
  }

  /** The column as pieces to be concatenated. They are views: use them before {@link truncate}. */
  pieces(rows: number): Uint8Array[] {
    this.pad(rows)
    const words = new Uint32Array(this.ids.buffer.buffer, 0, rows * ID_WORDS)
    this.nulls.clear()
    this.nulls.reserve(rows)
    for (let at = 0; at < words.length; at += ID_WORDS)
      this.nulls.byte((words[at] | words[at + 1] | words[at + 2] | words[at + 3]) === 0 ? 1 : 0)
    return [this.nulls.view(), this.ids.view()]
  }

  /** Keeps the ids of the first `rows` rows only. */
  truncate(rows: number): void {
    this.ids.length = Math.min(this.ids.length, rows * ID_BYTES)
  }

  clear(): void {
    this.ids.clear()
  }

  /** Fills the column up to this many rows with ids that mean none. */
  private pad(rows: number): void {
    const missing = rows * ID_BYTES - this.ids.length
    if (missing > 0) this.ids.addWords(missing / 4).fill(0)
  }
}
