import type { Configuration } from 'oidc-provider'
import { type Answer, createApi } from './api.ts'
import { type Account, CLIENT_ID, CLIENT_SECRET, type OpenIdProvider, startOpenIdProvider } from './openid-provider.ts'
import { freePorts } from './processes.ts'
import { startTestService, type TestService } from './service.ts'

export const ADA: Account = { sub: 'ada', name: 'Ada Lovelace', email: 'ada@example.com', roles: ['admin'] }
export const BOB: Account = { sub: 'bob', name: 'Bob', email: 'bob@example.com', roles: ['approver'] }
export const EVE: Account = { sub: 'eve', name: 'Eve', email: 'eve@example.com', roles: 'viewer' }

/** Cookies by name, as a browser has them for one host. */
class CookieJar {
  private readonly cookies = new Map<string, string>()

  get header(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  get(name: string): string | undefined {
    return this.cookies.get(name)
  }

  take(headers: Headers): void {
    for (const line of headers.getSetCookie()) {
      const [pair = ''] = line.split(';')
      const at = pair.indexOf('=')
      if (/max-age=0|expires=thu, 01 jan 1970/i.test(line)) this.cookies.delete(pair.slice(0, at))
      else this.cookies.set(pair.slice(0, at), pair.slice(at + 1))
    }
  }
}

/** The parts of a browser that signing in needs: it follows redirects and keeps cookies. */
export class Browser {
  readonly own = new CookieJar()
  private readonly atProvider = new CookieJar()

  constructor(
    private readonly url: string,
    private readonly publicUrl = url,
    /** The provider's account that signs in; undefined: the one that is next. */
    private readonly sub?: string,
  ) {}

  /** One navigation. @returns where it is redirected, and the response */
  async visit(address: string): Promise<{ readonly location: string; readonly response: Response }> {
    const isOwn = address.startsWith(this.publicUrl)
    const jar = isOwn ? this.own : this.atProvider
    const target = isOwn ? this.url + address.slice(this.publicUrl.length) : address
    const headers = { cookie: jar.header, ...(this.sub !== undefined && { 'x-account': this.sub }) }
    const response = await fetch(target, { redirect: 'manual', headers })
    jar.take(response.headers)
    const location = response.headers.get('location')
    return { location: location === null ? '' : new URL(location, address).href, response }
  }

  /** Follows redirects until an address of the service with this path. */
  async follow(address: string, end: string): Promise<string> {
    for (let hops = 0; hops < 10; hops++) {
      const { origin, pathname } = new URL(address)
      if (origin === this.publicUrl && pathname === end) return address
      const { location, response } = await this.visit(address)
      if (location === '') throw new Error(`${address} answered ${response.status}: ${await response.text()}`)
      address = location
    }
    throw new Error(`too many redirects, the last to ${address}`)
  }

  /** Goes to the provider, and stops where the provider sends it back. @returns that address */
  async atCallback(to = ''): Promise<string> {
    return this.follow(this.start(to), '/auth/callback')
  }

  /** Signs in completely. @returns the address of the page at the end, without its origin */
  async signIn(to = ''): Promise<string> {
    return (await this.follow(this.start(to), '/')).slice(this.publicUrl.length)
  }

  private start(to: string): string {
    return `${this.publicUrl}/auth/sign-in${to && `?to=${encodeURIComponent(to)}`}`
  }

  /** The headers that the page sends with a feed. */
  get feedOptions() {
    return { key: null, headers: { cookie: this.own.header, origin: this.publicUrl } }
  }

  /** A call of the page. */
  call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const own = { cookie: this.own.header, ...(method !== 'GET' && { origin: this.publicUrl }), ...headers }
    return createApi(this.url, '')(method, path, body, { key: null, headers: own })
  }
}

export interface PeopleRig {
  readonly service: TestService
  readonly provider: OpenIdProvider
  readonly publicUrl: string
  browser(): Browser
  /** A browser in which the account is signed in. */
  signedIn(account: Account): Promise<Browser>
}

/** The environment variables that let people sign in at a provider. */
export function signInVariables(issuer: string, publicUrl: string): Record<string, string> {
  return {
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: CLIENT_ID,
    OIDC_CLIENT_SECRET: CLIENT_SECRET,
    PUBLIC_URL: publicUrl,
  }
}

/** The service and a real OpenID provider. */
export async function startPeople(
  env: Record<string, string> = {},
  options: Parameters<typeof startTestService>[1] & { readonly provider?: Partial<Configuration> } = {},
): Promise<PeopleRig> {
  const { provider: settings, ...serviceOptions } = options
  const [port] = freePorts(1)
  const publicUrl = env.PUBLIC_URL ?? `http://localhost:${port}`
  const provider = await startOpenIdProvider(publicUrl, settings)
  const variables = { PORT: `${port}`, ...signInVariables(provider.issuer, publicUrl), ...env }
  const service = await startTestService(variables, serviceOptions)
  const browser = () => new Browser(service.url, publicUrl)
  return {
    service,
    provider,
    publicUrl,
    browser,
    async signedIn(account) {
      provider.account = account
      const own = browser()
      const end = await own.signIn()
      if (end !== '/') throw new Error(`${account.sub} was not signed in: ${end}`)
      return own
    },
  }
}
