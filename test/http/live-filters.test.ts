import { beforeAll, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { gauge, LiveSocket, LiveStream, newReporter, newTenant, type Tenant } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** The limit on distinct filters of the open feeds of a workspace. */

const MAX = 3
const MESSAGE = `the open feeds of a workspace may use at most ${MAX} distinct filters`

let service: TestService
let tenant: Tenant

beforeAll(async () => {
  service = await startTestService({}, { bounds: { feeds: { filtersPerWorkspace: MAX } } })
  tenant = await newTenant(service)
})

test('rejects a distinct filter over the limit on both protocols, but not equal ones or other workspaces', async () => {
  const socket = await LiveSocket.open(tenant)
  for (const type of ['a', 'b']) await socket.subscribe(type, { filter: { type } })
  const stream = await LiveStream.open(tenant, '/api/v1/stream?type=c')
  expect(stream.status).toBe(200)
  expect(await gauge(service, 'feed_filters')).toBe(MAX)

  const [rejected] = await socket.ask({ op: 'subscribe', id: 'd', filter: { type: 'd' } })
  expect(rejected).toMatchObject({ op: 'error', id: 'd', code: 'RATE_LIMITED', message: MESSAGE })
  const answer = await tenant.api('GET', '/api/v1/stream?type=d')
  expect([answer.status, answer.error]).toMatchObject([429, { code: 'RATE_LIMITED', message: MESSAGE }])
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await gauge(service, 'feed_connections')).toBe(2)

  await socket.subscribe('a again', { filter: { type: ['a', 'a'] } })
  const other = await newTenant(service)
  const another = await LiveSocket.open(other)
  await another.subscribe('d', { filter: { type: 'd' } })
  const agent = await newReporter(tenant.api)
  await agent.events(await agent.start(), [{ type: 'a' }, { type: 'c' }, { type: 'd' }])
  await socket.until(() => socket.items('a').length === 1 && socket.items('a again').length === 1)
  await stream.until(() => stream.items.length === 1)

  await socket.ask({ op: 'unsubscribe', id: 'b' })
  await socket.subscribe('d', { filter: { type: 'd' } })
  await stream.close()
  await eventually(async () => (await gauge(service, 'feed_filters')) === MAX)
  await socket.subscribe('e', { filter: { type: 'e' } })
  expect(socket.items('d')).toEqual([])
  await Promise.all([socket.close(), another.close()])
  await eventually(async () => (await gauge(service, 'feed_filters')) === 0)
})
