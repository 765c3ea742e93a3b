import { beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { TICK_MS } from '../../src/feeds/live/connections.ts'
import { parseConfig } from '../../src/service/config/config.ts'
import { eventually } from '../support/eventually.ts'
import { LiveSocket, LiveStream, newReporter, newTenant, numbered, numbersOf } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'

/**
 * Feeds that stay silent longer than every timeout (docs/feeds.md#event-streams): that of the HTTP server, and
 * twice that for WebSockets. The timeouts are shorter here than by default; the tests overlap.
 */

const IDLE_SECONDS = 10
const HEARTBEAT_SECONDS = 2
const SILENCE_MS = 26_000

let service: TestService
beforeAll(async () => {
  const bounds = { bodyTimeoutMs: 1_000, idleSeconds: IDLE_SECONDS, feeds: { heartbeatMs: HEARTBEAT_SECONDS * 1000 } }
  service = await startTestService({}, { bounds })
})

async function newRun() {
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  return { tenant, agent, runId: await agent.start() }
}

/** Resolves after the silence, once an idle connection was closed. */
async function silence(): Promise<void> {
  const { hostname, port } = new URL(service.url)
  const idle = connect(Number(port), hostname)
  idle.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
  idle.resume()
  let isCut = false
  idle.on('close', () => {
    isCut = true
  })
  await Promise.all([Bun.sleep(SILENCE_MS), eventually(() => isCut)])
}

test('by default a stream sends a heartbeat at least every 10 s, well within the idle timeout', () => {
  const { feeds, idleSeconds } = parseConfig({})
  expect(feeds.heartbeatMs + TICK_MS).toBeLessThan(10_000)
  expect(idleSeconds).toBeGreaterThan(20)
})

for (const [what, path] of [
  ['of the workspace', () => '/api/v1/stream?kind=event'],
  ['of a run', (runId: string) => `/api/v1/runs/${runId}/stream`],
] as const)
  test.concurrent(`a silent stream ${what} sends heartbeats, is not closed, and continues`, async () => {
    const { tenant, agent, runId } = await newRun()
    const stream = await LiveStream.open(tenant, path(runId))
    await silence()
    expect(stream.ended).toBeUndefined()
    expect(stream.text.match(/^: heartbeat\n\n/gm)!.length).toBeWithin(3, SILENCE_MS / 1000 / HEARTBEAT_SECONDS + 1)
    await agent.events(runId, numbered(2))
    const events = () => stream.items.filter(({ kind }) => kind === 'event')
    await stream.until(() => events().length >= 2)
    expect(numbersOf(events())).toEqual([0, 1])
    await stream.close()
  })

test.concurrent('a silent WebSocket is not closed, and continues', async () => {
  const { tenant, agent, runId } = await newRun()
  const sockets = [await LiveSocket.open(tenant), await LiveSocket.open(tenant)]
  for (const socket of sockets) await socket.subscribe('s', { filter: { kind: 'event' } })
  await silence()
  await agent.events(runId, numbered(2))
  for (const socket of sockets) {
    await socket.until(() => socket.items('s').length === 2)
    expect(socket.messages.map(({ op }) => op)).toEqual(['subscribed', 'pong', 'activity'])
    await socket.close()
  }
})
