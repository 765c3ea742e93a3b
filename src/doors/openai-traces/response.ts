import { type ApiError, type ErrorCode, STATUS_OF } from '../../base/errors.ts'

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

export function errorResponse({ code, message, param }: ApiError): Response {
  const { type, code: openAiCode } = KINDS[code]
  const error = { message, type, param: param ?? null, code: openAiCode }
  const headers = new Headers({ 'content-type': 'application/json' })
  if (code === 'UNAUTHENTICATED') headers.set('www-authenticate', 'Bearer')
  return new Response(JSON.stringify({ error }), { status: STATUS_OF[code], headers })
}
