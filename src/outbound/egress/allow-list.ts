import ipaddr from 'ipaddr.js'
import { type Address, readAddress } from './addresses.ts'

/** What the operator permits besides public addresses: `EGRESS_ALLOW` (docs/security.md#egress). */
export interface EgressAllowList {
  /** Whether the name is listed. */
  hasHost(host: string, port: number): boolean
  /** Whether the address or a range that contains it is listed. */
  hasAddress(address: Address, port: number): boolean
}

interface Entry {
  /** Undefined: any. */
  readonly port: number | undefined
  matchesHost(host: string): boolean
  matchesAddress(address: Address): boolean
}

const WITH_PORT = /^(?<rest>.*[^:]):(?<port>\d{1,5})$/s
const PORT_MAX = 65_535

/**
 * @param text host names (`api.internal`, `*.example.com`: any name below), addresses (IPv6 with a port in brackets) and
 *   CIDRs, comma-separated; names and addresses may have a port
 * @throws Error whose message continues after `EGRESS_ALLOW `
 */
export function parseEgressAllow(text: string): EgressAllowList {
  const entries = text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
    .map(readEntry)
  return {
    hasHost: (host, port) => {
      const name = withoutRoot(host)
      return entries.some((entry) => isAt(entry, port) && entry.matchesHost(name))
    },
    hasAddress: (address, port) => entries.some((entry) => isAt(entry, port) && entry.matchesAddress(address)),
  }
}

/** Normalizes a host name: lower case, without a trailing dot. */
export function withoutRoot(host: string): string {
  return host.toLowerCase().replace(/\.$/, '')
}

function isAt(entry: Entry, port: number): boolean {
  return entry.port === undefined || entry.port === port
}

function readEntry(text: string): Entry {
  if (text.includes('/')) return rangeEntry(text)
  const whole = readAddress(text)
  if (whole !== null) return addressEntry(whole, undefined)
  const { rest = text, port: digits } = WITH_PORT.exec(text)?.groups ?? {}
  const port = digits === undefined ? undefined : Number(digits)
  if (port !== undefined && (port < 1 || port > PORT_MAX)) throw invalidEntry(text)
  const address = readAddress(rest.replace(/^\[(.*)\]$/, '$1'))
  return address === null ? hostEntry(text, rest, port) : addressEntry(address, port)
}

function rangeEntry(text: string): Entry {
  // Stricter than the parser, which takes 010.0.0.0 for 8.0.0.0.
  if (!ipaddr.isValidCIDR(text) || readAddress(text.split('/', 1)[0]) === null) throw invalidEntry(text)
  const [address, bits] = ipaddr.parseCIDR(text)
  // Addresses that embed an IPv4 address are checked as IPv4, so the entry would never match.
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress())
    throw new Error(`has the entry "${text}": write the range as IPv4`)
  return {
    port: undefined,
    matchesHost: () => false,
    matchesAddress: (other) => other.kind() === address.kind() && other.match(address, bits),
  }
}

function addressEntry(address: Address, port: number | undefined): Entry {
  const wanted = address.toString()
  return { port, matchesHost: () => false, matchesAddress: (other) => other.toString() === wanted }
}

function hostEntry(text: string, rest: string, port: number | undefined): Entry {
  const isWildcard = rest.startsWith('*.')
  // The URL parser normalizes names as it does those in tool URLs.
  const url = URL.parse(`http://${isWildcard ? rest.slice(2) : rest}/`)
  const isName = url !== null && url.pathname === '/' && /^[^*:@?#\s]+$/.test(isWildcard ? rest.slice(2) : rest)
  if (!isName) throw invalidEntry(text)
  const name = withoutRoot(url.hostname)
  const address = readAddress(name)
  if (address !== null) return addressEntry(address, port)
  return {
    port,
    matchesHost: (host) => (isWildcard ? host.endsWith(`.${name}`) : host === name),
    matchesAddress: () => false,
  }
}

function invalidEntry(entry: string): Error {
  return new Error(
    `has the entry "${entry}": expected hosts (api.internal, *.example.com, api.internal:8080), addresses or CIDRs (10.0.0.0/8), comma-separated`,
  )
}
