import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { eventually } from '../support/eventually.ts'
import { gauge, LiveSocket, newReporter, newTenant, numbersOf, type Reporter, type Tenant } from '../support/feeds.ts'
import { converse } from '../support/http-app.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Invalid input from clients of live feeds, which must not affect other connections (docs/feeds.md). */

let service: TestService
let tenant: Tenant
let agent: Reporter
let runId: string
/** A second client that stays connected during all tests. */
let witness: LiveSocket
let reported = 0

beforeAll(async () => {
  service = await startTestService()
  tenant = await newTenant(service)
  agent = await newReporter(tenant.api)
  runId = await agent.start()
  witness = await LiveSocket.open(tenant)
  await watch(witness)
})
afterAll(() => witness.close())

/** Events only: the start of the run may arrive late. */
const watch = (socket: LiveSocket) => socket.subscribe('all', { filter: { kind: 'event' } })

/** Expects the other connections to be open and to get the next event. */
async function expectUnharmed(...others: LiveSocket[]): Promise<void> {
  await agent.events(runId, [{ type: 'step', payload: { n: reported++ } }])
  for (const socket of [witness, ...others]) {
    await socket.until(() => numbersOf(socket.items('all')).includes(reported - 1))
    expect(socket.closed).toBeUndefined()
  }
  await witness.until(() => witness.items('all').length === reported)
}

const OPS = 'expected one of subscribe, unsubscribe, ping; got'
const ID = 'id: expected text of 1 to 128 characters'
const TOO_MANY = 'expected at most 2000 values in a message'
const NO_OBJECT = 'a message must be a JSON object with an op'
const NO_CURSOR = 'after: expected the cursor of an activity, or 0 for the oldest retained activity'
const NO_RATE = 'max_per_second: expected a whole number from 1 to 10000'
const nested = (depth: number, open: string, close: string) => open.repeat(depth) + close.repeat(depth)

describe('an invalid message gets an error and keeps the connection:', () => {
  const MESSAGES: [what: string, text: string, message: string][] = [
    ['truncated JSON', '{"op":"ping"', 'the message is not JSON'],
    ['an empty message', '', 'the message is not JSON'],
    ['two messages in one', '{"op":"ping"}{"op":"ping"}', 'the message is not JSON'],
    ['a list', '[{"op":"ping"}]', NO_OBJECT],
    ['a number', '3', NO_OBJECT],
    ['null', 'null', NO_OBJECT],
    ['text', '"ping"', NO_OBJECT],
    ['30,000 nested lists', nested(30_000, '[', ']'), TOO_MANY],
    ['60,000 unclosed lists', '['.repeat(60_000), TOO_MANY],
    ['nested objects', `{"op":"ping","x":${nested(900, '{"a":', '')}1${'}'.repeat(900)}}`, 'x: unknown field; '],
    ['8,000 nested objects', `{"x":${nested(8_000, '{"a":', '')}1${'}'.repeat(8_000)}}`, TOO_MANY],
    ['a list of 3,000 objects', `{"op":"ping","x":[{}${',{}'.repeat(3_000)}]}`, TOO_MANY],
    ['no op', '{}', `op: ${OPS} nothing`],
    ['an unknown op', '{"op":"publish"}', `op: ${OPS} "publish"`],
    ['an op named like an inherited property', '{"op":"__proto__"}', `op: ${OPS} "__proto__"`],
    ['an op in upper case', '{"op":"PING"}', `op: ${OPS} "PING"`],
    ['an op that is a number', '{"op":7}', `op: ${OPS} 7`],
    ['an op that is deeply nested', `{"op":${nested(1_900, '[', ']')}}`, `op: ${OPS} [[[`],
    ['a ping with an extra field', '{"op":"ping","id":"a"}', 'id: unknown field; ping takes none'],
    ['a subscription without an id', '{"op":"subscribe"}', ID],
    ['an empty id', '{"op":"subscribe","id":""}', ID],
    ['an id that is a number', '{"op":"subscribe","id":1}', ID],
    ['an id of 60,000 characters', `{"op":"subscribe","id":"${'x'.repeat(60_000)}"}`, ID],
    ['an unsubscribe id of 60,000 characters', `{"op":"unsubscribe","id":"${'x'.repeat(60_000)}"}`, ID],
  ]

  test.each(MESSAGES)('%s', async (_what, text, message) => {
    const socket = await LiveSocket.open(tenant)
    await watch(socket)
    const [answer, ...more] = await socket.ask(text)
    expect([answer.op, answer.code, more]).toEqual(['error', 'VALIDATION_ERROR', []])
    expect(answer.message).toStartWith(message)
    expect(answer.message!.length).toBeLessThan(300)
    await expectUnharmed(socket)
    await socket.close()
  })

  test('a binary message', async () => {
    const socket = await LiveSocket.open(tenant)
    await watch(socket)
    for (const bytes of [new Uint8Array(0), Buffer.from('{"op":"ping"}'), new Uint8Array(65_000)])
      expect(await socket.ask(bytes)).toEqual([
        { op: 'error', code: 'VALIDATION_ERROR', message: 'send JSON in text messages, not binary ones' },
      ])
    await expectUnharmed(socket)
    await socket.close()
  })
})

