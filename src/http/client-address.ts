import ipaddr from 'ipaddr.js'

/** Ranges of addresses whose `X-Forwarded-For` is believed (`TRUSTED_PROXIES`). */
export type ProxyRanges = readonly [ipaddr.IPv4 | ipaddr.IPv6, number][]

/** What a network of IPv6 gives to one customer at least: whoever has one address has them all. */
const IPV6_BITS = 64

/**
 * @param text addresses and CIDRs with commas in between
 * @throws Error whose message goes on after the name of the variable
 */
export function parseProxyRanges(text: string): ProxyRanges {
  return text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
    .map((each) => {
      const isRange = each.includes('/')
      if (!(isRange ? ipaddr.isValidCIDR(each) : ipaddr.isValid(each)))
        throw new Error(`must be addresses and CIDRs with commas in between; got "${each}"`)
      if (isRange) return ipaddr.parseCIDR(each)
      const address = ipaddr.process(each)
      return [address, address instanceof ipaddr.IPv4 ? 32 : 128]
    })
}

/**
 * Where a request comes from, as far as it can be told: the other end of the connection, or, when that is a trusted
 * proxy, what it says. Clients can write into `X-Forwarded-For` themselves, so it is read from its end, and only as far
 * as trusted proxies have written it.
 *
 * @param peer address of the other end of the connection
 * @returns a name to count by: an IPv4 address, or the /64 of an IPv6 address
 */
export function clientAddress(peer: string, forwardedFor: string | null, trusted: ProxyRanges): string {
  let address = readAddress(peer)
  if (address === undefined) return peer
  const hops = forwardedFor?.split(',') ?? []
  while (isIn(address, trusted)) {
    const before = readAddress(hops.pop()?.trim() ?? '')
    if (before === undefined) break
    address = before
  }
  if (address instanceof ipaddr.IPv4) return address.toString()
  return `${new ipaddr.IPv6([...address.toByteArray().slice(0, IPV6_BITS / 8), ...Array(8).fill(0)])}/${IPV6_BITS}`
}

function readAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  return ipaddr.isValid(text) ? ipaddr.process(text) : undefined
}

function isIn(address: ipaddr.IPv4 | ipaddr.IPv6, ranges: ProxyRanges): boolean {
  return ranges.some(([range, bits]) => range.kind() === address.kind() && address.match(range as never, bits))
}
