import { SCORE_CELLS } from '../../stores/journal/rows.ts'

const KEPT_BYTES = 256 * 1024
const ROWS_MIN = 16

/** Memory for the body of a call and the cells of its scores. Allocating it would take longer than most scans. */
export class ScanMemory {
  /** The body, then a zero byte; texts with escapes are decoded in place. */
  readonly text: Buffer
  cells = new Int32Array(ROWS_MIN * SCORE_CELLS.count)
  value = new Float64Array(ROWS_MIN)
  createdAt = new Float64Array(ROWS_MIN)
  /** Index of each score in the request. */
  index = new Int32Array(ROWS_MIN)

  constructor(bytes: number) {
    this.text = Buffer.allocUnsafeSlow(bytes)
  }

  /** Makes room for a row, in exponential steps. */
  reserveRow(row: number): void {
    if (row < this.index.length) return
    const rows = this.index.length * 4
    this.cells = grown(this.cells, new Int32Array(rows * SCORE_CELLS.count))
    this.value = grown(this.value, new Float64Array(rows))
    this.createdAt = grown(this.createdAt, new Float64Array(rows))
    this.index = grown(this.index, new Int32Array(rows))
  }
}

function grown<A extends Int32Array | Float64Array>(from: A, to: A): A {
  to.set(from)
  return to
}

/** The memory of scans. One is kept: most calls are small, and need it in one tick only. */
export class ScanMemoryPool {
  private readonly kept = new ScanMemory(KEPT_BYTES)
  private isTaken = false

  /** Memory for a body of so many bytes, until {@link give}. */
  take(bytes: number): ScanMemory {
    if (this.isTaken || bytes >= KEPT_BYTES) return new ScanMemory(bytes + 1)
    this.isTaken = true
    return this.kept
  }

  give(memory: ScanMemory): void {
    if (memory === this.kept) this.isTaken = false
  }
}
