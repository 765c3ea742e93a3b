import { describe, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { mintToken } from '../../src/tenants/keys/token.ts'
import { eventually } from '../support/eventually.ts'
import { converse } from '../support/http-app.ts'
import { atEnd } from '../support/teardown.ts'
import { type AuthApp, authApp, OPERATOR_TOKEN, verdict } from './auth-app.ts'

/**
 * Slow bodies and the memory they may use (docs/api.md#order-of-checks: the key is checked before the body is
 * read).
 */

const MIB = 1 << 20
const portOf = (app: AuthApp) => Number(new URL(app.base).port)

function head(path: string, key: string | undefined, length: number | 'chunked'): string {
  const size = length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`
  const authorization = key === undefined ? '' : `Authorization: Bearer ${key}\r\n`
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${authorization}${size}\r\n\r\n`
}

const answered = { isEnough: (text: string) => text.includes('\r\n\r\n') }
const statusOf = (text: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])

/** Sends all but the last byte of a body of `length` bytes; `finish` sends that byte. */
async function stall(app: AuthApp, key: string, length: number) {
  const socket: Socket = connect(portOf(app), '127.0.0.1')
  atEnd(async () => void socket.destroy())
  let text = ''
  socket.on('data', (data) => {
    text += data
  })
  socket.on('error', () => {})
  const body = Buffer.from('{}'.padEnd(length))
  socket.write(head('/ingest', key, length))
  await new Promise((resolve) => socket.write(body.subarray(0, length - 1), resolve))
  return {
    answer: () => text,
    finish: () => void socket.write(body.subarray(length - 1)),
    leave: () => void socket.destroy(),
  }
}

describe('without a key', () => {
  test('300 bodies that never complete get 401 immediately', async () => {
    const app = await authApp()
    const almost = Buffer.alloc(MIB - 1, ' ')
    const answers = await Promise.all(
      Array.from({ length: 300 }, () => converse(portOf(app), [head('/ingest', undefined, MIB), almost], answered)),
    )
    expect(answers.map(({ text }) => statusOf(text))).toEqual(Array(300).fill(401))
  })

  test.each([
    ['a made-up key', () => mintToken('agent').text, '/ingest', 401],
    ['a key of the wrong type', (app: AuthApp) => app.owner.key, '/ingest', 403],
    ['a wrong operator token', () => 'no-operator-token', '/api/v1/workspaces', 401],
    ['a key where the operator token belongs', (app: AuthApp) => app.owner.key, '/api/v1/workspaces', 401],
  ] as const)('rejects %s before the body has arrived', async (_name, keyOf, path, status) => {
    const app = await authApp()
    for (const length of [1000, 'chunked'] as const) {
      const { text } = await converse(portOf(app), [head(path, keyOf(app), length)], answered)
      expect(statusOf(text)).toBe(status)
    }
  })
})

test('rejects a key that is revoked while its body is arriving', async () => {
  let executed = 0
  const app = await authApp({ onIngest: async () => void executed++ })
  const agent = await app.newAgentKey(await app.newAgent())
  const call = await stall(app, agent.key, 1000)
  expect((await app.call('POST', '/ingest', { key: agent.key, body: {} })).status).toBe(200)
  expect((await app.call('POST', `/api/v1/keys/${agent.keyId}/revoke`, { key: app.owner.key, body: {} })).status).toBe(
    200,
  )
  call.finish()
  await eventually(() => call.answer() !== '')
  expect([statusOf(call.answer()), executed]).toEqual([401, 1])
})

describe('bytes in flight', () => {
  /** An app with room for four bodies of the maximum size, two per workspace. */
  async function smallApp(onIngest?: () => Promise<void>) {
    const app = await authApp({ bodyBytesInFlight: 4 * MIB, ...(onIngest && { onIngest }) })
    const other = await app.newWorkspace()
    const keyOf = async (owner: string) => (await app.newAgentKey(await app.newAgent({}, owner), owner)).key
    return { app, ours: await keyOf(app.owner.key), theirs: await keyOf(other.key) }
  }
  const send = (app: AuthApp, key: string, headers = {}) => app.call('POST', '/ingest', { key, body: {}, headers })

  test('a workspace over its share gets 503 with Retry-After, and other workspaces are not affected', async () => {
    const { app, ours, theirs } = await smallApp()
    const stalled = [await stall(app, ours, MIB), await stall(app, ours, MIB)]
    const rejected = await eventually(async () => {
      const answer = await send(app, ours)
      return answer.status === 503 && answer
    })
    expect(verdict(rejected)).toBe('503 UNAVAILABLE')
    expect(rejected.headers.get('retry-after')).toBe('1')
    expect(rejected.error!.message).toContain('in flight in this workspace')
    expect((await send(app, theirs)).status).toBe(200)
    for (const call of stalled) call.finish()
    await eventually(() => stalled.every((call) => call.answer() !== ''))
    expect((await send(app, ours)).status).toBe(200)
  })

  test('over the total limit, authenticated calls with a body get 503; calls without a body or a valid key do not', async () => {
    const { app, ours, theirs } = await smallApp()
    const stalled = await Promise.all([ours, ours, theirs, theirs].map((key) => stall(app, key, MIB)))
    await eventually(async () => (await send(app, theirs)).status === 503)
    const operator = await app.call('POST', '/api/v1/workspaces', { key: OPERATOR_TOKEN, body: { name: 'a' } })
    expect(operator.error!.message).toContain('in flight in the service')
    expect((await app.call('GET', '/reading', { key: theirs })).status).toBe(200)
    expect((await send(app, mintToken('agent').text)).status).toBe(401)
    for (const call of stalled) call.leave()
    await eventually(async () => (await send(app, ours)).status === 200)
    await eventually(async () => (await send(app, theirs)).status === 200)
  })

  test('a body counts by its decompressed size until its call is answered', async () => {
    const entered = Promise.withResolvers<void>()
    const proceed = Promise.withResolvers<void>()
    const { app, ours } = await smallApp(() => {
      entered.resolve()
      return proceed.promise
    })
    // Compressed far below the share; two of them decompressed exceed it.
    const large = (bytes: number) => gzipSync('{}'.padEnd(bytes))
    const post = (body: Uint8Array) =>
      fetch(`${app.base}/ingest`, {
        method: 'POST',
        body: body as Uint8Array<ArrayBuffer>,
        headers: { authorization: `Bearer ${ours}`, 'content-encoding': 'gzip', 'content-type': 'application/json' },
      })
    const first = post(large(MIB))
    await entered.promise
    expect((await post(large(MIB))).status).toBe(503)
    proceed.resolve()
    expect((await first).status).toBe(200)
    expect((await post(large(MIB))).status).toBe(200)
  })

  test('a body of unknown length counts as it arrives', async () => {
    const { app, ours } = await smallApp()
    const calls = [0, 1].map(() => stall(app, ours, MIB - 10_000))
    await Promise.all(calls)
    const chunk = `${(30_000).toString(16)}\r\n${' '.repeat(30_000)}\r\n`
    await eventually(async () => {
      const { text } = await converse(portOf(app), [head('/ingest', ours, 'chunked'), chunk, '0\r\n\r\n'], answered)
      return statusOf(text) === 503
    })
  })
})
