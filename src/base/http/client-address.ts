import ipaddr from 'ipaddr.js'

/** Address ranges of proxies whose `X-Forwarded-For` is trusted (`TRUSTED_PROXIES`). */
type ProxyRanges = readonly [ipaddr.IPv4 | ipaddr.IPv6, number][]

/** The smallest IPv6 network that providers assign to a customer, who can use every address in it. */
const IPV6_BITS = 64

/**
 * @param text comma-separated addresses and CIDRs
 * @throws Error whose message follows the name of the variable
 */
export function parseProxyRanges(text: string): ProxyRanges {
  return text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
    .map((each) => {
      const isRange = each.includes('/')
      if (!(isRange ? ipaddr.isValidCIDR(each) : ipaddr.isValid(each)))
        throw new Error(`must be comma-separated addresses and CIDRs; got "${each}"`)
      if (isRange) return ipaddr.parseCIDR(each)
      const address = ipaddr.process(each)
      return [address, address instanceof ipaddr.IPv4 ? 32 : 128]
    })
}

/**
 * The address of the client: the peer of the connection or, if that is a trusted proxy, the address that it forwards.
 * Clients can send `X-Forwarded-For` themselves, so it is read from the end, and only as far as trusted proxies wrote it.
 *
 * @param peer address of the other end of the connection
 * @returns a key to count by: an IPv4 address, or the /64 of an IPv6 address
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
