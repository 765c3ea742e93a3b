import { ApiError } from '../../base/errors.ts'
import { cookieOf, SIGN_IN_COOKIES, signInToken } from '../../base/http/bearer.ts'

/** Names of the cookie that keeps an attempt to sign in until the provider sends the browser back. */
const ATTEMPT_COOKIES = { secure: '__Host-agent-run-sign-in', plain: 'agent-run-sign-in' } as const
const ATTEMPT_SECONDS = 600

/** Paths that accept the sign-in cookie. */
const API_PREFIX = '/api/v1/'

/** Reads and writes the cookies of signing in, for one public URL. */
export class Cookies {
  private readonly kind: 'secure' | 'plain'

  /** @param publicUrl an origin */
  constructor(private readonly publicUrl: string) {
    this.kind = publicUrl.startsWith('https:') ? 'secure' : 'plain'
  }

  /**
   * The token of a sign-in that comes with a request to the API.
   * @throws ApiError FORBIDDEN unless the request comes from the service's own page
   */
  tokenOf(request: Request): string | undefined {
    const token = this.signIn(request)
    if (token === undefined || !new URL(request.url).pathname.startsWith(API_PREFIX)) return undefined
    this.checkOrigin(request)
    return token
  }

  /** The same token on any path, without a check of the origin. */
  signIn(request: Request): string | undefined {
    const token = this.kind === 'secure' ? cookieOf(request, SIGN_IN_COOKIES.secure) : signInToken(request)
    return token?.startsWith('svc_person_') === true ? token : undefined
  }

  /** The attempt to sign in that this browser has begun; undefined without its cookie. */
  attempt(request: Request): string | undefined {
    return cookieOf(request, ATTEMPT_COOKIES[this.kind])
  }

  setSignIn(token: string, seconds: number): string {
    return this.set(SIGN_IN_COOKIES[this.kind], token, seconds)
  }

  setAttempt(value: string): string {
    return this.set(ATTEMPT_COOKIES[this.kind], value, ATTEMPT_SECONDS)
  }

  clearSignIn(): string {
    return this.set(SIGN_IN_COOKIES[this.kind], '', 0)
  }

  clearAttempt(): string {
    return this.set(ATTEMPT_COOKIES[this.kind], '', 0)
  }

  /** `Lax`, not `Strict`: the browser comes back from the provider's site. */
  private set(name: string, value: string, seconds: number): string {
    const secure = this.kind === 'secure' ? '; Secure' : ''
    return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`
  }

  /**
   * A browser adds the cookie to requests of any page of the same site, so a request must prove that it comes from this
   * origin. Browsers send `Origin` with unsafe methods and WebSockets, and `Sec-Fetch-Site` over https.
   */
  private checkOrigin({ method, headers }: Request): void {
    const origin = headers.get('origin')
    const site = headers.get('sec-fetch-site')
    const isRead = (method === 'GET' || method === 'HEAD') && headers.get('upgrade') === null
    const isOwn = origin === null ? site === 'same-origin' || isRead : origin === this.publicUrl
    const isFromOwnPage = site === null || site === 'same-origin' || (isRead && site === 'none')
    if (isOwn && isFromOwnPage) return
    throw new ApiError('FORBIDDEN', `a sign-in is valid only for requests of the page at ${this.publicUrl}`, {
      reason: 'origin_refused',
    })
  }
}
