import { expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import type { Activity } from '../../src/feeds/live/activity.ts'
import type { Subscription } from '../../src/feeds/live/channel.ts'
import type { FeedSource } from '../../src/feeds/live/feed-source.ts'
import { type Outlet, packetsOf } from '../../src/feeds/live/packet.ts'
import type { AttemptResults } from '../../src/feeds/webhooks/delivery/attempt-results.ts'
import { Endpoint } from '../../src/feeds/webhooks/delivery/endpoint.ts'
import type { ActiveWebhook } from '../../src/feeds/webhooks/delivery/positions.ts'
import { Running, type Shared } from '../../src/feeds/webhooks/delivery/running.ts'
import { SCHEDULE } from '../../src/feeds/webhooks/delivery/schedule.ts'
import { Slots } from '../../src/feeds/webhooks/delivery/slots.ts'
import type { Message } from '../../src/feeds/webhooks/message.ts'
import type { StoredWebhook } from '../../src/feeds/webhooks/schema.ts'
import type { OwnedPartition } from '../../src/tenants/partitions/partition.ts'
import { eventually } from '../support/eventually.ts'

/** What goes wrong with one message, or in one endpoint, holds up nothing else (docs/webhooks.md#deliveries). */

const OK = { isSuccess: true, httpStatus: 200, durationMs: 1, response: null, retryAfterMs: 0 }
const log = createLog('silent')

function activity(seq: number): Activity {
  return { seq, kind: 'event', text: '{}', endsRun: false, isRecount: false }
}

test('a message that can never be sent is a failed delivery that says why, also where all others wait for it', async () => {
  const sent: number[] = []
  const stored: AttemptResults[] = []
  const messageOf = ({ seq }: Activity): Message => ({
    ...{ deliveryId: `msg_${seq}`, type: 'note', seq, runId: null, timestamp: '', body: '{}' },
    ...(seq === 2 && { problem: 'no message can be made of it' }),
  })
  const endpoint = new Endpoint(
    {
      ...{ webhookId: 'w', workspaceId: 'workspace', isStrict: true, rowsMax: 10, log, schedule: SCHEDULE },
      attempt: async ({ seq }) => {
        sent.push(seq)
        return OK
      },
      messagesOf: async (activities) => activities.map(messageOf),
      store: async (results) => {
        stored.push(results)
        return []
      },
      gather: () => Promise.resolve(),
      slots: new Slots(),
      clock: { now: () => Date.now() },
      random: () => 0.5,
      onAttempt: () => {},
      onDue: () => {},
    },
    { failingSince: null, failingMs: 0, succeededAt: null, failedAt: null, rows: [] },
  )
  let outlet: Outlet | undefined
  const hub = {
    subscribe: (options: { outlet: Outlet }) => {
      outlet = options.outlet
      return {} as Subscription
    },
    ...{ unsubscribe() {}, resume() {}, positionOf: () => 3 },
  }
  const intake = endpoint.sources.open({
    ...{ hub, workspaceId: 'workspace', filter: { kinds: new Set(), key: '' }, afterSeq: 0, isWanted: () => true },
    ...{ lengthMax: () => 1_000_000, onGap() {}, onFailure() {} },
  })
  for (const packet of packetsOf('e', [1, 2, 3].map(activity))) outlet!.send(packet)
  await eventually(() => intake.position === 3)
  expect(sent).toEqual([1, 3])
  const [failed] = stored.flatMap(({ attempts }) => attempts).filter(({ status }) => status !== 'succeeded')
  expect(failed).toMatchObject({ activity_seq: 2, status: 'failed', response: 'no message can be made of it' })
  expect(stored.flatMap(({ rows }) => rows)).toEqual([])
  // It says nothing about the receiver.
  expect(endpoint.health.failingSince).toBeNull()
  await endpoint.stop(0)
})

test('an endpoint that throws in a round ends it for no other: it is started again', async () => {
  let subscriptions = 0
  let hasClock = true
  const now = () => {
    if (hasClock) return Date.now()
    throw new Error('no time')
  }
  const hub = {
    subscribe() {
      if (++subscriptions > 2) throw new Error('too many filters')
      return {} as Subscription
    },
    ...{ unsubscribe() {}, resume() {}, positionOf: () => 0 },
  }
  const journal = { epoch: 'e', endSeq: 9 }
  const source = { hub, journal, retain: () => () => {}, retentionFloorOf: () => 0 } as unknown as FeedSource
  const shared = {
    ...{ log, clock: { now }, slots: new Slots(), schedule: SCHEDULE, rowsMax: 10, timeoutMs: 1 },
    ...{ slice: { of: () => ({ isOver: false }) }, vault: { open: () => null }, retries: { keys: async () => [] } },
    ...{ queueLengthMax: () => 1_000, onAttempt() {}, onChange() {}, wake() {} },
  } as unknown as Shared
  const webhook = {
    ...{
      webhook_id: 'w',
      workspace_id: 'workspace',
      epoch: 'e',
      position: 0,
      filter: null,
      ordering: 'run',
      format: 'standard',
    },
    ...{
      url: 'https://a.example',
      secret: Buffer.alloc(32),
      key_id: '',
      previous_secrets: null,
      failing_ms: 0,
      signing: 'v1',
    },
    ...{ failing_since: null, succeeded_at: null, failed_at: null },
  } as unknown as StoredWebhook
  const start = () => Running.start(shared, webhook, { owned: { id: 0 } as OwnedPartition, source })
  const [running, withDue] = [await start(), await start()]
  running.tick({ recover_position: 1, recover_until: 5 } as ActiveWebhook)
  hasClock = false
  withDue.addDue([], false)
  expect([running.isBroken, withDue.isBroken]).toEqual([true, true])
  await Promise.all([running.stop(), withDue.stop()])
})
