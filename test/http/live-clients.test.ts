import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { EventSource } from 'eventsource'
import type WsPackage from 'ws'
import { eventually } from '../support/eventually.ts'
import { type Activity, gauge, LiveSocket, newReporter, numbered, numbersOf } from '../support/feeds.ts'
import { dataOf, freePort, startTestService, type TestService } from '../support/service.ts'

/**
 * Live feeds through third-party clients (docs/feeds.md). Bun has no EventSource.
 */

/** The package itself: Bun replaces an import of `ws` with its own WebSocket. */
const WS = join(import.meta.dir, '..', '..', 'node_modules', 'ws', 'wrapper.mjs')
const { default: WsClient } = (await import(WS)) as { default: typeof WsPackage }

let service: TestService
beforeAll(async () => {
  service = await startTestService({ PORT: `${freePort()}` })
})

/** Stops the service and starts it again, with the same data and on the same port. */
async function restart(): Promise<void> {
  await service.stop()
  service = await startTestService({ ...dataOf(service), PORT: new URL(service.url).port })
}

const bearer = () => ({ authorization: `Bearer ${service.workspaceKey}` })
const newToken = async () => (await service.api('POST', '/api/v1/feed-tokens', {})).data.token as string

/** A client that follows all events and reconnects by itself. */
interface Follower {
  readonly items: readonly Activity[]
  /** Number of connections made. */
  readonly opened: number
  /** Number of gap messages received. */
  readonly gaps: number
  close(): void
}

/** The browser interface that both WebSocket classes share. */
type SocketClass = new (
  url: string,
  options: object,
) => {
  onopen: unknown
  onmessage: unknown
  onclose: unknown
  onerror: unknown
  send(text: string): void
  close(): void
}

/** Resumes after the cursor of the last activity, as the README recommends. */
function followSocket(Socket: SocketClass, query: string, headers: object): Follower {
  const follower = { items: [] as Activity[], opened: 0, gaps: 0, close: () => {} }
  let cursor: string | undefined
  let isOver = false
  const open = () => {
    const socket = new Socket(`${service.url.replace('http', 'ws')}/api/v1/live${query}`, { headers })
    socket.onopen = () => {
      follower.opened++
      socket.send(JSON.stringify({ op: 'subscribe', id: 's', filter: { kind: 'event' }, after: cursor }))
    }
    socket.onmessage = ({ data }: { data: string }) => {
      const message = JSON.parse(data)
      if (message.op === 'subscribed') cursor = message.cursor
      if (message.op === 'gap') follower.gaps++
      for (const activity of message.items ?? []) {
        follower.items.push(activity)
        cursor = activity.cursor
      }
    }
    socket.onclose = () => {
      if (!isOver) setTimeout(open, 20)
    }
    // Without a listener the package would crash the process.
    socket.onerror = () => {}
    follower.close = () => {
      isOver = true
      socket.close()
    }
  }
  open()
  return follower
}

function followStream(query: string, headers: object): Follower {
  const source = new EventSource(`${service.url}/api/v1/stream?kind=event${query}`, {
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...headers } }),
  })
  const follower = { items: [] as Activity[], opened: 0, gaps: 0, close: () => source.close() }
  source.addEventListener('event', ({ data }) => follower.items.push(JSON.parse(data)))
  source.addEventListener('open', () => follower.opened++)
  source.addEventListener('gap', () => follower.gaps++)
  return follower
}

