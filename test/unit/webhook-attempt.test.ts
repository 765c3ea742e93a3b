import { expect, test } from 'bun:test'
import { attempt } from '../../src/feeds/webhooks/delivery/attempt.ts'
import { newSecret } from '../../src/feeds/webhooks/signature.ts'
import { parseEgressAllow } from '../../src/outbound/egress/allow-list.ts'
import { createEgress } from '../../src/outbound/egress/egress.ts'
import { atEnd } from '../support/teardown.ts'

test('an attempt at a receiver that is too slow ends, and says so', async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Promise<Response>(() => {}) })
  atEnd(() => server.stop(true))
  const egress = createEgress({ allow: parseEgressAllow('127.0.0.1') })
  const keys = { signing: 'v1', secret: newSecret('v1').secret, previous: [] } as const
  const message = { deliveryId: 'msg_1', body: '{}' }
  const post = { url: server.url.href, keys, message, at: Date.now(), signal: new AbortController().signal }
  expect(await attempt(egress, post, 100)).toMatchObject({
    ...{ isSuccess: false, httpStatus: null, response: '127.0.0.1 did not answer within 0.1 s', retryAfterMs: 0 },
  })
})
