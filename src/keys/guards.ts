import { timingSafeEqual } from 'node:crypto'
import { Elysia } from 'elysia'
import type { BodyReader } from '../http/body.ts'
import { ApiError } from '../http/errors.ts'
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
  /** Web pages that may open feeds, as `https://app.example.com`; undefined: any. */
  readonly feedOrigins: readonly string[] | undefined
}

/** Which keys a route takes. */
export type Audience = 'agent' | 'workspace' | 'any'

/**
 * What stands in front of every route that needs a key, in the contract's order of checks (section 1): the body's size,
 * the key (401), its scope (403), its budget (429), and only then what the body says (400). Each guard is a plugin:
 * the routes of the instance that uses it get `caller`, `mint`, and the parsed `body`.
 */
export type Guards = ReturnType<typeof createGuards>

const NO_BYTES = new Uint8Array(0)
const BEARER = /^Bearer +(\S+) *$/i

const REFUSALS = {
  agent: 'this route takes an agent key (svc_agent_…), not a workspace key',
  workspace: 'this route takes a workspace key (svc_ws_…), not an agent key',
} as const

export function createGuards(deps: GuardsDeps) {
  const { ring, limiter, reader, idempotency, operatorToken, feedOrigins } = deps

  /**
   * Judges the key of a request, without Elysia: for routes that cannot afford hooks. Answers at once for a key that
   * is remembered, else with a promise.
   *
   * @param headers of the response, which get those of the rate limit
   * @param agentId the only agent whose key is taken, besides workspace keys
   * @throws ApiError UNAUTHENTICATED, FORBIDDEN, RATE_LIMITED, UNAVAILABLE; thrown or rejected with
   */
  function admit(
    request: Request,
    headers: Record<string, string | number>,
    audience: Audience,
    budget: Budget,
    agentId?: string,
  ): Caller | Promise<Caller> {
    const spend = (caller: Caller): Caller => {
      if (audience !== 'any' && caller.type !== audience) throw new ApiError('FORBIDDEN', REFUSALS[audience])
      if (agentId !== undefined && caller.agentId !== null && caller.agentId !== agentId)
        throw new ApiError('FORBIDDEN', 'this key belongs to another agent')
      limiter.take(caller.keyId, budget, 1, headers)
      return caller
    }
    const caller = ring.authenticate(bearerToken(request))
    return caller instanceof Promise ? caller.then(spend) : spend(caller)
  }

  /**
   * Judges who opens a feed: by a key, or by a feed token, which may stand in the address because browsers can send no
   * header with an EventSource or a WebSocket (contract section 5).
   *
   * @throws as {@link admit}; FORBIDDEN also for a web page that is not on the allow-list
   */
  async function admitFeed(request: Request, headers: Record<string, string | number>): Promise<FeedCaller> {
    const feed = await ring.authenticateFeed(feedToken(request))
    checkOrigin(request, feedOrigins)
    limiter.take(feed.caller.keyId, 'reads', 1, headers)
    return feed
  }

  const guard = (audience: Audience, budget: Budget, isOfAgent = false) =>
    withContext(`${audience} ${budget} ${isOfAgent}`)
      .onParse({ as: 'scoped' }, reader.parse)
      .derive({ as: 'scoped' }, async ({ request, set, params }) => {
        const agentId = isOfAgent ? (params as { agentId: string }).agentId.toLowerCase() : undefined
        const headers = set.headers as Record<string, string | number>
        return { caller: await admit(request, headers, audience, budget, agentId) }
      })
      .onTransform({ as: 'scoped' }, reader.transform)
      .onBeforeHandle({ as: 'scoped' }, idempotency.beforeHandle)

  return {
    admit,
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
      .onParse({ as: 'scoped' }, reader.parse)
      .derive({ as: 'scoped' }, ({ request }) => {
        if (operatorToken === undefined)
          throw new ApiError('NOT_FOUND', 'the operator routes are off; OPERATOR_TOKEN turns them on')
        const isOperator = timingSafeEqual(hashKey(bearerToken(request)), hashKey(operatorToken))
        if (!isOperator) throw new ApiError('UNAUTHENTICATED', 'this route takes the operator token')
        return {}
      })
      .onTransform({ as: 'scoped' }, reader.transform)
      .onBeforeHandle({ as: 'scoped' }, idempotency.beforeHandle),
  }
}

/** Plugins of one name and seed are run once a route; the members are the shell's, named here for their types. */
function withContext(seed: string) {
  return new Elysia({ name: 'guard', seed }).decorate({
    bodyBytes: NO_BYTES as Uint8Array,
    mint: mint as Mint,
    reservation: undefined as Reservation | undefined,
  })
}

function feedToken(request: Request): string {
  if (request.headers.has('authorization')) return bearerToken(request)
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

function bearerToken(request: Request): string {
  const token = BEARER.exec(request.headers.get('authorization') ?? '')?.[1]
  if (token === undefined) throw new ApiError('UNAUTHENTICATED', 'send a key: Authorization: Bearer <key>')
  return token
}
