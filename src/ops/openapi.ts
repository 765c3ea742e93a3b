import { toOpenAPISchema } from '@elysiajs/openapi/openapi'
import type { AnyElysia } from 'elysia'
import { type ErrorCode, STATUS_OF } from '../http/errors.ts'
import { SECURITY_SCHEMES } from '../keys/security.ts'
import { ENVELOPE_HEADERS, ERROR_SCHEMA, errorResponses, TAGS } from './openapi-parts.ts'
import { type Json, SchemaComponents } from './openapi-schemas.ts'

/**
 * What a route may say about itself in its `detail`, beside what an OpenAPI operation has. The generator copies it into
 * the operation; {@link openApiDocument} takes it out again.
 */
interface RouteDetail {
  /** Codes that the route answers with, beside those that follow from its key, body, parameters and method. */
  readonly errors?: readonly ErrorCode[]
  /** Other media types of an answer, by its status: bodies that are not in the envelope. */
  readonly media?: Readonly<Record<string, Json>>
  /** The query of a route that reads it itself: described, not checked. */
  readonly query?: { readonly properties: Json; readonly required?: readonly string[] }
  /** What a route answers that has no `response` schema: described, not checked. */
  readonly answer?: object
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly description?: string | undefined
  readonly schema: Json
}

interface Response {
  readonly description?: string
  readonly content?: Readonly<Record<string, Json>>
}

/** An operation as the generator makes it. */
interface Generated extends RouteDetail {
  readonly operationId: string
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required?: boolean; readonly content: Readonly<Record<string, Json>> }
  readonly responses?: Readonly<Record<string, Response>>
}

const JSON_TYPE = 'application/json'

/**
 * The OpenAPI 3.1 document of all routes (docs/specification.md#operations). Elysia's own generator makes it from the schemas that validate, so it cannot say
 * anything else than the service does. What the generator does not know is added here: the envelope, errors, headers, the
 * names of schemas, bodies that routes read or write themselves, and that bodies are JSON and no forms.
 *
 * Takes some 100 ms: make it when somebody asks for it, once.
 */
export function openApiDocument(app: AnyElysia, version: string): Json {
  const schemas = new SchemaComponents()
  schemas.add('Error', ERROR_SCHEMA)
  const paths: Record<string, Json> = {}
  for (const [path, operations] of Object.entries(toOpenAPISchema(withoutParsers(app)).paths)) {
    paths[path] = {}
    for (const [method, operation] of Object.entries(operations ?? {}))
      paths[path][method] = schemas.plain(completed(method, operation as unknown as Generated))
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Agent Run Service',
      version,
      description: 'Agents report what they do, people watch them live and ask anything of their history in SQL.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: TAGS,
    paths,
    components: {
      schemas: schemas.all,
      responses: errorResponses(),
      headers: ENVELOPE_HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  }
}

/**
 * The service as the generator is to see it. For a route with a parser of its own, as every guard has one, the generator
 * describes a body of no media type at all.
 */
function withoutParsers(app: AnyElysia): AnyElysia {
  const routes = app.routes.map((route) => ({ ...route, hooks: { ...route.hooks, parse: undefined } }))
  // All that the generator asks of it.
  return { getGlobalRoutes: () => routes } as unknown as AnyElysia
}

function completed(method: string, generated: Generated): Json {
  const {
    errors: _errors,
    media: _media,
    query,
    answer: _answer,
    parameters = [],
    requestBody,
    responses: _responses,
    ...operation
  } = generated
  const all = [
    ...parameters.map(withDescription),
    ...(query === undefined ? [] : queryParameters(query)),
    ...headerParameters(method, generated),
  ]
  const body = requestBody && { requestBody: { ...requestBody, content: withoutForms(requestBody.content) } }
  const responses = { ...answers(method, generated), ...failures(method, generated, all) }
  return { ...operation, parameters: all, ...body, responses }
}

/** The generator offers every body as a form, too; the service takes JSON. */
function withoutForms(content: Readonly<Record<string, Json>>): Readonly<Record<string, Json>> {
  const json = content[JSON_TYPE]
  return json === undefined ? content : { [JSON_TYPE]: json }
}

/** The generator leaves the description in the schema, where reference pages do not look for it. */
function withDescription(parameter: Parameter): Parameter {
  const { description } = parameter.schema as { description?: string }
  return { ...parameter, ...(description !== undefined && { description }) }
}

function queryParameters({ properties, required = [] }: NonNullable<RouteDetail['query']>): Parameter[] {
  return Object.entries(properties).map(([name, schema]) =>
    withDescription({ name, in: 'query', required: required.includes(name), schema: schema as Json }),
  )
}

function headerParameters(method: string, generated: Generated): Parameter[] {
  if (isIdempotent(method, generated)) return [IDEMPOTENCY_KEY]
  return method === 'get' && isEventStream(generated) ? [LAST_EVENT_ID] : []
}

/** Every POST behind a guard; ClickHouse's interface has no such thing. */
function isIdempotent(method: string, { responses }: Generated): boolean {
  return method === 'post' && responses?.default === undefined
}

function isEventStream({ responses }: Generated): boolean {
  return responses?.[200]?.content?.['text/event-stream'] !== undefined
}

const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Makes a repeat of this call answer what the first one did, for 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const LAST_EVENT_ID: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'The `id` of the last frame that was seen: the stream goes on after it. Takes precedence over `after`.',
  schema: { type: 'string' },
}

