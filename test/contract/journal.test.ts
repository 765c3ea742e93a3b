import { describe, expect, test } from 'bun:test'
import { NIL_UUID } from '../../src/base/ids.ts'
import { closedAfterEach } from '../support/closed-after-each.ts'
import { runRef } from '../support/events.ts'
import { eventually } from '../support/eventually.ts'
import { appendMarks, gapsOf, JOURNALS, marksAfter } from '../support/journals.ts'
import { seededRandom } from '../support/random.ts'
import { deliveryRow, runRow, taskRow } from '../support/rows.ts'
import { scoreBatch } from '../support/scores.ts'

/** What every implementation of the journal must do. What depends on files, or on NATS, is tested elsewhere. */

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)
const DAY_MS = 86_400_000

const track = closedAfterEach()

for (const { name, isInstalled, ...implementation } of JOURNALS) {
  const create = () => implementation.create(track)

  describe.skipIf(!isInstalled)(`a journal ${name} (SEED=${SEED})`, () => {
    test('concurrent appends are read back once, in order, across reopenings, from any position', async () => {
      const random = seededRandom('journal', SEED)
      const stored = await create()
      const expected = new Map<number, number>()
      let mark = 0
      for (let round = 0; round < 6; round++) {
        const journal = await stored.open({ unitBytes: 16_384, tailBytes: random.pick([1, 20_000, 2 ** 30]) })
        for (let burst = 0; burst < 10; burst++) {
          await Promise.all(
            Array.from({ length: random.int(1, 8) }, async () => {
              const marks = Array.from({ length: random.int(1, 5) }, () => mark++)
              const bytes = random.pick([0, 0, 0, 20_000])
              const { firstSeq, lastSeq } = await appendMarks(journal, marks, runRef(), bytes)
              expect(lastSeq - firstSeq + 1).toBe(marks.length)
              marks.forEach((value, index) => {
                expect(expected.has(firstSeq + index)).toBe(false)
                expected.set(firstSeq + index, value)
              })
            }),
          )
        }
        expect([journal.startSeq, journal.endSeq, journal.gaps]).toEqual([1, expected.size, []])
        const from = random.int(0, journal.endSeq - 1)
        const wanted = new Map([...expected].filter(([seq]) => seq > from).sort(([a], [b]) => a - b))
        expect([...(await marksAfter(journal, from))]).toEqual([...wanted])
        await journal.close()
      }
    })

    test('stores the rows of all kinds in one commit, records before events before scores before deliveries, and reads them unchanged', async () => {
      const stored = await create()
      const journal = await stored.open()
      const run = runRef()
      const appended = await Promise.all([
        appendMarks(journal, [1, 2], run),
        journal.appendTasks([taskRow(run)], []),
        journal.appendRuns([runRow(run)], [Bun.randomUUIDv7()]),
        journal.appendDeliveries([deliveryRow(run.workspaceId), deliveryRow(run.workspaceId)]),
        journal.appendScores(scoreBatch(run, [{ value: 1 }, { value: 2 }, { label: 'a' }])),
      ])
      expect(appended.map(({ firstSeq, lastSeq }) => [firstSeq, lastSeq])).toEqual([
        [3, 4],
        [2, 2],
        [1, 1],
        [8, 9],
        [5, 7],
      ])
      const frames = journal.recent(0, 1e6)
      expect(frames?.map(({ kind, firstSeq, rows }) => [kind, firstSeq, rows])).toEqual([
        ['run', 1, 1],
        ['task', 2, 1],
        ['event', 3, 2],
        ['score', 5, 3],
        ['delivery', 8, 2],
      ])
      // An entry with the id of the run would give the run's later rows the wrong agent.
      expect(frames?.at(-1)?.runs).toEqual([
        { workspaceId: run.workspaceId, agentId: NIL_UUID, runId: NIL_UUID, rows: 2 },
      ])
      await journal.close()
      const again = await stored.open()
      const plain = (list: typeof frames) =>
        list?.map((frame) => ({ ...frame, block: Buffer.from(frame.block), outboxIds: 0 }))
      expect(plain(await again.read(0, 1e6))).toEqual(plain(frames))
    })

    test('the time of acceptance does not fall with a clock that goes back a little, nor after reopenings or deleting all rows', async () => {
      const stored = await create()
      const start = Date.UTC(2026, 0, 31, 12)
      const clock = { atMs: start, now: () => clock.atMs }
      const jumps = [5_000, -60_000, DAY_MS, -30_000, -30_000, 1, -1, 7 * DAY_MS]
      const times: number[] = []
      for (const drops of [false, true]) {
        for (const jump of jumps) {
          const journal = await stored.open({ clock, tailBytes: 1 })
          await appendMarks(journal, [1])
          await appendMarks(journal, [2])
          const frames = await journal.read(journal.endSeq - 2, 1e6)
          times.push(...frames.map(({ receivedAt }) => receivedAt))
          journal.release('sink', journal.endSeq)
          if (drops) await journal.drop(await journal.cut())
          await journal.close()
          clock.atMs += jump
        }
      }
      expect(times).toHaveLength(4 * jumps.length)
      expect(times).toEqual(times.toSorted((a, b) => a - b))
      expect(times.at(-1)).toBeGreaterThanOrEqual(start + 8 * DAY_MS)
    })

    test('rows get the time of the clock once it has gone back by more than a minute: it was wrong before', async () => {
      const stored = await create()
      const start = Date.UTC(2026, 0, 31, 12)
      const clock = { atMs: start + 6 * 3_600_000, now: () => clock.atMs }
      const journal = await stored.open({ clock })
      await appendMarks(journal, [1])
      clock.atMs = start
      await appendMarks(journal, [2])
      clock.atMs -= 1_000
      await appendMarks(journal, [3])
      const times = (await journal.read(0, 1e6)).map(({ receivedAt }) => receivedAt - start)
      expect(times).toEqual([6 * 3_600_000, 0, 0])
      await journal.close()
      const again = await stored.open({ clock })
      await appendMarks(again, [4])
      expect((await again.read(3, 1e6)).map(({ receivedAt }) => receivedAt - start)).toEqual([0])
    })

    test('rows do not get the time of a clock that is further behind than it can be', async () => {
      const stored = await create()
      const start = Date.UTC(2026, 0, 31, 12)
      const clock = { atMs: start - 40 * DAY_MS, now: () => clock.atMs }
      const journal = await stored.open({ clock, earliest: () => start - DAY_MS })
      await appendMarks(journal, [1])
      clock.atMs = start
      await appendMarks(journal, [2])
      clock.atMs = start - 40 * DAY_MS
      await appendMarks(journal, [3])
      clock.atMs = start - DAY_MS
      await appendMarks(journal, [4])
      const times = (await journal.read(0, 1e6)).map(({ receivedAt }) => receivedAt - start)
      expect(times).toEqual([-DAY_MS, 0, 0, -DAY_MS])
    })

    test('no row that is accepted after a hold has an earlier time than the hold, even if the clock goes back', async () => {
      const stored = await create()
      const clock = { atMs: Date.UTC(2026, 0, 31), now: () => clock.atMs }
      const journal = await stored.open({ clock })
      await appendMarks(journal, [1])
      clock.atMs += 1_000
      const heldMs = clock.atMs
      const release = await journal.hold()
      const { endSeq } = journal
      const waiting = appendMarks(journal, [2])
      clock.atMs -= 500
      release()
      await waiting
      const [frame] = await journal.read(endSeq, 1e6)
      expect(frame).toMatchObject({ firstSeq: 2, receivedAt: heldMs })
    })

    test('rows get no time up to which something was decided before, although the clock is behind', async () => {
      const stored = await create()
      const clock = { atMs: Date.UTC(2026, 0, 31), now: () => clock.atMs }
      const decidedMs = clock.atMs + 2_000
      const journal = await stored.open({
        clock,
        decideStart: async () => ({ afterSeq: 0, loadedSeq: 0, newEpoch: false, decidedMs }),
      })
      await appendMarks(journal, [1])
      expect(await journal.read(0, 1e6)).toMatchObject([{ receivedAt: decidedMs }])
    })

    test('stores a commit larger than any message or page whole', async () => {
      const stored = await create()
      const journal = await stored.open()
      await appendMarks(journal, [1, 2, 3, 4, 5, 6, 7, 8], runRef(), 500_000)
      await appendMarks(journal, [9])
      await journal.close()
      const again = await stored.open()
      expect([...(await marksAfter(again)).values()]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
      expect([...(await marksAfter(again, 5)).values()]).toEqual([6, 7, 8, 9])
    })

    test('a full journal rejects appends with a Retry-After, and accepts them again once ClickHouse has caught up', async () => {
      const stored = await create()
      const journal = await stored.open({ maxBytes: 40_000, keepBytes: 0, unitBytes: 8_192 })
      journal.release('sink', 0)
      let refusal: unknown
      for (let i = 0; i < 400 && refusal === undefined; i++) {
        await appendMarks(journal, [i]).catch((error) => (refusal = error))
      }
      expect(refusal).toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 5 })
      await expect(journal.check()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
      expect(journal.bytes).toBeLessThan(60_000)
      expect(await marksAfter(journal)).toHaveProperty('size', journal.endSeq)
      journal.release('sink', journal.endSeq)
      await journal.check()
      await appendMarks(journal, [1_000])
      expect(journal.bytes).toBeLessThan(20_000)
    })

    test('keeps what is consumed up to a limit, and what is not consumed without one', async () => {
      const stored = await create()
      const journal = await stored.open({ keepBytes: 100_000, unitBytes: 10_000, tailBytes: 1 })
      journal.release('sink', 0)
      for (let i = 1; i <= 60; i++) await appendMarks(journal, [i], runRef(), 6_000)
      expect(await marksAfter(journal)).toHaveProperty('size', 60)
      journal.release('sink', 60)
      expect(journal.startSeq).toBeGreaterThan(10)
      expect(journal.bytes).toBeGreaterThanOrEqual(100_000)
      const { startSeq } = journal
      await eventually(async () => [...(await marksAfter(journal)).keys()][0] === startSeq)
      await journal.close()
      const again = await stored.open()
      expect([again.startSeq, again.endSeq, again.gaps]).toEqual([startSeq, 60, []])
      expect(await marksAfter(again)).toHaveProperty('size', 61 - startSeq)
    })

    test('keeps the outbox ids of the newest frames of each kind across reopenings', async () => {
      const stored = await create()
      const journal = await stored.open()
      expect(journal.lastOutboxIds()).toEqual([])
      const run = runRef()
      const [old, ofRun, ...ofTasks] = Array.from({ length: 4 }, () => crypto.randomUUID())
      await journal.appendRuns([runRow(run)], [old])
      await journal.appendRuns([runRow(run)], [ofRun])
      await journal.appendTasks([taskRow(run), taskRow(run)], ofTasks)
      for (let i = 0; i < 20; i++) await appendMarks(journal, [i])
      expect([...journal.lastOutboxIds()].sort()).toEqual([ofRun, ...ofTasks].sort())
      await journal.close()
      for (let reopening = 0; reopening < 2; reopening++) {
        const again = await stored.open()
        expect([...again.lastOutboxIds()].sort()).toEqual([ofRun, ...ofTasks].sort())
        expect(again.epoch).toBe(journal.epoch)
        await again.close()
      }
    })

    test('keeps the outbox ids of frames that are deleted, because the outbox may still have their rows', async () => {
      const stored = await create()
      let journal = await stored.open({ unitBytes: 1, keepBytes: 0 })
      const [ofRun, ofTask] = [crypto.randomUUID(), crypto.randomUUID()]
      const known = () => [...journal.lastOutboxIds()].sort()
      await journal.appendRuns([runRow(runRef())], [ofRun])
      await journal.appendTasks([taskRow(runRef())], [ofTask])
      for (const isCut of [false, true, true]) {
        if (isCut) await journal.cut()
        else for (let i = 0; i < 4; i++) await appendMarks(journal, [i])
        const { endSeq } = journal
        journal.release('sink', endSeq)
        if (isCut) expect(await journal.drop(endSeq)).toBe(true)
        else await eventually(() => journal.startSeq > 2)
        await journal.close()
        journal = await stored.open({ unitBytes: 1, keepBytes: 0 })
        expect(known()).toEqual([ofRun, ofTask].sort())
        await appendMarks(journal, [9])
      }
    })

    test('a follower sees existing and new frames, and stops on abort', async () => {
      const journal = await (await create()).open()
      await appendMarks(journal, [1])
      const stop = new AbortController()
      const seen: number[] = []
      const following = (async () => {
        for await (const frame of journal.follow(0, stop.signal)) {
          seen.push(frame.firstSeq)
          if (seen.length === 3) stop.abort()
        }
      })()
      await appendMarks(journal, [2])
      await appendMarks(journal, [3])
      await following
      expect(seen).toEqual([1, 2, 3])
    })

    test('a follower and a waiter end when the journal closes, which refuses further calls', async () => {
      const journal = await (await create()).open()
      const { signal } = new AbortController()
      await appendMarks(journal, [1])
      const following = Array.fromAsync(journal.follow(0, signal))
      const waiting = journal.waitPast(2, signal)
      const append = appendMarks(journal, [2])
      await journal.close()
      expect((await following)[0]?.firstSeq).toBe(1)
      await waiting
      expect(await append).toEqual({ firstSeq: 2, lastSeq: 2 })
      for (const refused of [appendMarks(journal, [3]), journal.cut(), journal.hold(), journal.check()])
        await expect(refused).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    })

    test('slows commits to the pace of a slow consumer, but does not wait for one that is away', async () => {
      const timeOf = async (advances: boolean) => {
        const journal = await (await create()).open({ paceBytes: 1_000 })
        for (let i = 0; i < 3; i++) await appendMarks(journal, [i], runRef(), 2_000)
        const started = performance.now()
        for (let i = 0; i < 3; i++) {
          if (advances) journal.release('sink', 1)
          await appendMarks(journal, [i])
        }
        await journal.close()
        return performance.now() - started
      }
      // Each of the three commits waits for the maximum of a tenth of a second.
      expect(await timeOf(true)).toBeGreaterThanOrEqual(300)
      // A busy machine delays some attempts, not all.
      await eventually(async () => (await timeOf(false)) < 300)
    })

    test('a hold pauses commits, and appends wait for its release', async () => {
      const journal = await (await create()).open()
      await appendMarks(journal, [1])
      const release = await journal.hold()
      let isDone = false
      const append = appendMarks(journal, [2]).then(() => (isDone = true))
      await Bun.sleep(20)
      expect([isDone, journal.endSeq]).toEqual([false, 1])
      release()
      await append
      expect(journal.endSeq).toBe(2)
    })

    test('drop removes rows before a cut from memory and storage; positions continue, also after reopening', async () => {
      const stored = await create()
      const journal = await stored.open()
      await appendMarks(journal, [1, 2, 3])
      const seq = await journal.cut()
      expect(seq).toBe(3)
      expect(await journal.drop(seq)).toBe(true)
      expect([journal.startSeq, journal.endSeq]).toEqual([4, 3])
      expect(journal.recent(0, 1e6)).toBeNull()
      expect(await journal.read(0, 1e6)).toEqual([])
      await journal.close()
      const again = await stored.open()
      expect([again.startSeq, again.endSeq, again.epoch, again.gaps]).toEqual([4, 3, journal.epoch, []])
      expect(await appendMarks(again, [4])).toEqual({ firstSeq: 4, lastSeq: 4 })
      expect(again.recent(3, 1e6)).toHaveLength(1)
      expect([...(await marksAfter(again, 3))]).toEqual([[4, 4]])
    })

    test('a cut covers everything accepted before it and loses no concurrent append', async () => {
      const random = seededRandom('journal cuts', SEED)
      for (let round = 0; round < 6; round++) {
        const stored = await create()
        const journal = await stored.open({ unitBytes: random.pick([1, 4_096, 1e9]), tailBytes: random.pick([1, 1e9]) })
        const appends: Promise<unknown>[] = []
        const before: Promise<{ lastSeq: number }>[] = []
        let seq = 0
        for (let i = 0; i < 40; i++) {
          const appended = appendMarks(
            journal,
            Array.from({ length: random.int(1, 5) }, (_, index) => i * 10 + index),
          )
          appends.push(appended)
          if (i < 20) before.push(appended)
          if (i === 19) appends.push(journal.cut().then((cut) => (seq = cut)))
          if (random.bool(0.3)) await Bun.sleep(0)
        }
        await Promise.all(appends)
        expect(Math.max(...(await Promise.all(before)).map(({ lastSeq }) => lastSeq))).toBeLessThanOrEqual(seq)
        const kept = [...(await marksAfter(journal, seq))]
        expect(await journal.drop(seq)).toBe(true)
        expect(journal.startSeq).toBe(seq + 1)
        expect([...(await marksAfter(journal, seq))]).toEqual(kept)
        expect(kept).toHaveLength(journal.endSeq - seq)
        await journal.close()
        const again = await stored.open()
        expect([...(await marksAfter(again, seq))]).toEqual(kept)
        await again.close()
      }
    })

    test('does not drop rows that a consumer has not read yet', async () => {
      const journal = await (await create()).open()
      journal.release('sink', 0)
      await appendMarks(journal, [1, 2, 3])
      const seq = await journal.cut()
      expect(await journal.drop(seq)).toBe(false)
      expect([...(await marksAfter(journal)).values()]).toEqual([1, 2, 3])
      journal.release('sink', 3)
      expect(await journal.drop(seq)).toBe(true)
    })

    test('expiry drops whole days, also in a journal without recent writes', async () => {
      const clock = { ms: Date.UTC(2026, 0, 1, 12), now: (): number => clock.ms }
      const stored = await create()
      const journal = await stored.open({ clock })
      for (let day = 0; day < 4; day++) {
        await appendMarks(journal, [day])
        await appendMarks(journal, [day])
        clock.ms += DAY_MS
      }
      await journal.expire(clock.ms - 2 * DAY_MS - DAY_MS)
      expect(journal.startSeq).toBe(3)
      await journal.close()
      const again = await stored.open({ clock })
      await again.expire(clock.ms - 2 * DAY_MS)
      expect([...(await marksAfter(again, 4)).values()]).toEqual([2, 2, 3, 3])
      expect(again.startSeq).toBe(5)
      await again.expire(clock.ms)
      expect([again.startSeq, again.endSeq]).toEqual([9, 8])
      expect(await marksAfter(again)).toHaveProperty('size', 0)
      await again.expire(clock.ms + 100 * DAY_MS)
      expect(await appendMarks(again, [4])).toEqual({ firstSeq: 9, lastSeq: 9 })
    })

    test('a refused workspace can append nothing more; earlier ones stay, and other workspaces continue', async () => {
      const journal = await (await create()).open()
      const run = runRef()
      const before = appendMarks(journal, [1], run)
      journal.refuse(run.workspaceId)
      await expect(appendMarks(journal, [2], run)).rejects.toMatchObject({ code: 'FORBIDDEN' })
      await expect(journal.appendTasks([taskRow(run)], [])).rejects.toMatchObject({ code: 'FORBIDDEN' })
      await expect(journal.appendScores(scoreBatch(run, [{}]))).rejects.toMatchObject({ code: 'FORBIDDEN' })
      const mixed = [deliveryRow(runRef().workspaceId), deliveryRow(run.workspaceId)]
      await expect(journal.appendDeliveries(mixed)).rejects.toMatchObject({ code: 'FORBIDDEN' })
      await appendMarks(journal, [3])
      await before
      expect([...(await marksAfter(journal)).values()]).toEqual([1, 3])
    })

    test('a position that a consumer has seen is not reused, even if the journal has lost it', async () => {
      const stored = await create()
      const journal = await stored.open()
      await appendMarks(journal, [1, 2, 3])
      await journal.close()
      const decideStart = async () => ({ afterSeq: 10, loadedSeq: 6, newEpoch: false })
      const again = await stored.open({ decideStart })
      expect([again.endSeq, again.gaps]).toEqual([10, [{ afterSeq: 3, throughSeq: 10, loadedSeq: 6 }]])
      expect(await appendMarks(again, [4])).toEqual({ firstSeq: 11, lastSeq: 11 })
      expect(again.epoch).toBe(journal.epoch)
      expect([...(await marksAfter(again)).keys()]).toEqual([1, 2, 3, 11])
    })

    test('an empty journal continues after the positions of another one, without a gap', async () => {
      const journal = await (await create()).open({
        decideStart: async (found) => {
          expect([found.endSeq, found.acknowledgedSeq]).toEqual([0, 0])
          return { afterSeq: 50, loadedSeq: 50, newEpoch: false }
        },
      })
      expect([journal.endSeq, journal.gaps]).toEqual([50, []])
      expect(await appendMarks(journal, [1])).toEqual({ firstSeq: 51, lastSeq: 51 })
    })

    test('a new epoch continues in the same log: consumers read earlier rows, feeds start at the new epoch', async () => {
      const stored = await create()
      const first = await stored.open()
      await appendMarks(first, [1, 2, 3])
      await first.close()
      const decideStart = async () => ({ afterSeq: 20, loadedSeq: 20, newEpoch: true })
      const second = await stored.open({ decideStart })
      expect(second.epoch).not.toBe(first.epoch)
      expect(second.epochs).toEqual([
        { epoch: first.epoch, firstSeq: 1 },
        { epoch: second.epoch, firstSeq: 21 },
      ])
      expect([second.startSeq, second.epochAt(20), second.epochAt(21)]).toEqual([21, first.epoch, second.epoch])
      await appendMarks(second, [4, 5])
      await second.close()
      const third = await stored.open()
      expect([third.epoch, third.startSeq, gapsOf(third)]).toEqual([second.epoch, 21, [[3, 20]]])
      expect([...(await marksAfter(third)).keys()]).toEqual([1, 2, 3, 21, 22])
    })

    test('a follower passes a gap at the end and waits for what comes after it', async () => {
      const stored = await create()
      const first = await stored.open()
      await appendMarks(first, [1])
      await first.close()
      const decideStart = async () => ({ afterSeq: 5, loadedSeq: 0, newEpoch: false })
      const journal = await stored.open({ decideStart })
      const frames = journal.follow(0, new AbortController().signal)[Symbol.asyncIterator]()
      expect((await frames.next()).value?.firstSeq).toBe(1)
      const next = frames.next()
      await appendMarks(journal, [2])
      expect((await next).value?.firstSeq).toBe(6)
    })
  })
}
