import type { SkipText } from '../../base/http/json-scan.ts'

const PLAIN_BYTES = 256 * 1024

/** What a scan holds in place of memory before it has any, and once it is released: every access throws. */
export const NO_MEMORY = new Proxy<never>({} as never, {
  get() {
    throw new Error('an event scan was used outside of ScanPool.use')
  },
})

/** Where the body of a scan is. */
interface Place {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** The same bytes. */
  readonly text: Buffer
  readonly skipText: SkipText | undefined
}

/** The memory of a scan. Allocating it would take longer than most scans. */
export class ScanMemory {
  private readonly kept: Place
  private rows = scanRows(0)

  /** @param memory with a faster way to read its strings, see `simd-text.ts` */
  constructor(memory?: Pick<Place, 'bytes' | 'skipText'>) {
    this.kept = placeIn(memory?.bytes ?? new Uint8Array(PLAIN_BYTES), memory?.skipText)
  }

  /** Room for a body and the zero byte after it. That for an unusually large body is not kept. */
  placeFor(bodyBytes: number): Place {
    return bodyBytes < this.kept.bytes.length ? this.kept : placeIn(new Uint8Array(bodyBytes + 1), undefined)
  }

  /** Room for this many events. */
  rowsFor(events: number): ReturnType<typeof scanRows> {
    if (events > this.rows.level.length) this.rows = scanRows(events)
    return this.rows
  }
}

function placeIn(bytes: Uint8Array<ArrayBuffer>, skipText: SkipText | undefined): Place {
  return { bytes, text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), skipText }
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
  taskIds: new Uint32Array(rows * 4),
})
