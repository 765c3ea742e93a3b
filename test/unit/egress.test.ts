import { describe, expect, spyOn, test } from 'bun:test'
import { dns } from 'bun'
import { readAddress, type Scope, scopeOf } from '../../src/outbound/egress/addresses.ts'
import { parseEgressAllow } from '../../src/outbound/egress/allow-list.ts'
import { addressesOf, targetOf } from '../../src/outbound/egress/guard.ts'

/** Address classification, and parsing of `EGRESS_ALLOW` (docs/security.md#egress). Nothing here touches the network. */

describe('an address', () => {
  const scopes: Record<Scope, string> = {
    public:
      '1.1.1.1 8.8.8.8 172.15.255.255 172.32.0.0 100.63.255.255 100.128.0.0 2606:4700::1111 2a00:1450::1 ::ffff:8.8.8.8 64:ff9b::808:808',
    internal:
      '127.0.0.1 127.255.255.254 10.0.0.0 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 ::1 fc00::1 fd12:3456::1 ::ffff:10.0.0.1 ::ffff:7f00:1',
    special:
      '0.0.0.0 0.1.2.3 169.254.169.254 169.254.0.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 192.0.0.192 192.0.2.1 ' +
      '198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 192.88.99.1 100.100.100.200 168.63.129.16 ' +
      ':: ::7f00:1 ::808:808 fe80::1 fe80::1%eth0 fec0::1 ff02::1 fd00:ec2::254 fd20:ce::254 ::ffff:169.254.169.254 ::ffff:0:7f00:1 ' +
      '64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::808:808 2002:7f00:1:: 2002:a00:1:: 2002:808:808:: ' +
      '2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:db8::1 2001:2::1 3fff::1 100::1 4000::1 5f00::1',
  }
  for (const [scope, addresses] of Object.entries(scopes))
    test.each(addresses.split(' '))(`%s is ${scope}`, (text) => {
      expect(scopeOf(readAddress(text)!)).toBe(scope as Scope)
    })

  test.each(['localhost', '127.1', '2130706433', '0x7f.0.0.1', '0177.0.0.1', '1.2.3', '', '[::1]', '1.2.3.4.5'])(
    '%p is not an address',
    (text) => {
      expect(readAddress(text)).toBeNull()
    },
  )
})

describe('EGRESS_ALLOW', () => {
  const list = parseEgressAllow(
    ' API.internal , *.Corp.Example.com.,tools.internal:8080, 10.0.0.0/8,192.168.1.7:9000,fd00::/16,[fd12::1]:443,[fd13::1],::1, bücher.example,127.2',
  )
  const hasAddress = (text: string, port = 80) => list.hasAddress(readAddress(text)!, port)

  test('matches a host name in any spelling, on any port or on the given one', () => {
    expect(list.hasHost('api.internal', 1)).toBe(true)
    expect(list.hasHost('api.internal.', 65_535)).toBe(true)
    expect(list.hasHost('tools.internal', 8080)).toBe(true)
    expect(list.hasHost('tools.internal', 80)).toBe(false)
    expect(list.hasHost(new URL('http://BÜCHER.example').hostname, 80)).toBe(true)
  })

  test('a wildcard matches subdomains, but neither the name itself nor a name with the same ending', () => {
    expect(list.hasHost('a.corp.example.com', 80)).toBe(true)
    expect(list.hasHost('a.b.corp.example.com', 80)).toBe(true)
    expect(list.hasHost('corp.example.com', 80)).toBe(false)
    expect(list.hasHost('evilcorp.example.com', 80)).toBe(false)
    expect(list.hasHost('a.corp.example.com.evil.test', 80)).toBe(false)
    expect(list.hasHost('api.internal.evil.test', 80)).toBe(false)
  })

  test('matches IPv4 and IPv6 addresses and ranges', () => {
    expect(hasAddress('10.1.2.3')).toBe(true)
    expect(hasAddress('::ffff:10.1.2.3')).toBe(true)
    expect(hasAddress('11.0.0.0')).toBe(false)
    expect(hasAddress('192.168.1.7', 9000)).toBe(true)
    expect(hasAddress('192.168.1.7', 9001)).toBe(false)
    expect(hasAddress('fd00:1::1')).toBe(true)
    expect(hasAddress('fd12::1', 443)).toBe(true)
    expect(hasAddress('fd12::1', 80)).toBe(false)
    expect(hasAddress('fd13::1')).toBe(true)
    expect(hasAddress('0:0:0:0:0:0:0:1')).toBe(true)
    expect(hasAddress('127.0.0.2')).toBe(true)
  })

  test('does not match a host name as an address, or an address as a host name', () => {
    expect(list.hasHost('10.0.0.1', 80)).toBe(false)
    expect(parseEgressAllow('localhost').hasAddress(readAddress('127.0.0.1')!, 80)).toBe(false)
  })

  test('may be empty', () => {
    expect(parseEgressAllow(' , ').hasHost('', 80)).toBe(false)
  })

  test.each([
    '*',
    '*.',
    'a*.example.com',
    'https://api.internal',
    'api.internal/path',
    'user@api.internal',
    'api.internal:0',
    'api.internal:65536',
    'api.internal:http',
    'a:80:90',
    '10.0.0.0/33',
    '10.0.0/8',
    '010.0.0.0/8',
    'fd00::/129',
    'a b',
    '[::1',
    '300.1.1.1',
    'a#b',
  ])('rejects the entry %p by name', (entry) => {
    expect(() => parseEgressAllow(`10.0.0.0/8,${entry}`)).toThrow(`has the entry "${entry}": expected hosts`)
  })

  test('asks for the IPv4 form of an IPv4-mapped range, which could never match', () => {
    expect(() => parseEgressAllow('::ffff:10.0.0.0/104')).toThrow('write the range as IPv4')
  })
})

test('a name is looked up without a thread, which syncing the journal needs', async () => {
  using lookup = spyOn(dns, 'lookup').mockResolvedValue([{ address: '8.8.8.8', family: 4, ttl: 0 }])
  const allow = parseEgressAllow('')
  expect(await addressesOf(targetOf('https://receiver.example/'), { allow })).toEqual(['8.8.8.8'])
  expect(lookup.mock.calls).toEqual([['receiver.example', { backend: 'c-ares' }]])
})