test('clients of every kind reconnect after restarts without gaps or repeats', async () => {
  const agent = await newReporter(service.api)
  const runId = await agent.start()
  const token = await newToken()
  const followers: Record<string, Follower> = {
    'WebSocket of Bun, key in the header': followSocket(WebSocket as never, '', bearer()),
    'WebSocket of Bun, token in the URL': followSocket(WebSocket as never, `?token=${token}`, {}),
    'ws, key in the header': followSocket(WsClient as never, '', bearer()),
    'ws, token in the URL': followSocket(WsClient as never, `?token=${token}`, {}),
    'eventsource, key in the header': followStream('', bearer()),
    'eventsource, token in the URL': followStream(`&token=${token}`, {}),
  }
  const all = Object.values(followers)
  await eventually(async () => (await gauge(service, 'feed_subscriptions')) === all.length)
  await agent.events(runId, numbered(5))
  await eventually(() => all.every(({ items }) => items.length === 5))
  let next = 5
  for (let round = 0; round < 2; round++) {
    // While they are connected, while the service stops, and while they are disconnected.
    const reporting = (async () => {
      for (let i = 0; i < 40; i++) await agent.events(runId, numbered(3, next + 3 * i)).catch(() => {})
    })()
    await eventually(() => all.every(({ items }) => numbersOf(items).includes(next + 5)))
    await restart()
    await reporting
    next += 120
    await agent.events(runId, numbered(5, next))
    next += 5
  }
  const reader = await LiveSocket.open(service)
  await reader.subscribe('all', { after: 0, filter: { kind: 'event' } })
  await reader.until(() => numbersOf(reader.items('all')).includes(next - 1))
  const everything = reader.items('all')
  for (const [name, follower] of Object.entries(followers)) {
    await eventually(() => numbersOf(follower.items).includes(next - 1))
    expect([name, numbersOf(follower.items)]).toEqual([name, numbersOf(everything)])
    expect(follower.items).toEqual(everything)
    expect([name, follower.opened, follower.gaps]).toEqual([name, 3, 0])
    follower.close()
  }
  await reader.close()
  await eventually(async () => (await gauge(service, 'feed_connections')) === 0)
})

describe('EventSource', () => {
  test('stops reconnecting once it has the whole run', async () => {
    const agent = await newReporter(service.api)
    const runId = await agent.start()
    const statuses: number[] = []
    const source = new EventSource(`${service.url}/api/v1/runs/${runId}/stream?after=0`, {
      fetch: async (url, init) => {
        const response = await fetch(url, { ...init, headers: { ...init.headers, ...bearer() } })
        statuses.push(response.status)
        return response
      },
    })
    const items: Activity[] = []
    for (const kind of ['event', 'task', 'run'])
      source.addEventListener(kind, ({ data }: { data: string }) => items.push(JSON.parse(data)))
    await agent.events(runId, numbered(3))
    await agent.task(runId, { status: 'completed' })
    await agent.end(runId)
    await eventually(() => source.readyState === source.CLOSED)
    expect(statuses).toEqual([200, 204])
    expect(items.map(({ kind }) => kind).toSorted()).toEqual(['event', 'event', 'event', 'run', 'run', 'task'])
    expect(items.at(-1)?.run?.status).toBe('completed')
  })
})

describe('the ws package', () => {
  const open = (headers: Record<string, string>) =>
    new WsClient(`${service.url.replace('http', 'ws')}/api/v1/live`, { headers })

  test('gets text messages, protocol pongs and the close code', async () => {
    const { data } = await service.api('POST', '/api/v1/keys', { name: 'short' })
    const socket = open({ authorization: `Bearer ${data.key}` })
    await new Promise((resolve) => socket.on('open', resolve))
    expect([socket.protocol, socket.extensions]).toEqual(['', ''])
    const pong = new Promise((resolve) => socket.on('pong', (bytes) => resolve(bytes.toString())))
    socket.ping('are you there')
    expect(await pong).toBe('are you there')
    const message = new Promise((resolve) => socket.on('message', (bytes, isBinary) => resolve([`${bytes}`, isBinary])))
    socket.send('{"op":"ping"}')
    expect(await message).toEqual(['{"op":"pong"}', false])
    // One message in three fragments.
    const whole = new Promise((resolve) => socket.on('message', (bytes) => resolve(JSON.parse(`${bytes}`).op)))
    for (const [part, fin] of [
      ['{"op":"subs', false],
      ['cribe","id":', false],
      ['"s"}', true],
    ] as const)
      socket.send(part, { fin })
    expect(await whole).toBe('subscribed')
    const closed = new Promise((resolve) => socket.on('close', (code, reason) => resolve([code, `${reason}`])))
    await service.api('POST', `/api/v1/keys/${data.key_id}/revoke`, {})
    expect(await closed).toEqual([4001, 'key_invalid'])
  })
})
