import { expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import type { Activity } from '../../src/feeds/live/activity.ts'
import type { Subscription } from '../../src/feeds/live/channel.ts'
import { Packet } from '../../src/feeds/live/packet.ts'
import type { Intake } from '../../src/feeds/webhooks/delivery/intake.ts'
import { Sources } from '../../src/feeds/webhooks/delivery/sources.ts'
import type { Message } from '../../src/feeds/webhooks/message.ts'
import { eventually } from '../support/eventually.ts'

/** What waits in memory for one endpoint (docs/webhooks.md#deliveries). */

const LENGTH_MAX = 512 * 1024
const BODY = 'x'.repeat(20 * 1024)

function activity(seq: number): Activity {
  return { seq, kind: 'run', text: '{}', endsRun: true, isRecount: false }
}

function message(seq: number): Message {
  return { deliveryId: `msg_${seq}`, type: 'run.completed', seq, runId: null, timestamp: '', body: BODY }
}

function rig(lengthMax: number) {
  const built: number[] = []
  const sources = new Sources({
    webhookId: '',
    messagesOf: async (activities) => activities.map(({ seq }) => message(seq)),
    add: ({ seq }) => built.push(seq),
    onMessages: () => {},
    log: createLog('silent'),
  })
  const intake: Intake = sources.open({
    hub: {
      subscribe: () => ({}) as Subscription,
      unsubscribe: () => {},
      resume: () => {},
      positionOf: () => 0,
    },
    workspaceId: '',
    filter: { kinds: new Set(), key: '' },
    afterSeq: 0,
    isWanted: () => true,
    onGap: () => {},
    onFailure: () => {},
    lengthMax: () => lengthMax,
  })
  return { sources, intake, built }
}

test.each([LENGTH_MAX, 1])('messages longer than their activities wait until others are delivered: %d', async (max) => {
  const { sources, intake, built } = rig(max)
  const items = Array.from({ length: 400 }, (_, index) => activity(index + 1))
  expect(intake.send(new Packet('epoch', items, 800))).toBe(true)
  await sources.build()
  const settled = () => eventually(() => !intake.mayBuild)
  await settled()
  expect(built.length * BODY.length).toBeLessThanOrEqual(max + 50 * BODY.length)
  for (let done = 0; done < 400; done++) {
    expect(built.length).toBeGreaterThan(done)
    intake.finish(built[done]!)
    if (intake.mayBuild) await sources.build()
  }
  expect(built).toEqual(items.map(({ seq }) => seq))
})
