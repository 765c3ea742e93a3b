import { toOpenAPISchema } from '@elysiajs/openapi/openapi'
import type { AnyElysia } from 'elysia'
import { type ErrorCode, STATUS_OF } from '../base/errors.ts'
import { OWN_CALLS } from '../base/http/query-names.ts'
import { SECURITY_SCHEMES } from '../tenants/keys/security.ts'
import { ENVELOPE_HEADERS, ERROR_SCHEMA, errorResponses, TAGS } from './parts.ts'
import { introduction, readSamples } from './samples.ts'
import { type Json, SchemaComponents } from './schemas.ts'

/**
 * Members of a route's `detail` that OpenAPI does not have. The generator copies them into the operation;
 * {@link openApiDocument} removes them.
 */
interface RouteDetail {
  /** Error codes of the route, besides those that follow from its key, body, parameters and method. */
  readonly errors?: readonly ErrorCode[]
  /** Media types of answers that are not in the envelope, by status. */
  readonly media?: Readonly<Record<string, Json>>
  /** Query parameters that the route parses itself: documented, not validated. */
  readonly query?: { readonly properties: Json; readonly required?: readonly string[] }
  /** The answer of a route without a `response` schema: documented, not validated. */
  readonly answer?: object
  /** `VERSIONED` of `base/http/version.ts`: an answer with a `version` has an `ETag`, and changes take `If-Match`. */
  readonly versioned?: true
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

/** An operation as the generator returns it. */
interface Generated extends RouteDetail {
  readonly operationId: string
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required?: boolean; readonly content: Readonly<Record<string, Json>> }
  readonly responses?: Readonly<Record<string, Response>>
}

const JSON_TYPE = 'application/json'

const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'A repeated call with the same key gets the answer of the first one, for 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const IF_MATCH: Parameter = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description: 'An `ETag`: the call is a CONFLICT if it has been edited since. Absent or `*`: whatever the version.',
  schema: { type: 'string' },
}

const LAST_EVENT_ID: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'The `id` of the last frame received: the stream continues after it. Takes precedence over `after`.',
  schema: { type: 'string' },
}

/**
 * The OpenAPI 3.1 document of all routes (docs/api.md#calls-without-a-key). Elysia's generator derives it from the
 * schemas that validate requests and answers, so the two always agree. This function adds what the generator does not know:
 * the envelope, errors, headers, names of schemas, and bodies that routes read or write themselves. It removes the form
 * types that the generator lists for every body.
 *
 * Takes about 100 ms, so call it once, on the first request for the document.
 */
