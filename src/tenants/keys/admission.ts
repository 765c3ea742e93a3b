import { timingSafeEqual } from 'node:crypto'
import { ApiError } from '../../base/errors.ts'
import { everythingArrived } from '../../base/http/arrived.ts'
import { bearerToken } from '../../base/http/bearer.ts'
import { type BodyReader, HangUp, type RawBody } from '../../base/http/body.ts'
import type { Budget, FailureLimit, RateLimiter } from '../../base/http/rate-limit.ts'
import { payerOf, spendBudget } from './budget.ts'
import { type Forwarder, noForwarding } from './forward.ts'
import type { KeyRing } from './key-ring.ts'
import { type Caller, type FeedCaller, type Role, requireRole } from './schema.ts'
import { hashKey, isFeedToken, isWellFormedKey } from './token.ts'

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
  /** Finds people who are signed in; undefined: signing in is not configured. */
  readonly signIns?: SignInGate | undefined
  /** Recognizes requests that another node has admitted. */
  readonly forwarder?: Forwarder
}

/** Finds people who are signed in to the page (docs/people.md). */
interface SignInGate {
  /**
   * The token in the cookie of a request; undefined if it has none.
   * @throws ApiError FORBIDDEN for a request that does not come from the service's own page
   */
  tokenOf(request: Request): string | undefined
}

/** Who may call a route, and the budget that a call spends. */
export type Access = AccessOfKeys | AccessOfPeople

/** Agent keys, or keys of either type; nobody who is signed in. */
interface AccessOfKeys {
  readonly audience: 'agent' | 'keys'
  readonly budget: Budget
  readonly role?: undefined
}

/** Workspace keys, or keys of either type, and people; or only people. */
interface AccessOfPeople {
  readonly audience: 'workspace' | 'any' | 'person'
  readonly budget: Budget
  /** The lowest role of a person who may call the route (docs/people.md#roles); for a GET, all may. */
  readonly role: Role
}

interface AdmitOptions {
  /** The only agent whose key is taken, besides workspace keys. */
  readonly agentId?: string | undefined
  /** The key, if it is not in the Authorization header. */
  readonly token?: string | undefined
  /** Takes feed tokens that may write scores, too. */
  readonly scoring?: boolean
  /** The reader of a route whose bodies have a limit of their own. */
  readonly reader?: BodyReader
}

const REFUSALS = {
  agent: 'this route takes an agent key (svc_agent_…), not a workspace key',
  keys: 'this route takes a key; people who are signed in need no feed token: feeds open with the cookie',
  workspace: 'this route takes a workspace key (svc_ws_…), not an agent key',
  person: 'this route is for people who are signed in, not for keys',
} as const

/** Checks who sends a request, and reads its body. Without Elysia: `createGuards` makes plugins of it. */
export function createAdmission(deps: AdmissionDeps) {
  const { ring, limiter, reader, addressOf, feedOrigins, forwarder = noForwarding } = deps
  const { authenticate, authenticatePerson } = createAuthentication(deps)

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
    { audience, budget, role }: Access,
    { agentId, token, scoring = false }: AdmitOptions = {},
  ): Caller | Promise<Caller> {
    const spend = (caller: Caller): Caller => {
      if (audience !== 'any' && caller.scoring === undefined && !isIn(audience, caller))
        throw new ApiError('FORBIDDEN', REFUSALS[audience], { reason: 'wrong_key_type' })
      if (agentId !== undefined && caller.agentId !== null && caller.agentId !== agentId)
        throw new ApiError('FORBIDDEN', 'this key belongs to another agent', { reason: 'wrong_agent' })
      spendBudget(limiter, payerOf(caller), [budget, 1], headers)
      return caller
    }
    const caller = authenticate(request, role, token, scoring)
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
    access: Access,
    { agentId, token, reader: own = reader, scoring = false }: AdmitOptions = {},
  ): Promise<{ readonly caller: Caller; readonly body: RawBody }> {
    own.checkLength(request)
    const forwarded = forwarder.receive(request)
    const since = ring.generation
    const admitted = forwarded?.caller ?? admit(request, headers, access, { agentId, token, scoring })
    const caller = admitted instanceof Promise ? await admitted : admitted
    const body = await readBody(own, request, caller.workspaceId)
    try {
      if (forwarded !== null) forwarder.checkBody(forwarded, body.bytes)
      // The key may have been revoked while the body arrived.
      else if (ring.changedSince(since)) await authenticate(request, access.role, token, scoring)
      return { caller, body }
    } catch (error) {
      body.hold.release()
      throw error
    }
  }

  /**
   * Authenticates the client of a feed, by key, feed token or the cookie of a sign-in. A feed token may be in the URL,
   * because browsers cannot send headers with an EventSource or a WebSocket (docs/feeds.md#feed-tokens).
   *
   * @throws as {@link admit}; FORBIDDEN also for a page whose origin is not allowed
   */
  async function admitFeed(request: Request, headers: Record<string, string | number>): Promise<FeedCaller> {
    const token = feedToken(request)
    const feed = await (token === undefined
      ? authenticatePerson(request, 'viewer')
      : ring.authenticateFeed(token, () => addressOf(request)))
    if (feed === undefined)
      throw new ApiError('UNAUTHENTICATED', 'send a key (Authorization: Bearer <key>) or a feed token (?token=)', {
        reason: 'key_missing',
      })
    checkOrigin(request, feedOrigins)
    const payer = { keyId: feed.caller.keyId, token: feed.isToken ? feed.credential : undefined }
    spendBudget(limiter, payer, ['reads', 1], headers)
    return feed
  }

  return {
    admit,
    receive,
    readBody: (request: Request, owner: string) => readBody(reader, request, owner),
    admitFeed,
    /** @throws ApiError FORBIDDEN for a page whose origin is not allowed */
    checkFeedOrigin: (request: Request) => checkOrigin(request, feedOrigins),
    admitOperator: operatorAdmission(deps),
  }
}

