import { type PeopleConfig, parsePeopleOptions } from '../../tenants/people/settings.ts'
import type { ConfigReader } from './reader.ts'

const REQUIRED = ['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET']
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[?::1\]?)$/

interface PageAddress {
  /** Where the service listens. */
  readonly host: string
  readonly port: number
  /** Undefined: where the service listens, if that is an address of this machine. */
  readonly publicUrl: string | undefined
}

/** The origin at which people reach the page, also in links of webhooks; undefined if it is not set. */
export function readPublicUrl(read: ConfigReader): string | undefined {
  const [origin, ...more] = read.origins('PUBLIC_URL') ?? []
  if (more.length > 0) read.problem('PUBLIC_URL', 'must be one origin')
  else if (origin !== undefined && !isSafe(origin))
    read.problem('PUBLIC_URL', 'must begin with https:// unless it is an address of this machine')
  return origin
}

/** How people sign in. Undefined without OIDC_ISSUER: people open the page with keys only. */
export function readPeople(
  read: ConfigReader,
  { host, port, publicUrl: given }: PageAddress,
): PeopleConfig | undefined {
  const issuer = read.url('OIDC_ISSUER', ['http:', 'https:'])
  const [clientId, clientSecret] = REQUIRED.map((name) => read.text(name) ?? '')
  const publicUrl = given ?? (LOOPBACK.test(host) ? `http://localhost:${port}` : undefined)
  const options = read.parsed('OIDC_OPTIONS', parsePeopleOptions)
  if (issuer === undefined) {
    for (const name of [...REQUIRED, 'OIDC_OPTIONS'])
      if (read.text(name) !== undefined) read.problem(name, 'needs OIDC_ISSUER')
    return undefined
  }
  if (!isSafe(issuer)) read.problem('OIDC_ISSUER', 'must begin with https:// unless the provider runs on this machine')
  for (const name of REQUIRED)
    if (read.text(name) === undefined) read.problem(name, 'must be set together with OIDC_ISSUER')
  if (publicUrl === undefined)
    read.problem('PUBLIC_URL', 'must be set together with OIDC_ISSUER, unless the service listens on this machine only')
  return {
    issuer,
    clientId: clientId ?? '',
    clientSecret: clientSecret ?? '',
    publicUrl: publicUrl ?? '',
    ...(options ?? parsePeopleOptions('{}')),
  }
}

/** Whether a sign-in by this URL never crosses a network unencrypted. */
function isSafe(url: string): boolean {
  const { protocol, hostname } = URL.parse(url) ?? {}
  return protocol === 'https:' || LOOPBACK.test(hostname ?? '')
}
