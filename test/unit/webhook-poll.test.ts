import { describe, expect, test } from 'bun:test'
import { type Activity, eventActivity, runActivity } from '../../src/feeds/live/activity.ts'
import type { FeedSource } from '../../src/feeds/live/feed-source.ts'
import { type Outlet, packetsOf } from '../../src/feeds/live/packet.ts'
import { Polls } from '../../src/feeds/webhooks/poll.ts'
import type { StoredWebhook } from '../../src/feeds/webhooks/schema.ts'
import type { Caller } from '../../src/tenants/keys/schema.ts'
import { runRef } from '../support/events.ts'
import { freshDatabase } from '../support/postgres.ts'
import { runRow } from '../support/rows.ts'

/** Polling where the partition has no owner, and in bounded time; otherwise see `test/http/webhook-poll.test.ts`. */

const { sql } = await freshDatabase()
const RUN = runRef()
const EPOCH = 'e'
const WEBHOOK = { webhook_id: RUN.runId, format: 'standard', filter: null, created_cursor: 'e.0' } as StoredWebhook

const at = (seq: number) => ({ epoch: EPOCH, seq, receivedAt: 0 })
const event = (seq: number): Activity =>
  eventActivity(at(seq), {
    ...{ agent_id: RUN.agentId, run_id: RUN.runId, event_id: 'E', type: `e${seq}`, level: 2, payload: '{}' },
    ...{ occurred_at: 0, task_id: null },
  })
const end = (seq: number): Activity => runActivity(at(seq), runRow(RUN, { status: 'completed' }))

/** A log whose hub does with each subscription what `feed` says. Its end is far away. */
function logOf(feed: (outlet: Outlet) => void) {
  const state = { position: 0, open: 0, retained: 0 }
  const subscription = { state: 'behind' }
  const hub = {
    subscribe({ outlet, afterSeq }: { outlet: Outlet; afterSeq: number }) {
      state.position = afterSeq
      state.open++
      subscription.state = 'behind'
      queueMicrotask(() => feed(outlet))
      return subscription
    },
    unsubscribe() {
      if (subscription.state !== 'ended') state.open--
      subscription.state = 'ended'
    },
    positionOf: () => state.position,
  }
  const source = {
    hub,
    journal: { epoch: EPOCH, endSeq: 1_000 },
    retentionFloorOf: () => 0,
    retain: () => {
      state.retained++
      return () => state.retained--
    },
  }
  const polls = new Polls({
    sql,
    partitions: { of: () => ({ owned: undefined }) } as never,
    feeds: { of: async () => source as unknown as FeedSource, opened: () => [] },
    publicUrl: undefined,
    patienceMs: 30,
  })
  const caller = { workspaceId: RUN.workspaceId, partition: 0 } as Caller
  const poll = async (limit: number, signal = new AbortController().signal) => {
    const { data, ...rest } = await polls.poll(caller, WEBHOOK, { limit }, signal)
    return { types: data.map((body) => (body.parse() as { type: string }).type), ...rest }
  }
  return { poll, state }
}

function sendAll(outlet: Outlet, items: readonly Activity[]): void {
  for (const packet of packetsOf(EPOCH, items)) outlet.send(packet)
}

describe('a poll', () => {
  test('without an owner ends before a run whose events are not counted yet', async () => {
    await sql`delete from journal_consumers`
    const log = logOf((outlet) => {
      sendAll(outlet, [event(1), end(2), event(3)])
      log.state.position = 9
      outlet.caughtUp()
    })
    expect(await log.poll(10)).toEqual({ types: ['e1'], iterator: 'e.1', done: false, gap: false })
    await sql`insert into journal_consumers (epoch, consumer, seq) values (${EPOCH}, 'run-statistics', 1)`
    expect(await log.poll(10)).toMatchObject({ types: ['e1'] })
    await sql`update journal_consumers set seq = 2`
    expect(await log.poll(10)).toEqual({
      types: ['e1', 'run.completed', 'e3'],
      iterator: 'e.9',
      done: true,
      gap: false,
    })
    expect(log.state).toMatchObject({ open: 0, retained: 0 })
  })

  test('that finds nothing in time says where to go on', async () => {
    const log = logOf(() => {
      log.state.position = 700
    })
    expect(await log.poll(10)).toEqual({ types: [], iterator: 'e.700', done: false, gap: false })
  })

  test('that gets no further in time is refused: another one would not get further, either', async () => {
    const log = logOf(() => {})
    const error: unknown = await log.poll(10).catch((failure: unknown) => failure)
    expect(error).toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 1 })
    expect(log.state).toMatchObject({ open: 0, retained: 0 })
  })

  test('takes no more than its limit, wherever packets end', async () => {
    const log = logOf((outlet) => sendAll(outlet, [event(1), event(2), event(5)]))
    expect(await log.poll(2)).toEqual({ types: ['e1', 'e2'], iterator: 'e.4', done: false, gap: false })
  })

  test('tells of a gap before its messages, and ends before one among them', async () => {
    const log = logOf((outlet) => {
      outlet.gap(0, 4)
      sendAll(outlet, [event(5)])
      outlet.gap(6, 8)
      sendAll(outlet, [event(9)])
      outlet.caughtUp()
    })
    expect(await log.poll(10)).toEqual({ types: ['e5'], iterator: 'e.6', done: false, gap: true })
  })

  test('ends with the request, and frees what it has used', async () => {
    const log = logOf(() => {})
    const request = new AbortController()
    const answer = log.poll(10, request.signal)
    request.abort(new Error('gone'))
    expect(answer).rejects.toThrow('gone')
    await answer.catch(() => {})
    expect(log.state).toMatchObject({ open: 0, retained: 0 })
  })

  test('is one of few at the same time', async () => {
    const log = logOf(() => {
      log.state.position = 1
    })
    const answers = await Promise.allSettled(Array.from({ length: 6 }, () => log.poll(1)))
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(4)
  })
})
