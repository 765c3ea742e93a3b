import { describe, expect, test } from 'bun:test'
import { EgressFailed, EgressRefused } from '../../src/outbound/egress/errors.ts'
import { egressOf, rawServer, refusalOf, startCanary } from './egress-rig.ts'

/**
 * Requests that tenants could aim at the internal network (docs/security.md#egress). Every attack goes through the
 * real guard, with the port of a loopback server that must see no connection.
 */

const canary = await startCanary()
const { port } = canary

/** The attacker's DNS records. */
const NAMES: Record<string, string[]> = {
  localhost: ['127.0.0.1', '::1'],
  'localhost.': ['127.0.0.1'],
  'loopback.evil.test': ['127.0.0.1'],
  'loopback.evil.test.': ['127.0.0.1'],
  'loopback6.evil.test': ['::1'],
  'mapped.evil.test': ['::ffff:127.0.0.1'],
  'compatible.evil.test': ['::127.0.0.1'],
  'nat64.evil.test': ['64:ff9b::7f00:1'],
  'lan.evil.test': ['192.168.0.1', '10.0.0.1'],
  'metadata.evil.test': ['169.254.169.254'],
  'metadata.google.internal': ['169.254.169.254'],
  'link-local.evil.test': ['fe80::1%lo'],
  'zero.evil.test': ['0.0.0.0'],
  'nothing.evil.test': [],
  'garbage.evil.test': ['127.1', '0x7f000001', ''],
  'xn--loclhost-4ya.evil.test': ['127.0.0.1'],
  '127.0.0.1.nip.test': ['127.0.0.1'],
}

const HOSTS = [
  // One address in the spellings that address parsers accept.
  '127.0.0.1',
  '127.0.0.1.',
  '127.1',
  '127.0.1',
  '127.255.255.254',
  '2130706433',
  '017700000001',
  '0x7f000001',
  '0x7F.1',
  '0177.0.0.01',
  '0x7f.0x0.0x0.0x1',
  '00000177.0.0.1',
  '127.0.0.0x1',
  '１２７.０.０.１',
  '127。0。0。1',
  '①②⑦.0.0.1',
  '%31%32%37.0.0.1',
  '127%2E0%2E0%2E1',
  '0',
  '0.0.0.0',
  '00.00',
  // IPv6, and IPv4 inside it.
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[0000::0001]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::FFFF:7F00:1]',
  '[0:0:0:0:0:ffff:127.0.0.1]',
  '[::127.0.0.1]',
  '[::7f00:1]',
  '[::ffff:0:127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b::a9fe:a9fe]',
  '[64:ff9b:1::7f00:1]',
  '[2002:7f00:1::]',
  '[2002:a9fe:a9fe::1]',
  '[2001:0:7f00:1::]',
  '[2001:0:4136:e378:8000:63bf:80ff:fffe]',
  '[fe80::1]',
  '[fec0::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[fd20:ce::254]',
  '[ff02::1]',
  '[2001:db8::1]',
  // Internal networks and services.
  '10.0.0.1',
  '0xa000001',
  '172.16.0.1',
  '172.31.255.254',
  '192.168.1.1',
  '3232235777',
  '100.64.0.1',
  '100.100.100.200',
  '169.254.169.254',
  '2852039166',
  '0xA9FEA9FE',
  '0251.0376.0251.0376',
  '[::ffff:a9fe:a9fe]',
  '168.63.129.16',
  '192.0.0.192',
  '198.18.0.1',
  '203.0.113.7',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  // Names.
  ...Object.keys(NAMES),
  'LOCALHOST',
  'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ',
  'ｌｏｃａｌｈｏｓｔ',
  'loc\talhost',
]

describe('refuses a request to an internal address, and connects to nothing', () => {
  test.each(HOSTS.map((host) => `http://${host}:${port}/`))('%s', async (url) => {
    const refusal = await refusalOf(egressOf('', NAMES), url)
    expect(refusal).toBeInstanceOf(EgressRefused)
    expect(refusal.message).toContain('is not a public address')
    expect(canary.touched()).toBe(0)
  })

  test.each([
    // The real host of the URL, and schemes that are not HTTP.
    [`http://public.test@127.0.0.1:${port}/`, 'user name or password'],
    [`http://127.0.0.1:${port}@public.test/`, 'user name or password'],
    [`http://user:pass@localhost:${port}/`, 'user name or password'],
    [`http://:pass@localhost:${port}/`, 'user name or password'],
    [`http://public.test\\@127.0.0.1:${port}/`, 'does not resolve'],
    [`http:\\\\127.0.0.1:${port}\\`, 'is not a public address'],
    [`http:127.0.0.1:${port}`, 'is not a public address'],
    [`http:///127.0.0.1:${port}/`, 'is not a public address'],
    [`  http://127.0.0.1:${port}/  `, 'is not a public address'],
    [`http://127.0.0.1:${port}#@public.test/`, 'is not a public address'],
    [`http://127.0.0.1:${port}?@public.test/`, 'is not a public address'],
    [`http://[fe80::1%25lo]:${port}/`, 'not a valid URL'],
    [`http://[::1%25lo]:${port}/`, 'not a valid URL'],
    [`http://127.0.0.1%00.public.test:${port}/`, 'not a valid URL'],
    [`http://127.0.0.1:${port}:80/`, 'not a valid URL'],
    [`http://256.0.0.1:${port}/`, 'not a valid URL'],
    [`//127.0.0.1:${port}/`, 'not a valid URL'],
    ['', 'not a valid URL'],
    [`https://127.0.0.1:${port}/`, 'is not a public address'],
    ['file:///etc/passwd', 'file: is neither http: nor https:'],
    [`ftp://127.0.0.1:${port}/`, 'ftp: is neither'],
    [`gopher://127.0.0.1:${port}/_GET`, 'gopher: is neither'],
    [`ws://127.0.0.1:${port}/`, 'ws: is neither'],
    ['data:text/plain,hello', 'data: is neither'],
    [`blob:http://127.0.0.1:${port}/x`, 'blob: is neither'],
    ['unix:/var/run/docker.sock', 'unix: is neither'],
    [`jar:http://127.0.0.1:${port}!/`, 'jar: is neither'],
  ])('%p', async (url, reason) => {
    const refusal = await refusalOf(egressOf('', NAMES), url)
    expect(refusal.message).toContain(reason)
    expect(refusal.message).not.toContain('pass@')
    expect(canary.touched()).toBe(0)
  })
})

