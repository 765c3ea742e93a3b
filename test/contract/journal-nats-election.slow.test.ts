import { expect, test } from 'bun:test'
import { closedAfterEach } from '../support/closed-after-each.ts'
import { eventually } from '../support/eventually.ts'
import { appendMarks, marksAfter, NatsRig } from '../support/journals.ts'
import { hasNats, laggingLeader, natsConnection, natsServer, restartedServer } from '../support/nats.ts'

const track = closedAfterEach()

test.skipIf(!hasNats).each([1, 2, 3, 8])(
  'continues after the newest message although the leader lacks it in %i answers',
  async (answers) => {
    const server = await natsServer()
    const rig = new NatsRig(await natsConnection([server]), 1, track)
    const first = await rig.open()
    for (let mark = 1; mark <= 5; mark++) await appendMarks(first, [mark])
    await first.close()
    const next = await rig.open({ nc: laggingLeader(await natsConnection([server]), rig.stream, answers) })
    expect(await appendMarks(next, [6])).toEqual({ firstSeq: 6, lastSeq: 6 })
    const reader = await rig.read()
    for (const each of [next, reader]) expect(await positionsOf(each)).toEqual([1, 2, 3, 4, 5, 6])
    expect([rig.gaps, rig.errors]).toEqual([[], []])
  },
)

test.skipIf(!hasNats)('a reader waits for a leader that lacks what was read, and finds no damage', async () => {
  const server = await natsServer()
  const rig = new NatsRig(await natsConnection([server]), 1, track)
  const journal = await rig.open()
  for (let mark = 1; mark <= 3; mark++) await appendMarks(journal, [mark])
  // Opening a reader asks three times about the stream.
  const lagging = async () => laggingLeader(await natsConnection([server]), rig.stream, 8, 3)
  const patient = await rig.read({ nc: await lagging() })
  const impatient = await rig.read({ nc: await lagging(), behindMaxMs: 1 })
  expect([patient.endSeq, impatient.endSeq]).toEqual([3, 3])
  // It has read the stream again from its beginning.
  await eventually(() => rig.errors.length > 0)
  await appendMarks(journal, [4])
  for (const reader of [patient, impatient]) {
    await eventually(() => reader.endSeq === 4)
    expect([...(await marksAfter(reader))]).toEqual([1, 2, 3, 4].map((mark) => [mark, mark]))
  }
  expect([rig.gaps, rig.errors]).toEqual([[], [expect.stringContaining('set back')]])
})

test.skipIf(!hasNats)(
  'a reader does not take the stream of a server that has just started for another one',
  async () => {
    const server = await natsServer()
    const rig = new NatsRig(await natsConnection([server]), 1, track)
    const journal = await rig.open()
    for (let mark = 1; mark <= 3; mark++) await appendMarks(journal, [mark])
    let infos = 0
    const reader = await rig.read({
      nc: restartedServer(await natsConnection([server]), rig.stream, 2, 3, () => infos++),
    })
    await eventually(() => infos > 7)
    await appendMarks(journal, [4])
    await eventually(() => reader.endSeq === 4)
    expect(await positionsOf(reader)).toEqual([1, 2, 3, 4])
    expect([rig.gaps, rig.errors]).toEqual([[], []])
  },
)

async function positionsOf(journal: Parameters<typeof marksAfter>[0]): Promise<number[]> {
  return [...(await marksAfter(journal)).keys()]
}
