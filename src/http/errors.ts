/** Every error code of the API with its HTTP status (docs/specification.md#error-codes). The only place that maps them. */
export const STATUS_OF = {
  VALIDATION_ERROR: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  PAYLOAD_TOO_LARGE: 413,
  RATE_LIMITED: 429,
  INTERNAL: 500,
  UNAVAILABLE: 503,
} as const

export type ErrorCode = keyof typeof STATUS_OF

export interface ApiErrorOptions {
  /** What really happened, for the log only; never sent to a client. */
  cause?: unknown
  /** Seconds until a retry makes sense; sent as `Retry-After`. Required in practice for UNAVAILABLE and RATE_LIMITED. */
  retryAfterSeconds?: number
  /** The call has done something before it was refused: a repeat with its `Idempotency-Key` must not do it again. */
  hasEffect?: boolean
}

/**
 * The one error type that features throw. `message` goes to the client word for word, so it names the place and what
 * was expected, and leaks nothing of our own.
 */
export class ApiError extends Error {
  readonly status: number
  readonly retryAfterSeconds: number | undefined
  readonly hasEffect: boolean

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: ApiErrorOptions = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'ApiError'
    this.status = STATUS_OF[code]
    this.hasEffect = options.hasEffect ?? this.status >= STATUS_OF.INTERNAL
    this.retryAfterSeconds = options.retryAfterSeconds ?? (code === 'UNAVAILABLE' ? 1 : undefined)
  }
}

/** Shorthand for the most thrown error. `place` is a path into the request, as in `events[3].level`. */
export function invalid(place: string, problem: string): ApiError {
  return new ApiError('VALIDATION_ERROR', place === '' ? problem : `${place}: ${problem}`)
}
