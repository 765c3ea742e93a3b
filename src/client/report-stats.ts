/** What a client has reported so far. A report is the start or end of a run, an event, a score, or a state of a task. */
export interface ReportStats {
  /** Not acknowledged yet. */
  readonly queued: number
  /** Characters of those that are in memory. */
  readonly queuedBytes: number
  /** Durable at the service. */
  readonly acknowledged: number
  /** Refused by the service, or not expressible as JSON. */
  readonly rejected: number
  /** Lost because the buffer was full or the time at the end was over. */
  readonly dropped: number
  /** Calls that were sent again. */
  readonly retries: number
  /** The position of the newest acknowledged event, for `waitFor` of a query; 0 before the first. */
  readonly lastSeq: number
}
