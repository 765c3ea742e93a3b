import { describe, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { eventually } from '../support/eventually.ts'
import { converse, post, startHttpApp } from '../support/http-app.ts'

const app = startHttpApp({ bodyTimeoutMs: 400 })
const HEAD = 'Host: localhost\r\nContent-Type: application/json\r\n'
const BODY = '{"name":"a"}'
const REQUEST = `POST /echo HTTP/1.1\r\n${HEAD}Content-Length: ${BODY.length}\r\n\r\n${BODY}`
const ANSWER = '{"data":{"name":"a"},"error":null}'
const LATE =
  '{"data":null,"error":{"code":"VALIDATION_ERROR","message":"body: did not arrive within 400 ms","param":"body"}}'

async function expectHealthy(url = app.url): Promise<void> {
  const response = await post(`${url}/echo`, BODY)
  expect([response.status, await response.text()]).toEqual([200, ANSWER])
}

describe('a slow client', () => {
  const drip = (part: string) => Array.from({ length: 10_000 }, () => [part, 20]).flat()
  test.each<[string, (string | number)[]]>([
    ['stalls halfway through its body', ['Content-Length: 100\r\n\r\n{"na']],
    ['sends one byte at a time', ['Content-Length: 20000\r\n\r\n', ...drip('a')]],
    ['sends small chunks', ['Transfer-Encoding: chunked\r\n\r\n', ...drip('1\r\na\r\n')]],
  ])('that %s gets an error after the time for a body, and is disconnected', async (_what, parts) => {
    const { text, closed } = await converse(app.port, [`POST /echo HTTP/1.1\r\n${HEAD}`, ...parts])
    expect(text).toStartWith('HTTP/1.1 400 ')
    expect(text).toEndWith(LATE)
    expect(closed).toBe(true)
  })

  test('does not block others: a good request is served while two hundred stall', async () => {
    const patient = startHttpApp({ bodyTimeoutMs: 120_000 })
    const head = `POST /echo HTTP/1.1\r\n${HEAD}Content-Length: 100\r\n\r\n{`
    const stalled = Array.from({ length: 200 }, () => connect(patient.port, '127.0.0.1', () => {}))
    await Promise.all(stalled.map((socket) => new Promise((resolve) => socket.write(head, resolve))))
    await expectHealthy(patient.url)
    for (const socket of stalled) {
      expect(socket.bytesRead).toBe(0)
      socket.destroy()
    }
  })
})

test('a client that disconnects in the middle of its body causes no warning or error log', async () => {
  for (let i = 0; i < 20; i++) {
    const id = `gone-${i}`
    const socket = connect(app.port, '127.0.0.1')
    socket.write(`POST /echo HTTP/1.1\r\n${HEAD}X-Request-Id: ${id}\r\nContent-Length: 100\r\n\r\n{"na`)
    await new Promise((resolve) => socket.once('connect', resolve))
    socket.resetAndDestroy()
  }
  await expectHealthy()
  // Caused by the client, so it is not an error of the service.
  expect(app.logged.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([])
})

test('answers pipelined requests in order', async () => {
  const requests = Array.from(
    { length: 20 },
    (_, i) => `POST /echo HTTP/1.1\r\n${HEAD}X-Request-Id: p${i}\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
  )
  const { text } = await converse(app.port, [requests.join('')], {
    isEnough: (received) => received.split(ANSWER).length === 21,
  })
  expect([...text.matchAll(/x-request-id: (\w+)/gi)].map(([, id]) => id)).toEqual(requests.map((_, i) => `p${i}`))
})

test('answers Expect: 100-continue with 100 Continue', async () => {
  const { text } = await converse(
    app.port,
    [`POST /echo HTTP/1.1\r\n${HEAD}Expect: 100-continue\r\nContent-Length: ${BODY.length}\r\n\r\n`, 20, BODY],
    { isEnough: (received) => received.endsWith(ANSWER) },
  )
  expect(text).toStartWith('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK')
})

test('rejects a body with a Content-Length far over the limit before it is sent, and closes the connection', async () => {
  for (const length of [1_000_000, 20_000_000_000, Number.MAX_SAFE_INTEGER]) {
    const { text, closed } = await converse(app.port, [
      `POST /echo HTTP/1.1\r\n${HEAD}Content-Length: ${length}\r\n\r\n`,
    ])
    expect(text).toStartWith('HTTP/1.1 413 ')
    expect(text).toContain('"code":"PAYLOAD_TOO_LARGE"')
    expect(closed).toBe(true)
  }
})

test('cuts off an endless body without a Content-Length at the limit', async () => {
  const chunk = `8000\r\n${'a'.repeat(0x8000)}\r\n`
  const { text, closed } = await converse(app.port, [
    `POST /echo HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n`,
    ...Array(20).fill(chunk),
  ])
  expect(text).toStartWith('HTTP/1.1 413 ')
  expect(text).toContain('"code":"PAYLOAD_TOO_LARGE"')
  expect(closed).toBe(true)
})

describe('malformed HTTP', () => {
  test.each([
    ['an invalid Host', 'GET /things HTTP/1.1\r\nHost: a b/ c\r\n\r\n'],
    ['HTTP/1.0 without a Host', 'GET /things HTTP/1.0\r\n\r\n'],
    ['HTTP/1.0 without a Host on an unknown route', 'GET /nope HTTP/1.0\r\n\r\n'],
  ])('%s gets an error in the envelope', async (_what, request) => {
    const { text } = await converse(app.port, [request])
    expect(text).toStartWith('HTTP/1.1 400 ')
    expect(text).toEndWith(
      '{"data":null,"error":{"code":"VALIDATION_ERROR","message":"header Host: required, as host or host:port","param":"header Host","problems":[{"param":"header Host","message":"required, as host or host:port"}]}}',
    )
  })

  // These never reach our code: Bun answers them itself, with an empty body.
  test.each([
    ['no request line', 'HELLO\r\n\r\n', 400],
    ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
    ['no Host', 'GET /things HTTP/1.1\r\n\r\n', 400],
    ['HTTP/9.9', 'GET /things HTTP/9.9\r\nHost: x\r\n\r\n', 505],
    ['a negative length', `POST /echo HTTP/1.1\r\n${HEAD}Content-Length: -1\r\n\r\n`, 400],
    [
      'both Content-Length and chunks',
      `POST /echo HTTP/1.1\r\n${HEAD}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ['an invalid chunk', `POST /echo HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n`, 400],
    ['a header of 300 KB', `GET /things HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(300_000)}\r\n\r\n`, 431],
    ['500 headers', `GET /things HTTP/1.1\r\nHost: x\r\n${'X: a\r\n'.repeat(500)}\r\n`, 431],
  ])('%s is rejected with a status only, and the connection is closed', async (_what, request, status) => {
    const { text, closed } = await converse(app.port, [Buffer.from(request, 'latin1')])
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} .*\r\nConnection: close\r\n\r\n$`))
    expect(closed).toBe(true)
  })
})

test('serves two thousand concurrent connections', async () => {
  const answered = new Set<Socket>()
  const sockets = Array.from({ length: 2_000 }, () => {
    const socket = connect(app.port, '127.0.0.1')
    let text = ''
    socket.on('data', (data) => {
      text += data
      if (text.endsWith(ANSWER)) answered.add(socket)
    })
    socket.on('connect', () => socket.write(REQUEST))
    return socket
  })
  try {
    await eventually(() => answered.size === sockets.length)
    // All of them again, on the same connections.
    answered.clear()
    for (const socket of sockets) socket.write(REQUEST)
    await eventually(() => answered.size === sockets.length)
  } finally {
    for (const socket of sockets) socket.destroy()
  }
  await expectHealthy()
})
