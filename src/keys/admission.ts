import { timingSafeEqual } from 'node:crypto'
import { ApiError } from '../base/errors.ts'
import { everythingArrived } from '../http/arrived.ts'
import { bearerToken } from '../http/bearer.ts'
import { type BodyReader, HangUp, type RawBody } from '../http/body.ts'
import type { Budget, FailureLimit, RateLimiter } from '../http/rate-limit.ts'
import { type Forwarder, noForwarding } from './forward.ts'
import type { KeyRing } from './key-ring.ts'
import type { Caller, FeedCaller } from './schema.ts'
import { hashKey, isWellFormedKey } from './token.ts'

export interface AdmissionDeps {
  readonly ring: KeyRing
  readonly limiter: RateLimiter
  readonly reader: BodyReader
  /** Undefined: the operator's routes answer 404. */
  readonly operatorToken: string | undefined
  /** Limits guesses of the operator token. */
  readonly operatorAttempts: FailureLimit
  /** The client address, by which failures are counted. */
  readonly addressOf: (request: Request) => string
  /** Web pages that may open feeds, as `https://app.example.com`; undefined: any. */
  readonly feedOrigins: readonly string[] | undefined
  /** Recognizes requests that another node has admitted. */
  readonly forwarder?: Forwarder
}

/** Which keys a route takes. */
export type Audience = 'agent' | 'workspace' | 'any'

interface AdmitOptions {
  /** The only agent whose key is taken, besides workspace keys. */
  readonly agentId?: string | undefined
  /** The key, if it is not in the Authorization header. */
  readonly token?: string | undefined
  /** The reader of a route whose bodies have a limit of their own. */
  readonly reader?: BodyReader
}

const REFUSALS = {
  agent: 'this route takes an agent key (svc_agent_…), not a workspace key',
  workspace: 'this route takes a workspace key (svc_ws_…), not an agent key',
} as const

/** Checks who sends a request, and reads its body. Without Elysia: `createGuards` makes plugins of it. */
export function createAdmission(deps: AdmissionDeps) {
  const {
    ring,
    limiter,
    reader,
    operatorToken,
    operatorAttempts,
    addressOf,
    feedOrigins,
    forwarder = noForwarding,
  } = deps

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
    { agentId, token, reader: own = reader }: AdmitOptions = {},
  ): Promise<{ readonly caller: Caller; readonly body: RawBody }> {
    own.checkLength(request)
    const forwarded = forwarder.receive(request)
    const since = ring.generation
    const admitted = forwarded?.caller ?? admit(request, headers, audience, budget, { agentId, token })
    const caller = admitted instanceof Promise ? await admitted : admitted
    const body = await readBody(own, request, caller.workspaceId)
    try {
      if (forwarded !== null) forwarder.checkBody(forwarded, body.bytes)
      // The key may have been revoked while the body arrived.
      else if (ring.changedSince(since)) await ring.authenticate(token ?? requiredToken(request))
      return { caller, body }
    } catch (error) {
      body.hold.release()
      throw error
    }
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
    readBody: (request: Request, owner: string) => readBody(reader, request, owner),
    admitFeed,
    admitOperator,
  }
}

/** Reads a body, and makes sure that no pipelined request would cost the request its response. */
async function readBody(reader: BodyReader, request: Request, owner: string): Promise<RawBody> {
  const body = await reader.read(request, owner)
  await everythingArrived()
  if (!request.signal.aborted) return body
  body.hold.release()
  throw new HangUp('VALIDATION_ERROR', 'the connection was closed before the request was processed')
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
