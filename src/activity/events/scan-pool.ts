import { createSimdMemory } from '../../base/http/simd-text.ts'
import type { Limits } from '../../base/limits.ts'
import { EventScan } from './scan.ts'
import { ScanMemory } from './scan-memory.ts'

/** Scans whose memory is reused, so nothing that leaves {@link use} may refer to it. */
export class ScanPool {
  /** One is enough, because scans are synchronous. */
  private idle: ScanMemory | undefined

  /**
   * Scans a body, and returns what `take` makes of the result. `take` is synchronous: afterwards the memory serves other
   * calls, and the scan throws when it is used.
   * @throws ApiError VALIDATION_ERROR as {@link EventScan.scan}, and what `take` throws
   */
  use<Taken>(body: Uint8Array, limits: Limits, partial: boolean, take: (scan: EventScan) => Taken): Taken {
    const scan = new EventScan(this.idle ?? new ScanMemory(createSimdMemory()))
    this.idle = undefined
    try {
      scan.scan(body, limits, partial)
      return take(scan)
    } finally {
      this.idle = scan.release()
    }
  }
}
