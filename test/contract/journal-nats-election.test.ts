import { expect, test } from 'bun:test'
import { appendMarks, marksAfter, NatsRig } from '../support/journals.ts'
import { hasNats, laggingLeader, natsConnection, natsServer } from '../support/nats.ts'

test.skipIf(!hasNats).each([1, 2, 3, 8])(
  'continues after the newest message although the leader lacks it in %i answers',
  async (answers) => {
    const server = await natsServer()
    const rig = new NatsRig(await natsConnection([server]))
    const first = await rig.open()
    for (let mark = 1; mark <= 5; mark++) await appendMarks(first, [mark])
    await first.close()
    const next = await rig.open({ nc: laggingLeader(await natsConnection([server]), rig.stream, answers) })
    expect(await appendMarks(next, [6])).toEqual({ firstSeq: 6, lastSeq: 6 })
    const reader = await rig.read()
    for (const each of [next, reader]) expect(await positionsOf(each)).toEqual([1, 2, 3, 4, 5, 6])
    expect([rig.gaps, rig.errors]).toEqual([[], []])
    await reader.close()
    await next.close()
  },
)

async function positionsOf(journal: Parameters<typeof marksAfter>[0]): Promise<number[]> {
  return [...(await marksAfter(journal)).keys()]
}
