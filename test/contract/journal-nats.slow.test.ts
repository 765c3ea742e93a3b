import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { headers } from '@nats-io/transport-node'
import { newEpoch } from '../../src/stores/journal/journal.ts'
import { NO_OUTBOX, writeHead } from '../../src/stores/journal/nats/message.ts'
import { FencedError } from '../../src/stores/journal/nats/stream.ts'
import type { FoundJournal } from '../../src/stores/journal/start.ts'
import { closedAfterEach } from '../support/closed-after-each.ts'
import { runRef } from '../support/events.ts'
import { eventually } from '../support/eventually.ts'
import { JournalLoad, openAgain, Watcher } from '../support/journal-load.ts'
import { appendMarks, marksAfter, NatsRig } from '../support/journals.ts'
import { hasNats, natsConnection, natsServer } from '../support/nats.ts'
import { runRow } from '../support/rows.ts'
import { replaceStream, storedMessages } from '../support/stream-damage.ts'
import { tcpProxy } from '../support/tcp-proxy.ts'
import { shared } from '../support/teardown.ts'

/** What happens to a journal in a JetStream stream when its server, its network or its owner fails. */

const server = shared(() => natsServer())

const track = closedAfterEach()

async function newRig(at?: { readonly port: number }): Promise<NatsRig> {
  return new NatsRig(await natsConnection([at ?? (await server())]), 1, track)
}

const positionsOf = async (journal: Parameters<typeof marksAfter>[0]) => [...(await marksAfter(journal)).keys()]
const gapsOf = ({ gaps }: NatsRig) => gaps.map(({ afterSeq, throughSeq }) => [afterSeq, throughSeq])

