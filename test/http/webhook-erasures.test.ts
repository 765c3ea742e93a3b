import { beforeAll, expect, test } from 'bun:test'
import type { Sql } from '../../src/stores/postgres/connect.ts'
import { eventually } from '../support/eventually.ts'
import { newReporter, newTenant } from '../support/feeds.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { createWebhook, type Received, startReceiver } from '../support/webhooks.ts'

/** Endpoints go on when what they are to send again is deleted (docs/webhooks.md#deliveries). */

/** Longer than a test: what has failed waits. */
const RETRY_MS = 600_000

let service: TestService
let sql: Sql

beforeAll(async () => {
  const database = await freshDatabase()
  sql = database.sql
  const webhooks = { schedule: { delaysMs: [RETRY_MS], disableAfterMs: 60_000 }, intervalMs: 20 }
  service = await startTestService({ EGRESS_ALLOW: '127.0.0.1', DATABASE_URL: database.url }, { webhooks })
})

/** What a message says of itself: the type of its event, or the comment of its score. */
const markOf = ({ body }: Pick<Received, 'body'>): string => body.data.event?.type ?? body.data.score?.comment
const isBad = (message: Received) => markOf(message).startsWith('bad')
const failed = () => new Response('not now', { status: 500 })

async function rig(answer: (message: Received) => Response | undefined | Promise<Response | undefined>, more: object) {
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  const receiver = startReceiver(answer)
  const webhookId = await createWebhook(tenant, receiver, more)
  const { api } = tenant
  return {
    agent,
    report: (run_id: string, type: string) => agent.events(run_id, [{ type }]),
    score: (run_id: string, id: string, comment: string) =>
      api('POST', '/api/ingest/v1/scores', { scores: [{ run_id, id, name: 'good', value: 1, comment }] }),
    remove: async (path: string) => {
      const { status, data } = await api('DELETE', `/api/v1/runs/${path}`)
      expect(status).toBe(202)
      return () =>
        eventually(async () => (await api('GET', `/api/v1/erasures/${data.erasure_id}`)).data.status === 'done', {
          timeoutMs: 60_000,
        })
    },
    marks: () => receiver.received.map(markOf),
    rows: async () => {
      const rows = await sql<{ body: string }[]>`
        select body from webhook_retries where webhook_id = ${webhookId} order by seq`
      return rows.map(({ body }) => markOf({ body: JSON.parse(body) }))
    },
  }
}

const EVENTS = { filter: { kind: 'event' } }
const EVENTS_AND_SCORES = { filter: { kind: ['event', 'score'] } }

test('a strict endpoint goes on when the run whose delivery it repeats is deleted', async () => {
  const { agent, report, remove, marks, rows } = await rig((message) => (isBad(message) ? failed() : undefined), {
    ...EVENTS,
    order: 'strict',
  })
  const [deleted, kept] = [await agent.start(), await agent.start()]
  await report(deleted, 'bad')
  await agent.end(deleted)
  await eventually(async () => (await rows()).length === 1)
  await report(kept, 'waits')
  await remove(deleted)
  await eventually(() => marks().includes('waits'))
  expect(marks()).toEqual(['bad', 'waits'])
})

test('a strict endpoint goes on when the run is deleted during an attempt that fails', async () => {
  const answer = Promise.withResolvers<void>()
  const answers = (message: Received) => (isBad(message) ? answer.promise.then(failed) : undefined)
  const { agent, report, remove, marks, rows } = await rig(answers, { ...EVENTS, order: 'strict' })
  const [deleted, kept] = [await agent.start(), await agent.start()]
  await report(deleted, 'bad')
  await agent.end(deleted)
  await eventually(() => marks().length === 1)
  await remove(deleted)
  await report(kept, 'waits')
  answer.resolve()
  await eventually(() => marks().includes('waits'))
  expect(await rows()).toEqual([])
})

test('deliveries that waited behind a deleted score are made, and those after them', async () => {
  const { agent, report, score, remove, marks, rows } = await rig(
    (message) => (isBad(message) ? failed() : undefined),
    EVENTS_AND_SCORES,
  )
  const run_id = await agent.start()
  await score(run_id, 'gone', 'bad score')
  await eventually(async () => (await rows()).length === 1)
  await report(run_id, 'first')
  await eventually(async () => (await rows()).length === 2)
  const isDone = await remove(`${run_id}/scores/gone`)
  await eventually(() => marks().includes('first'), { timeoutMs: 60_000 })
  await report(run_id, 'second')
  await eventually(() => marks().includes('second'))
  await isDone()
  expect(marks()).toEqual(['bad score', 'first', 'second'])
  expect(await rows()).toEqual([])
})

test('an attempt to send a score that fails after its deletion leaves nothing to repeat', async () => {
  const answer = Promise.withResolvers<void>()
  const answers = (message: Received) => (isBad(message) ? answer.promise.then(failed) : undefined)
  const { agent, report, score, remove, marks, rows } = await rig(answers, EVENTS_AND_SCORES)
  const run_id = await agent.start()
  await score(run_id, 'gone', 'bad score')
  await eventually(() => marks().length === 1)
  const isDone = await remove(`${run_id}/scores/gone`)
  await report(run_id, 'waits')
  await isDone()
  answer.resolve()
  await eventually(() => marks().includes('waits'))
  expect(await rows()).toEqual([])
})
