/** A mistake in a request, and its place. */
interface Problem {
  readonly param: string
  readonly message: string
}

/** What is known about a response that is an error. */
interface ErrorResponse {
  readonly status: number
  /** A code of docs/api.md#error-codes; undefined when the response is not an error envelope of the service. */
  readonly code?: string | undefined
  /** The message of the envelope, for people; without one, what else is known, or empty. */
  readonly detail?: string | undefined
  /** Tells errors of one code apart (docs/api.md#error-reasons); undefined if the service gives none. */
  readonly reason?: string | undefined
  /** The place in the request that the error is about, such as `events[3].payload` or `query.limit`. */
  readonly param?: string | undefined
  /** All mistakes that the service found in the request; empty if the error is about something else. */
  readonly problems?: readonly Problem[] | undefined
  /** From `Retry-After`, at most a minute; undefined without that header. */
  readonly retryAfterMs?: number | undefined
  /** Identifies the request in the log of the service; undefined when another server answered. */
  readonly requestId?: string | undefined
  /** Whether the service says that this very request can never be accepted (docs/api.md#refused-requests). */
  readonly isFinal?: boolean | undefined
}

/** An error response of the service, or a response that is not the service's. */
export class ServiceError extends Error implements ErrorResponse {
  readonly status: number
  readonly code: string | undefined
  readonly detail: string
  readonly reason: string | undefined
  readonly param: string | undefined
  readonly problems: readonly Problem[]
  readonly retryAfterMs: number | undefined
  readonly requestId: string | undefined
  readonly isFinal: boolean

  constructor(response: ErrorResponse) {
    const { status, code, detail = '' } = response
    super(code === undefined ? `status ${status}, not a response of the service${detail}` : `${code}: ${detail}`)
    this.name = 'ServiceError'
    this.status = status
    this.code = code
    this.detail = detail
    this.reason = response.reason
    this.param = response.param
    this.problems = response.problems ?? []
    this.retryAfterMs = response.retryAfterMs
    this.requestId = response.requestId
    this.isFinal = response.isFinal ?? false
  }
}

/** The service did not respond, or could not serve the call, in any attempt. Whether it had any effect is unknown. */
export class NoResponseError extends Error {
  constructor(path: string, cause: unknown) {
    super(`the call to ${path} failed: ${messageOf(cause)}`, { cause })
    this.name = 'NoResponseError'
  }

  /** Of the last attempt, if the service responded to it. */
  get requestId(): string | undefined {
    return this.cause instanceof ServiceError ? this.cause.requestId : undefined
  }
}

/** Whether the service or the network, and not a bug in the caller, made a call fail. */
export function isCallFailure(error: unknown): error is ServiceError | NoResponseError {
  return error instanceof ServiceError || error instanceof NoResponseError
}

/** The message of what was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** What {@link ReportError} is about. */
export interface ReportProblem {
  /**
   * `rejected`: the service refused it, sending it again is pointless. `dropped`: there was no room for it, or no time left
   * at the end. `invalid`: JSON cannot express it, or it is damaged in the spool. `delayed`: the service cannot be used; nothing is lost yet.
   */
  readonly reason: 'rejected' | 'dropped' | 'invalid' | 'delayed'
  /** How many reports (starts, events, tasks, ends) it concerns. */
  readonly reports: number
  /** The run, if it concerns only one. */
  readonly runId?: string | undefined
}

/** Reports that were lost or are late. */
export class ReportError extends Error implements ReportProblem {
  readonly reason: ReportProblem['reason']
  readonly reports: number
  readonly runId: string | undefined

  constructor({ reason, reports, runId }: ReportProblem, detail: string, cause?: unknown) {
    super(`${reports} ${reports === 1 ? 'report' : 'reports'} ${reason}: ${detail}`, { cause })
    this.name = 'ReportError'
    this.reason = reason
    this.reports = reports
    this.runId = runId
  }
}
