import type { ApiError, ErrorCode } from '../../base/errors.ts'

/** Errors in the shape of OpenAI's API. */

interface Kind {
  readonly type: string
  readonly code: string | null
}

const KINDS: Record<ErrorCode, Kind> = {
  VALIDATION_ERROR: { type: 'invalid_request_error', code: 'invalid_value' },
  UNAUTHENTICATED: { type: 'invalid_request_error', code: 'invalid_api_key' },
  FORBIDDEN: { type: 'invalid_request_error', code: 'insufficient_permissions' },
  NOT_FOUND: { type: 'invalid_request_error', code: 'unknown_url' },
  METHOD_NOT_ALLOWED: { type: 'invalid_request_error', code: 'method_not_supported' },
  CONFLICT: { type: 'invalid_request_error', code: 'conflict' },
  PAYLOAD_TOO_LARGE: { type: 'invalid_request_error', code: 'request_too_large' },
  RATE_LIMITED: { type: 'requests', code: 'rate_limit_exceeded' },
  INTERNAL: { type: 'server_error', code: null },
  UNAVAILABLE: { type: 'server_error', code: 'service_unavailable' },
}

export function errorBody({ code, message, param }: ApiError): object {
  return { error: { message, param: param ?? null, ...KINDS[code] } }
}
