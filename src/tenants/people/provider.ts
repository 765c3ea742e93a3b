import type { Configuration } from 'openid-client'
import type { Log } from '../../base/log.ts'
import type { PeopleConfig } from './settings.ts'

type ProviderConfig = Pick<PeopleConfig, 'issuer' | 'clientId' | 'clientSecret' | 'publicUrl' | 'scopes'>

/** Why nobody was signed in; the page explains each. */
export type SignInProblem =
  | 'unavailable'
  | 'refused'
  | 'expired'
  | 'failed'
  | 'no_role'
  | 'no_workspace'
  | 'suspended'
  | 'too_many'

/** Nobody was signed in. The message is for the log. */
export class SignInError extends Error {
  constructor(
    readonly problem: SignInProblem,
    message: string,
  ) {
    super(message)
  }
}

/** An attempt to sign in, kept in a cookie: the provider's answer is checked against it. */
export interface Attempt {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** Claims of the provider about a person. */
export type Claims = Readonly<Record<string, unknown>> & { readonly iss: string; readonly sub: string }

export const CALLBACK_PATH = '/auth/callback'

const REQUEST_SECONDS = 3
const DISCOVERY_PAUSES_MS = [0, 500]
/** After a failed discovery, further sign-ins fail at once for this long. */
const FAILURE_MS = 2_000
/** The provider's metadata is read again after this time. */
const METADATA_MS = 3_600_000

/**
 * The OpenID provider. Its metadata is read when somebody signs in, not at start, so the service can start and people stay
 * signed in while the provider is down.
 */
export class OpenIdProvider {
  private discovery: { readonly config: Promise<Configuration>; readonly until: number } | undefined
  private lastGood: Configuration | undefined

  constructor(
    private readonly settings: ProviderConfig,
    private readonly log: Log,
    private readonly monotonicMs: () => number = () => performance.now(),
  ) {}

  /** Begins an attempt. @returns the provider's URL to redirect to @throws SignInError unavailable */
  async begin(): Promise<{ readonly url: string; readonly attempt: Attempt }> {
    const oidc = await import('openid-client')
    const config = await this.configuration()
    const attempt = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      verifier: oidc.randomPKCECodeVerifier(),
    }
    const url = oidc.buildAuthorizationUrl(config, {
      redirect_uri: this.settings.publicUrl + CALLBACK_PATH,
      scope: this.settings.scopes,
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: 'S256',
    })
    return { url: url.href, attempt }
  }

  /**
   * Exchanges the code that the browser brought back, and checks the ID token: signature, issuer, audience, nonce, times.
   * @param search the query of the callback
   * @returns the claims of the ID token, and the claims that only the user info has
   * @throws SignInError
   */
  async complete(search: string, { state, nonce, verifier }: Attempt): Promise<Claims> {
    const oidc = await import('openid-client')
    const config = await this.configuration()
    const url = new URL(this.settings.publicUrl + CALLBACK_PATH + search)
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
    try {
      const tokens = await oidc.authorizationCodeGrant(config, url, checks)
      const claims = tokens.claims() as Claims
      if (config.serverMetadata().userinfo_endpoint === undefined) return claims
      return { ...(await oidc.fetchUserInfo(config, tokens.access_token, claims.sub)), ...claims }
    } catch (error) {
      throw new SignInError(problemOf(oidc, error), reasonOf(error))
    }
  }

  private async configuration(): Promise<Configuration> {
    const now = this.monotonicMs()
    if (this.discovery === undefined || this.discovery.until <= now)
      this.discovery = { config: this.discover(), until: now + METADATA_MS }
    const { config } = this.discovery
    try {
      this.lastGood = await config
    } catch (error) {
      if (this.discovery?.config === config)
        this.discovery = { config, until: Math.min(this.discovery.until, this.monotonicMs() + FAILURE_MS) }
      if (this.lastGood === undefined) throw error
    }
    return this.lastGood
  }

  private async discover(): Promise<Configuration> {
    const oidc = await import('openid-client')
    const { issuer, clientId, clientSecret } = this.settings
    const execute = [oidc.enableNonRepudiationChecks]
    // The configuration allows this only for addresses of this machine.
    if (issuer.startsWith('http:')) execute.push(oidc.allowInsecureRequests)
    let reason = ''
    for (const pauseMs of DISCOVERY_PAUSES_MS) {
      await Bun.sleep(pauseMs)
      try {
        const options = { execute, timeout: REQUEST_SECONDS }
        return await oidc.discovery(new URL(issuer), clientId, { client_secret: clientSecret }, undefined, options)
      } catch (error) {
        reason = reasonOf(error)
      }
    }
    this.log.warn('the OpenID provider cannot be reached; nobody can sign in', { issuer, reason })
    throw new SignInError('unavailable', reason)
  }
}

/** Error codes of the provider and of `openid-client`, by the problem that they mean. */
const EXPIRED = 'invalid_grant'
const REFUSED = ['access_denied', 'interaction_required', 'login_required', 'consent_required']
const NO_ANSWER = ['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'OAUTH_RESPONSE_IS_NOT_CONFORM']
const BUSY = ['temporarily_unavailable', 'server_error']

function problemOf(oidc: typeof import('openid-client'), error: unknown): SignInProblem {
  if (error instanceof oidc.AuthorizationResponseError)
    return REFUSED.includes(error.error) ? 'refused' : BUSY.includes(error.error) ? 'unavailable' : 'failed'
  if (error instanceof oidc.ResponseBodyError) return error.error === EXPIRED ? 'expired' : 'failed'
  // An error without a code happened before the provider answered.
  const isAnswer = error instanceof oidc.ClientError && error.code !== undefined && !NO_ANSWER.includes(error.code)
  return isAnswer ? 'failed' : 'unavailable'
}

/** The reason for the log, without bodies of responses, which may contain tokens. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { code, error: word } = error as { code?: unknown; error?: unknown }
  return [error.message, code, word].filter((each) => typeof each === 'string').join('; ')
}
