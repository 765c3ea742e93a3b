import ipaddr from 'ipaddr.js'

/** An address as it is judged: IPv4 in whatever form, or true IPv6. */
export type Address = ipaddr.IPv4 | ipaddr.IPv6

/**
 * `public`: anyone's. `internal`: where an operator's own servers stand, so that naming one is enough to permit it.
 * `special`: where no such server stands (multicast, link-local, reserved, …) or where clouds hand out credentials.
 */
export type Scope = 'public' | 'internal' | 'special'

const INTERNAL = new Set<string>(['loopback', 'private', 'carrierGradeNat', 'uniqueLocal'])
/** All that is given out of IPv6 so far (RFC 4291, IANA): what lies outside is no one's, or an IPv4 address in disguise. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')
/** A network without IPv4 of its own reaches it through this prefix (RFC 6052), so that what counts is the end of it. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')
/** Metadata services of clouds outside of link-local and reserved space: AWS, Google, Azure, Alibaba. */
const METADATA = new Set(['fd00:ec2::254', 'fd20:ce::254', '168.63.129.16', '100.100.100.200'])

/** @returns null if the text is no address; an IPv4 address inside of IPv6 (`::ffff:127.0.0.1`) is taken out */
export function readAddress(text: string): Address | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text)
  return ipaddr.IPv6.isValid(text) ? ipaddr.process(text) : null
}

/** Where an address lies. Everything that is not known to be public is not. */
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
