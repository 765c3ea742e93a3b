import { ALL_REASONS, ERROR_CODES, type ErrorCode, PROBLEMS_MAX } from '../base/errors.ts'

/** The parts of the document that are the same for every route (docs/api.md). */

export const TAGS = [
  { name: 'Ingest', description: 'Report runs, events and tasks.' },
  { name: 'Runs', description: 'Read and cancel runs.' },
  { name: 'Feeds', description: 'Follow activity live.' },
  { name: 'Invoke', description: 'Run hosted agents.' },
  { name: 'Approvals', description: 'Tool calls that wait for approval.' },
  { name: 'Input requests', description: 'Questions from models to callers.' },
  { name: 'Sessions', description: 'Conversations over several runs, and the users that runs name.' },
  { name: 'Agents', description: 'Agents of the workspace.' },
  { name: 'Keys', description: 'Keys of the workspace and of its agents.' },
  { name: 'People', description: 'People who sign in by OpenID Connect, and their sign-ins.' },
  { name: 'Secrets', description: 'Values for the headers of tools.' },
  { name: 'OpenTelemetry', description: 'Reports by OTLP/HTTP, in its own formats, without the envelope.' },
  { name: 'OpenAI Agents', description: "Traces of the OpenAI Agents SDK, in OpenAI's formats, without the envelope." },
  { name: 'Langfuse', description: 'Reports by the SDKs of Langfuse, in its own formats, without the envelope.' },
  { name: 'SQL', description: 'ClickHouse SQL over events, runs and tasks.' },
  { name: 'Saved queries', description: 'Queries that a workspace stores by name.' },
  {
    name: 'Alerts',
    description: 'Queries that run at an interval, and notify when a condition starts and stops holding.',
  },
  { name: 'Boards', description: 'Pages of charts of saved queries, shared by a workspace.' },
  { name: 'Views', description: 'Filters, columns and orders of the list of runs, by name, shared by a workspace.' },
  { name: 'Webhooks', description: 'Signed messages about activity, sent to other systems, and their deliveries.' },
  { name: 'Workspace', description: 'The workspace of the key.' },
  { name: 'Workspaces (operator)', description: 'Tenants of the service.' },
  { name: 'Operation', description: 'Health, metrics and limits.' },
]

export const ENVELOPE_HEADERS = {
  'X-Request-Id': { description: "The caller's request id, if it sent one, else a ULID.", schema: { type: 'string' } },
  RateLimit: { description: 'The remaining budgets of the key (IETF draft).', schema: { type: 'string' } },
  'RateLimit-Policy': { description: 'The budgets of the key (IETF draft).', schema: { type: 'string' } },
  'Idempotent-Replayed': {
    description: '`true` when this is the stored answer of an earlier call with the same Idempotency-Key.',
    schema: { type: 'string', enum: ['true'] },
  },
  ETag: { description: 'The version of what was answered, for `If-Match`.', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds to wait before a retry.', schema: { type: 'integer', minimum: 1 } },
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
        code: { type: 'string', enum: ERROR_CODES, description: 'Stable; for programs.' },
        message: { type: 'string', description: 'For people; names the place and what was expected there.' },
        reason: {
          description: 'Tells errors of one code apart; for programs. Stable, and open for more.',
          anyOf: [{ type: 'string', enum: ALL_REASONS }, { type: 'string' }],
        },
        param: {
          type: 'string',
          description: 'The place that the error is about, such as `events[3].payload` or `query.limit`.',
        },
        problems: {
          type: 'array',
          description: 'All mistakes that were found in the request; the first one is that of `message`.',
          minItems: 1,
          maxItems: PROBLEMS_MAX,
          items: {
            type: 'object',
            description: 'A mistake.',
            required: ['param', 'message'],
            additionalProperties: false,
            properties: {
              param: { type: 'string', description: 'Its place.' },
              message: { type: 'string', description: 'What was expected there.' },
            },
          },
        },
      },
    },
  },
}

const ERROR_MEANING: Record<ErrorCode, string> = {
  VALIDATION_ERROR: 'The request is malformed; the message names the place.',
  UNAUTHENTICATED: 'The key is missing, invalid or revoked.',
  FORBIDDEN: 'The key has the wrong type or scope, or its workspace is suspended.',
  NOT_FOUND: "Resource not found in this key's workspace.",
  METHOD_NOT_ALLOWED: 'The path does not support this method; `Allow` lists those that it does.',
  CONFLICT: 'The state of the resource or the Idempotency-Key does not allow this call.',
  PAYLOAD_TOO_LARGE: 'The body exceeds the limit that `GET /api/v1/limits` gives.',
  RATE_LIMITED: 'Too many requests; `Retry-After` says when to try again.',
  INTERNAL: 'The service failed; the message contains the request id.',
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
