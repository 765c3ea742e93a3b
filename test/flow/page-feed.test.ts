import { expect, test } from 'bun:test'
import type { Api } from '../../src/dashboard/page/data/api.ts'
import { Feed } from '../../src/dashboard/page/data/feed.ts'
import { eventually } from '../support/eventually.ts'
import { atEnd } from '../support/teardown.ts'
import { type Script, serveFeed } from './scripted-feed.ts'

/** How the page's live feed handles faults of the service and the network, played by a scripted server. */

const TOKEN = { isPerson: false, post: async () => ({ token: 'svc_feed_x' }) } as unknown as Api
const QUICK = { pingEveryMs: 150, askAgainMs: 50 }

function subscribed(script: Script) {
  const feed = serveFeed(script)
  const stop = new AbortController()
  atEnd(async () => stop.abort())
  const page = new Feed(TOKEN, stop.signal, { ...QUICK, page: `${feed.url}/live` })
  const cursors: string[] = []
  page.subscribe({}, { onItems: (items) => cursors.push(...items.map(({ cursor }) => cursor)) })
  return { feed, page, cursors }
}

test('a connection that the network has forgotten is noticed, and nothing is missed', async () => {
  const { feed, cursors } = subscribed({
    ignoresPings: true,
    subscribed(socket, { id, after }, nth) {
      socket.say({ op: 'subscribed', id, cursor: after ?? 'e.0', recovered: after !== undefined })
      if (nth < 2) socket.activities(nth * 2 + 1, nth * 2 + 2)
    },
  })
  await eventually(() => cursors.length === 4)
  expect(cursors).toEqual(['e.1', 'e.2', 'e.3', 'e.4'])
  expect(feed.subscriptions.slice(0, 2).map(({ after }) => after)).toEqual([undefined, 'e.2'])
})

test('a subscription that is refused for now is asked for again, on the same connection', async () => {
  const { feed, page, cursors } = subscribed({
    subscribed(socket, { id }, nth) {
      if (nth < 2) return socket.say({ op: 'error', id, code: 'UNAVAILABLE', message: 'not now' })
      socket.say({ op: 'subscribed', id, cursor: 'e.0', recovered: false })
      socket.activities(1, 1)
    },
  })
  await eventually(() => cursors.length === 1)
  expect([feed.subscriptions.length, feed.closed(), page.isConnected.value]).toEqual([3, 0, true])
})

test('a subscription that is wrong is not asked for again', async () => {
  const { feed } = subscribed({
    subscribed: (socket, { id }) => socket.say({ op: 'error', id, code: 'VALIDATION_ERROR', message: 'no such kind' }),
  })
  await eventually(() => feed.pings() >= 2)
  expect(feed.subscriptions.length).toBe(1)
})
