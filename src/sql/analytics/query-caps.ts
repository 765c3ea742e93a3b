const MIB = 1024 * 1024
const GIB = 1024 * MIB

/** What queries of a workspace may use (docs/sql.md#limits). */
export interface QueryCaps {
  /** Queries of a workspace that may run at once. */
  readonly atOnce: number
  /** Processing time of a query. Waiting for a slow reader of its answer does not count. */
  readonly seconds: number
  readonly memoryBytes: number
  /** Rows of a JSON answer; further rows are omitted, and `truncated` is set. */
  readonly rows: number
  /** Size of a JSON answer. */
  readonly resultBytes: number
  /** Size of a streamed answer, in another format. */
  readonly streamBytes: number
  /** Total time of a streamed answer, including its reader. */
  readonly streamSeconds: number
  /** How long queries of a workspace are refused after one that forced a restart of the engine; longer each time. */
  readonly penaltySeconds: number
}

export const DEFAULT_QUERY_CAPS: QueryCaps = {
  atOnce: 3,
  seconds: 10,
  memoryBytes: GIB,
  rows: 10_000,
  resultBytes: 32 * MIB,
  streamBytes: 4 * GIB,
  streamSeconds: 600,
  penaltySeconds: 30,
}
