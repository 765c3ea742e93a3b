import { afterEach, expect, test } from 'bun:test'
import { headers } from '@nats-io/transport-node'
import { createLog } from '../../src/base/log.ts'
import { encodeCursor } from '../../src/stores/journal/cursor.ts'
import { newEpoch } from '../../src/stores/journal/journal.ts'
import { KINDS } from '../../src/stores/journal/kinds.ts'
import { type NatsJournalOptions, openNatsJournal } from '../../src/stores/journal/nats/journal.ts'
import { hasHead, NO_OUTBOX, readHead, writeHead } from '../../src/stores/journal/nats/message.ts'
import { openNatsReader } from '../../src/stores/journal/nats/reader.ts'
import { Stream } from '../../src/stores/journal/nats/stream.ts'
import { Sink } from '../../src/stores/sink/sink.ts'
import { SharedFeeds } from '../../src/tenants/partitions/shared/feeds.ts'
import { MemoryPosition, MemoryTable, rowsOf } from '../sim/stores.ts'
import { type Fate, MemoryStream } from '../sim/stream.ts'
import { closedAfterEach } from '../support/closed-after-each.ts'
import { framesAfter } from '../support/journals.ts'
import { deliveryRow } from '../support/rows.ts'

/** Faults of NATS that real servers show only at rare moments, on a stream in memory. */

const WORKSPACE = Bun.randomUUIDv7()
const EPOCH = { epoch: newEpoch(), firstSeq: 1 }
const log = createLog('silent')
const NEVER_FAILS = { delay: async () => {}, failsBefore: () => false, failsAfter: () => false }

const track = closedAfterEach()
let restore = () => {}
afterEach(() => restore())

function newStream(partBytes?: number): MemoryStream {
  const stream = new MemoryStream(partBytes)
  restore = stream.replaceReal(Stream)
  return stream
}

const common = { nc: undefined as never, stream: 'j', subject: 'j', sealKey: Buffer.alloc(32, 7), epochs: [EPOCH], log }

async function openOwner(generation: number, lost: string[] = [], decideStart?: NatsJournalOptions['decideStart']) {
  const journal = await openNatsJournal({
    ...common,
    ...{ maxBytes: 2 ** 40, keepBytes: 2 ** 40, replicas: 3, generation, settleMs: 2_000, clock: Date },
    onLost: (reason) => lost.push(reason),
    beginEpoch: async (firstSeq) => ({ epoch: newEpoch(), firstSeq }),
    ...(decideStart && { decideStart }),
  })
  return track(journal)
}

type Owner = Awaited<ReturnType<typeof openOwner>>

/** @returns its position, or the code with which it is refused */
const append = (journal: Owner, id: string, response = 'ok') =>
  journal.appendDeliveries([deliveryRow(WORKSPACE, { delivery_id: id, response })]).then(
    ({ firstSeq }) => firstSeq,
    (error: { code?: string }) => error.code,
  )

async function storedIds(): Promise<string[]> {
  const reader = track(await openNatsReader(common))
  expect(reader.gaps).toEqual([])
  return (await framesAfter(reader)).flatMap(({ block, kind }) => rowsOf(block, KINDS[kind].rows).map(({ id }) => id))
}

test('a commit that was stored in silence and then refused as full does not take the place of the next one', async () => {
  const stream = newStream()
  const lost: string[] = []
  const journal = await openOwner(1, lost)
  expect(await append(journal, 'A')).toBe(1)
  const fates: Fate[] = ['unanswered']
  stream.faults = {
    ...stream.faults,
    fateOf: () => {
      const fate = fates.shift() ?? 'stored'
      // The servers that are asked again are over their limit, which they check before the id.
      stream.isFull = fate === 'stored'
      return fate
    },
  }
  expect(await append(journal, 'B')).toBe('UNAVAILABLE')
  stream.faults = { ...stream.faults, fateOf: () => 'stored' }
  stream.isFull = false
  // Nobody knows whether B is stored, so this owner has lost the log.
  expect(await append(journal, 'C')).toBe('UNAVAILABLE')
  expect(lost).toEqual(['a refused group is unsettled'])
  const next = await openOwner(2)
  expect([await append(next, 'C'), await append(next, 'D')]).toEqual([3, 4])
  expect(await storedIds()).toEqual(['A', 'B', 'C', 'D'])
})

