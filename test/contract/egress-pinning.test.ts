import { describe, expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { EgressFailed, EgressRefused } from '../../src/outbound/egress/errors.ts'
import { addressesOf, targetOf } from '../../src/outbound/egress/guard.ts'
import { atEnd } from '../support/teardown.ts'
import { A_TEST, ADDRESS, B_TEST, CA } from './egress-certificates.ts'
import { egressOf, errorOf, rawServer, startCanary } from './egress-rig.ts'

/** The checked address is the one connected to, while TLS and `Host` keep using the name. */

const KEPT = 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nkept'
const LISTED = { 'a.test': ['127.0.0.1'], 'b.test': ['127.0.0.1'], 'c.test': ['127.0.0.1'] }

/** Answers with the host name and the connection of the request. */
function namingServer(tls?: object) {
  let asked = 0
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    ...tls,
    fetch: (request): Response => {
      asked++
      return Response.json({ host: request.headers.get('host'), peer: server.requestIP(request)?.port })
    },
  })
  atEnd(() => server.stop(true))
  return { port: server.port, asked: () => asked }
}

describe('DNS rebinding', () => {
  test('between check and connection has no effect', async () => {
    const canary = await startCanary()
    const server = await rawServer('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhere', '127.0.0.2', canary.port)
    const answers = ['127.0.0.2', '127.0.0.1', '127.0.0.1']
    let asked = 0
    const { fetch } = egressOf('127.0.0.2', {}, { resolve: async () => [answers[asked++]] })
    const url = `http://rebound.test:${canary.port}/`
    expect(await (await fetch(url)).text()).toBe('here')
    expect(asked).toBe(1)
    expect(server.connections()).toBe(1)
    // The new address is checked with the next call.
    expect(await errorOf(() => fetch(url))).toBeInstanceOf(EgressRefused)
    expect(asked).toBe(2)
    expect(canary.touched()).toBe(0)
  })

  test('from a public to an internal address is refused; of a mixed answer only public addresses remain', async () => {
    const answers = [['93.184.215.14'], ['127.0.0.1'], ['127.0.0.1', '93.184.215.14', '::1', '10.0.0.1']]
    // The guard alone: tests must not connect to a public address.
    const { options } = egressOf('', {}, { resolve: async () => answers.shift() ?? [] })
    const target = targetOf('http://rebound.test/')
    expect(await addressesOf(target, options)).toEqual(['93.184.215.14'])
    expect(await errorOf(() => addressesOf(target, options))).toBeInstanceOf(EgressRefused)
    expect(await addressesOf(target, options)).toEqual(['93.184.215.14'])
  })

  test('does not reuse a connection that was opened for another address', async () => {
    const first = await rawServer(keepAlive, '127.0.0.2')
    const second = await rawServer(keepAlive, '127.0.0.3', first.port)
    const answers = ['127.0.0.2', '127.0.0.3', '127.0.0.2']
    const { fetch } = egressOf('127.0.0.0/8', {}, { resolve: async () => [answers.shift() ?? ''] })
    for (let i = 0; i < 3; i++) await (await fetch(`http://rebound.test:${first.port}/`)).text()
    expect([first.connections(), second.connections()]).toEqual([1, 1])
  })
})

describe('a connection', () => {
  test.each(['http', 'https'])('over %s is reused for the same name only', async (scheme) => {
    const server = namingServer(
      scheme === 'https' ? { tls: [serverOf('a.test', A_TEST), serverOf('b.test', B_TEST)] } : {},
    )
    const { fetch } = egressOf('*.test', LISTED, { ca: CA })
    const peers: number[] = []
    for (const name of ['a.test', 'a.test', 'b.test', 'b.test', 'a.test']) {
      const answer = (await (await fetch(`${scheme}://${name}:${server.port}/`)).json()) as Naming
      expect(answer.host).toBe(`${name}:${server.port}`)
      peers.push(answer.peer)
    }
    const [a, , b] = peers
    expect(peers).toEqual([a, a, b, b, a])
    expect(a).not.toBe(b)
  })

  test('that the server has closed is replaced if the request may be sent twice', async () => {
    const server = await rawServer((socket) => {
      let requests = 0
      // Reads a second request and closes without a response.
      socket.on('data', () => (++requests === 1 ? socket.write(KEPT) : socket.destroy()))
    })
    const url = `http://a.test:${server.port}/`
    for (const init of [{}, { method: 'POST', body: '{}', isRepeatable: true }]) {
      const { fetch } = egressOf('*.test', LISTED)
      expect(await (await fetch(url, init)).text()).toBe('kept')
      expect(await (await fetch(url, init)).text()).toBe('kept')
    }
    const { fetch } = egressOf('*.test', LISTED)
    const once = { method: 'POST', body: '{}', headers: { 'Idempotency-Key': 'the same for every call' } }
    expect(await (await fetch(url, once)).text()).toBe('kept')
    expect((await errorOf(() => fetch(url, once))).message).toBe('a.test closed the connection')
  })
})

