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
  /** Bounds guesses of it. */
  readonly operatorAttempts: FailureLimit
  /** Where a request comes from, to count failures by. */
  readonly addressOf: (request: Request) => string
  /** Web pages that may open feeds, as `https://app.example.com`; undefined: any. */
  readonly feedOrigins: readonly string[] | undefined
}

/** Which keys a route takes. */
export type Audience = 'agent' | 'workspace' | 'any'

export interface AdmitOptions {
  /** The only agent whose key is taken, besides workspace keys. */
  readonly agentId?: string | undefined
  /** The key, where it does not stand in the header. */
  readonly token?: string | undefined
}

/** A call whose key has been accepted, with its body, which is unchecked yet. */
export interface Received {
  readonly caller: Caller
  readonly body: RawBody
}

/**
 * What stands in front of every route that needs a key, in the order of checks (docs/specification.md#order-of-checks):
 * the body's size, the key (401), its scope (403), its budget (429), and only then what the body says (400). Each guard
 * is a plugin: the routes of the instance that uses it get `caller`, `mint`, and the parsed `body`.
 */
export type Guards = ReturnType<typeof createGuards>

const NO_BYTES = new Uint8Array(0)
/** Who the bodies of operators' calls count for: they belong to no workspace. */
const OPERATOR = 'operator'

const REFUSALS = {
  agent: 'this route takes an agent key (svc_agent_…), not a workspace key',
  workspace: 'this route takes a workspace key (svc_ws_…), not an agent key',
} as const

export function createGuards(deps: GuardsDeps) {
  const { ring, limiter, reader, idempotency, operatorToken, operatorAttempts, addressOf, feedOrigins } = deps

  /**
   * Judges the key of a request, without Elysia: for routes that cannot afford hooks. Answers at once for a key that
   * is remembered, else with a promise.
   *
   * @param headers of the response, which get those of the rate limit
   * @throws ApiError UNAUTHENTICATED, FORBIDDEN, RATE_LIMITED, UNAVAILABLE; thrown or rejected with
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
   * Judges the key, as {@link admit} does, from the headers alone, and only then reads the body: a caller without a key
   * costs no memory, and is answered even if its body never comes. Resolves when the call is safe to carry out: the key
   * is still good after the body has arrived, and no request has been sent behind this one that would cost its answer.
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
      // A key that was revoked while the body was on its way is refused.
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
    throw new HangUp('VALIDATION_ERROR', 'the connection was closed before the call was carried out')
  }

  /**
   * Judges who opens a feed: by a key, or by a feed token, which may stand in the address because browsers can send no
   * header with an EventSource or a WebSocket (docs/specification.md#feed-tokens).
   *
   * @throws as {@link admit}; FORBIDDEN also for a web page that is not on the allow-list
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
        // Runs for every method that may have a body, and before everything else.
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
    // A key is a mistake, not a guess: the operator token never looks like one.
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
    /** Either type; what an agent key may see is its own agent's, which the route's store decides. */
    anyKey: (budget: Budget) => guard('any', budget),
    /** Either type, an agent key only for the agent that the path names as `:agentId`. */
    keyOfAgent: (budget: Budget) => guard('any', budget, true),
    /** Keys of either type and feed tokens; for feeds only. */
    feed: withContext('feed').derive({ as: 'scoped' }, async ({ request, set }) => ({
      feed: await admitFeed(request, set.headers as Record<string, string | number>),
    })),
    /** The operator's token, which is no key: no caller, no budget. */
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

/** Plugins of one name and seed are run once a route; the members are the envelope's, named here for their types. */
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
  // Addresses end up in logs and histories.
  if (isWellFormedKey(token) !== null)
    throw new ApiError(
      'UNAUTHENTICATED',
      'a key does not belong into an address: POST /api/v1/feed-tokens makes a token',
    )
  return token
}

/** Only browsers send an origin; a page of the service's own is always welcome. */
function checkOrigin(request: Request, allowed: readonly string[] | undefined): void {
  const origin = request.headers.get('origin')
  if (origin === null || allowed === undefined || allowed.includes(origin.toLowerCase())) return
  if (URL.parse(origin)?.host === request.headers.get('host')) return
  throw new ApiError('FORBIDDEN', 'pages of this origin may not open feeds; FEED_ORIGINS lists those that may')
}

function requiredToken(request: Request): string {
  const token = bearerToken(request)
  if (token === undefined) throw new ApiError('UNAUTHENTICATED', 'send a key: Authorization: Bearer <key>')
  return token
}