test('two messages that an owner makes for the same place have different ids', async () => {
  const stream = newStream()
  const journal = await openOwner(1)
  stream.isFull = true
  const ids: string[] = []
  const fateOf = ({ id }: { readonly id: string }): Fate => {
    ids.push(id)
    return 'stored'
  }
  stream.faults = { ...stream.faults, fateOf }
  expect([await append(journal, 'A'), await append(journal, 'B')]).toEqual(['UNAVAILABLE', 'UNAVAILABLE'])
  expect(new Set(ids).size).toBe(2)
})

test('the sink loads everything when the leader of the stream lacks its newest messages for a while', async () => {
  const stream = newStream()
  const first = await openOwner(1)
  for (const id of ['A', 'B', 'C', 'D']) await append(first, id)
  await first.close()
  const second = await openOwner(2)
  stream.leaderLacks = 2
  let refused = 0
  const find = stream.find.bind(stream)
  stream.find = (streamSeq) =>
    find(streamSeq).catch((error) => {
      if (++refused > 4) stream.leaderLacks = 0
      throw error
    })
  const table = new MemoryTable(NEVER_FAILS)
  const position = new MemoryPosition(NEVER_FAILS)
  const sink = new Sink({
    journal: second,
    log,
    ...table.options,
    position: position.storeOf(0),
    intervalMs: 1,
  })
  expect(await sink.waitForAll(10_000)).toBe(true)
  expect([table.rows.map(({ id }) => id), refused > 0, second.gaps]).toEqual([['A', 'B', 'C', 'D'], true, []])
  await sink.stop(0)
})

test('a reader waits for what others have seen of the log, when the leader of the stream lacks its newest messages', async () => {
  const stream = newStream()
  const journal = await openOwner(1)
  await append(journal, 'A')
  // One that has read nothing yet, and one that has heard of everything.
  const announced = track(await openNatsReader(common))
  expect(await announced.refreshEnd()).toBe(1)
  stream.leaderLacks = 2
  for (const id of ['B', 'C']) await append(journal, id)
  const fresh = track(await openNatsReader(common))
  const feeds = new SharedFeeds({
    openReader: async () => fresh,
    openSource: async (reader, life) => ({ ...life, journal: reader, hub: { stop: async () => {} } }),
    log,
  })
  const cursor = encodeCursor(EPOCH.epoch, 3)
  expect(fresh.endSeq).toBe(1)
  const ends = [announced.refreshEnd(), feeds.of({ partition: 0 }, cursor).then((source) => source.journal.endSeq)]
  await Bun.sleep(200)
  stream.leaderLacks = 0
  expect(await Promise.all(ends)).toEqual([3, 3])
  // A cursor of another log is none of this one.
  expect((await feeds.of({ partition: 0 }, encodeCursor(newEpoch(), 9))).journal.endSeq).toBe(3)
  await feeds.stop()
})

test('what a reader has in memory has no hole where a message is damaged: live feeds read nothing else', async () => {
  const stream = newStream()
  const journal = await openOwner(1)
  await append(journal, 'A')
  const reader = track(await openNatsReader(common))
  await append(journal, 'B')
  expect([await reader.refreshEnd(), reader.recent(1, 1)?.length]).toEqual([2, 1])
  stream.leaderLacks = 2
  for (const id of ['C', 'D']) await append(journal, id)
  const damaged = stream.messages.length - 2
  stream.messages[damaged] = { ...stream.messages[damaged]!, head: undefined, isDamaged: true }
  stream.leaderLacks = 0
  expect(await reader.refreshEnd()).toBe(4)
  expect(reader.gaps).toEqual([{ afterSeq: 2, throughSeq: 3, loadedSeq: 0 }])
  expect([reader.recent(2, 1), reader.recent(3, 1)?.length]).toEqual([null, 1])
})

