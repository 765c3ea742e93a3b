import { timingSafeEqual } from 'node:crypto'
import { Elysia } from 'elysia'
import { everythingArrived } from '../http/arrived.ts'
import { bearerToken } from '../http/bearer.ts'
import { type BodyReader, HangUp, type RawBody } from '../http/body.ts'
import type { BodyHold } from '../http/body-budget.ts'
import { ApiError } from '../http/errors.ts'
import type { FailureLimit } from '../http/failure-limit.ts'
import type { Idempotency, Reservation } from '../http/idempotency.ts'
import type { Budget, RateLimiter } from '../http/rate-limit.ts'
import { type Mint, mint } from '../ids.ts'
import type { KeyRing } from './key-ring.ts'
import type { Caller, FeedCaller } from './schema.ts'
import { hashKey, isWellFormedKey } from './token.ts'

export interface GuardsDeps {
  readonly ring: KeyRing
  readonly limiter: RateLimiter
  readonly reader: BodyReader
  readonly idempotency: Idempotency
  /** Undefined: the operator's routes answer 404. */
  readonly operatorToken: string | undefined
  /** Limits guesses of the operator token. */
  readonly operatorAttempts: FailureLimit
  /** The client address, by which failures are counted. */
  readonly addressOf: (request: Request) => string
  /** Web pages that may open feeds, as `https://app.example.com`; undefined: any. */
  readonly feedOrigins: readonly string[] | undefined
}

/** Which keys a route takes. */
export type Audience = 'agent' | 'workspace' | 'any'

export interface AdmitOptions {
  /** The only agent whose key is taken, besides workspace keys. */
  readonly agentId?: string | undefined
  /** The key, if it is not in the Authorization header. */
  readonly token?: string | undefined
}

/** An authenticated request with its body, which has not been validated yet. */
export interface Received {
  readonly caller: Caller
  readonly body: RawBody
}

/**
 * The checks in front of every route that needs a key, in this order (docs/specification.md#order-of-checks): size of the
 * body, key (401), scope (403), budget (429), and only then the content of the body (400). Each guard is a plugin: the
 * routes of the instance that uses it get `caller`, `mint`, and the parsed `body`.
 */
export type Guards = ReturnType<typeof createGuards>

const NO_BYTES = new Uint8Array(0)
/** The owner that request bodies of the operator count for, because they belong to no workspace. */
const OPERATOR = 'operator'

const REFUSALS = {
  agent: 'this route takes an agent key (svc_agent_…), not a workspace key',
  workspace: 'this route takes a workspace key (svc_ws_…), not an agent key',
} as const

