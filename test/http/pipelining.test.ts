import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { converse } from '../support/http-app.ts'
import { startTestService } from '../support/service.ts'
import { authApp } from './auth-app.ts'

/**
 * HTTP pipelining: requests sent before the response to the previous one. Bun closes such a connection without a
 * response, so requests that arrive together are not executed. Of a request that is already being executed, Bun drops the
 * answer; whoever repeats it with the same ids loses and doubles nothing.
 */

function request(method: string, path: string, key: string, body?: string): string {
  const size = body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n${size}\r\n${body ?? ''}`
}

async function pipeliningApp(finish: Promise<void> = Promise.resolve()) {
  let executed = 0
  const app = await authApp({
    onIngest: async () => {
      executed++
      await finish
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

/** Sends `second` once `isBegun`, and resolves with everything that was answered when the connection is closed. */
async function interrupted(url: string, first: string, second: string, isBegun: () => Promise<unknown>) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let text = ''
  socket.on('data', (bytes) => {
    text += bytes
  })
  socket.on('error', () => {})
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.write(first)
  await isBegun()
  socket.write(second)
  await closed
  return text
}

test('a call that arrives while another is executed closes the connection without an answer, and is not executed', async () => {
  const finish = Promise.withResolvers<void>()
  const { app, key, executed } = await pipeliningApp(finish.promise)
  const call = request('POST', '/ingest', key, '{}')
  expect(await interrupted(app.base, call, call, () => eventually(() => executed() === 1))).toBe('')
  finish.resolve()
  expect(executed()).toBe(1)
})

test('calls whose answers pipelining cost are repeated safely, whenever the second call arrived', async () => {
  const { api, url, workspaceKey } = await startTestService()
  const { agentId, agentKey } = await newAgent(api)
  const { data: run } = await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
  const ping = `GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`
  const rounds = 30
  for (let round = 0; round < rounds; round++) {
    // From before the call is begun to after its answer.
    const pause = () => Bun.sleep((round % 10) / 2)
    const events = { run_id: run.run_id, events: [{ id: `e${round}`, type: 'mark' }] }
    const report = request('POST', '/api/ingest/v1/events', agentKey, JSON.stringify(events))
    await interrupted(url, report, ping, pause)
    const again = await api('POST', '/api/ingest/v1/events', events, { key: agentKey })
    expect({ status: again.status, text: again.text }).toMatchObject({ status: 200 })

    const agent = { name: `agent ${round}` }
    const headers = { 'idempotency-key': `create-${round}` }
    const create = request('POST', '/api/v1/agents', workspaceKey, JSON.stringify(agent))
    await interrupted(url, create.replace('\r\n', `\r\nIdempotency-Key: create-${round}\r\n`), ping, pause)
    await eventually(async () => {
      const answer = await api('POST', '/api/v1/agents', agent, { headers })
      // 409 while the first call is still being executed.
      expect([200, 201, 409]).toContain(answer.status)
      return answer.status !== 409
    })
  }
  const { data: agents } = await api('GET', '/api/v1/agents?limit=100')
  const names = agents.items
    .map(({ name }: { name: string }) => name)
    .filter((name: string) => name.startsWith('agent '))
  expect(names.sort()).toEqual(Array.from({ length: rounds }, (_, round) => `agent ${round}`).sort())
  await eventually(async () => {
    const { data } = await api('GET', `/api/v1/runs/${run.run_id}`)
    return data.event_count === rounds
  })
})