describe('an invalid subscription is rejected, naming the field, and keeps the others:', () => {
  const REQUESTS: [fields: object, message: string][] = [
    [{ fliter: {} }, 'fliter: unknown field; subscribe takes id, filter, after, max_per_second'],
    [{ filter: [] }, 'filter: expected an object'],
    [{ filter: 'level=warn' }, 'filter: expected an object'],
    [
      { filter: { levl: 'warn' } },
      'filter.levl: unknown field; expected one of agent_id, run_id, task_id, session_id, external_user_id, kind, type, level,',
    ],
    ...['yesterday', '', 'abc.', '.5', 'a.1.2', '-1', '9'.repeat(50_000), -1, 1.5, 1e300, { seq: 1 }, true].map(
      (after): [object, string] => [{ after }, NO_CURSOR],
    ),
    ...[0, -1, 1.5, 10_001, '5', true, [1]].map((max_per_second): [object, string] => [{ max_per_second }, NO_RATE]),
  ]

  test.each(REQUESTS)('%j', async (fields, message) => {
    const id = 'mine "é'
    const [answer, ...more] = await witness.ask({ op: 'subscribe', id, ...fields })
    expect([answer.op, answer.id, answer.code, more]).toEqual(['error', id, 'VALIDATION_ERROR', []])
    expect(answer.message).toStartWith(message)
    // The id is still free.
    await witness.subscribe(id)
    expect(await witness.ask({ op: 'unsubscribe', id })).toEqual([])
    await expectUnharmed()
  })

  test('a duplicate id is CONFLICT, and an unknown id is NOT_FOUND', async () => {
    const conflict = {
      op: 'error',
      id: 'all',
      code: 'CONFLICT',
      message: 'id: a subscription with this id already exists',
    }
    expect(await witness.ask({ op: 'subscribe', id: 'all', filter: { level: 'error' } })).toMatchObject([conflict])
    const unknown = { op: 'error', id: 'x', code: 'NOT_FOUND', message: 'id: there is no subscription with this id' }
    expect(await witness.ask({ op: 'unsubscribe', id: 'x' })).toMatchObject([unknown])
    await expectUnharmed()
  })

  test('over a hundred subscriptions, each further one gets an error and the first hundred keep working', async () => {
    const socket = await LiveSocket.open(tenant)
    for (let i = 0; i < 10_000; i++) socket.send({ op: 'subscribe', id: i === 0 ? 'all' : `${i}` })
    await socket.until(() => socket.messagesOf('subscribed').length + socket.messagesOf('error').length === 10_000)
    expect(socket.messagesOf('subscribed').map(({ id }) => id)).toEqual(
      Array.from({ length: 100 }, (_, i) => (i === 0 ? 'all' : `${i}`)),
    )
    const rejected = socket.messagesOf('error')
    expect(rejected.map(({ id }) => id)).toEqual(Array.from({ length: 9_900 }, (_, i) => `${100 + i}`))
    expect(new Set(rejected.map(({ code }) => code)).difference(new Set(['CONFLICT', 'RATE_LIMITED'])).size).toBe(0)
    expect(rejected[0].message).toBe('a connection may have at most 100 subscriptions; filters accept lists of values')
    await expectUnharmed(socket)
    for (let i = 1; i < 100; i++) await socket.until(() => socket.items(`${i}`).length > 0)
    await socket.close()
  })
})