describe('EGRESS_ALLOW', () => {
  const reached = async (allow: string, host: string) => {
    const server = await rawServer('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhere')
    const names = { 'tools.internal': ['127.0.0.1'], 'a.corp.test': ['127.0.0.1'], localhost: ['::1', '127.0.0.1'] }
    const { fetch } = egressOf(allow.replace('PORT', String(server.port)), names)
    return (await fetch(`http://${host}:${server.port}/`)).text()
  }

  test.each([
    ['tools.internal', 'tools.internal'],
    ['tools.internal', 'TOOLS.internal'],
    ['tools.internal:PORT', 'tools.internal'],
    ['*.corp.test', 'a.corp.test'],
    ['127.0.0.1', '127.0.0.1'],
    ['127.0.0.1', '0x7f.1'],
    ['127.0.0.1', '[::ffff:7f00:1]'],
    ['127.0.0.0/8', 'tools.internal'],
    ['127.0.0.1:PORT', 'tools.internal'],
    // Of its two addresses only the listed one is used, then the first that accepts the connection.
    ['127.0.0.1', 'localhost'],
    ['localhost', 'localhost'],
  ])('%s allows %s', async (allow, host) => {
    expect(await reached(allow, host)).toBe('here')
  })

  test.each([
    // A listed name may resolve to an internal server, but not to where clouds hand out credentials.
    ['metadata.evil.test', 'metadata.evil.test', port],
    ['*.evil.test', 'metadata.evil.test', port],
    ['*.evil.test', 'link-local.evil.test', port],
    ['*.evil.test', 'zero.evil.test', port],
    ['*.evil.test', 'nat64.evil.test', port],
    ['metadata.google.internal', 'metadata.google.internal', port],
    // Nor does a range that was listed for something else.
    ['10.0.0.0/8', 'loopback.evil.test', port],
    ['127.0.0.2', '127.0.0.1', port],
    ['127.0.0.1', 'loopback6.evil.test', port],
    ['::1', 'loopback.evil.test', port],
    ['::/0', 'loopback.evil.test', port],
    ['::/0', '[::ffff:127.0.0.1]', port],
    ['0.0.0.0/0', 'loopback6.evil.test', port],
    // Nor does another port, or a name the address that it resolves to.
    [`127.0.0.1:${port - 1}`, '127.0.0.1', port],
    ['localhost', '127.0.0.1', port],
  ])('%s does not allow %s', async (allow, host) => {
    expect(await refusalOf(egressOf(allow, NAMES), `http://${host}:${port}/`)).toBeInstanceOf(EgressRefused)
    expect(canary.touched()).toBe(0)
  })
})

test('reports a name that does not resolve, without the reason', async () => {
  const failure = await refusalOf(egressOf('', NAMES), 'http://unknown.test/')
  expect(failure).toBeInstanceOf(EgressFailed)
  expect(failure.message).toBe('the name unknown.test does not resolve')
})

test("uses the system's resolver by default", async () => {
  const egress = egressOf('', {}, { resolve: undefined })
  expect((await refusalOf(egress, `http://localhost:${port}/`)).message).toContain('localhost is not a public address')
  expect(canary.touched()).toBe(0)
})

describe('does not follow a redirect', () => {
  test.each([301, 302, 303, 307, 308])('status %d', async (status) => {
    const location = `http://127.0.0.1:${port}/latest/meta-data`
    const server = await rawServer(`HTTP/1.1 ${status} Moved\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`)
    const { fetch } = egressOf('tools.internal', { 'tools.internal': ['127.0.0.1'] })
    const url = `http://tools.internal:${server.port}/`
    const refusal = await fetch(url, { redirect: 'follow' }).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(EgressRefused)
    expect((refusal as Error).message).toContain(`tools.internal redirects to ${location}`)
    expect(canary.touched()).toBe(0)
  })

  test("or a page's refresh header", async () => {
    const server = await rawServer(
      `HTTP/1.1 200 OK\r\nrefresh: 0; url=http://127.0.0.1:${port}/\r\ncontent-length: 0\r\n\r\n`,
    )
    const { fetch } = egressOf('127.0.0.1')
    expect((await fetch(`http://127.0.0.1:${server.port}/`)).status).toBe(200)
    expect(canary.touched()).toBe(0)
  })
})
