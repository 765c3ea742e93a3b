import type { RunRef } from '../base/ids.ts'

/** Validated events as columns; texts are ranges of `text`. */
export interface EventColumns {
  readonly text: Buffer
  /** Number of events; the arrays have an entry for each. */
  readonly count: number
  readonly typeStart: Int32Array
  readonly typeEnd: Int32Array
  /** Level numbers, as in `levels.ts`. */
  readonly level: Int8Array
  /** -1 for an event without a payload. */
  readonly payloadStart: Int32Array
  readonly payloadEnd: Int32Array
  /** Unix milliseconds; NaN for an event without a time. */
  readonly occurredAt: Float64Array
  /** Decoded types of the events whose type contains escapes. */
  readonly decodedTypes: ReadonlyMap<number, Buffer>
}

/** The validated events of one call, for the journal: which rows of a scan to store, and their ids. */
export interface EventBatch {
  readonly run: RunRef
  readonly scan: EventColumns
  /** The rows to store, in order; undefined: all of the scan. */
  readonly rows: readonly number[] | undefined
  /** Event ids by row; undefined where the journal mints one. */
  readonly ids: readonly (string | undefined)[] | undefined
}
