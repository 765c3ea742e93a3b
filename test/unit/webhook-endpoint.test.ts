import { expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import type { Activity } from '../../src/feeds/live/activity.ts'
import type { Subscription } from '../../src/feeds/live/channel.ts'
import type { FeedSource } from '../../src/feeds/live/feed-source.ts'
import { type Outlet, packetsOf } from '../../src/feeds/live/packet.ts'
import type { Outcome } from '../../src/feeds/webhooks/delivery/attempt.ts'
import type { AttemptResults } from '../../src/feeds/webhooks/delivery/attempt-results.ts'
import { Endpoint, type Place } from '../../src/feeds/webhooks/delivery/endpoint.ts'
import type { ActiveWebhook } from '../../src/feeds/webhooks/delivery/positions.ts'
import { SCHEDULE } from '../../src/feeds/webhooks/delivery/schedule.ts'
import { Slots } from '../../src/feeds/webhooks/delivery/slots.ts'
import { type Shared, startEndpoint } from '../../src/feeds/webhooks/delivery/start-endpoint.ts'
import { move } from '../../src/feeds/webhooks/delivery/states.ts'
import type { Message } from '../../src/feeds/webhooks/message.ts'
import type { StoredWebhook } from '../../src/feeds/webhooks/schema.ts'
import type { OwnedPartition } from '../../src/tenants/partitions/partition.ts'
import { eventually } from '../support/eventually.ts'

/** The states of an endpoint, and what it holds up (docs/webhooks.md#deliveries). */

const OK = { isSuccess: true, httpStatus: 200, durationMs: 1, response: null, retryAfterMs: 0 }
const GONE = { ...OK, isSuccess: false, httpStatus: 410 }
const LENGTH_MAX = 512 * 1024
const NOTHING = { recover_position: null, recover_until: null }
const log = createLog('silent')
const stored = {
  ...{ webhook_id: 'w', workspace_id: 'workspace', epoch: 'e', position: 0, filter: null, ordering: 'run' },
  ...{ format: 'standard', url: 'https://a.example', secret: Buffer.alloc(32), key_id: '', previous_secrets: null },
  ...{ failing_ms: 0, signing: 'v1', failing_since: null, succeeded_at: null, failed_at: null },
} as unknown as StoredWebhook

function activity(seq: number): Activity {
  return { seq, kind: 'event', text: '{}', endsRun: false, isRecount: false }
}

function messageOf({ seq }: Activity, body = '{}'): Message {
  return { deliveryId: `msg_${seq}`, type: 'note', seq, runId: null, timestamp: '', body }
}

interface RigOptions {
  readonly attempt: (message: Message) => Promise<Outcome>
  readonly webhook?: Partial<StoredWebhook>
  readonly messageOf?: (activity: Activity) => Message
  readonly lengthMax?: number
  readonly now?: () => number
}

/** An endpoint whose log has `send` what it reads. */
function rig({ attempt, webhook, messageOf: message = messageOf, lengthMax = LENGTH_MAX, now = Date.now }: RigOptions) {
  const written: AttemptResults[] = []
  let outlet: Outlet | undefined
  let position = 0
  let breakOff: (() => void) | undefined
  const hub = {
    subscribe: (options: { outlet: Outlet }) => {
      outlet = options.outlet
      return {} as Subscription
    },
    ...{ unsubscribe() {}, resume() {}, positionOf: () => position },
  }
  const retain = (onEnd: () => void) => {
    breakOff = onEnd
    return () => {}
  }
  const source = { hub, retain, journal: { endSeq: 0 } } as unknown as FeedSource
  const endpoint = new Endpoint(
    {
      ...{ rowsMax: 10, log, schedule: SCHEDULE, attempt, slots: new Slots(), clock: { now }, random: () => 0.5 },
      messagesOf: async (activities) => activities.map((each) => message(each)),
      store: async (results) => {
        written.push(results)
        return []
      },
      gather: () => Promise.resolve(),
      queueLengthMax: () => lengthMax,
      onAttempt: () => {},
      wake: () => {},
    },
    { ...stored, ...webhook },
    { source, owned: {} } as Place,
    { rows: [], afterSeq: 0 },
  )
  return {
    ...{ endpoint, written, breakOff: () => breakOff!() },
    send(...seqs: number[]) {
      for (const packet of packetsOf('e', seqs.map(activity))) if (outlet!.send(packet)) position = packet.lastSeq
    },
  }
}

test('a message that can never be sent is a failed delivery that says why, also where all others wait for it', async () => {
  const sent: number[] = []
  const { endpoint, written, send } = rig({
    webhook: { ordering: 'strict' },
    attempt: async ({ seq }) => {
      sent.push(seq)
      return OK
    },
    messageOf: (each) => ({
      ...messageOf(each),
      ...(each.seq === 2 && { problem: 'no message can be made of it' }),
    }),
  })
  send(1, 2, 3)
  await eventually(() => endpoint.progress().position === 3)
  expect(sent).toEqual([1, 3])
  const [failed] = written.flatMap(({ attempts }) => attempts).filter(({ status }) => status !== 'succeeded')
  expect(failed).toMatchObject({ activity_seq: 2, status: 'failed', response: 'no message can be made of it' })
  expect(written.flatMap(({ rows }) => rows)).toEqual([])
  // It says nothing about the receiver.
  expect(endpoint.progress().failingSince).toBeNull()
  await endpoint.stop(0)
})

test.each([LENGTH_MAX, 1])('messages longer than their activities wait until others are delivered: %d', async (max) => {
  const body = 'x'.repeat(20 * 1024)
  const built: number[] = []
  const answers: (() => void)[] = []
  const { endpoint, send } = rig({
    lengthMax: max,
    attempt: () => new Promise((resolve) => answers.push(() => resolve(OK))),
    messageOf: (each) => {
      built.push(each.seq)
      return messageOf(each, body)
    },
  })
  const seqs = Array.from({ length: 400 }, (_, index) => index + 1)
  send(...seqs)
  for (let done = 0; done < 400; done++) {
    await eventually(() => answers.length > done)
    expect((built.length - done) * body.length).toBeLessThanOrEqual(max + 50 * body.length)
    answers[done]!()
  }
  await eventually(() => endpoint.progress().position === 400)
  expect(built).toEqual(seqs)
  await endpoint.stop(0)
})

test('an endpoint makes only the moves of its table, and begins attempts only while it delivers', async () => {
  expect(() => move('disabled', 'delivering')).toThrow('an endpoint moves from disabled to delivering')
  const sent: number[] = []
  const { endpoint, written, send, breakOff } = rig({
    attempt: async ({ seq }) => {
      sent.push(seq)
      return GONE
    },
    webhook: { ordering: 'strict' },
  })
  expect(endpoint.state).toBe('delivering')
  send(1)
  await eventually(() => endpoint.state === 'disabled')
  send(2)
  endpoint.tick(NOTHING)
  await eventually(() => written.some(({ disabledBecause }) => disabledBecause !== null))
  breakOff()
  breakOff()
  expect(endpoint.state).toBe('broken')
  endpoint.tick(NOTHING)
  await endpoint.stop(0)
  breakOff()
  expect(endpoint.state).toBe('stopping')
  expect(sent).toEqual([1])
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
  const start = () => startEndpoint(shared, stored, { owned: { id: 0 } as OwnedPartition, source })
  const [endpoint, withDue] = [await start(), await start()]
  endpoint.tick({ recover_position: 1, recover_until: 5 } as ActiveWebhook)
  hasClock = false
  withDue.addDue([], false)
  expect([endpoint.state, withDue.state]).toEqual(['broken', 'broken'])
  await Promise.all([endpoint.stop(), withDue.stop()])
})

test('an endpoint that throws when an attempt of it has ended breaks alone', async () => {
  let isAnswered = false
  const { endpoint, send } = rig({
    now: () => {
      if (isAnswered) throw new Error('no time')
      return Date.now()
    },
    attempt: async () => {
      isAnswered = true
      return OK
    },
  })
  send(1)
  await eventually(() => endpoint.state === 'broken')
  await endpoint.stop(0)
})

test('a pause that a receiver asks for ends although the clock is set back', async () => {
  let setBackMs = 0
  const sent: number[] = []
  const { endpoint, send } = rig({
    now: () => Date.now() - setBackMs,
    attempt: async ({ seq }) => {
      sent.push(seq)
      return { ...OK, isSuccess: false, httpStatus: 429, retryAfterMs: 30 }
    },
  })
  send(1)
  await eventually(() => sent.length === 1)
  setBackMs = 3_600_000
  send(2)
  await eventually(() => {
    endpoint.tick(NOTHING as ActiveWebhook)
    return sent.length === 2
  })
  await endpoint.stop(0)
})
