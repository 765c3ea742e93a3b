import type { EventScan } from '../events/scan.ts'
import type { RunRef } from '../events/schema.ts'

/** Validated events as columns; texts are ranges of `text`. */
export type EventColumns = Pick<
  EventScan,
  'text' | 'count' | 'typeStart' | 'typeEnd' | 'level' | 'payloadStart' | 'payloadEnd' | 'occurredAt' | 'decodedTypes'
>

/** The validated events of one call, for the journal: which rows of a scan to store, and their ids. */
export interface EventBatch {
  readonly run: RunRef
  readonly scan: EventColumns
  /** The rows to store, in order; undefined: all of the scan. */
  readonly rows: readonly number[] | undefined
  /** Event ids by row; undefined where the journal mints one. */
  readonly ids: readonly (string | undefined)[] | undefined
}
