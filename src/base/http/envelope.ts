import type { TSchema } from '@sinclair/typebox'
import type { TypeCheck } from '@sinclair/typebox/compiler'
import { Elysia, NotFoundError, ParseError, ValidationError } from 'elysia'
import { ApiError, invalidAll, messageOf } from '../errors.ts'
import { type Mint, mint } from '../ids.ts'
import type { Limits } from '../limits.ts'
import type { Log } from '../log.ts'
import { allowedMethods } from './allowed-methods.ts'
import { type Begun, dataText, errorText, jsonResponse, ownResponse, retryAfterOf } from './answer.ts'
import { HangUp } from './body.ts'
import type { BodyHold } from './body-budget.ts'
import { createQueryCheck } from './query-names.ts'
import { requestIdOf } from './request-id.ts'
import { type Reservation, settle } from './reservation.ts'
import { shown, type ValidationFailure, validationProblems } from './validation-message.ts'

/** Called for each answered request. `route` is the pattern (`/api/v1/runs/:run_id`), to keep its cardinality low. */
export type ObserveRequest = (method: string, route: string, status: number, seconds: number) => void

export interface EnvelopeDeps {
  readonly log: Log
  readonly limits: Pick<Limits, 'body_bytes'>
  /** Whether to log each request, at level debug. Server errors are always logged. */
  readonly logRequests?: boolean
  readonly observeRequest?: ObserveRequest
  /** The error for the client when a store is unavailable; null for any other error. */
  readonly unavailableOf?: (error: unknown) => ApiError | null
}

/**
 * A body that is too large is still read up to this multiple of the limit, so that its sender can read the error
 * response.
 */
const DRAINED_LIMITS_MAX = 4
/** What hooks keep about a request. Set on every context from the start, so that all contexts have the same shape. */
export const REQUEST_STATE = {
  startedMs: 0,
  /** The decompressed body; idempotency compares it. */
  bodyBytes: new Uint8Array(0) as Uint8Array,
  /** Counts the body as in flight until the request is answered. */
  bodyHold: undefined as BodyHold | undefined,
  /** Mints ids; the same ones when a request with an `Idempotency-Key` is retried. */
  mint: mint as Mint,
  /** Set while a request with an `Idempotency-Key` is processed. */
  reservation: undefined as Reservation | undefined,
}

/**
 * The root that every route is mounted on: request ids, the envelope around data and errors, compression, request logs
 * (docs/api.md#envelope). Routes return bare data or throw {@link ApiError}; a `Response` is sent as it is.
 *
 * Elysia reads the source of each hook to see which parts of the context it must prepare. Therefore each hook
 * destructures what it needs and never passes the context on.
 */
export function createEnvelope(deps: EnvelopeDeps) {
  const finished = createFinish(deps)
  const checkQuery = createQueryCheck(() => root.routes)
  const root = new Elysia({ normalize: false })
    .decorate(REQUEST_STATE)
    // Not onRequest: with that hook Elysia parses every URL, even for routes that do not need it. Starting here also keeps
    // the time in which a slow client sends its body out of the measured time.
    .onTransform((context) => {
      context.startedMs = performance.now()
    })
    .onBeforeHandle(({ request, route }) => checkQuery(request.method, route, request.url))
    .onError(({ error, request, startedMs, route, set, reservation, bodyHold }) => {
      bodyHold?.release()
      const begun = { request, requestId: requestIdOf(request), startedMs, route, set }
      if (error instanceof NotFoundError) return unmatched(begun)
      const refused = asApiError(error, begun, deps.unavailableOf)
      finished(begun, refused.status, refused.status >= 500 ? error : undefined)
      // Everything that is refused before this is about the address or the key.
      if (bodyHold !== undefined || refused.code === 'PAYLOAD_TOO_LARGE') markRefused(begun, refused)
      const response = errorResponse(begun, refused, deps.limits.body_bytes)
      if (reservation === undefined) return response
      return settle(reservation, refused).then(() => response)
    })
    .mapResponse(({ responseValue, request, startedMs, route, set, reservation, bodyHold }) => {
      bodyHold?.release()
      // Error responses pass through here too. They are complete.
      if (responseValue instanceof Response && responseValue.headers.has('x-request-id')) return responseValue
      const begun = { request, requestId: requestIdOf(request), startedMs, route, set }
      if (responseValue instanceof Response) {
        // A stream is not stored: only the same request may be sent again, and it mints the same ids.
        reservation?.suspend()
        finished(begun, responseValue.status)
        return ownResponse(begun, responseValue)
      }
      const text = dataText(responseValue)
      const status = typeof set.status === 'number' ? set.status : 200
      finished(begun, status)
      const response = jsonResponse(begun, status, text)
      return reservation === undefined ? response : reservation.finish(status, text).then(() => response)
    })

  function unmatched(begun: Begun): Response | Promise<Response> {
    const { request, set } = begun
    const path = pathOf(request)
    const allowed = allowedMethods(root.routes, path)
    if (allowed.length > 0) set.headers.allow = allowed.join(', ')
    if (allowed.length > 0 && request.method === 'OPTIONS') {
      finished(begun, 204)
      return ownResponse(begun, new Response(null, { status: 204 }))
    }
    const refused =
      allowed.length > 0 && !allowed.includes(request.method)
        ? new ApiError(
            'METHOD_NOT_ALLOWED',
            `${shown(path)} does not support ${request.method}; it supports ${allowed.join(', ')}`,
          )
        : new ApiError('NOT_FOUND', `no route ${request.method} ${shown(path)}; GET /docs lists them all`, {
            reason: 'no_route',
          })
    finished(begun, refused.status)
    return errorResponse(begun, refused, deps.limits.body_bytes)
  }

  return root
}

