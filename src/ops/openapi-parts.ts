import { ERROR_CODES, type ErrorCode } from '../http/errors.ts'

/** The parts of the document that are the same for every route (docs/specification.md#conventions). */

export const TAGS = [
  { name: 'Ingest', description: 'What agents report: runs, events, tasks.' },
  { name: 'Runs', description: 'Reading and cancelling runs.' },
  { name: 'Feeds', description: 'Activity as it happens.' },
  { name: 'Invoke', description: 'Running hosted agents.' },
  { name: 'Approvals', description: 'Tool calls that wait for a person.' },
  { name: 'Input requests', description: 'Questions of models to their callers.' },
  { name: 'Sessions', description: 'What hosted agents remember.' },
  { name: 'Agents', description: 'Agents of the workspace.' },
  { name: 'Keys', description: 'Keys of the workspace and of its agents.' },
  { name: 'Secrets', description: 'Values for headers of tools.' },
  { name: 'SQL', description: 'ClickHouse SQL over events, runs and tasks.' },
  { name: 'Saved queries', description: 'Queries that the workspace keeps by name.' },
  { name: 'Workspaces (operator)', description: 'Tenants of the service.' },
  { name: 'Operation', description: 'Health, metrics and limits.' },
]

export const ENVELOPE_HEADERS = {
  'X-Request-Id': { description: "The caller's request id, if it sent one, else a ULID.", schema: { type: 'string' } },
  RateLimit: { description: 'What is left of the budgets of the key (IETF draft).', schema: { type: 'string' } },
  'RateLimit-Policy': { description: 'The budgets of the key (IETF draft).', schema: { type: 'string' } },
  'Idempotent-Replayed': {
    description: '`true` when this is the answer that an earlier call with the same Idempotency-Key got.',
    schema: { type: 'string', enum: ['true'] },
  },
  'Retry-After': { description: 'Seconds until a retry makes sense.', schema: { type: 'integer', minimum: 1 } },
  'WWW-Authenticate': { description: '`Bearer`', schema: { type: 'string' } },
}

export const ERROR_SCHEMA = {
  type: 'object',
  description: 'The envelope of every error.',
  required: ['data', 'error'],
  additionalProperties: false,
  properties: {
    data: { type: 'null', description: 'Null: the call failed.' },
    error: {
      type: 'object',
      description: 'What went wrong.',
      required: ['code', 'message'],
      additionalProperties: false,
      properties: {
        code: { type: 'string', enum: ERROR_CODES, description: 'Stable; what programs look at.' },
        message: { type: 'string', description: 'For people; names the place and what was expected.' },
      },
    },
  },
}

const ERROR_MEANING: Record<ErrorCode, string> = {
  VALIDATION_ERROR: 'The request is malformed; the message names the place.',
  UNAUTHENTICATED: 'The key is missing, invalid or revoked.',
  FORBIDDEN: 'The key has the wrong type or scope, or its workspace is suspended.',
  NOT_FOUND: "Resource not found in this key's workspace.",
  METHOD_NOT_ALLOWED: 'The path exists, but takes other methods; `Allow` lists them.',
  CONFLICT: 'The state of the resource, or the Idempotency-Key, does not allow it.',
  PAYLOAD_TOO_LARGE: 'The body exceeds the limit that `GET /api/v1/limits` gives.',
  RATE_LIMITED: 'Too many requests; `Retry-After` says when to try again.',
  INTERNAL: 'The service failed; the message carries the request id.',
  UNAVAILABLE: 'The service cannot do this at the moment; `Retry-After` says when to try again.',
}

const HEADERS_OF: Partial<Record<ErrorCode, keyof typeof ENVELOPE_HEADERS>> = {
  RATE_LIMITED: 'Retry-After',
  UNAVAILABLE: 'Retry-After',
  UNAUTHENTICATED: 'WWW-Authenticate',
}

export function errorResponses(): Record<string, object> {
  return Object.fromEntries(ERROR_CODES.map((code) => [code, errorResponse(code)]))
}

function errorResponse(code: ErrorCode): object {
  const headers = (['X-Request-Id', HEADERS_OF[code]] as const).filter((name) => name !== undefined)
  return {
    description: ERROR_MEANING[code],
    headers: Object.fromEntries(headers.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        example: { data: null, error: { code, message: ERROR_MEANING[code] } },
      },
    },
  }
}
