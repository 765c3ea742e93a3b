import { beforeAll, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { LiveSocket, LiveStream, newReporter, newTenant, numbered, numbersOf } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'

/**
 * Feeds on which nothing happens for longer than every timeout in the way: 30 s of the HTTP server, 60 s of WebSockets
 * (docs/specification.md#event-streams). In a file of its own, because it takes so long; its tests overlap.
 */

const SILENCE_MS = 62_000
const HEARTBEAT_MS_MAX = 10_000
const TIMEOUT_MS = 90_000

let service: TestService
beforeAll(async () => {
  service = await startTestService({ BODY_TIMEOUT_SECONDS: '1' })
}, TIMEOUT_MS)

async function newRun() {
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  return { tenant, agent, runId: await agent.start() }
}

/** The longest time without a word from the stream, over the whole silence. */
async function longestPause(stream: LiveStream): Promise<number> {
  const endMs = performance.now() + SILENCE_MS
  let heardMs = performance.now()
  let heard = stream.text.length
  let longest = 0
  await eventually(
    () => {
      const now = performance.now()
      longest = Math.max(longest, now - heardMs)
      if (stream.text.length > heard) heardMs = now
      heard = stream.text.length
      return now > endMs
    },
    { timeoutMs: SILENCE_MS + 5_000, intervalMs: 20 },
  )
  return longest
}

for (const [what, path] of [
  ['of the workspace', () => '/api/v1/stream?kind=event'],
  ['of a run', (runId: string) => `/api/v1/runs/${runId}/stream`],
] as const)
  test.concurrent(
    `a silent stream ${what} says at least every 10 s that it is there, is not cut off, and goes on`,
    async () => {
      const { tenant, agent, runId } = await newRun()
      const stream = await LiveStream.open(tenant, path(runId))
      expect(await longestPause(stream)).toBeLessThan(HEARTBEAT_MS_MAX)
      expect(stream.ended).toBeUndefined()
      expect(stream.text.match(/^: heartbeat\n\n/gm)!.length).toBeGreaterThanOrEqual(6)
      await agent.events(runId, numbered(2))
      const events = () => stream.items.filter(({ kind }) => kind === 'event')
      await stream.until(() => events().length >= 2)
      expect(numbersOf(events())).toEqual([0, 1])
      await stream.close()
    },
    TIMEOUT_MS,
  )

test.concurrent(
  'a silent WebSocket is not cut off, and goes on',
  async () => {
    const { tenant, agent, runId } = await newRun()
    const sockets = [await LiveSocket.open(tenant), await LiveSocket.open(tenant)]
    for (const socket of sockets) await socket.subscribe('s', { filter: { kind: 'event' } })
    await Bun.sleep(SILENCE_MS)
    await agent.events(runId, numbered(2))
    for (const socket of sockets) {
      await socket.until(() => socket.items('s').length === 2)
      expect(socket.messages.map(({ op }) => op)).toEqual(['subscribed', 'pong', 'activity'])
      await socket.close()
    }
  },
  TIMEOUT_MS,
)