export function createGuards(deps: GuardsDeps) {
  const { ring, limiter, reader, idempotency, operatorToken, operatorAttempts, addressOf, feedOrigins } = deps

  /**
   * Checks the key of a request, without Elysia: for routes that cannot afford hooks. Synchronous if the key is cached,
   * otherwise returns a promise.
   *
   * @param headers of the response, for the rate limit
   * @throws ApiError UNAUTHENTICATED, FORBIDDEN, RATE_LIMITED, UNAVAILABLE; synchronously or as a rejection
   */
  function admit(
    request: Request,
    headers: Record<string, string | number>,
    audience: Audience,
    budget: Budget,
    { agentId, token }: AdmitOptions = {},
  ): Caller | Promise<Caller> {
    const spend = (caller: Caller): Caller => {
      if (audience !== 'any' && caller.type !== audience) throw new ApiError('FORBIDDEN', REFUSALS[audience])
      if (agentId !== undefined && caller.agentId !== null && caller.agentId !== agentId)
        throw new ApiError('FORBIDDEN', 'this key belongs to another agent')
      limiter.take(caller.keyId, budget, 1, headers)
      return caller
    }
    const caller = ring.authenticate(token ?? requiredToken(request), () => addressOf(request))
    return caller instanceof Promise ? caller.then(spend) : spend(caller)
  }

  /**
   * Checks the key from the headers, as {@link admit} does, and only then reads the body: a request without a valid key
   * uses no memory, and is answered even if its body never arrives. When it resolves, the request is safe to process: the
   * key is still valid after the body has arrived, and no pipelined request would cost it its response.
   *
   * @throws as {@link admit} and {@link BodyReader.read}
   */
  async function receive(
    request: Request,
    headers: Record<string, string | number>,
    audience: Audience,
    budget: Budget,
    { agentId, token }: AdmitOptions = {},
  ): Promise<Received> {
    reader.checkLength(request)
    const since = ring.generation
    const admitted = admit(request, headers, audience, budget, { agentId, token })
    const caller = admitted instanceof Promise ? await admitted : admitted
    const body = await readBody(request, caller.workspaceId)
    try {
      // The key may have been revoked while the body arrived.
      if (ring.changedSince(since)) await ring.authenticate(token ?? requiredToken(request))
      return { caller, body }
    } catch (error) {
      body.hold.release()
      throw error
    }
  }

  async function readBody(request: Request, owner: string): Promise<RawBody> {
    const body = await reader.read(request, owner)
    await everythingArrived()
    if (!request.signal.aborted) return body
    body.hold.release()
    throw new HangUp('VALIDATION_ERROR', 'the connection was closed before the request was processed')
  }

  /**
   * Authenticates the client of a feed, by key or by feed token. A feed token may be in the URL, because browsers cannot send
   * headers with an EventSource or a WebSocket (docs/specification.md#feed-tokens).
   *
   * @throws as {@link admit}; FORBIDDEN also for a page whose origin is not allowed
   */
  async function admitFeed(request: Request, headers: Record<string, string | number>): Promise<FeedCaller> {
    const feed = await ring.authenticateFeed(feedToken(request), () => addressOf(request))
    checkOrigin(request, feedOrigins)
    limiter.take(feed.caller.keyId, 'reads', 1, headers)
    return feed
  }

  const guard = (audience: Audience, budget: Budget, isOfAgent = false) => {
    const agentOf = (params: object) => (isOfAgent ? (params as { agentId: string }).agentId.toLowerCase() : undefined)
    return (
      withContext(`${audience} ${budget} ${isOfAgent}`)
        // Runs before all other hooks, for every method that may have a body.
        .onParse({ as: 'scoped' }, async (context) => {
          const { request, set, params } = context
          const headers = set.headers as Record<string, string | number>
          const { caller, body } = await receive(request, headers, audience, budget, { agentId: agentOf(params) })
          context.admitted = caller
          context.bodyHold = body.hold
          return body
        })
        .derive({ as: 'scoped' }, async ({ request, set, params, admitted }) => {
          if (admitted !== undefined) return { caller: admitted }
          const headers = set.headers as Record<string, string | number>
          return { caller: await admit(request, headers, audience, budget, { agentId: agentOf(params) }) }
        })
        .onTransform({ as: 'scoped' }, reader.transform)
        .onBeforeHandle({ as: 'scoped' }, idempotency.beforeHandle)
    )
  }

  function admitOperator(request: Request): void {
    if (operatorToken === undefined)
      throw new ApiError('NOT_FOUND', 'the operator routes are off; OPERATOR_TOKEN turns them on')
    const token = requiredToken(request)
    // An API key is a mistake, not a guess: the operator token never has that form.
    const attempt = token.startsWith('svc_') ? undefined : operatorAttempts.begin(addressOf(request))
    const isOperator = timingSafeEqual(hashKey(token), hashKey(operatorToken))
    if (!isOperator) throw new ApiError('UNAUTHENTICATED', 'this route takes the operator token')
    attempt?.forgive()
  }

  return {
    admit,
    receive,
    /** Agent keys only, with the budget of ingest requests. */
    ingest: guard('agent', 'ingest'),
    /** Workspace keys only: management and SQL. */
    workspaceKey: (budget: Budget) => guard('workspace', budget),
    /** Either type. The store of the route limits an agent key to its own agent. */
    anyKey: (budget: Budget) => guard('any', budget),
    /** Either type; an agent key only for the agent in the path, `:agentId`. */
    keyOfAgent: (budget: Budget) => guard('any', budget, true),
    /** Keys of either type and feed tokens; only for feeds. */
    feed: withContext('feed').derive({ as: 'scoped' }, async ({ request, set }) => ({
      feed: await admitFeed(request, set.headers as Record<string, string | number>),
    })),
    /** The operator token. It is not an API key, so there is no caller and no budget. */
    operator: withContext('operator')
      .onParse({ as: 'scoped' }, async (context) => {
        const { request } = context
        reader.checkLength(request)
        admitOperator(request)
        const body = await readBody(request, OPERATOR)
        context.bodyHold = body.hold
        return body
      })
      .derive({ as: 'scoped' }, ({ request }) => {
        admitOperator(request)
        return {}
      })
      .onTransform({ as: 'scoped' }, reader.transform)
      .onBeforeHandle({ as: 'scoped' }, idempotency.beforeHandle),
  }
}

/**
 * Elysia runs plugins with the same name and seed once per route. `createEnvelope` sets these members; they are
 * repeated here for their types.
 */
function withContext(seed: string) {
  return new Elysia({ name: 'guard', seed }).decorate({
    admitted: undefined as Caller | undefined,
    bodyBytes: NO_BYTES as Uint8Array,
    bodyHold: undefined as BodyHold | undefined,
    mint: mint as Mint,
    reservation: undefined as Reservation | undefined,
  })
}

function feedToken(request: Request): string {
  if (request.headers.has('authorization')) return requiredToken(request)
  const token = new URL(request.url).searchParams.get('token')
  if (token === null || token === '')
    throw new ApiError('UNAUTHENTICATED', 'send a key (Authorization: Bearer <key>) or a feed token (?token=)')
  // URLs end up in logs and histories.
  if (isWellFormedKey(token) !== null)
    throw new ApiError(
      'UNAUTHENTICATED',
      'do not put API keys in URLs; create a feed token with POST /api/v1/feed-tokens',
    )
  return token
}

/** Only browsers send an origin. Pages of the service itself are always allowed. */
function checkOrigin(request: Request, allowed: readonly string[] | undefined): void {
  const origin = request.headers.get('origin')
  if (origin === null || allowed === undefined || allowed.includes(origin.toLowerCase())) return
  if (URL.parse(origin)?.host === request.headers.get('host')) return
  throw new ApiError('FORBIDDEN', 'pages of this origin may not open feeds; add it to FEED_ORIGINS')
}

function requiredToken(request: Request): string {
  const token = bearerToken(request)
  if (token === undefined) throw new ApiError('UNAUTHENTICATED', 'send a key: Authorization: Bearer <key>')
  return token
}