describe('an invalid event stream request is rejected, naming the parameter:', () => {
  const QUERIES: [query: string, message: string][] = [
    [
      'levl=warn',
      'query.levl: unknown parameter; expected one of agent_id, run_id, task_id, session_id, external_user_id, kind, type, level, status, tag, after',
    ],
    ['kind=event&kind=log', 'query.kind[1]: expected one of event, task, run, score; got "log"'],
    ['after=yesterday', 'after: expected the cursor of an activity, or 0'],
    ['max_per_second=5', 'query.max_per_second: unknown parameter'],
  ]

  test.each(QUERIES)('%s', async (query, message) => {
    const { status, error } = await tenant.api('GET', `/api/v1/stream?${query}`)
    expect([status, error?.code]).toEqual([400, 'VALIDATION_ERROR'])
    expect(error?.message).toContain(message)
  })

  test('rejects an invalid Last-Event-ID, and a filter on the stream of a run', async () => {
    for (const path of ['/api/v1/stream?after=0', `/api/v1/runs/${runId}/stream`]) {
      const { status, error } = await tenant.api('GET', path, undefined, { headers: { 'last-event-id': 'x y' } })
      expect([status, error?.code]).toEqual([400, 'VALIDATION_ERROR'])
      expect(error?.message).toContain('expected the cursor of an activity, or 0')
    }
    const { error } = await tenant.api('GET', `/api/v1/runs/${runId}/stream?level=warn`)
    expect(error?.message).toBe('query.level: unknown parameter; expected one of after, token')
  })
})

describe('a message that is too large closes only its connection, with 1009:', () => {
  test.each([64 * 1024 + 1, 1024 * 1024])('%d bytes', async (length) => {
    const socket = await LiveSocket.open(tenant)
    await watch(socket)
    expect((await socket.ask('x'.repeat(64 * 1024)))[0].message).toBe('the message is not JSON')
    socket.send(`{"op":"subscribe","id":"${'x'.repeat(length - 26)}"}`)
    expect((await socket.untilClosed()).code).toBe(1009)
    await expectUnharmed()
  })
})