export function openApiDocument(app: AnyElysia, version: string): Json {
  const schemas = new SchemaComponents()
  schemas.add('Error', ERROR_SCHEMA)
  const paths: Record<string, Json> = {}
  const samples = readSamples()
  for (const [path, operations] of Object.entries(toOpenAPISchema(withoutParsers(app)).paths)) {
    paths[path] = {}
    for (const [method, operation] of Object.entries(operations ?? {})) {
      const generated = operation as unknown as Generated
      const codeSamples = samples.get(generated.operationId)
      const all = { ...completed(method, path, generated), ...(codeSamples && { 'x-codeSamples': codeSamples }) }
      paths[path][method] = schemas.plain(all)
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Agent Run Service',
      version,
      description: introduction(),
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
 * Hides the parsers of the routes from the generator: for a route with its own parser, which every guard has, it would
 * describe a body without any media type.
 */
function withoutParsers(app: AnyElysia): AnyElysia {
  const routes = app.routes.map((route) => ({ ...route, hooks: { ...route.hooks, parse: undefined } }))
  // The generator uses nothing else.
  return { getGlobalRoutes: () => routes } as unknown as AnyElysia
}

function completed(method: string, path: string, generated: Generated): Json {
  const { query, parameters = [], requestBody } = generated
  const all = [
    ...parameters.map(withDescription),
    ...(query === undefined ? [] : queryParameters(query)),
    ...headerParameters(method, generated),
  ]
  const body = requestBody && { requestBody: { ...requestBody, content: withoutForms(requestBody.content) } }
  const responses = { ...answers(method, generated), ...failures({ method, path }, generated, all) }
  const removed = { errors: undefined, media: undefined, query: undefined, answer: undefined, versioned: undefined }
  return { ...generated, ...removed, parameters: all, ...body, responses }
}

/** The generator lists form types for every body, but the service accepts only JSON. */
function withoutForms(content: Readonly<Record<string, Json>>): Readonly<Record<string, Json>> {
  const json = content[JSON_TYPE]
  return json === undefined ? content : { [JSON_TYPE]: json }
}

/** The generator leaves the description in the schema, but reference pages show that of the parameter. */
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
  if (takesVersion(method, generated)) return [IF_MATCH]
  return method === 'get' && isEventStream(generated) ? [LAST_EVENT_ID] : []
}

/** Every POST accepts an Idempotency-Key, except in the ClickHouse interface. */
function isIdempotent(method: string, { responses }: Generated): boolean {
  return method === 'post' && responses?.default === undefined
}

function takesVersion(method: string, { versioned }: Generated): boolean {
  return versioned === true && ['patch', 'put', 'delete'].includes(method)
}

function isEventStream({ responses }: Generated): boolean {
  return responses?.[200]?.content?.['text/event-stream'] !== undefined
}

function answers(method: string, generated: Generated): Record<string, Json> {
  const { answer, media = {}, responses = {} } = generated
  const given =
    answer === undefined ? responses : { 200: { content: { [JSON_TYPE]: { schema: answer } } }, ...responses }
  const headers = {
    ...header('X-Request-Id'),
    ...(isLimited(generated) && { ...header('RateLimit'), ...header('RateLimit-Policy') }),
    ...(isIdempotent(method, generated) && header('Idempotent-Replayed')),
    ...(isTagged(generated) && header('ETag')),
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

function isTagged({ versioned, responses }: Generated): boolean {
  const schema = responses?.[200]?.content?.[JSON_TYPE]?.schema as { readonly properties?: Json } | undefined
  return versioned === true && schema?.properties?.version !== undefined
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

/** The operator token has no budget. */
function isLimited({ security = [] }: Generated): boolean {
  return security.length > 0 && !isOperator(security)
}

function isOperator(security: NonNullable<Generated['security']>): boolean {
  return security.some((requirement) => 'operatorToken' in requirement)
}

interface Call {
  readonly method: string
  readonly path: string
}

/** The errors that follow from the inputs of a route, and those that it declares. */
function failures({ method, path }: Call, generated: Generated, parameters: readonly Parameter[]): Json {
  const { errors = [], security = [], requestBody, responses } = generated
  // A route with a `default` response has its own error format.
  if (responses?.default !== undefined) return {}
  const codes: ErrorCode[] = ['INTERNAL', ...errors]
  if (security.length > 0) codes.push('UNAUTHENTICATED', 'RATE_LIMITED', 'UNAVAILABLE')
  if (security.length > 0) codes.push(isOperator(security) ? 'NOT_FOUND' : 'FORBIDDEN')
  if (requestBody !== undefined) codes.push('PAYLOAD_TOO_LARGE')
  // One of our own calls that takes nothing refuses what it would ignore.
  if (OWN_CALLS.test(path) || requestBody !== undefined || parameters.length > 0) codes.push('VALIDATION_ERROR')
  if (isIdempotent(method, generated) || takesVersion(method, generated)) codes.push('CONFLICT')
  // A PUT creates what does not exist.
  if (method !== 'put' && parameters.some((parameter) => parameter.in === 'path')) codes.push('NOT_FOUND')
  return Object.fromEntries(codes.map((code) => [STATUS_OF[code], { $ref: `#/components/responses/${code}` }]))
}
