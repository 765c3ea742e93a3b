import type { ReportError } from './errors.ts'
import type { Http } from './http.ts'
import type { Spool } from './node-spool.ts'

export interface ReporterOptions {
  readonly http: Http
  /** What happens to events, scores and new runs when the buffer is full (docs/client.md#bounds). */
  readonly whenFull: 'wait' | 'drop'
  /** How long callers wait for room at most. */
  readonly waitTimeoutMs: number
  /** Characters of reports that may wait in memory. */
  readonly bufferBytes: number
  /** How long reports wait for more, so that they are sent together. */
  readonly flushIntervalMs: number
  readonly onError: (error: ReportError) => void
  /** Where reports are kept until they are acknowledged. */
  readonly spool: Spool | undefined
  readonly spoolBytes: number
  /** Why the service will take no report with this key. */
  readonly keyProblem: string | undefined
}
