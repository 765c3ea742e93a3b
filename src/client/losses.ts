import { ReportError } from './errors.ts'

interface LossesOptions {
  readonly onError: (error: ReportError) => void
  /** Why the service does not take reports now, if it does not. */
  readonly lastFailure: () => unknown
}

/** Counts lost reports, and reports them to the program. */
export class Losses {
  /** Lost because there was no room or no time left. */
  dropped = 0
  /** Not expressible as JSON, or damaged in the spool. */
  invalid = 0
  /** Drops since the last call of {@link reportDrops}, by reason. */
  private readonly unreported = new Map<string, number>()

  constructor(private readonly options: LossesOptions) {}

  /** Counts reports that are lost; {@link reportDrops} tells the program. */
  drop(reports: number, detail: string): void {
    this.dropped += reports
    this.unreported.set(detail, (this.unreported.get(detail) ?? 0) + reports)
  }

  /** Reports all drops since the last call at once, because there may be very many. */
  reportDrops(): void {
    const drops = [...this.unreported]
    this.unreported.clear()
    for (const [detail, reports] of drops) this.reportDrop(reports, detail)
  }

  /** For reports that are lost because the program ends; they are not counted. */
  reportDrop(reports: number, detail: string): void {
    const cause = this.options.lastFailure()
    const because = cause instanceof Error ? `${detail}; the last failure: ${cause.message}` : detail
    this.options.onError(new ReportError({ reason: 'dropped', reports }, because, cause))
  }

  /** Counts and reports one that JSON cannot express. */
  reject(error: unknown, runId: string): void {
    this.invalid++
    const detail = error instanceof Error ? error.message : String(error)
    this.options.onError(new ReportError({ reason: 'invalid', reports: 1, runId }, detail, error))
  }

  /** Counts and reports those that are damaged in the spool. */
  damaged(reports: number, detail: string): void {
    this.invalid += reports
    this.options.onError(new ReportError({ reason: 'invalid', reports }, detail))
  }
}
