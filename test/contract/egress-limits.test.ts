import { describe, expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { EgressFailed } from '../../src/outbound/egress/errors.ts'
import { eventually } from '../support/eventually.ts'
import { egressOf, errorOf, rawServer } from './egress-rig.ts'

/** Limits on size and time of responses, aborts, and what a request may contain. */

const { fetch } = egressOf('127.0.0.1')
const OK = 'HTTP/1.1 200 OK\r\n'

async function at(answer: Parameters<typeof rawServer>[0]) {
  const server = await rawServer(answer)
  return { ...server, url: `http://127.0.0.1:${server.port}/` }
}

/** Sends `head` once it gets a request; `then` has the connection afterwards. */
function respondWith(head: string | Uint8Array, then: (socket: Socket) => void = () => {}) {
  return (socket: Socket) =>
    void socket.once('data', () => {
      socket.write(head)
      then(socket)
    })
}

describe('a response', () => {
  test('arrives unchanged: status, headers, bytes', async () => {
    const head =
      'HTTP/1.1 418 Teapot\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nx-name: w\xe9rt\r\ncontent-length: 3\r\n\r\n'
    const { url } = await at(respondWith(Buffer.from(`${head}\x00\xff\x01`, 'latin1')))
    const answer = await fetch(url)
    expect([answer.status, answer.statusText, answer.headers.getSetCookie()]).toEqual([418, 'Teapot', ['a=1', 'b=2']])
    expect(answer.headers.get('x-name')).toBe('wért')
    expect([...new Uint8Array(await answer.arrayBuffer())]).toEqual([0, 255, 1])
  })

  test('resolves with its headers, and streams the body', async () => {
    let socket: Socket | undefined
    const head = `${OK}content-type: text/event-stream\r\n\r\ndata: 1\n\n`
    const { url } = await at(
      respondWith(head, (opened) => {
        socket = opened
      }),
    )
    const answer = await fetch(url)
    const reader = answer.body!.getReader()
    const text = async () => new TextDecoder().decode((await reader.read()).value)
    expect(await text()).toBe('data: 1\n\n')
    socket!.write('data: 2\n\n')
    expect(await text()).toBe('data: 2\n\n')
    socket!.end()
    expect((await reader.read()).done).toBe(true)
  })

  test.each([204, 205, 304])('with status %d has no body', async (status) => {
    const { url } = await at(`HTTP/1.1 ${status} Fine\r\n\r\n`)
    expect((await fetch(url)).body).toBeNull()
  })

  test('to HEAD has no body, whatever its content-length', async () => {
    const { url } = await at(`${OK}content-length: 99999999\r\n\r\n`)
    expect((await fetch(url, { method: 'HEAD' })).body).toBeNull()
  })

  test('that is not HTTP, or switches protocols, is a failure', async () => {
    for (const text of [
      '220 smtp.test ESMTP\r\n',
      'HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      '',
    ])
      expect(await errorOf(async () => fetch((await at(text)).url))).toBeInstanceOf(EgressFailed)
  })

  test('that is cut off is a failure for its reader', async () => {
    const { url } = await at(respondWith(`${OK}content-length: 10\r\n\r\nhalf`, (socket) => socket.end()))
    const answer = await fetch(url)
    expect(await errorOf(() => answer.text())).toBeInstanceOf(EgressFailed)
  })
})

describe('the maximum size', () => {
  const tooLarge = 'the answer of 127.0.0.1 is larger than 1000 bytes'

  test('applies to the content-length, before the body is read', async () => {
    const { url, open } = await at(respondWith(`${OK}content-length: 1001\r\n\r\n`))
    expect((await errorOf(() => fetch(url, { maxBytes: 1000 }))).message).toBe(tooLarge)
    await eventually(() => open() === 0)
  })

  test('applies to the streamed bytes, exactly', async () => {
    const { url } = await at(`${OK}\r\n${'x'.repeat(1001)}`)
    expect((await (await fetch(url, { maxBytes: 1001 })).text()).length).toBe(1001)
    const answer = await fetch(url, { maxBytes: 1000 })
    expect((await errorOf(() => answer.text())).message).toBe(tooLarge)
  })

  test('ends an endless response', async () => {
    const { url, open } = await at(
      respondWith(`${OK}\r\n`, (socket) => {
        const more = () => {
          while (!socket.destroyed && socket.write('x'.repeat(10_000)));
        }
        socket.on('drain', more)
        more()
      }),
    )
    const answer = await fetch(url)
    expect((await errorOf(() => answer.text())).message).toContain('larger than 1048576 bytes')
    await eventually(() => open() === 0)
  })

  const encoders = { gzip: gzipSync, deflate: deflateSync, br: quickBrotli, zstd: zstdCompressSync }
  for (const [name, encode] of Object.entries(encoders)) {
    test(`applies to inflated ${name} data`, async () => {
      const bomb = encode(Buffer.alloc(128 * 1024 * 1024))
      const head = Buffer.from(`${OK}content-encoding: ${name}\r\ncontent-length: ${bomb.byteLength}\r\n\r\n`)
      const { url } = await at(respondWith(Buffer.concat([head, bomb])))
      const before = process.memoryUsage().rss
      const answer = await fetch(url)
      expect((await errorOf(() => answer.text())).message).toContain('larger than 1048576 bytes')
      expect(process.memoryUsage().rss - before).toBeLessThan(96 * 1024 * 1024)
    })

    test(`lets ${name} data pass that inflates to less`, async () => {
      const body = encode(Buffer.from('hello '.repeat(1000)))
      const head = Buffer.from(`${OK}content-encoding: ${name}\r\ncontent-length: ${body.byteLength}\r\n\r\n`)
      const { url } = await at(respondWith(Buffer.concat([head, body])))
      const answer = await fetch(url)
      expect(answer.headers.has('content-encoding') || answer.headers.has('content-length')).toBe(false)
      expect(await answer.text()).toBe('hello '.repeat(1000))
    })
  }

  test('cannot be bypassed with nested or unknown encodings', async () => {
    for (const encoding of ['gzip, gzip', 'compress', 'x'])
      expect(
        await errorOf(async () => fetch((await at(`${OK}content-encoding: ${encoding}\r\n\r\nx`)).url)),
      ).toBeInstanceOf(EgressFailed)
  })

  test('applies to headers', async () => {
    const { url } = await at(`${OK}x: ${'y'.repeat(40_000)}\r\n\r\n`)
    expect((await errorOf(() => fetch(url))).message).toBe('127.0.0.1 sends more headers than allowed')
  })
})

describe('the timeout', () => {
  const late = '127.0.0.1 did not answer within 0.1 s'

  test('ends a silent server and an endless response', async () => {
    const silent = await at(() => {})
    expect((await errorOf(() => fetch(silent.url, { timeoutMs: 100 }))).message).toBe(late)
    const endless = await at(respondWith(`${OK}\r\nx`))
    const answer = await fetch(endless.url, { timeoutMs: 100 })
    expect((await errorOf(() => answer.text())).message).toBe(late)
    await eventually(() => silent.open() + endless.open() === 0)
  })

  test('ends a name resolution that hangs', async () => {
    const { fetch } = egressOf('', {}, { resolve: () => new Promise(() => {}), timeoutMs: 100 })
    expect((await errorOf(() => fetch('http://slow.test/'))).message).toBe('slow.test did not answer within 0.1 s')
  })

  test('of a connection attempt is separate, includes TLS, and moves on to the next address', async () => {
    const silent = await at(() => {})
    const { fetch } = egressOf('127.0.0.1', {}, { connectTimeoutMs: 100 })
    const failure = await errorOf(() => fetch(`https://127.0.0.1:${silent.port}/`))
    expect(failure.message).toBe('127.0.0.1 does not accept connections')
    const names = { 'two.test': ['127.0.0.2', '127.0.0.1'] }
    const served = await at(`${OK}content-length: 2\r\n\r\nhi`)
    expect(await (await egressOf('two.test', names).fetch(`http://two.test:${served.port}/`)).text()).toBe('hi')
    const unreachable = await errorOf(() => egressOf('two.test', names).fetch('http://two.test:1/'))
    // The message does not reveal the addresses of the name.
    expect(unreachable.message).toBe('two.test refuses connections')
  })
})

describe('an abort', () => {
  const reason = new Error('no longer needed')

  test('before the start sends nothing', async () => {
    const { url, connections } = await at('')
    expect(await errorOf(() => fetch(url, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(connections()).toBe(0)
  })

  test.each(['http', 'https'])('ends the wait for a response over %s at once', async (scheme) => {
    const { port, connections, open } = await at(() => {})
    const ending = new AbortController()
    const fetching = errorOf(() => fetch(`${scheme}://127.0.0.1:${port}/`, { signal: ending.signal }))
    await eventually(() => connections() === 1)
    ending.abort(reason)
    expect(await fetching).toBe(reason)
    await eventually(() => open() === 0)
  })

  test('ends the wait for name resolution', async () => {
    const { fetch } = egressOf('', {}, { resolve: () => new Promise(() => {}) })
    const ending = new AbortController()
    const fetching = errorOf(() => fetch('http://slow.test/', { signal: ending.signal }))
    ending.abort(reason)
    expect(await fetching).toBe(reason)
  })

  test('ends a body, and so does a reader that cancels', async () => {
    const { url, open } = await at(respondWith(`${OK}\r\nx`))
    const ending = new AbortController()
    const answer = await fetch(url, { signal: ending.signal, timeoutMs: Infinity })
    const reading = errorOf(() => answer.text())
    ending.abort(reason)
    expect(await reading).toBe(reason)
    await (await fetch(url, { timeoutMs: Infinity })).body!.cancel()
    await eventually(() => open() === 0)
  })
})

describe('a request', () => {
  /** The received bytes. */
  async function sent(init: Parameters<typeof fetch>[1], path = ''): Promise<string> {
    let received = ''
    const { url } = await at((socket) => {
      socket.on('data', (data) => {
        received += data.toString('latin1')
        if (/\r\n\r\n/.test(received)) socket.end('HTTP/1.1 204 No Content\r\n\r\n')
      })
    })
    await fetch(url + path, init)
    return received
  }

  test('sets the headers of the connection itself', async () => {
    const headers = {
      Host: 'evil.test',
      'Content-Length': '3',
      'Transfer-Encoding': 'chunked',
      Connection: 'upgrade',
      Upgrade: 'websocket',
      TE: 'trailers',
      Expect: '100-continue',
      'Proxy-Authorization': 'x',
      'X-Mine': '1',
    }
    const text = await sent({ method: 'POST', headers, body: 'hello' })
    expect(text).toMatch(/\r\nhost: 127\.0\.0\.1:\d+\r\n/i)
    expect(text).toMatch(/\r\ncontent-length: 5\r\n/i)
    expect(text).toMatch(/\r\nx-mine: 1\r\n/i)
    expect(text).not.toMatch(/evil|chunked|upgrade|trailers|100-continue|proxy-/i)
    expect(text).toEndWith('\r\n\r\nhello')
  })

  test('sends text, bytes and forms, and the path and query unchanged', async () => {
    expect(await sent({ method: 'PUT', body: 'wért' }, 'a%20b?c=d%26e#f')).toMatch(
      /^PUT \/a%20b\?c=d%26e HTTP\/1\.1\r\n/,
    )
    const bytes = Buffer.from('xx{"a":1}').subarray(2)
    expect(await sent({ method: 'POST', body: bytes })).toEndWith('\r\n\r\n{"a":1}')
    const form = await sent({ method: 'POST', body: new URLSearchParams({ a: 'b c' }) })
    expect(form).toMatch(/content-type: application\/x-www-form-urlencoded/i)
    expect(form).toEndWith('a=b+c')
    expect(await sent({ method: 'POST' })).toMatch(/\r\ncontent-length: 0\r\n/i)
    expect(await errorOf(() => fetch('http://127.0.0.1/', { body: new FormData() }))).toBeInstanceOf(TypeError)
  })

  test('cannot be split by injected line breaks', async () => {
    const evil = 'a\r\nx-evil: 1'
    expect(await errorOf(() => sent({ headers: { 'x-mine': evil } }))).toBeInstanceOf(TypeError)
    expect(await sent({}, `${evil}?q=${evil}`)).not.toMatch(/\r\nx-evil/)
    expect(await errorOf(() => sent({ method: 'GET / HTTP/1.1\r\nx-evil: 1' }))).toBeInstanceOf(Error)
  })
})

function quickBrotli(bytes: Uint8Array): Uint8Array {
  return brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })
}
