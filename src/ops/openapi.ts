import { Kind, type TSchema } from '@sinclair/typebox'
import { STATUS_OF } from '../http/errors.ts'

/** What of Elysia's `app.routes` the document is made from. */
export interface DescribedRoute {
  readonly method: string
  readonly path: string
  readonly hooks?: {
    readonly params?: TSchema
    readonly query?: TSchema
    readonly body?: TSchema
    /** One schema, which is that of 200, or one for each status. */
    readonly response?: TSchema | Record<string, TSchema>
    readonly detail?: RouteDetail
  }
}

/** What a route may say about itself in its `detail`. */
export interface RouteDetail {
  readonly summary?: string
  readonly description?: string
  readonly tags?: readonly string[]
  /** `[]` for a route that needs no key. */
  readonly security?: readonly object[]
  /** For a route that reads its body itself, and so has no schema that validates it. */
  readonly requestBody?: object
  /** Answers that are not in the envelope. */
  readonly responses?: object
  /** The query of a route that reads it itself: described, not checked. */
  readonly query?: TSchema
  /** What a route answers that has no `response` schema: described, not checked. */
  readonly answer?: TSchema
  /** Leaves the route out of the document. */
  readonly hide?: boolean
}

type Json = Record<string, unknown>

/**
 * The OpenAPI 3.1 document of all routes (docs/specification.md#operations). The schemas are those that validate, so the
 * document cannot say anything else than the service does; every answer is shown as clients see it, in the envelope.
 */
export function openApiDocument(routes: readonly DescribedRoute[], version: string): Json {
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const { detail, body } = route.hooks ?? {}
    if (detail?.hide || route.method === 'WS' || route.path.includes('*')) continue
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] ??= {}
    paths[path][route.method.toLowerCase()] = {
      operationId: operationId(route),
      summary: detail?.summary,
      description: detail?.description,
      tags: detail?.tags ?? [tagOf(route.path)],
      security: detail?.security,
      parameters: [
        ...parameters('path', route.hooks?.params),
        ...parameters('query', route.hooks?.query ?? detail?.query),
        ...(route.method === 'POST' ? [IDEMPOTENCY_KEY] : []),
      ],
      requestBody:
        detail?.requestBody ?? (body && { required: true, content: { 'application/json': { schema: body } } }),
      responses: { ...responses(route), ...detail?.responses },
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Agent Run Service',
      version,
      description: 'Agents report what they do, people watch them live and ask anything of their history in SQL.',
    },
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description: 'A workspace key (`svc_ws_…`), an agent key (`svc_agent_…`), or the operator token.',
        },
      },
      responses: errorResponses(),
      schemas: { Error: ERROR_ENVELOPE },
    },
  }
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Makes a repeat of this call answer what the first one did, for 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const ERROR_ENVELOPE = {
  type: 'object',
  required: ['data', 'error'],
  properties: {
    data: { type: 'null' },
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: { code: { type: 'string', enum: Object.keys(STATUS_OF) }, message: { type: 'string' } },
    },
  },
}

const ERROR_MEANING: Record<keyof typeof STATUS_OF, string> = {
  VALIDATION_ERROR: 'The request is malformed; the message names the place.',
  UNAUTHENTICATED: 'The key is missing, invalid or revoked.',
  FORBIDDEN: 'The key is of the wrong type or scope, or its workspace is suspended.',
  NOT_FOUND: 'There is no such thing in the workspace of the key.',
  METHOD_NOT_ALLOWED: 'The path exists, but takes other methods: `Allow` names them.',
  CONFLICT: 'The state of the thing, or an Idempotency-Key, does not allow it.',
  PAYLOAD_TOO_LARGE: 'The body is over the limit of `GET /api/v1/limits`.',
  RATE_LIMITED: 'Too many requests; `Retry-After` says when to come back.',
  INTERNAL: 'A fault of the service; the message carries the request id.',
  UNAVAILABLE: 'The service cannot do this at the moment; `Retry-After` says when to try again.',
}

function errorResponses(): Json {
  return Object.fromEntries(
    Object.entries(ERROR_MEANING).map(([code, description]) => [
      code,
      { description, content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } },
    ]),
  )
}

function responses({ path, hooks = {} }: DescribedRoute): Json {
  const { response, detail } = hooks
  const query = hooks.query ?? detail?.query
  const body = detail?.requestBody ?? hooks.body
  const answers: Json = {}
  for (const [status, schema] of Object.entries(byStatus(response ?? detail?.answer))) {
    answers[status] = {
      description: schema.description ?? 'Success.',
      content: { 'application/json': { schema: envelope(schema) } },
    }
  }
  const codes: (keyof typeof STATUS_OF)[] = ['INTERNAL', 'UNAVAILABLE']
  if (detail?.security?.length !== 0) codes.push('UNAUTHENTICATED', 'FORBIDDEN', 'RATE_LIMITED')
  if (body !== undefined) codes.push('PAYLOAD_TOO_LARGE', 'CONFLICT', 'NOT_FOUND')
  if (body !== undefined || query !== undefined || path.includes(':')) codes.push('VALIDATION_ERROR')
  if (path.includes(':')) codes.push('NOT_FOUND')
  for (const code of codes) answers[STATUS_OF[code]] = { $ref: `#/components/responses/${code}` }
  return answers
}

function byStatus(response: TSchema | Record<string, TSchema> | undefined): Record<string, TSchema> {
  if (response === undefined) return {}
  return Kind in response ? { 200: response as TSchema } : (response as Record<string, TSchema>)
}

function envelope(data: TSchema): Json {
  return { type: 'object', required: ['data', 'error'], properties: { data, error: { type: 'null' } } }
}

function parameters(place: 'path' | 'query', schema: TSchema | undefined): Json[] {
  const properties: Record<string, TSchema> = schema?.properties ?? {}
  const required: readonly string[] = schema?.required ?? []
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    description: property.description,
    schema: withoutCoercion(property),
  }))
}

/** Elysia widens a number of a query to "a number, or text that looks like one"; a reader wants to know the number. */
function withoutCoercion(schema: TSchema): TSchema {
  const variants: TSchema[] | undefined = schema.anyOf
  const real = variants?.filter((each) => each.type !== 'string' || !COERCED.has(each.format))
  return real?.length === 1 && real.length < (variants?.length ?? 0) ? (real[0] as TSchema) : schema
}

const COERCED = new Set(['integer', 'numeric', 'boolean'])

/** `POST /api/v1/keys/:keyId/revoke` is `postKeysByKeyIdRevoke`. */
function operationId({ method, path }: DescribedRoute): string {
  const words = path.split(/[/-]/).filter((part) => part !== '' && part !== 'api' && part !== 'v1')
  const named = words.map((part) => (part.startsWith(':') ? `By${capitalized(part.slice(1))}` : capitalized(part)))
  return method.toLowerCase() + named.join('')
}

function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}

/** Routes are grouped by what they are about: the first word after the version. */
function tagOf(path: string): string {
  const [first = '', second = '', third = ''] = path.split('/').slice(1)
  if (first !== 'api') return 'Operation'
  return second === 'v1' ? third : second
}