describe.skipIf(!hasNats)('the owner', () => {
  test('loses and doubles nothing when the server is killed and started again', async () => {
    const own = await natsServer()
    const rig = await newRig(own)
    const journal = await rig.open({ settleMs: 60_000 })
    const reader = await rig.read({ nc: await natsConnection([own]), tailBytes: 20_000 })
    const watcher = new Watcher(reader)
    const load = new JournalLoad(journal)
    load.start()
    for (let round = 0; round < 3; round++) {
      await load.progress()
      await own.kill()
      await own.start()
    }
    await load.progress()
    await load.stop()
    await load.verify(journal)
    expect([rig.lost, load.rejected.size, rig.gaps, rig.errors]).toEqual([[], 0, [], []])
    await watcher.verify(journal)
    await journal.close()
    const again = await rig.open()
    await load.verify(again)
  })

  test('gives up when NATS stays away: 503 with Retry-After, everything is refused; the next owner settles what is stored', async () => {
    const own = await natsServer()
    const rig = await newRig(own)
    const journal = await rig.open({ settleMs: 300 })
    const load = new JournalLoad(journal)
    load.start()
    await load.progress()
    await own.kill()
    await eventually(() => rig.lost.length > 0)
    await load.stop()
    expect(rig.lost).toHaveLength(1)
    const refused = { code: 'UNAVAILABLE', retryAfterSeconds: 1 }
    await expect(appendMarks(journal, [1])).rejects.toMatchObject(refused)
    await expect(journal.check()).rejects.toMatchObject(refused)
    await expect(journal.cut()).rejects.toMatchObject(refused)
    await expect(rig.open({ settleMs: 100 })).rejects.toMatchObject(refused)
    await journal.close()
    await own.start()
    const next = await openAgain(rig)
    await load.verify(next)
  })

  test('stores a call once when its acknowledgement is lost', async () => {
    const proxy = await tcpProxy(await server())
    const rig = await newRig(proxy)
    const journal = await rig.open({ settleMs: 60_000 })
    await appendMarks(journal, [1])
    proxy.muteServer()
    const append = appendMarks(journal, [2])
    const { nc } = await newRig()
    // The message is stored, and the owner has not been told.
    await eventually(async () => (await (await jetstreamManager(nc)).streams.info(rig.stream)).state.last_seq === 3)
    proxy.cut()
    proxy.heal()
    expect(await append).toEqual({ firstSeq: 2, lastSeq: 2 })
    expect(await appendMarks(journal, [3])).toEqual({ firstSeq: 3, lastSeq: 3 })
    expect([...(await marksAfter(journal)).values()]).toEqual([1, 2, 3])
  })

  test('loses and doubles nothing when its connection is cut and healed', async () => {
    const proxy = await tcpProxy(await server())
    const rig = await newRig(proxy)
    const journal = await rig.open({ settleMs: 60_000 })
    const reader = await rig.read({ tailBytes: 20_000 })
    const watcher = new Watcher(reader)
    const load = new JournalLoad(journal)
    load.start()
    for (const fault of [proxy.cut, proxy.muteServer, proxy.cut]) {
      await load.progress()
      fault()
      await Bun.sleep(100)
      proxy.cut()
      proxy.heal()
    }
    await load.progress()
    await load.stop()
    await load.verify(journal)
    expect([rig.lost, load.rejected.size, rig.gaps]).toEqual([[], 0, []])
    await watcher.verify(journal)
  })

  test('waits for a server that stalls, and loses and doubles nothing', async () => {
    const own = await natsServer()
    const rig = await newRig(own)
    const journal = await rig.open({ settleMs: 60_000 })
    const load = new JournalLoad(journal)
    load.start()
    for (let round = 0; round < 2; round++) {
      await load.progress()
      own.pause()
      // Longer than an attempt.
      await Bun.sleep(1_500)
      own.resume()
    }
    await load.progress()
    await load.stop()
    await load.verify(journal)
    expect([rig.lost, load.rejected.size]).toEqual([[], 0])
  })

  test('refuses calls while the stream is full, also in the middle of a group, and continues once there is room', async () => {
    const rig = await newRig()
    const journal = await rig.open({ streamBytes: 4 * 1024 * 1024, keepBytes: 0, unitBytes: 100_000 })
    const reader = await rig.read()
    journal.release('sink', 0)
    // Each is a group of parts.
    const big = [1, 2, 3, 4]
    const accepted: number[] = []
    let refusal: unknown
    for (let call = 0; call < 20 && refusal === undefined; call++) {
      await appendMarks(journal, big, runRef(), 400_000).then(
        ({ lastSeq }) => accepted.push(lastSeq),
        (error) => (refusal = error),
      )
    }
    expect(refusal).toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 5 })
    await expect(journal.check()).rejects.toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 5 })
    expect(accepted.length).toBeGreaterThan(0)
    expect(rig.lost).toEqual([])
    const { endSeq } = journal
    expect(endSeq).toBe(accepted.length * 4)
    journal.release('sink', endSeq)
    await eventually(() => journal.check())
    const { firstSeq } = await appendMarks(journal, [5])
    expect(firstSeq).toBe(endSeq + 1)
    expect(await reader.refreshEnd()).toBe(endSeq + 1)
    expect([(await positionsOf(journal)).at(-1), (await positionsOf(reader)).at(-1)]).toEqual([endSeq + 1, endSeq + 1])
    expect([rig.gaps, rig.errors.filter((error) => error.includes('damaged'))]).toEqual([[], []])
    await reader.close()
    await journal.close()
    const next = await rig.open()
    expect([next.endSeq, rig.gaps]).toEqual([endSeq + 1, []])
  })

  test('is fenced off by the next one: exactly what was acknowledged is stored, and it is told once', async () => {
    const rig = await newRig()
    const first = await rig.open()
    const reader = await rig.read()
    const watcher = new Watcher(reader)
    const load = new JournalLoad(first)
    load.start()
    for (let takeover = 1; takeover <= 3; takeover++) {
      await load.progress()
      // The old owner goes on meanwhile: it has not been told.
      const next = await rig.open({ settleMs: 60_000 })
      await eventually(() => rig.lost.length === takeover)
      load.use(next)
    }
    await load.progress()
    await load.stop()
    expect(load.rejected.size).toBeGreaterThan(0)
    const last = await rig.open()
    await load.verify(last)
    expect(rig.gaps).toEqual([])
    await watcher.verify(last)
  })

  test('is one of several that create the stream and take over at the same time', async () => {
    const rig = await newRig()
    const opened = await Promise.allSettled(Array.from({ length: 5 }, () => rig.open()))
    const reasons = opened.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
    expect(reasons.filter((reason) => !(reason instanceof FencedError))).toEqual([])
    const owners = opened.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    expect(owners.length).toBeGreaterThan(0)
    const appends = await Promise.allSettled(owners.map((owner) => appendMarks(owner, [1])))
    expect(appends.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(1)
    const last = await rig.open()
    await appendMarks(last, [2])
    expect([...(await marksAfter(last)).values()]).toContain(2)
    expect((await marksAfter(last)).size).toBe(last.endSeq)
    expect(rig.gaps).toEqual([])
  })

  test('that was stopped for longer than its lease stores nothing when its process continues', async () => {
    const rig = await newRig()
    const { port } = await server()
    const script = join(import.meta.dir, '..', 'support', 'nats-owner.ts')
    const place = [`${port}`, rig.stream, rig.subject, rig.sealKey.toString('hex'), rig.epochs[0].epoch]
    const child = Bun.spawn([process.execPath, script, ...place, `${++rig.generation}`], { stdout: 'pipe' })
    let output = ''
    const ended = (async () => {
      for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) output += text
    })()
    await eventually(() => output.split('\n').length > 20)
    child.kill('SIGSTOP')
    const journal = await rig.open()
    const { endSeq } = journal
    const { firstSeq } = await appendMarks(journal, [1_000_000])
    child.kill('SIGCONT')
    await ended
    expect(output).toContain('\nlost another owner has published message')
    const acknowledged = [...output.matchAll(/^(\d+) (\d+)$/gm)].map(([, seq, mark]) => [Number(seq), Number(mark)])
    expect(acknowledged.length).toBeGreaterThan(10)
    const stored = [...(await marksAfter(journal))]
    // What was on its way when the process stopped may be stored, too.
    expect(stored.slice(0, acknowledged.length)).toEqual(acknowledged as [number, number][])
    expect([stored.length, stored.at(-1)]).toEqual([endSeq + 1, [firstSeq, 1_000_000]])
  })

  test('of a lower generation cannot take over, and one that is idle notices that it was replaced', async () => {
    const rig = await newRig()
    const first = await rig.open()
    const second = await rig.open()
    await expect(rig.open({ generation: 1 })).rejects.toBeInstanceOf(FencedError)
    await appendMarks(second, [1])
    await eventually(() =>
      first.check().then(
        () => false,
        () => true,
      ),
    )
    expect(rig.lost).toHaveLength(1)
    await expect(appendMarks(first, [2])).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(await positionsOf(second)).toEqual([1])
  })

  test('keeps positions and epochs through a stream that was deleted', async () => {
    const rig = await newRig()
    const first = await rig.open({ settleMs: 300 })
    const reader = await rig.read()
    await appendMarks(first, [1, 2, 3])
    await reader.refreshEnd()
    await (await jetstreamManager(rig.nc)).streams.delete(rig.stream)
    await expect(appendMarks(first, [4])).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    const second = await rig.open({
      decideStart: async ({ endSeq }) => {
        expect(endSeq).toBe(0)
        return { afterSeq: 10, loadedSeq: 2, newEpoch: true }
      },
    })
    expect(await appendMarks(second, [5])).toEqual({ firstSeq: 11, lastSeq: 11 })
    // A reader that was open all the time changes to the new epoch, too.
    await eventually(() => reader.endSeq === 11)
    expect([reader.epoch, reader.epochs]).toEqual([second.epoch, second.epochs])
    expect([...(await marksAfter(reader, 10))]).toEqual([[11, 5]])
    expect([reader.startSeq, reader.recent(10, 1e6)?.length, gapsOf(rig)]).toEqual([11, 1, [[3, 10]]])
  })

  test('begins a new epoch after a lost end also if the owner that has found it dies before', async () => {
    const rig = await newRig()
    const first = await rig.open()
    await appendMarks(first, [1])
    await appendMarks(first, [2])
    await first.close()
    // Nobody knows how many positions the lost message had.
    const jsm = await jetstreamManager(rig.nc)
    await jsm.streams.deleteMessage(rig.stream, (await jsm.streams.info(rig.stream)).state.last_seq)
    const found: unknown[] = []
    const decideStart = (dies: boolean) => async (at: FoundJournal) => {
      found.push([at.endSeq, at.isEndLost])
      if (dies) throw new Error('killed')
      return { afterSeq: 0, loadedSeq: 0, newEpoch: at.isEndLost === true }
    }
    for (let death = 0; death < 2; death++)
      await expect(rig.open({ decideStart: decideStart(true) })).rejects.toThrow('killed')
    const second = await rig.open({ decideStart: decideStart(false) })
    expect(second.epoch).not.toBe(first.epoch)
    // The epoch has begun, but nothing was appended to it yet.
    const third = await rig.open({ decideStart: decideStart(false) })
    expect([third.epoch, rig.epochs.length]).toEqual([second.epoch, 2])
    expect(found).toEqual([...Array(3).fill([1, true]), [1, false]])
  })

  test('does not begin an epoch again that an owner has begun before it died', async () => {
    const rig = await newRig()
    const first = await rig.open()
    await appendMarks(first, [1])
    await first.close()
    const jsm = await jetstreamManager(rig.nc)
    await jsm.streams.deleteMessage(rig.stream, (await jsm.streams.info(rig.stream)).state.last_seq)
    const begun = { epoch: newEpoch(), firstSeq: 1 }
    const decideStart = async ({ isEndLost = false }: FoundJournal) => ({
      ...{ afterSeq: 0, loadedSeq: 0 },
      newEpoch: isEndLost,
    })
    const dying = rig.open({
      decideStart,
      async beginEpoch() {
        rig.epochs = [...rig.epochs, begun]
        throw new Error('killed')
      },
    })
    await expect(dying).rejects.toThrow('killed')
    const next = await rig.open({ decideStart })
    expect([next.epoch, rig.epochs.length]).toEqual([begun.epoch, 2])
  })

  test('refuses a stream whose settings lose rows', async () => {
    const rig = await newRig()
    const jsm = await jetstreamManager(rig.nc)
    await jsm.streams.add({ name: rig.stream, subjects: [rig.subject], max_age: 60 * 1e9, allow_direct: true })
    await expect(rig.open()).rejects.toThrow('settings that lose rows')
  })
})

