import { ReportError } from './errors.ts'

/** Counts reports that are lost, and tells the program. */
export class Losses {
  /** Lost for want of room or time. */
  dropped = 0
  /** Not expressible as JSON, or damaged in the spool. */
  invalid = 0
  /** Drops that the program was not told of yet, by reason. */
  private readonly untold = new Map<string, number>()

  constructor(
    private readonly onError: (error: ReportError) => void,
    /** Why the service does not take reports at the moment, if it does not. */
    private readonly lastFailure: () => unknown,
  ) {}

  drop(reports: number, detail: string): void {
    this.dropped += reports
    this.untold.set(detail, (this.untold.get(detail) ?? 0) + reports)
  }

  /** Tells of all drops since the last call at once, because there may be very many. */
  tell(): void {
    const drops = [...this.untold]
    this.untold.clear()
    for (const [detail, reports] of drops) this.tellOf(reports, detail)
  }

  /** Tells of reports that are lost because the program ends; they are not counted. */
  tellOf(reports: number, detail: string): void {
    const cause = this.lastFailure()
    const because = cause instanceof Error ? `${detail}; the last failure: ${cause.message}` : detail
    this.onError(new ReportError({ reason: 'dropped', reports }, because, cause))
  }

  reject(error: unknown, runId: string): void {
    this.invalid++
    const detail = error instanceof Error ? error.message : String(error)
    this.onError(new ReportError({ reason: 'invalid', reports: 1, runId }, detail, error))
  }

  damaged(reports: number, detail: string): void {
    this.invalid += reports
    this.onError(new ReportError({ reason: 'invalid', reports }, detail))
  }
}
