/**
 * Every error code of the API with its HTTP status (docs/specification.md#error-codes). The only place that maps them.
 */
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

export const ERROR_CODES = Object.keys(STATUS_OF) as [ErrorCode, ...ErrorCode[]]

interface ApiErrorOptions {
  /** The original error, for the log only; never sent to a client. */
  cause?: unknown
  /** Seconds until a retry may succeed; sent as `Retry-After`. UNAVAILABLE defaults to 1. */
  retryAfterSeconds?: number
  /** The request had an effect before it failed: a retry with its `Idempotency-Key` must not repeat it. */
  hasEffect?: boolean
}

/**
 * The error type that features throw. `message` is sent to the client as it is: it names the field and what was expected,
 * and reveals no internals.
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

/** Shorthand for VALIDATION_ERROR. `path` points into the request, such as `events[3].level`. */
export function invalid(path: string, problem: string): ApiError {
  return new ApiError('VALIDATION_ERROR', path === '' ? problem : `${path}: ${problem}`)
}

/** The error that came first, where closing what was open has failed, too. */
export function firstError(error: unknown): unknown {
  return error instanceof SuppressedError ? firstError(error.suppressed) : error
}
