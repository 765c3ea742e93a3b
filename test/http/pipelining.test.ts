import { expect, test } from 'bun:test'
import { converse } from '../support/http-app.ts'
import { authApp } from './auth-app.ts'

/**
 * Requests sent before the one ahead has been answered. Bun closes such a connection without an answer, so nothing that
 * was sent in this way may be carried out.
 */

function request(method: string, path: string, key: string, body?: string): string {
  const size = body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n${size}\r\n${body ?? ''}`
}

async function pipeliningApp() {
  let carriedOut = 0
  const app = await authApp({
    onIngest: async () => {
      carriedOut++
    },
  })
  const agentId = await app.newAgent()
  const { key } = await app.newAgentKey(agentId)
  const answersTo = async (parts: string[], isEnough?: (text: string) => boolean) => {
    const { text, closed } = await converse(Number(new URL(app.base).port), parts, isEnough && { isEnough })
    return { answers: text.match(/HTTP\/1\.1 \d+/g) ?? [], closed }
  }
  return { app, agentId, key, answersTo, carriedOut: () => carriedOut }
}

test.each([2, 5, 50])('%d calls in one write: the connection is closed and none is carried out', async (count) => {
  const { key, answersTo, carriedOut } = await pipeliningApp()
  const calls = request('POST', '/ingest', key, '{}').repeat(count)
  expect(await answersTo([calls])).toEqual({ answers: [], closed: true })
  expect(carriedOut()).toBe(0)
})

test('a call without a body, and one whose successor is not there as a whole, are not carried out either', async () => {
  const { app, agentId, key, answersTo, carriedOut } = await pipeliningApp()
  const archive = request('DELETE', `/api/v1/agents/${agentId}`, app.owner.key)
  await answersTo([archive + archive])
  const { data } = await app.call('GET', `/api/v1/agents/${agentId}`, { key: app.owner.key })
  expect(data.status).toBe('active')
  const call = request('POST', '/ingest', key, '{}')
  await answersTo([call + call.slice(0, -1)])
  expect(carriedOut()).toBe(0)
})

test('a call of the operator is not carried out', async () => {
  const { app, answersTo } = await pipeliningApp()
  const create = request('POST', '/api/v1/workspaces', 'operator-token-of-the-tests', '{"name":"a"}')
  await answersTo([create + create])
  const [{ count }] = (await app.sql`select count(*)::int as count from workspaces`) as unknown as [{ count: number }]
  expect(count).toBe(1)
})

test('one after the other, on one connection, each is carried out and answered', async () => {
  const { key, answersTo, carriedOut } = await pipeliningApp()
  const call = request('POST', '/ingest', key, '{}')
  const { answers } = await answersTo([call], (text) => text.includes('200 OK'))
  expect(answers).toEqual(['HTTP/1.1 200'])
  expect(carriedOut()).toBe(1)
})

test('requests that are refused at once are answered in their order', async () => {
  const { answersTo } = await pipeliningApp()
  const calls = ['/nope', '/ingest', '/nope'].map((path) => request('GET', path, 'none')).join('')
  const { answers } = await answersTo([calls], (text) => text.split('HTTP/1.1').length > 3)
  expect(answers).toEqual(['HTTP/1.1 404', 'HTTP/1.1 405', 'HTTP/1.1 404'])
})
