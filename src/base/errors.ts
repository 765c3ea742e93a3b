/**
 * Every error code of the API with its HTTP status (docs/api.md#error-codes). The only place that maps them.
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

/**
 * Every reason of an error, by its code, and what it says (docs/api.md#error-reasons has the same sentences). A
 * reason tells errors of one code apart for programs: it never changes, and a client must expect ones it does not know.
 */
export const REASONS = {
  VALIDATION_ERROR: {
    agent_not_hosted: 'The agent is external: it reports its runs itself, and cannot be invoked.',
    agent_paused: 'The agent is paused, and cannot be invoked.',
    body_unreadable: 'The body is not what its headers say: JSON in UTF-8, perhaps compressed.',
    journal_replaced: 'The position belongs to a journal that no longer exists.',
    query_invalid: 'The SQL is not valid, or names what a query may not use.',
    query_too_large: 'The query needs more memory, or returns more, than a query may.',
    query_too_slow: 'The query, or reading its answer, took longer than it may.',
  },
  UNAUTHENTICATED: {
    key_expired: 'The key has expired.',
    key_in_url: 'An API key was sent in the URL.',
    key_invalid: 'The key, feed token or sign-in is unknown or no longer valid.',
    key_missing: 'No key was sent.',
    key_revoked: 'The key has been revoked.',
  },
  FORBIDDEN: {
    agent_archived: 'The agent is archived.',
    feed_token: 'The feed token may not do this.',
    limit_reached: 'The maximum number of them has been reached.',
    no_workspace: 'The workspace of the key is suspended or being erased: every call is refused.',
    origin_refused: 'Pages of this origin may not do this.',
    person_suspended: 'The person is suspended.',
    role_too_low: "The person's role may not do this.",
    wrong_agent: 'The key belongs to another agent.',
    wrong_key_type: 'The call needs a key of another type.',
  },
  NOT_FOUND: {
    feature_off: 'The operator has not turned this on.',
    no_route: 'There is no such route.',
  },
  CONFLICT: {
    already_decided: 'It has already been decided or answered.',
    already_running: 'It is already running; wait until it has ended.',
    being_changed: 'Others are changing it at this moment; try again.',
    hosted_run: 'The service itself reports the runs of hosted agents.',
    hosted_session: 'The session belongs to a hosted agent: the service itself runs it.',
    id_taken: 'Something else has this id.',
    idempotency_key_reused: 'The `Idempotency-Key` was used for another request.',
    idempotency_key_running: 'The request with this `Idempotency-Key` is still running.',
    in_use: 'Something else uses it.',
    key_expired: 'The key has expired.',
    key_revoked: 'The key has been revoked.',
    key_rotated: 'The key was rotated before; its replacement can be rotated.',
    limit_reached: 'The maximum number of them has been reached.',
    name_taken: 'Another one has this name.',
    not_deliverable: 'The message cannot be sent: what it is about is gone.',
    pause_expired: 'It was not decided or answered in time.',
    run_ended: 'The run has ended.',
    run_live: 'The run has not ended yet.',
    secret_lost: 'The secret can no longer be read; replace it.',
    version_changed: 'It has been edited since the version that the call names.',
    workspace_erasing: 'The workspace is being erased.',
  },
  RATE_LIMITED: {
    rate_limit: 'A budget of the key is spent.',
    too_many_at_once: 'Too many calls of this kind are running; try again when one has ended.',
    too_many_attempts: 'Too many wrong keys or tokens came from this address.',
  },
  UNAVAILABLE: {
    model_not_configured: 'The operator has configured no model.',
    not_confirmed: 'The change is stored, but not every process of the service has confirmed it.',
    not_loaded: 'The requested position is not readable yet.',
    shutting_down: 'The process is shutting down.',
  },
} as const satisfies Partial<Record<ErrorCode, Record<string, string>>>

/** The reasons of all codes, in order and once each. */
export const ALL_REASONS = [...new Set(Object.values(REASONS).flatMap((reasons) => Object.keys(reasons)))].sort()

/** The reasons of a code; of all codes, if none is given. */
export type ErrorReason<C extends ErrorCode = ErrorCode> = C extends keyof typeof REASONS
  ? keyof (typeof REASONS)[C] & string
  : never