test('the end that a reader knows includes a group whose last part became known while the others were read', async () => {
  const stream = newStream(256)
  // Announcements come late.
  stream.announceEnd = () => {}
  const journal = await openOwner(1)
  await append(journal, 'A')
  const reader = track(await openNatsReader(common))
  await append(journal, 'B', 'x'.repeat(300))
  stream.leaderLacks = 1
  const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const find = stream.find.bind(stream)
  stream.find = async (streamSeq) => {
    asked.resolve()
    await answer.promise
    return find(streamSeq)
  }
  const before = reader.refreshEnd()
  await asked.promise
  stream.leaderLacks = 0
  const after = reader.refreshEnd()
  await Bun.sleep(20)
  answer.resolve()
  expect([await before, await after]).toEqual([1, 2])
})

test('a commit that late messages of an earlier owner follow keeps its positions', async () => {
  const stream = newStream(256)
  const first = await openOwner(1)
  expect(await append(first, 'A')).toBe(1)
  const place = stream.messages.length + 1
  const second = await openOwner(2)
  expect(await append(second, 'B', 'x'.repeat(300))).toBe(2)
  // Later parts of a group that the first owner began before the takeover: the second one took the places of its beginning.
  const head = { ...stream.messages[place - 2]!.head!, groupSeq: place, firstSeq: 2, endSeq: 9, parts: 9 }
  for (const isLast of [false, true]) {
    const streamSeq = stream.messages.length + 1
    const late = { ...head, part: isLast ? head.parts - 1 : streamSeq - place }
    stream.messages.push({ streamSeq, id: `late ${isLast}`, head: late, data: Buffer.alloc(10) })
    const next = await openOwner(3)
    expect([next.endSeq, next.gaps]).toEqual([2, []])
    await next.close()
  }
  const third = await openOwner(4)
  expect(await append(third, 'C')).toBe(3)
  expect(await storedIds()).toEqual(['A', 'B', 'C'])
})

test.each(['lost', 'damaged', 'foreign'])('a newest message that is %s', async (what) => {
  const stream = newStream()
  const first = await openOwner(1)
  await append(first, 'A')
  await append(first, 'B')
  const newest = stream.messages.length - 1
  const bad = { ...stream.messages[newest]!, head: undefined, isDamaged: what === 'damaged' }
  // The stream gives null for one that it does not have any more.
  stream.messages[newest] = what === 'lost' ? (null as never) : bad
  const found: unknown[] = []
  const second = await openOwner(2, [], async ({ endSeq, isEndLost }) => {
    found.push({ endSeq, isEndLost })
    return { afterSeq: 0, loadedSeq: 0, newEpoch: isEndLost === true }
  })
  // How many positions it had, nobody knows: only a new epoch gives them to no other row. Nobody of ours wrote a foreign one.
  const isLost = what !== 'foreign'
  expect(found).toEqual([{ endSeq: 1, isEndLost: isLost }])
  expect(second.epoch !== EPOCH.epoch).toBe(isLost)
})

test('a header of a journal that was changed is damage; a message without one is foreign', () => {
  const key = Buffer.alloc(32, 7)
  const [head, other] = [headers(), headers()]
  const place = { firstSeq: 1, endSeq: 1, part: 0, parts: 1, groupSeq: 2, generation: 1 }
  writeHead(head, { kind: 'commit', ...place, receivedAt: 1, isCompressed: false, outbox: NO_OUTBOX }, key, 2)
  other.set('Other', 'c 1')
  const seen = [head, other].map((each) => [readHead(each, key, 3) === undefined, hasHead(each)])
  expect(seen).toEqual([
    [true, true],
    [true, false],
  ])
})
