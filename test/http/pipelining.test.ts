import { expect, test } from 'bun:test'
import { converse } from '../support/http-app.ts'
import { authApp } from './auth-app.ts'

/**
 * HTTP pipelining: requests sent before the response to the previous one. Bun closes such a connection without a
 * response, so none of these requests may be executed.
 */

function request(method: string, path: string, key: string, body?: string): string {
  const size = body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n${size}\r\n${body ?? ''}`
}

async function pipeliningApp() {
  let executed = 0
  const app = await authApp({
    onIngest: async () => {
      executed++
    },
  })
  const agentId = await app.newAgent()
  const { key } = await app.newAgentKey(agentId)
  const answersTo = async (parts: string[], isEnough?: (text: string) => boolean) => {
    const { text, closed } = await converse(Number(new URL(app.base).port), parts, isEnough && { isEnough })
    return { answers: text.match(/HTTP\/1\.1 \d+/g) ?? [], closed }
  }
  return { app, agentId, key, answersTo, executed: () => executed }
}

test.each([2, 5, 50])('%d calls in one write close the connection and none is executed', async (count) => {
  const { key, answersTo, executed } = await pipeliningApp()
  const calls = request('POST', '/ingest', key, '{}').repeat(count)
  expect(await answersTo([calls])).toEqual({ answers: [], closed: true })
  expect(executed()).toBe(0)
})

test('a call without a body, or followed by an incomplete call, is not executed', async () => {
  const { app, agentId, key, answersTo, executed } = await pipeliningApp()
  const archive = request('DELETE', `/api/v1/agents/${agentId}`, app.owner.key)
  await answersTo([archive + archive])
  const { data } = await app.call('GET', `/api/v1/agents/${agentId}`, { key: app.owner.key })
  expect(data.status).toBe('active')
  const call = request('POST', '/ingest', key, '{}')
  await answersTo([call + call.slice(0, -1)])
  expect(executed()).toBe(0)
})

test('an operator call is not executed', async () => {
  const { app, answersTo } = await pipeliningApp()
  const create = request('POST', '/api/v1/workspaces', 'operator-token-of-the-tests', '{"name":"a"}')
  await answersTo([create + create])
  const [{ count }] = (await app.sql`select count(*)::int as count from workspaces`) as unknown as [{ count: number }]
  expect(count).toBe(1)
})

test('a single call is executed and answered', async () => {
  const { key, answersTo, executed } = await pipeliningApp()
  const call = request('POST', '/ingest', key, '{}')
  const { answers } = await answersTo([call], (text) => text.includes('200 OK'))
  expect(answers).toEqual(['HTTP/1.1 200'])
  expect(executed()).toBe(1)
})

test('answers requests that are rejected immediately in order', async () => {
  const { answersTo } = await pipeliningApp()
  const calls = ['/nope', '/ingest', '/nope'].map((path) => request('GET', path, 'none')).join('')
  const { answers } = await answersTo([calls], (text) => text.split('HTTP/1.1').length > 3)
  expect(answers).toEqual(['HTTP/1.1 404', 'HTTP/1.1 405', 'HTTP/1.1 404'])
})
