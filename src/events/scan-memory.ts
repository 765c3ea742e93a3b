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
  rows = scanRows(0)

  /** Makes room for a body and the zero byte after it, and for this many events. */
  fit(bodyBytes: number, rows: number): this {
    if (bodyBytes >= this.bytes.length) {
      this.bytes = new Uint8Array(bodyBytes + 1)
      this.text = Buffer.from(this.bytes.buffer)
    }
    if (rows > this.rows.level.length) this.rows = scanRows(rows)
    return this
  }
}

const scanRows = (rows: number) => ({
  typeStart: new Int32Array(rows),
  typeEnd: new Int32Array(rows),
  level: new Int8Array(rows),
  payloadStart: new Int32Array(rows),
  payloadEnd: new Int32Array(rows),
  occurredAt: new Float64Array(rows),
  idStart: new Int32Array(rows),
  idEnd: new Int32Array(rows),
})
