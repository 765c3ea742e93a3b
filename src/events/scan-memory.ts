/** The size of the buffer that is used again. */
export const BYTES_KEPT = 256 * 1024

/** What a scan holds in place of memory before it has any, and once it is released: every access throws. */
export const NO_MEMORY = new Proxy<never>({} as never, {
  get() {
    throw new Error('an event scan was used outside of ScanPool.use')
  },
})

/** The memory of a scan. Allocating it would take longer than most scans. */
export class ScanMemory {
  bytes = new Uint8Array(BYTES_KEPT)
  text = Buffer.from(this.bytes.buffer)
  rows = new ScanRows(0)

  /** Makes room for a body and the zero byte after it, and for this many events. */
  fit(bodyBytes: number, rows: number): this {
    if (bodyBytes >= this.bytes.length) {
      this.bytes = new Uint8Array(bodyBytes + 1)
      this.text = Buffer.from(this.bytes.buffer)
    }
    if (rows > this.rows.level.length) this.rows = new ScanRows(rows)
    return this
  }
}

class ScanRows {
  readonly typeStart: Int32Array
  readonly typeEnd: Int32Array
  readonly level: Int8Array
  readonly payloadStart: Int32Array
  readonly payloadEnd: Int32Array
  readonly occurredAt: Float64Array
  readonly idStart: Int32Array
  readonly idEnd: Int32Array

  constructor(rows: number) {
    this.typeStart = new Int32Array(rows)
    this.typeEnd = new Int32Array(rows)
    this.level = new Int8Array(rows)
    this.payloadStart = new Int32Array(rows)
    this.payloadEnd = new Int32Array(rows)
    this.occurredAt = new Float64Array(rows)
    this.idStart = new Int32Array(rows)
    this.idEnd = new Int32Array(rows)
  }
}