function answers(method: string, generated: Generated): Record<string, Json> {
  const { answer, media = {}, responses = {} } = generated
  const given =
    answer === undefined ? responses : { 200: { content: { [JSON_TYPE]: { schema: answer } } }, ...responses }
  const headers = {
    ...header('X-Request-Id'),
    ...(isLimited(generated) && { ...header('RateLimit'), ...header('RateLimit-Policy') }),
    ...(isIdempotent(method, generated) && header('Idempotent-Replayed')),
  }
  return Object.fromEntries(
    Object.entries(given).map(([status, { description, content }]) => [
      status,
      {
        description: description === undefined || description.startsWith('Response for') ? 'Success.' : description,
        headers,
        ...((content ?? media[status]) && { content: { ...enveloped(content), ...media[status] } }),
      },
    ]),
  )
}

function header(name: keyof typeof ENVELOPE_HEADERS): Json {
  return { [name]: { $ref: `#/components/headers/${name}` } }
}

function enveloped(content: Response['content'] = {}): Json {
  const { [JSON_TYPE]: json, ...raw } = content
  if (json === undefined) return raw
  const error = { type: 'null', description: 'Null: the call succeeded.' }
  const data = json.schema
  const schema = {
    type: 'object',
    required: ['data', 'error'],
    properties: { data, error },
    additionalProperties: false,
  }
  return { [JSON_TYPE]: { schema }, ...raw }
}

/** The operator's token has no budget. */
function isLimited({ security = [] }: Generated): boolean {
  return security.length > 0 && !isOperator(security)
}

function isOperator(security: NonNullable<Generated['security']>): boolean {
  return security.some((requirement) => 'operatorToken' in requirement)
}

/** The errors that follow from what a route takes, and those that it names. */
function failures(method: string, generated: Generated, parameters: readonly Parameter[]): Json {
  const { errors = [], security = [], requestBody, responses } = generated
  // A route with an answer for all other statuses has errors of its own kind.
  if (responses?.default !== undefined) return {}
  const codes: ErrorCode[] = ['INTERNAL', ...errors]
  if (security.length > 0) codes.push('UNAUTHENTICATED', 'RATE_LIMITED', 'UNAVAILABLE')
  if (security.length > 0) codes.push(isOperator(security) ? 'NOT_FOUND' : 'FORBIDDEN')
  if (requestBody !== undefined) codes.push('PAYLOAD_TOO_LARGE')
  if (requestBody !== undefined || parameters.length > 0) codes.push('VALIDATION_ERROR')
  if (isIdempotent(method, generated)) codes.push('CONFLICT')
  // A PUT makes what is not there.
  if (method !== 'put' && parameters.some((parameter) => parameter.in === 'path')) codes.push('NOT_FOUND')
  return Object.fromEntries(codes.map((code) => [STATUS_OF[code], { $ref: `#/components/responses/${code}` }]))
}
