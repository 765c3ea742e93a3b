import { messageOf, ReportError, type ReportProblem } from './errors.ts'

/** Counts lost reports and passes them on to the program. */
export class Losses {
  /** Refused by the service, not expressible as JSON, or damaged in the spool. */
  rejected = 0
  /** Lost because there was no room or no time left. */
  dropped = 0
  /** Why reports cannot be delivered at the moment; undefined while they can. */
  lastFailure: unknown
  /** Drops since the last call of {@link reportDrops}, by reason. */
  private readonly unreported = new Map<string, number>()
  /** Reasons that were reported and go on. */
  private readonly lasting = new Set<string>()

  constructor(private readonly onError: (error: ReportError) => void) {}

  /** Counts and reports what can never be stored. @param problem an error, or its description */
  reject(reason: 'rejected' | 'invalid', reports: number, problem: unknown, runId?: string): void {
    this.rejected += reports
    this.report({ reason, reports, runId }, messageOf(problem), typeof problem === 'string' ? undefined : problem)
  }

  /** Counts reports that are lost; {@link reportDrops} passes them on. */
  drop(reports: number, detail: string): void {
    this.dropped += reports
    this.unreported.set(detail, (this.unreported.get(detail) ?? 0) + reports)
  }

  /**
   * Reports all drops since the last call at once, because there may be very many.
   *
   * @param goesOn whether more will follow: then each reason is reported once, and the rest when it is over
   */
  reportDrops(goesOn = false): void {
    if (!goesOn) this.lasting.clear()
    for (const [detail, reports] of [...this.unreported]) {
      if (this.lasting.has(detail)) continue
      if (goesOn) this.lasting.add(detail)
      this.unreported.delete(detail)
      this.reportDrop(reports, detail)
    }
  }

  /** For reports that are lost because the program ends; they are not counted. */
  reportDrop(reports: number, detail: string): void {
    const cause = this.lastFailure
    const because = cause instanceof Error ? `${detail}; the last failure: ${cause.message}` : detail
    this.report({ reason: 'dropped', reports }, because, cause)
  }

  /** Reports an outage; nothing is lost yet. */
  delay(reports: number, cause: unknown): void {
    this.report({ reason: 'delayed', reports }, messageOf(cause), cause)
  }

  private report(problem: ReportProblem, detail: string, cause: unknown): void {
    this.onError(new ReportError(problem, detail, cause))
  }
}
