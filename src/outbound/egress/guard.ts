import { dns } from 'bun'
import { type Address, readAddress, scopeOf } from './addresses.ts'
import type { EgressAllowList } from './allow-list.ts'
import { EgressFailed, EgressRefused } from './errors.ts'

/** The destination of a request, from its URL. */
export interface Target {
  readonly url: URL
  readonly isSecure: boolean
  readonly port: number
  /** As in the URL, without brackets. */
  readonly host: string
}

export interface GuardOptions {
  readonly allow: EgressAllowList
  /** Resolves all addresses of a name. */
  readonly resolve?: ((host: string) => Promise<readonly string[]>) | undefined
}

/** Names that every system resolves to itself (RFC 6761). */
const LOCAL_NAME = /^(?:.+\.)?localhost\.?$/
const LOOPBACK = ['127.0.0.1', '::1']

/**
 * Accepts http and https without credentials. The URL parser normalizes every spelling of an address (decimal, octal,
 * full-width, …). @throws EgressRefused
 */
export function targetOf(input: string | URL): Target {
  const url = URL.parse(String(input))
  if (url === null) throw new EgressRefused('not a valid URL')
  const isSecure = url.protocol === 'https:'
  if (!isSecure && url.protocol !== 'http:') throw new EgressRefused(`${url.protocol} is neither http: nor https:`)
  if (url.username !== '' || url.password !== '')
    throw new EgressRefused('the URL has a user name or password; send credentials in headers')
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port)
  return { url, isSecure, port, host: url.hostname.replace(/^\[(.*)\]$/, '$1') }
}

/**
 * Checks a URL that will be called later: what no lookup can change is refused at once, such as a private address or a name
 * of this machine. @throws EgressRefused
 */
export function checkTarget(input: string, allow: EgressAllowList): void {
  const { host, port } = targetOf(input)
  const addresses = LOCAL_NAME.test(host) ? LOOPBACK : [host]
  const known = addresses.map(readAddress).filter((address) => address !== null)
  if (known.length > 0 && !known.some((address) => isPermitted(address, { host, port, allow })))
    throw notPermitted(host, port)
}

/**
 * Resolves the host once and checks the addresses: public and listed ones are permitted. Refused addresses are dropped
 * without refusing the host, because `localhost`, for example, may be listed by only one of its two addresses.
 *
 * @returns the addresses to connect to, at least one
 * @throws EgressRefused, EgressFailed for a name without an address
 */
export async function addressesOf(target: Target, { allow, resolve = allAddresses }: GuardOptions): Promise<string[]> {
  const { host, port } = target
  const fit = (await resolved(host, resolve)).flatMap((text) => {
    const address = readAddress(text)
    if (address === null) return []
    const isFit = isPermitted(address, { host, port, allow })
    // Connect to exactly the address that was checked, not to the text that it was parsed from.
    return isFit ? [address.toString()] : []
  })
  if (fit.length > 0) return fit
  throw notPermitted(host, port)
}

interface Place {
  readonly host: string
  readonly port: number
  readonly allow: EgressAllowList
}

function isPermitted(address: Address, { host, port, allow }: Place): boolean {
  const scope = scopeOf(address)
  // A listed name permits internal addresses; a special address needs an entry of its own.
  return scope === 'public' || (scope === 'internal' && allow.hasHost(host, port)) || allow.hasAddress(address, port)
}

function notPermitted(host: string, port: number): EgressRefused {
  return new EgressRefused(`${host} is not a public address, and EGRESS_ALLOW does not list it for port ${port}`)
}

async function resolved(host: string, resolve: NonNullable<GuardOptions['resolve']>): Promise<readonly string[]> {
  if (readAddress(host) !== null) return [host]
  try {
    return await resolve(host)
  } catch (cause) {
    throw new EgressFailed(`the name ${host} does not resolve`, { cause })
  }
}

/**
 * By c-ares, whose lookups occupy no thread: a name whose servers do not answer would keep one of the few that also sync
 * the journal's files, for seconds, and a tenant may have a hundred such names.
 */
async function allAddresses(host: string): Promise<string[]> {
  return (await dns.lookup(host, { backend: 'c-ares' })).map(({ address }) => address)
}