/** Finds the caller of a request by its key, or else by its sign-in cookie. */
function createAuthentication({
  ring,
  signIns,
  addressOf,
  feedOrigins,
}: Pick<AdmissionDeps, 'ring' | 'signIns' | 'addressOf' | 'feedOrigins'>) {
  function authenticate(
    request: Request,
    role: Role | undefined,
    given?: string,
    scoring = false,
  ): Caller | Promise<Caller> {
    const from = () => addressOf(request)
    const token = given ?? bearerToken(request)
    if (scoring && token !== undefined && isFeedToken(token)) {
      checkOrigin(request, feedOrigins)
      return ring.authenticateScoring(token, from)
    }
    if (token !== undefined) return ring.authenticate(token, from)
    const found = authenticatePerson(request, role)
    if (found === undefined) throw noToken()
    return found instanceof Promise ? found.then(({ caller }) => caller) : found.caller
  }

  /**
   * The person of the sign-in cookie; undefined without a cookie.
   * @throws ApiError FORBIDDEN if their role does not allow the request; as `KeyRing.authenticateFeed`
   */
  function authenticatePerson(request: Request, role: Role | undefined): FeedCaller | Promise<FeedCaller> | undefined {
    const token = signIns?.tokenOf(request)
    if (token === undefined) return undefined
    const check = (found: FeedCaller): FeedCaller => {
      if (role !== undefined) requireRole(found.caller.person!, isRead(request) ? 'viewer' : role)
      return found
    }
    const found = ring.authenticateFeed(token, () => addressOf(request))
    return found instanceof Promise ? found.then(check) : check(found)
  }

  return { authenticate, authenticatePerson }
}

/** @returns a function that checks the operator token of a request, and throws an ApiError unless it is right */
function operatorAdmission({
  operatorToken,
  operatorAttempts,
  addressOf,
}: Pick<AdmissionDeps, 'operatorToken' | 'operatorAttempts' | 'addressOf'>) {
  return (request: Request): void => {
    if (operatorToken === undefined)
      throw new ApiError('NOT_FOUND', 'the operator routes are off; OPERATOR_TOKEN turns them on', {
        reason: 'feature_off',
      })
    const token = requiredToken(request)
    // An API key is a mistake, not a guess: the operator token never has that form.
    const attempt = token.startsWith('svc_') ? undefined : operatorAttempts.begin(addressOf(request))
    const isOperator = timingSafeEqual(hashKey(token), hashKey(operatorToken))
    if (!isOperator)
      throw new ApiError('UNAUTHENTICATED', 'this route takes the operator token', { reason: 'key_invalid' })
    attempt?.forgive()
  }
}

function isIn(audience: Exclude<Access['audience'], 'any'>, { type, person }: Caller): boolean {
  if (audience === 'person') return person !== undefined
  return audience === 'keys' ? person === undefined : type === audience
}

function isRead({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** Reads a body, and makes sure that no pipelined request would cost the request its response. */
async function readBody(reader: BodyReader, request: Request, owner: string): Promise<RawBody> {
  const body = await reader.read(request, owner)
  await everythingArrived()
  if (!request.signal.aborted) return body
  body.hold.release()
  throw new HangUp('VALIDATION_ERROR', 'the connection was closed before the request was processed')
}

/** Undefined if the request has neither a bearer token nor one in its URL. */
function feedToken(request: Request): string | undefined {
  if (request.headers.has('authorization')) return withoutSignIn(requiredToken(request))
  const token = new URL(request.url).searchParams.get('token')
  if (token === null || token === '') return undefined
  // URLs end up in logs and histories.
  if (isWellFormedKey(token) !== null)
    throw new ApiError(
      'UNAUTHENTICATED',
      'do not put API keys in URLs; create a feed token with POST /api/v1/feed-tokens',
      { reason: 'key_in_url' },
    )
  return withoutSignIn(token)
}

/** The token of a sign-in is accepted only from its cookie, where scripts of a page cannot read it. */
function withoutSignIn(token: string): string {
  if (token.startsWith('svc_person_'))
    throw new ApiError('UNAUTHENTICATED', 'the key or feed token is not valid', { reason: 'key_invalid' })
  return token
}

/** Only browsers send an origin. Pages of the service itself are always allowed. */
function checkOrigin(request: Request, allowed: readonly string[] | undefined): void {
  const origin = request.headers.get('origin')
  if (origin === null || allowed === undefined || allowed.includes(origin.toLowerCase())) return
  if (URL.parse(origin)?.host === request.headers.get('host')) return
  throw new ApiError('FORBIDDEN', 'pages of this origin may not open feeds; add it to FEED_ORIGINS', {
    reason: 'origin_refused',
  })
}

function requiredToken(request: Request): string {
  const token = bearerToken(request)
  if (token === undefined) throw noToken()
  return token
}

function noToken(): ApiError {
  return new ApiError('UNAUTHENTICATED', 'send a key: Authorization: Bearer <key>', { reason: 'key_missing' })
}
