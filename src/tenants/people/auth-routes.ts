import { Elysia } from 'elysia'
import { LRUCache } from 'lru-cache'
import { ApiError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { Guards } from '../keys/guards.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import type { Caller } from '../keys/schema.ts'
import { SECURITY } from '../keys/security.ts'
import type { Cookies } from './cookies.ts'
import { type Attempt, CALLBACK_PATH, type OpenIdProvider, SignInError, type SignInProblem } from './provider.ts'
import { ChangeWorkspace, Nothing, type SignedIn, SignInEnded, SignInState } from './schema.ts'
import type { SignIns } from './sign-ins.ts'
import type { PeopleStore } from './store.ts'

/** The parts of signing in, where it is configured. */
/** How people sign in. */
export interface SignIn {
  readonly provider: OpenIdProvider
  readonly cookies: Cookies
  readonly signIns: SignIns
  readonly takesKeys: boolean
}

interface AuthRoutesDeps {
  readonly guards: Guards
  readonly ring: KeyRing
  readonly people: PeopleStore
  /** Undefined: nobody can sign in. */
  readonly signIn: SignIn | undefined
  readonly addressOf: (request: Request) => string
  /** Counts one request. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller) => void
  readonly log: Log
}

const SIGN_IN_PATH = '/auth/sign-in'
const PRIVATE = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }
/** A fragment of the page's address, to which a sign-in may return. */
const FRAGMENT = /^#\/[!-~]{0,1000}$/

/** Signing in by OpenID Connect, and the page's calls about it (docs/people.md). */
export function authRoutes(deps: AuthRoutesDeps) {
  return new Elysia().use(browserRoutes(deps)).use(stateRoute(deps)).use(ownRoutes(deps))
}

/** Addresses that browsers navigate to. Both answer with a redirect. */
function browserRoutes(deps: AuthRoutesDeps) {
  const callbacks = new Callbacks()
  return new Elysia({ name: 'sign-in', detail: { hide: true } })
    .get(SIGN_IN_PATH, ({ request }) => redirectToProvider(deps, request))
    .get(CALLBACK_PATH, ({ request }) => finishSignIn(deps, callbacks, request))
}

async function redirectToProvider(deps: AuthRoutesDeps, request: Request): Promise<Response> {
  const { provider, cookies } = required(deps.signIn)
  const to = new URL(request.url).searchParams.get('to') ?? ''
  try {
    const { url, attempt } = await provider.begin()
    return redirect(url, [cookies.setAttempt(encodeAttempt(attempt, FRAGMENT.test(to) ? to : ''))])
  } catch (error) {
    return redirectWithProblem(error, to, [])
  }
}

async function finishSignIn(deps: AuthRoutesDeps, callbacks: Callbacks, request: Request): Promise<Response> {
  const { log, people, ring } = deps
  const { provider, cookies, signIns } = required(deps.signIn)
  const { search, searchParams } = new URL(request.url)
  const stored = decodeAttempt(cookies.attempt(request))
  const cleared = cookies.clearAttempt()
  try {
    if (stored === undefined || searchParams.get('state') !== stored.attempt.state)
      throw new SignInError('expired', 'this browser has no attempt with this state')
    const begun = await signIns.begin(await callbacks.complete(provider, search, stored.attempt))
    await endEarlier(ring, people, cookies.signIn(request))
    const { token, seconds, personId, workspaceId } = begun
    log.info('a person has signed in', { personId, workspaceId })
    return redirect(`/${stored.to}`, [cookies.setSignIn(token, seconds), cleared])
  } catch (error) {
    if (error instanceof SignInError)
      log.warn('a person could not sign in', { problem: error.problem, reason: error.message })
    return redirectWithProblem(error, stored?.to ?? '', [cleared])
  }
}

/** Ends the earlier sign-in of a browser that has a new one, so that it does not stay valid unused. Best effort. */
async function endEarlier(ring: KeyRing, people: PeopleStore, token: string | undefined): Promise<void> {
  if (token === undefined) return
  const { caller } = (await Promise.resolve(ring.authenticateFeed(token)).catch(() => undefined)) ?? {}
  if (caller?.person !== undefined) await people.end(caller, caller.keyId).catch(() => {})
}

/** Attempts that are remembered. One that is forgotten may ask the provider once more, which refuses its code. */
const ATTEMPTS_MAX = 20_000
/** Callbacks that ask the provider at a time; it usually answers within a second. */
const CALLBACKS_MAX = 64

/**
 * Bounds what callbacks cost the provider: each attempt asks it once, and not too many do at a time. There is no limit by
 * address, because whoever fails often would lock out everybody else behind the same one.
 */
class Callbacks {
  private readonly tried = new LRUCache<string, true>({ max: ATTEMPTS_MAX })
  private running = 0

  /** @throws SignInError */
  async complete(provider: OpenIdProvider, search: string, attempt: Attempt) {
    if (this.tried.has(attempt.state)) throw new SignInError('expired', 'this attempt has ended')
    if (this.running >= CALLBACKS_MAX) throw new SignInError('too_many', 'too many people sign in at once')
    this.tried.set(attempt.state, true)
    this.running++
    try {
      return await provider.complete(search, attempt)
    } finally {
      this.running--
    }
  }
}

/** Redirects to the page, which explains the problem. @throws any error that is not a {@link SignInError} */
function redirectWithProblem(error: unknown, to: string, cookies: readonly string[]): Response {
  if (!(error instanceof SignInError)) throw error
  const problem: SignInProblem = error.problem
  return redirect(`/?sign-in=${problem}${FRAGMENT.test(to) ? to : ''}`, cookies)
}

function redirect(location: string, cookies: readonly string[]): Response {
  const headers = new Headers({ ...PRIVATE, location })
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return new Response(null, { status: 303, headers })
}

function encodeAttempt({ state, nonce, verifier }: Attempt, to: string): string {
  return [state, nonce, verifier, Buffer.from(to).toString('base64url')].join('.')
}

/** Of a bounded length, because attempts are remembered by their state. */
const ATTEMPT = /^([\w-]{1,100})\.([\w-]{1,100})\.([\w-]{1,100})\.([\w-]*)$/

function decodeAttempt(value: string | undefined): { readonly attempt: Attempt; readonly to: string } | undefined {
  const [, state, nonce, verifier, encoded] = ATTEMPT.exec(value ?? '') ?? []
  if (!state || !nonce || !verifier || encoded === undefined) return undefined
  const to = Buffer.from(encoded, 'base64url').toString()
  return { attempt: { state, nonce, verifier }, to: FRAGMENT.test(to) ? to : '' }
}

/** Needs no key: the page calls it before anybody has signed in. */
function stateRoute({ ring, signIn, addressOf, takeBudget }: AuthRoutesDeps) {
  const personOf = async (request: Request): Promise<SignedIn | null> => {
    const token = signIn?.cookies.tokenOf(request)
    if (signIn === undefined || token === undefined) return null
    try {
      const found = await ring.authenticateFeed(token, () => addressOf(request))
      takeBudget(found.caller)
      return await signIn.signIns.describe(found)
    } catch (error) {
      if (error instanceof ApiError && (error.code === 'UNAUTHENTICATED' || error.code === 'FORBIDDEN')) return null
      throw error
    }
  }
  return new Elysia({ prefix: '/api/v1', detail: { security: [], tags: ['People'] } }).get(
    '/sign-in',
    async ({ request, set }): Promise<SignInState> => {
      set.headers['cache-control'] = 'no-store'
      return {
        openid: signIn !== undefined,
        keys: signIn?.takesKeys ?? true,
        person: await personOf(request),
      }
    },
    {
      response: SignInState,
      detail: {
        operationId: 'getSignIn',
        summary: 'Read who is signed in',
        description: 'How people sign in to the page, and who is signed in by the cookie of this request.',
      },
    },
  )
}

/** Routes for people about their own sign-in. */
function ownRoutes({ guards, people, signIn }: AuthRoutesDeps) {
  return new Elysia({ prefix: '/api/v1', detail: { security: SECURITY.signIn, tags: ['People'] } })
    .use(guards.person('reads', 'viewer'))
    .post(
      '/sign-out',
      async ({ caller, set }) => {
        const ended = await people.end(caller, caller.keyId)
        set.headers['set-cookie'] = required(signIn).cookies.clearSignIn()
        return ended
      },
      {
        body: Nothing,
        response: SignInEnded,
        detail: {
          operationId: 'signOut',
          summary: 'Sign out',
          description: 'Once this call has answered, no process accepts the sign-in, and its feeds are closed.',
        },
      },
    )
    .post(
      '/sign-in/workspace',
      async ({ caller, body, set }) => {
        const { cookies, signIns } = required(signIn)
        const begun = await signIns.changeWorkspace(caller, body.workspace_id.toLowerCase())
        await people.end(caller, caller.keyId)
        set.headers['set-cookie'] = cookies.setSignIn(begun.token, begun.seconds)
        return { workspace_id: begun.workspaceId }
      },
      {
        body: ChangeWorkspace,
        response: ChangeWorkspace,
        detail: {
          operationId: 'changeWorkspace',
          summary: 'Enter another workspace',
          description: 'The cookie is replaced; the earlier one is no longer accepted.',
        },
      },
    )
}

/** @throws ApiError NOT_FOUND where signing in is not configured */
function required(signIn: SignIn | undefined): SignIn {
  if (signIn === undefined)
    throw new ApiError('NOT_FOUND', 'nobody can sign in here; OIDC_ISSUER turns it on', { reason: 'feature_off' })
  return signIn
}
