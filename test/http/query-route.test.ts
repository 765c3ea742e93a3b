import { beforeAll, expect, test } from 'bun:test'
import { Analytics } from '../../src/analytics/analytics.ts'
import { queryRoutes } from '../../src/analytics/routes.ts'
import { createLog } from '../../src/base/log.ts'
import { createEnvelope } from '../../src/http/envelope.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { LIMITS } from '../support/events.ts'
import { partitionWith } from '../support/partitions.ts'
import { atEnd } from '../support/teardown.ts'
import { authApp } from './auth-app.ts'

/** Keys, validation and envelope of the SQL endpoint. `query.test.ts` tests its results. */

let auth: Awaited<ReturnType<typeof authApp>>
let base: string

beforeAll(async () => {
  auth = await authApp()
  const { client } = await freshColumnarDatabase()
  const partitions = partitionWith({ sink: { epoch: 'e', loadedSeq: () => 3, waitFor: async () => true } })
  const app = createEnvelope({ log: createLog('silent'), limits: LIMITS })
    .use(queryRoutes({ guards: auth.guards, analytics: new Analytics(client, partitions), modelPrices: {} }))
    .listen({ port: 0, hostname: '127.0.0.1' })
  atEnd(() => app.stop(true))
  base = `http://127.0.0.1:${app.server!.port}/api/v1/query`
})

test('a workspace key gets the result in the envelope', async () => {
  const { status, body } = await post({ query: 'select {n:UInt8} + 1 as n', params: { n: 1 } })
  expect(status).toBe(200)
  expect(body).toEqual({
    data: {
      columns: [{ name: 'n', type: 'UInt16' }],
      rows: [{ n: 2 }],
      row_count: 1,
      truncated: false,
      statistics: { elapsed_ms: expect.any(Number), rows_read: 1, bytes_read: expect.any(Number) },
      complete_through: 'e.3',
    },
    error: null,
  })
})

test('an invalid key is 401 and an agent key is 403', async () => {
  expect((await post({ query: 'select 1' }, 'svc_ws_nonsense')).body.error.code).toBe('UNAUTHENTICATED')
  const { key } = await auth.newAgentKey(await auth.newAgent())
  expect((await post({ query: 'select 1' }, key)).body.error.code).toBe('FORBIDDEN')
})

test.each([
  [{}, 'query'],
  [{ query: '' }, 'query'],
  [{ query: 5 }, 'query'],
  [{ query: 'select 1', limit: 5 }, 'limit'],
  [{ query: 'select 1', format: 'xml' }, 'json'],
  [{ query: 'select 1', params: { 'a b': 1 } }, 'params'],
  [{ query: 'select 1', params: { a: { b: 1 } } }, 'params'],
  [{ query: 'select 1', wait_for: -1 }, 'wait_for'],
  [{ query: 'select 1', wait_for: 'other.3' }, 'wait_for'],
  [{ query: 'select * from system.tables' }, 'system.tables'],
  [{ query: 'select nope' }, 'nope'],
  [{ query: 'drop table events' }, 'only SELECT'],
])('%j is a VALIDATION_ERROR, naming the problem', async (request, problem) => {
  const { status, body } = await post(request)
  expect(status).toBe(400)
  expect(body).toMatchObject({ data: null, error: { code: 'VALIDATION_ERROR' } })
  expect(body.error.message).toContain(problem)
})

async function post(request: object, key = auth.owner.key) {
  const response = await fetch(base, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(request),
  })
  return { status: response.status, body: JSON.parse(await response.text()) }
}
