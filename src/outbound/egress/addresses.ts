import ipaddr from 'ipaddr.js'

/** A normalized address: IPv4 in any form, or real IPv6. */
export type Address = ipaddr.IPv4 | ipaddr.IPv6

/**
 * `public`: the internet. `internal`: private networks, reachable if the allow-list names the host. `special`: not an
 * address of a server (multicast, link-local, reserved, …), or a cloud metadata service; only an explicit entry permits it.
 */
export type Scope = 'public' | 'internal' | 'special'

const INTERNAL = new Set<string>(['loopback', 'private', 'carrierGradeNat', 'uniqueLocal'])
/** All IPv6 addresses allocated so far (RFC 4291, IANA). Others are unassigned or embed an IPv4 address. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')
/** IPv6-only networks reach IPv4 through this prefix (RFC 6052), so the embedded address decides. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')
/** Metadata services of clouds outside of link-local and reserved space: AWS, Google, Azure, Alibaba. */
const METADATA = new Set(['fd00:ec2::254', 'fd20:ce::254', '168.63.129.16', '100.100.100.200'])

/** @returns null if the text is not an address; an IPv4-mapped address (`::ffff:127.0.0.1`) is returned as IPv4 */
export function readAddress(text: string): Address | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text)
  return ipaddr.IPv6.isValid(text) ? ipaddr.process(text) : null
}

/** The scope of an address. Anything not known to be public is not public. */
export function scopeOf(address: Address): Scope {
  if (METADATA.has(address.toString())) return 'special'
  const range = address.range()
  if (INTERNAL.has(range)) return 'internal'
  if (address instanceof ipaddr.IPv4) return range === 'unicast' ? 'public' : 'special'
  if (address.zoneId !== undefined && address.zoneId !== null) return 'special'
  if (address.match(NAT64)) return embedded(address) === 'public' ? 'public' : 'special'
  return range === 'unicast' && address.match(GLOBAL_UNICAST) ? 'public' : 'special'
}

function embedded(address: ipaddr.IPv6): Scope {
  return scopeOf(new ipaddr.IPv4(address.toByteArray().slice(-4)))
}