describe('malformed WebSocket requests', () => {
  const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  const VERSION = 'Sec-WebSocket-Version: 13\r\n'
  const UPGRADE = 'Upgrade: websocket\r\nConnection: Upgrade\r\n'
  const port = () => Number(new URL(service.url).port)
  const head = (line: string, rest: string) =>
    `${line}\r\nHost: localhost\r\nAuthorization: Bearer ${tenant.workspaceKey}\r\n${rest}\r\n`
  const GET = 'GET /api/v1/live HTTP/1.1'
  const INCOMPLETE = '"message":"the WebSocket handshake is incomplete: Sec-WebSocket-Key, version 13"}}'
  const NOT_ONE = '"message":"connect to this URL with a WebSocket client"}}'

  const HANDSHAKES: [what: string, line: string, headers: string, answer: RegExp, body: string][] = [
    ['no Sec-WebSocket-Key', GET, UPGRADE + VERSION, /^HTTP\/1.1 400 /, INCOMPLETE],
    ['a short Sec-WebSocket-Key', GET, `${UPGRADE + VERSION}Sec-WebSocket-Key: abc\r\n`, /^HTTP\/1.1 400 /, INCOMPLETE],
    // Bun sends this response, as RFC 6455 section 4.4 requires.
    ['no version', GET, UPGRADE + KEY, /^HTTP\/1.1 426 .*\r\nSec-WebSocket-Version: 13\r\n/, ''],
    [
      'an old version',
      GET,
      `${UPGRADE + KEY}Sec-WebSocket-Version: 8\r\n`,
      /^HTTP\/1.1 426 .*\r\nSec-WebSocket-Version: 13/,
      '',
    ],
    ['another protocol', GET, 'Upgrade: h2c\r\nConnection: Upgrade\r\n', /^HTTP\/1.1 400 /, NOT_ONE],
    ['no upgrade', GET, KEY + VERSION, /^HTTP\/1.1 400 /, NOT_ONE],
    [
      'POST',
      'POST /api/v1/live HTTP/1.1',
      `${UPGRADE + KEY + VERSION}Content-Length: 0\r\n`,
      /^HTTP\/1.1 405 /,
      'GET, HEAD, OPTIONS"}}',
    ],
    ['HTTP/1.0, which works', 'GET /api/v1/live HTTP/1.0', UPGRADE + KEY + VERSION, /^HTTP\/1.1 101 /, ''],
  ]

  test.each(HANDSHAKES)('%s', async (_what, line, headers, answer, body) => {
    const isEnough = (text: string) => text.includes('\r\n\r\n') && text.endsWith(body)
    const { text } = await converse(port(), [head(line, headers)], { isEnough })
    expect(text).toMatch(answer)
    await expectUnharmed()
    await eventually(async () => (await gauge(service, 'feed_connections')) === 1)
  })

  /** A masked text frame of up to 125 bytes. */
  function frameOf(text: string, first = 0x81): Buffer {
    return Buffer.concat([Buffer.from([first, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text, 'latin1')])
  }

  const FRAMES: [what: string, frame: Buffer][] = [
    ['a frame without a mask', Buffer.from([0x81, 2, 0x7b, 0x7d])],
    ['text that is not UTF-8', frameOf('{"op":"\xff\xfe"}')],
    ['a reserved opcode', frameOf('{}', 0x83)],
    ['reserved bits', frameOf('{}', 0xf1)],
    ['a fragmented ping', frameOf('{}', 0x09)],
    ['a continuation without a first frame', frameOf('{}', 0x80)],
    ['a length of 2^63', Buffer.from([0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])],
  ]

  test.each(FRAMES)('%s closes its connection', async (_what, frame) => {
    const { text, closed } = await converse(port(), [head(GET, UPGRADE + KEY + VERSION), 20, frame])
    expect([text.startsWith('HTTP/1.1 101 '), closed]).toEqual([true, true])
    await expectUnharmed()
    await eventually(async () => (await gauge(service, 'feed_connections')) === 1)
  })

  test('a client that sends endlessly and reads nothing is disconnected, with bounded memory', async () => {
    const socket = connect(port(), '127.0.0.1')
    socket.on('error', () => {})
    socket.write(head(GET, UPGRADE + KEY + VERSION))
    await eventually(async () => (await gauge(service, 'feed_connections')) === 2)
    socket.pause()
    const pings = Buffer.concat(Array(1_000).fill(frameOf('{"op":"ping"}')))
    let sent = 0
    let queued = 0
    await eventually(async () => {
      for (let i = 0; i < 100 && !socket.destroyed; i++) {
        sent += 1_000
        if (!socket.write(pings))
          await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), Bun.sleep(50)])
      }
      await expectUnharmed()
      queued = Math.max(queued, await gauge(service, 'feed_queued_bytes'))
      return (await gauge(service, 'feed_connections')) === 1
    })
    expect(sent).toBeGreaterThanOrEqual(100_000)
    expect(queued).toBeLessThan(2 * 2 ** 20)
    socket.destroy()
  })
})