function errorResponse(begun: Begun, refused: ApiError, bodyBytesMax: number): Response | Promise<Response> {
  const { headers } = begun.set
  const retryAfter = retryAfterOf(refused)
  if (retryAfter !== undefined) headers['retry-after'] = retryAfter
  if (refused.code === 'UNAUTHENTICATED') headers['www-authenticate'] = 'Bearer'
  const declared = Number(begun.request.headers.get('content-length'))
  if (refused instanceof HangUp || declared > bodyBytesMax * DRAINED_LIMITS_MAX) headers.connection = 'close'
  return jsonResponse(begun, refused.status, errorText(refused))
}

/**
 * Says that the request itself is refused, so that clients that report drop only what can never be accepted
 * (docs/api.md#refused-requests).
 */
function markRefused({ set }: Begun, { status, retryAfterSeconds }: ApiError): void {
  if (status < 500 && retryAfterSeconds === undefined) set.headers['x-refused'] = 'request'
}

/** Decides what the client is told about an error. */
function asApiError(
  error: unknown,
  { request, requestId }: Begun,
  unavailableOf: EnvelopeDeps['unavailableOf'],
): ApiError {
  const thrown = error instanceof ParseError ? error.cause : error
  if (thrown instanceof ApiError) return thrown.code === 'INTERNAL' ? internal(requestId, thrown) : thrown
  if (thrown instanceof ValidationError && thrown.type !== 'response')
    return invalidAll(validationProblems(failureOf(thrown)))
  // The client has disconnected, which cancelled the work, perhaps after its effect. No client reads this response.
  if (request.signal.aborted)
    return new ApiError('VALIDATION_ERROR', 'the client closed the connection', { hasEffect: true })
  return unavailableOf?.(thrown) ?? internal(requestId, thrown)
}

/** Elysia's error has the first finding only. */
function failureOf({ type, value, validator }: ValidationError): ValidationFailure {
  return { type, value, findings: (validator as TypeCheck<TSchema>).Errors(value) }
}

function internal(requestId: string, cause: unknown): ApiError {
  return new ApiError('INTERNAL', `internal error; see the log for request id ${requestId}`, { cause })
}

/** Logs and measures an answered request. */
function createFinish({ log, logRequests, observeRequest }: EnvelopeDeps) {
  return (begun: Begun, status: number, error?: unknown): void => {
    if (observeRequest === undefined && !logRequests && error === undefined) return
    const { request, requestId, startedMs, route } = begun
    // 0 if the request was refused while its body was being read.
    const ms = startedMs === 0 ? 0 : performance.now() - startedMs
    observeRequest?.(request.method, route ?? 'none', status, ms / 1000)
    if (!logRequests && error === undefined) return
    const fields = {
      request_id: requestId,
      method: request.method,
      path: pathOf(request),
      status,
      ms: Math.round(ms * 100) / 100,
    }
    if (error === undefined) log.debug('request', fields)
    else if (status === 503) log.warn('request refused', { ...fields, error: expectedOf(error) })
    else log.error('request failed', { ...fields, error: causeOf(error) })
  }
}

/** The URL of a request that Bun accepted is always absolute. */
function pathOf(request: Request): string {
  return new URL(request.url).pathname
}

/** An error that the service throws on purpose needs no stack, unless something else caused it. */
function expectedOf(error: unknown): unknown {
  return error instanceof ApiError && error.cause === undefined ? error.message : causeOf(error)
}

/**
 * The error to log, which clients do not see. A response that fails its schema is described by field, without its
 * values.
 */
function causeOf(error: unknown): unknown {
  if (error instanceof ValidationError) return messageOf(validationProblems(failureOf(error))[0])
  return error instanceof ApiError ? (error.cause ?? error) : error
}