describe('TLS', () => {
  const server = namingServer({ tls: [serverOf('a.test', A_TEST), serverOf('b.test', B_TEST)] })

  test.each(['a.test', 'b.test', 'A.TEST'])('uses the certificate of %s, by its name', async (name) => {
    const { fetch } = egressOf('*.test', LISTED, { ca: CA })
    expect((await fetch(`https://${name}:${server.port}/`)).status).toBe(200)
  })

  test('accepts a name with a trailing dot', async () => {
    const { fetch } = egressOf('*.test', { 'a.test.': ['127.0.0.1'] }, { ca: CA })
    expect((await fetch(`https://a.test.:${server.port}/`)).status).toBe(200)
  })

  test('rejects a certificate for another name, and sends nothing', async () => {
    const { fetch } = egressOf('*.test', LISTED, { ca: CA })
    const asked = server.asked()
    const secret = { method: 'POST', body: 'secret', headers: { authorization: 'Bearer secret' } }
    const failure = await errorOf(() => fetch(`https://c.test:${server.port}/`, secret))
    expect(server.asked()).toBe(asked)
    expect(failure).toBeInstanceOf(EgressFailed)
    expect(failure.message).toBe('c.test has a certificate for another name')
  })

  test('rejects an address whose certificate names a host, and accepts one that names the address', async () => {
    const { fetch } = egressOf('127.0.0.1', {}, { ca: CA })
    const failure = await errorOf(() => fetch(`https://127.0.0.1:${server.port}/`))
    expect(failure.message).toBe('127.0.0.1 has a certificate for another name')
    const own = namingServer({ tls: ADDRESS })
    expect((await fetch(`https://127.0.0.1:${own.port}/`)).status).toBe(200)
  })

  test('rejects an untrusted certificate authority', async () => {
    const { fetch } = egressOf('*.test', LISTED)
    const failure = await errorOf(() => fetch(`https://a.test:${server.port}/`))
    expect(failure.message).toBe('a.test has a certificate that no trusted authority has signed')
  })
})

test('ignores proxies and disabled certificate checks in the environment', async () => {
  const proxy = await rawServer('HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nproxied')
  const plain = namingServer()
  const secure = namingServer({ tls: A_TEST })
  const address = `http://127.0.0.1:${proxy.port}`
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']
  const child = Bun.spawn(
    [
      process.execPath,
      join(import.meta.dir, 'egress-child.ts'),
      `http://a.test:${plain.port}/`,
      `https://a.test:${secure.port}/`,
    ],
    {
      env: {
        ...Object.fromEntries(names.map((name) => [name, address])),
        NODE_USE_ENV_PROXY: '1',
        NODE_TLS_REJECT_UNAUTHORIZED: '0',
      },
      stdout: 'pipe',
      stderr: 'ignore',
    },
  )
  const [first, second] = (await new Response(child.stdout).text()).split('\n')
  expect(JSON.parse(first).host).toBe(`a.test:${plain.port}`)
  expect(second).toBe('EgressFailed: a.test has a certificate that no trusted authority has signed')
  expect(proxy.connections()).toBe(0)
})

interface Naming {
  readonly host: string
  readonly peer: number
}

function serverOf(serverName: string, pair: typeof A_TEST) {
  return { serverName, ...pair }
}

/** Answers every request and keeps the connection open. */
function keepAlive(socket: Socket): void {
  socket.on('data', () => socket.write(KEPT))
}