const COMMIT = { kind: 'commit', receivedAt: 1, isCompressed: false, outbox: NO_OUTBOX } as const

describe.skipIf(!hasNats)('the chain', () => {
  /** A log of five commits with one row each; the stream's messages are the takeover and then these. */
  async function fiveCommits(rig: NatsRig): Promise<void> {
    const journal = await rig.open()
    for (let mark = 1; mark <= 5; mark++) await appendMarks(journal, [mark])
    await journal.close()
  }

  test('shows a message that was deleted: a gap for every reader, and an error in the log', async () => {
    const rig = await newRig()
    await fiveCommits(rig)
    await (await jetstreamManager(rig.nc)).streams.deleteMessage(rig.stream, 4)
    const reader = await rig.read()
    expect(await positionsOf(reader)).toEqual([1, 2, 4, 5])
    expect([gapsOf(rig), reader.gaps.length]).toEqual([[[2, 3]], 1])
    expect(rig.errors.some((error) => error.includes('missing'))).toBe(true)
    const journal = await rig.open()
    expect(await positionsOf(journal)).toEqual([1, 2, 4, 5])
  })

  test('shows messages that were swapped', async () => {
    const rig = await newRig()
    await fiveCommits(rig)
    await replaceStream(rig, (stored) => [stored[0], stored[1], stored[3], stored[2], stored[4], stored[5]])
    const reader = await rig.read()
    expect(await positionsOf(reader)).toEqual([1, 4, 5])
    expect(gapsOf(rig)).toEqual([[1, 3]])
  })

  test('shows a message that was changed', async () => {
    const rig = await newRig()
    await fiveCommits(rig)
    await replaceStream(rig, (stored) => {
      const data = Buffer.from(stored[3].data)
      data[data.length - 10] ^= 1
      return stored.with(3, { ...stored[3], data })
    })
    const reader = await rig.read()
    expect(await positionsOf(reader)).toEqual([1, 2, 4, 5])
    expect(gapsOf(rig)).toEqual([[2, 3]])
  })

  test('the positions of a newest commit that was changed are not used again', async () => {
    const rig = await newRig()
    await fiveCommits(rig)
    await replaceStream(rig, (stored) => stored.with(5, { ...stored[5], data: Buffer.from('changed') }))
    const journal = await rig.open()
    expect([journal.endSeq, gapsOf(rig)]).toEqual([5, [[4, 5]]])
    expect(await appendMarks(journal, [6])).toEqual({ firstSeq: 6, lastSeq: 6 })
    expect(await positionsOf(journal)).toEqual([1, 2, 3, 4, 6])
  })

  test('rejects a commit of a writer without the key, whatever it claims', async () => {
    const rig = await newRig()
    await fiveCommits(rig)
    const reader = await rig.read()
    const other = await newRig()
    await fiveCommits(other)
    const { data } = (await storedMessages(other))[5]
    const place = { firstSeq: 6, endSeq: 1_000_000, part: 0, parts: 1, groupSeq: 7, generation: 1_000 }
    const forged = headers()
    writeHead(forged, { ...COMMIT, ...place }, other.sealKey, 7)
    await jetstream(rig.nc).publish(rig.subject, data, { headers: forged })
    const journal = await rig.open()
    expect(journal.endSeq).toBe(5)
    expect(await appendMarks(journal, [6])).toEqual({ firstSeq: 6, lastSeq: 6 })
    expect(await reader.refreshEnd()).toBe(6)
    for (const each of [reader, journal]) expect(await positionsOf(each)).toEqual([1, 2, 3, 4, 5, 6])
    expect(rig.gaps).toEqual([])
  })

  test('passes over a message of no journal', async () => {
    const rig = await newRig()
    await fiveCommits(rig)
    await jetstream(rig.nc).publish(rig.subject, 'hello')
    const journal = await rig.open()
    await appendMarks(journal, [6])
    const reader = await rig.read()
    expect([await positionsOf(reader), rig.gaps]).toEqual([[1, 2, 3, 4, 5, 6], []])
  })

  test('a group that lacks its last part is void for readers and for the next owner', async () => {
    const rig = await newRig()
    await fiveCommits(rig)
    const reader = await rig.read()
    for (const part of [0, 1]) {
      const partial = headers()
      const place = { firstSeq: 6, endSeq: 9, part, parts: 3, groupSeq: 7, generation: 1 }
      writeHead(partial, { ...COMMIT, ...place }, rig.sealKey, 7 + part)
      await jetstream(rig.nc).publish(rig.subject, Buffer.alloc(1_000, part), { headers: partial })
    }
    expect(await reader.refreshEnd()).toBe(5)
    const journal = await rig.open()
    expect(journal.endSeq).toBe(5)
    expect(await appendMarks(journal, [6])).toEqual({ firstSeq: 6, lastSeq: 6 })
    expect(await reader.refreshEnd()).toBe(6)
    const later = await rig.read()
    for (const each of [reader, later, journal]) expect(await positionsOf(each)).toEqual([1, 2, 3, 4, 5, 6])
    expect([rig.gaps, rig.errors]).toEqual([[], []])
  })
})

