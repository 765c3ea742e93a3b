import type { ApiError, ErrorCode } from '../../base/errors.ts'
import { encodeJson } from '../../base/raw-json.ts'
import { jsonAnswer } from '../kit.ts'
import type { EventResult } from './ingest.ts'

/** Answers as Langfuse gives them: bare JSON, and errors as `{message, error}`. */

/** The names of Langfuse's errors. */
const ERROR_NAMES: Record<ErrorCode, string> = {
  VALIDATION_ERROR: 'InvalidRequestError',
  UNAUTHENTICATED: 'UnauthorizedError',
  FORBIDDEN: 'ForbiddenError',
  NOT_FOUND: 'LangfuseNotFoundError',
  METHOD_NOT_ALLOWED: 'MethodNotAllowedError',
  CONFLICT: 'LangfuseConflictError',
  PAYLOAD_TOO_LARGE: 'PayloadTooLargeError',
  RATE_LIMITED: 'RateLimitExceededError',
  INTERNAL: 'InternalServerError',
  UNAVAILABLE: 'ServiceUnavailableError',
}

export function answer(body: unknown): Response {
  return jsonAnswer(200, encodeJson(body))
}

export function errorBody({ code, message }: ApiError): object {
  return { message, error: ERROR_NAMES[code] }
}

/** 207, with the result of every event. */
export function batchAnswer(results: readonly EventResult[]): Response {
  const successes: string[] = []
  const errors: string[] = []
  for (const { id, error } of results) {
    const named = `{"id":${JSON.stringify(id)},"status":`
    if (error === null) successes.push(`${named}201}`)
    else {
      const { status, message, code } = error
      errors.push(`${named}${status},"message":${JSON.stringify(message)},"error":"${ERROR_NAMES[code]}"}`)
    }
  }
  return jsonAnswer(207, `{"successes":[${successes.join(',')}],"errors":[${errors.join(',')}]}`)
}
