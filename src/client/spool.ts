interface ReportText {
  readonly runId: string
  /** The body of the call, or the part of it that is the event or the task. */
  readonly text: string
}

/** What a program reports: the start of a run, an event, the state of a task, the completion or the failure of a run. */
export type Report =
  | (ReportText & { readonly kind: 'start'; readonly parentRunId: string | undefined })
  | (ReportText & { readonly kind: 'task'; readonly taskId: string })
  | (ReportText & { readonly kind: 'event' | 'complete' | 'fail' })

/** Stands for a report that can no longer be read. */
export const DAMAGED = Symbol('damaged report')

/** What was damaged in the file, and where it is kept. */
export interface Damage {
  readonly reports: number
  readonly detail: string
}

/** A file that holds reports until they are acknowledged. */
export interface Spool {
  /** Bytes of reports that are not acknowledged yet. */
  readonly bytes: number
  /** Reports in the file that {@link read} has not returned yet. */
  readonly unread: number
  /** Stores a report. When it returns, the report survives a crash of this process. @throws Error when it cannot be stored */
  append(report: Report): void
  /** Counts a report that could not be stored as one that was read, because its writer has it in memory. */
  appendNothing(): void
  /** Marks the newest report as read, because its writer has it in memory. Only while there is no other unread one. */
  skip(): void
  /** The next unread reports, about `bytes` of them. */
  read(bytes: number): (Report | typeof DAMAGED)[]
  /** What was found to be damaged since the last call. */
  takeDamage(): Damage[]
  /** The first `reports` reports, in the order in which they were appended, are no longer needed. */
  acknowledge(reports: number): void
  close(): void
}