describe.skipIf(!hasNats)('a reader', () => {
  test('keeps bounded memory, reads older rows from the stream, and knows the end at once when asked', async () => {
    const rig = await newRig()
    const journal = await rig.open()
    const reader = await rig.read({ tailBytes: 50_000 })
    for (let mark = 1; mark <= 200; mark++) await appendMarks(journal, [mark], runRef(), 4_000)
    expect(await reader.refreshEnd()).toBe(200)
    expect(reader.recent(0, 1e6)).toBeNull()
    expect(reader.recent(198, 1e6)?.map(({ firstSeq }) => firstSeq)).toEqual([199, 200])
    expect(await positionsOf(reader)).toEqual(Array.from({ length: 200 }, (_, index) => index + 1))
    expect((await reader.read(120, 1))[0].firstSeq).toBe(121)
    const later = await rig.read({ tailBytes: 50_000 })
    expect([later.startSeq, later.endSeq]).toEqual([1, 200])
    expect((await later.read(77, 1))[0].firstSeq).toBe(78)
  })

  test('forgets rows that the owner deletes, and takes that for no gap', async () => {
    const rig = await newRig()
    const journal = await rig.open({ keepBytes: 0, unitBytes: 2_000 })
    const reader = await rig.read()
    for (let mark = 1; mark <= 40; mark++) await appendMarks(journal, [mark])
    await reader.refreshEnd()
    const seq = await journal.cut()
    expect(await journal.drop(seq)).toBe(true)
    await eventually(() => reader.startSeq === seq + 1)
    expect([reader.recent(0, 1e6), await reader.read(0, 1e6)]).toEqual([null, []])
    await appendMarks(journal, [41])
    expect(await reader.refreshEnd()).toBe(41)
    expect(await positionsOf(reader)).toEqual([41])
    expect([rig.gaps, rig.errors]).toEqual([[], []])
  })

  test('follows a new epoch', async () => {
    const rig = await newRig()
    const first = await rig.open()
    await appendMarks(first, [1])
    const begun: string[] = []
    const reader = await rig.read({ onEpoch: ({ epoch }) => begun.push(epoch) })
    const second = await rig.open({ decideStart: async () => ({ afterSeq: 7, loadedSeq: 7, newEpoch: true }) })
    await appendMarks(second, [2])
    expect(await reader.refreshEnd()).toBe(8)
    expect([begun, reader.epoch, reader.startSeq]).toEqual([[second.epoch], second.epoch, 8])
    expect(reader.epochs).toEqual(second.epochs)
    expect(await positionsOf(reader)).toEqual([1, 8])
  })

  test('waits past a position, and stops waiting when it closes', async () => {
    const rig = await newRig()
    const journal = await rig.open()
    const reader = await rig.read()
    const { signal } = new AbortController()
    const waiting = reader.waitPast(0, signal)
    await appendMarks(journal, [1])
    await waiting
    expect(reader.endSeq).toBe(1)
    const closing = reader.waitPast(1, signal)
    await reader.close()
    await closing
  })

  test('reads rows of every kind', async () => {
    const rig = await newRig()
    const journal = await rig.open()
    const reader = await rig.read()
    const run = runRef()
    await Promise.all([journal.appendRuns([runRow(run)], [Bun.randomUUIDv7()]), appendMarks(journal, [1], run)])
    await reader.refreshEnd()
    expect((await reader.read(0, 1e6)).map(({ kind }) => kind)).toEqual(['run', 'event'])
  })
})
