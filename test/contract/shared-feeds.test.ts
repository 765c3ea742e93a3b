import { describe, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { newEpoch } from '../../src/stores/journal/journal.ts'
import { SharedFeeds } from '../../src/tenants/partitions/shared/feeds.ts'
import { appendMarks, NatsRig } from '../support/journals.ts'
import { hasNats, natsConnection, natsServer } from '../support/nats.ts'
import { replaceStream } from '../support/stream-damage.ts'

describe.skipIf(!hasNats)('the logs that a node reads for feeds', () => {
  test('what was read stays known when the stream is set back', async () => {
    const rig = new NatsRig(await natsConnection([await natsServer()]))
    const journal = await rig.open()
    for (let mark = 1; mark <= 3; mark++) await appendMarks(journal, [mark])
    const feeds = new SharedFeeds({
      openReader: () => rig.read(),
      openSource: async (_, life) => ({ ...life, hub: { stop: async () => {} } }),
      log: createLog('silent'),
    })
    const { epoch } = journal
    expect(feeds.seenSeq(0, epoch)).toBe(0)
    expect(await feeds.endSeq(0)).toBe(3)
    await journal.close()
    await replaceStream(rig, (stored) => stored.slice(0, -1))
    expect([feeds.seenSeq(0, epoch), feeds.seenSeq(0, newEpoch()), feeds.seenSeq(1, epoch)]).toEqual([3, 0, 0])
    await feeds.stop()
  })
})