/** A mistake in a request, and its place. */
export interface Problem {
  /** Such as `events[3].level`, `query.limit`, `path.run_id` or `header Idempotency-Key`. */
  readonly param: string
  readonly message: string
}

interface ApiErrorOptions {
  /** Tells errors of one code apart, for programs. */
  reason?: ErrorReason | undefined
  /** The place in the request that the error is about, as in {@link Problem}. */
  param?: string | undefined
  /** All mistakes that were found in the request. The first one is that of `message`. */
  problems?: readonly Problem[] | undefined
  /** The original error, for the log only; never sent to a client. */
  cause?: unknown
  /** Seconds until a retry may succeed; sent as `Retry-After`. UNAVAILABLE defaults to 1. */
  retryAfterSeconds?: number | undefined
  /** The request had an effect before it failed: a retry with its `Idempotency-Key` must not repeat it. */
  hasEffect?: boolean | undefined
}

/**
 * The error type that features throw. `message` is sent to the client as it is: it names the field and what was expected,
 * and reveals no internals.
 */
export class ApiError extends Error {
  readonly status: number
  readonly reason: ErrorReason | undefined
  readonly param: string | undefined
  readonly problems: readonly Problem[] | undefined
  readonly retryAfterSeconds: number | undefined
  readonly hasEffect: boolean

  // CONFLICT alone says too little, so every conflict has a reason.
  constructor(code: 'CONFLICT', message: string, options: ApiErrorOptions & { reason: ErrorReason<'CONFLICT'> })
  constructor(code: Exclude<ErrorCode, 'CONFLICT'>, message: string, options?: ApiErrorOptions)
  constructor(
    readonly code: ErrorCode,
    message: string,
    options: ApiErrorOptions = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'ApiError'
    this.status = STATUS_OF[code]
    this.reason = options.reason
    this.param = options.param
    this.problems = options.problems
    this.hasEffect = options.hasEffect ?? this.status >= STATUS_OF.INTERNAL
    this.retryAfterSeconds = options.retryAfterSeconds ?? (code === 'UNAVAILABLE' ? 1 : undefined)
  }

  /** What is wrong at this place, without its name; undefined if the error is about another one. */
  problemAt(param: string): string | undefined {
    return this.param === param ? this.problems?.[0]?.message : undefined
  }

  /** The same error, about this place of the request and in these words. */
  at(param: string, problem: string): ApiError {
    const problems = this.problems && [{ param, message: problem }]
    return this.with({ param, problems }, messageOf({ param, message: problem }))
  }

  /** The same error with other properties; it is the cause, unless it has one. */
  with(changes: ApiErrorOptions, message = this.message): ApiError {
    const { code, reason, param, problems, retryAfterSeconds, hasEffect, cause = this } = this
    const options = { reason, param, problems, retryAfterSeconds, hasEffect, cause, ...changes }
    // A conflict has its reason.
    return new ApiError(code as 'UNAVAILABLE', message, options)
  }
}

/** Shorthand for VALIDATION_ERROR. `path` points into the request, such as `events[3].level`; empty: no place. */
export function invalid(path: string, problem: string, options: ApiErrorOptions = {}): ApiError {
  if (path === '') return new ApiError('VALIDATION_ERROR', problem, options)
  return invalidAll([{ param: path, message: problem }], options)
}

/** NOT_FOUND for something that the caller named, such as `run`. */
export function notFound(what: string, options?: ApiErrorOptions): ApiError {
  return new ApiError('NOT_FOUND', `${what} does not exist`, options)
}

/** The most mistakes that one error lists. A check stops there, so a body of nothing but mistakes costs little. */
export const PROBLEMS_MAX = 20

/** VALIDATION_ERROR with all mistakes that were found, at least one and at most {@link PROBLEMS_MAX}. */
export function invalidAll(problems: readonly Problem[], options: ApiErrorOptions = {}): ApiError {
  return new ApiError('VALIDATION_ERROR', messageOf(problems[0]), { ...options, param: problems[0].param, problems })
}

/** A mistake in one sentence. */
export function messageOf({ param, message }: Problem): string {
  return `${param}: ${message}`
}

/** The error that came first, where closing what was open has failed, too. */
export function firstError(error: unknown): unknown {
  return error instanceof SuppressedError ? firstError(error.suppressed) : error
}
