import type { ApiError, ErrorCode } from '../../base/errors.ts'
import { ColumnarError } from '../../stores/clickhouse/client.ts'
import { ClickHouseFailure } from '../../stores/clickhouse/protocol.ts'
import { HINT, isWithheld, withoutPunctuation } from './problems.ts'

/** An {@link ApiError} in the form that ClickHouse clients understand. */
interface Refusal {
  readonly failure: ClickHouseFailure
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

/** The code and name by which ClickHouse clients distinguish errors. */
const CODES: Readonly<Record<ErrorCode, readonly [code: number, type: string]>> = {
  UNAUTHENTICATED: [516, 'AUTHENTICATION_FAILED'],
  FORBIDDEN: [497, 'ACCESS_DENIED'],
  RATE_LIMITED: [202, 'TOO_MANY_SIMULTANEOUS_QUERIES'],
  VALIDATION_ERROR: [497, 'ACCESS_DENIED'],
  PAYLOAD_TOO_LARGE: [307, 'TOO_MANY_BYTES'],
  UNAVAILABLE: [210, 'NETWORK_ERROR'],
  NOT_FOUND: [60, 'UNKNOWN_TABLE'],
  METHOD_NOT_ALLOWED: [48, 'NOT_IMPLEMENTED'],
  CONFLICT: [36, 'BAD_ARGUMENTS'],
  INTERNAL: [1002, 'UNKNOWN_EXCEPTION'],
}

/** Matches the messages for anything that is not a SELECT. */
const NO_SELECT = /only (SELECT|reading) is allowed/

const NO_KEY = 'Authentication failed: the password must be a workspace key (svc_ws_…); any user name works'

/** @param query the query that failed, if it was read */
export function refusalOf(error: ApiError | ClickHouseFailure, query = ''): Refusal {
  if (error instanceof ClickHouseFailure) return { failure: error, status: error.status, headers: {} }
  const message = error.problemAt('query') ?? error.message
  const failure = failureOf(error, message, query)
  const headers: Record<string, string> = {}
  if (error.retryAfterSeconds !== undefined)
    headers['Retry-After'] = `${Math.max(1, Math.ceil(error.retryAfterSeconds))}`
  if (error.code === 'UNAUTHENTICATED') headers['WWW-Authenticate'] = 'Basic realm="workspace key as the password"'
  // ClickHouse itself answers some mistakes of the caller with 500, such as a query that is nested too deep.
  const isEngineStatus = error.code === 'VALIDATION_ERROR' && failure.status < 500
  return { failure, status: isEngineStatus ? failure.status : error.status, headers }
}

function failureOf(error: ApiError, message: string, query: string): ClickHouseFailure {
  const { cause } = error
  // The engine's own code, with the part of its message that may be shown.
  if (cause instanceof ColumnarError)
    return new ClickHouseFailure(cause.code, cause.type, withLocation(message, cause.message, query))
  if (error.code === 'UNAUTHENTICATED') return new ClickHouseFailure(...CODES[error.code], NO_KEY)
  if (NO_SELECT.test(message)) return new ClickHouseFailure(164, 'READONLY', message)
  return new ClickHouseFailure(...CODES[error.code], message)
}

/**
 * ClickHouse clients expect messages to name the scope or the function that failed. Both are added if they appear in the
 * caller's own query; the rest of the engine's location is not shown.
 */
function withLocation(message: string, original: string, query: string): string {
  if (isWithheld(message)) return message
  const [said, ...hints] = message.split(HINT)
  const [, located = ''] = / in scope ([\s\S]*)$/i.exec(original) ?? []
  const scope = withoutPunctuation(located.split(/\. Maybe you meant: |: Note: /i, 1)[0])
  if (scope !== '' && query.includes(scope)) return [`${said} in scope ${scope}`, ...hints].join(HINT)
  const executed = /while executing 'FUNCTION (\w+)\(/.exec(original)?.[1] ?? ''
  if (executed !== '' && query.includes(`${executed}(`)) return `${message}: while executing 'FUNCTION ${executed}'`
  return message
}
