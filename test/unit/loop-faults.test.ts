import { expect, spyOn, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { RunCounts } from '../../src/activity/runs/counts.ts'
import { startRunStatistics } from '../../src/activity/runs/statistics.ts'
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { Loops } from '../../src/base/loops.ts'
import { parseFilter } from '../../src/feeds/live/filter.ts'
import { Hub } from '../../src/feeds/live/hub.ts'
import type { Outlet } from '../../src/feeds/live/packet.ts'
import { type LocalJournal, openLocalJournal } from '../../src/stores/journal/local/journal.ts'
import { startOutboxRelay } from '../../src/stores/journal/outbox-relay.ts'
import { RelayedRows } from '../../src/stores/journal/outbox-rows.ts'
import { SinkPositionFile } from '../../src/stores/sink/position.ts'
import { loadIntervalMs, Sink, type SinkOptions } from '../../src/stores/sink/sink.ts'
import { batchOf, runRef } from '../support/events.ts'
import { eventually } from '../support/eventually.ts'
import { noSessions } from '../support/matching.ts'
import { freshDatabase } from '../support/postgres.ts'
import { runRow } from '../support/rows.ts'
import { startSink } from '../support/sink.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** Faults of files and callees in the real loops: no loop stops, and each catches up afterwards. */

const log = createLog('silent')
const EVERYTHING = parseFilter({}, 'filter', { agentId: null, runId: null })

/** Almost nothing stays in memory, so that consumers read files. */
async function openJournal(): Promise<{ dir: string; journal: LocalJournal }> {
  const dir = await temporaryDirectory()
  const sizes = { maxBytes: 1 << 30, keepBytes: 1 << 30, segmentBytes: 1, tailBytes: 1 }
  const journal = await openLocalJournal({ dir, ...sizes, clock: systemClock, log })
  atEnd(() => journal.close())
  return { dir, journal }
}

function append(journal: LocalJournal, run = runRef()) {
  return journal.appendEvents(batchOf(run, [{ type: 'a' }, { type: 'b' }]))
}

function inserter() {
  const batches = new Map<string, number>()
  const client: SinkOptions['client'] = {
    insertNative: async (_table, blocks, token) => void batches.set(token, blocks.length),
  }
  return { client, batches }
}

test('the sink survives an unreadable file and loads it once it is readable', async () => {
  const { dir, journal } = await openJournal()
  for (let i = 0; i < 3; i++) await append(journal)
  const first = join(dir, '0000000000000001.segment')
  fs.renameSync(first, `${first}.away`)
  const loops = new Loops(log)
  const { client, batches } = inserter()
  const sink = await startSink({ journal, client, dir, log, loops, intervalMs: 1 })
  await eventually(() => loops.states()[0].failures >= 2)
  expect(loops.states()[0]).toMatchObject({ name: 'sink', lastError: { code: 'ENOENT' } })
  fs.renameSync(`${first}.away`, first)
  expect(await sink.waitFor(6, 20_000)).toBe(true)
  await eventually(() => loops.states()[0].failingMs === 0)
  expect([...batches.values()].reduce((sum, blocks) => sum + blocks, 0)).toBe(3)
  await sink.stop(0)
})

test('the sink survives a failed write of its position and resends the same batch with the same token', async () => {
  const { dir, journal } = await openJournal()
  await append(journal)
  const position = await SinkPositionFile.open(dir)
  const set = position.set.bind(position)
  let calls = 0
  // Before the batch, and after it.
  const failing = spyOn(position, 'set').mockImplementation(async (next) => {
    if ([1, 3].includes(++calls)) throw Object.assign(new Error('EIO'), { code: 'EIO' })
    return set(next)
  })
  const loops = new Loops(log)
  const sent: string[] = []
  const client: SinkOptions['client'] = { insertNative: async (_table, _blocks, token) => void sent.push(token) }
  const sink = new Sink({ journal, client, position, log, loops, intervalMs: 1 })
  expect(await sink.waitFor(2, 20_000)).toBe(true)
  expect(sent).toEqual([`${journal.epoch}-0-2`, `${journal.epoch}-0-2`])
  expect(loops.states()[0].failures).toBe(2)
  failing.mockRestore()
  await sink.stop(0)
  expect((await SinkPositionFile.read(dir)).loadedSeq).toBe(2)
})

test('many partitions load less often each, so that ClickHouse can merge what they load, but every two seconds at least', () => {
  expect([1, 12, 24, 1_024].map(loadIntervalMs)).toEqual([200, 200, 400, 2_000])
})

test('the sink does not send a batch again to tables that have it while another table refuses it', async () => {
  const { dir, journal } = await openJournal()
  await append(journal)
  await journal.appendRuns([runRow(runRef())], [])
  const sent: string[] = []
  const client: SinkOptions['client'] = {
    insertNative: async (table) => {
      sent.push(table)
      if (table === 'run_changes' && sent.filter((each) => each === table).length < 3) throw new Error('read-only')
    },
  }
  const sink = await startSink({ journal, client, dir, log, intervalMs: 1 })
  expect(await sink.waitFor(3, 20_000)).toBe(true)
  expect(sent).toEqual(['events', 'runs', 'run_changes', 'run_changes', 'run_changes'])
  await sink.stop(0)
})

test('run statistics survive an unreadable file and count each event once', async () => {
  const { sql } = await freshDatabase()
  const { dir, journal } = await openJournal()
  await append(journal)
  await append(journal)
  const first = join(dir, '0000000000000001.segment')
  fs.renameSync(first, `${first}.away`)
  const loops = new Loops(log)
  const statistics = await startRunStatistics({ counts: new RunCounts(sql), journal, log, loops, intervalMs: 1 })
  await eventually(() => loops.states()[0].failures >= 2)
  fs.renameSync(`${first}.away`, first)
  await statistics.flush()
  expect([statistics.lag(), loops.states()[0].failingMs]).toEqual([0, 0])
  await statistics.stop()
})

test('the relay survives journal errors and database errors', async () => {
  const { sql } = await freshDatabase()
  const { journal } = await openJournal()
  const loops = new Loops(log)
  const relay = startOutboxRelay({ rows: new RelayedRows(sql), journal, log, loops })
  const ids = spyOn(journal, 'lastOutboxIds').mockImplementation(() => {
    throw new Error('out of order')
  })
  const { workspaceId, agentId, runId } = runRef()
  const row = { agent_id: agentId, run_id: runId, event_id: 'e', type: 'a', level: 2, payload: '{}', occurred_at: 1 }
  const body = JSON.stringify({ workspace_id: workspaceId, ...row })
  await sql`insert into outbox (workspace_id, kind, body) values (${workspaceId}, 'event', ${body}::text::json)`
  await eventually(() => loops.states()[0].failures >= 2)
  ids.mockRestore()
  await relay.flush()
  expect([journal.endSeq, loops.states()[0].failingMs]).toEqual([1, 0])
  await relay.stop()
})

function collector(failOn = Number.POSITIVE_INFINITY) {
  const seen: number[] = []
  const gaps: [number, number][] = []
  const failures: string[] = []
  const outlet: Outlet = {
    send: ({ items, lastSeq }) => {
      if (lastSeq >= failOn) throw new Error('a socket that throws')
      seen.push(...items.map(({ seq }) => seq))
      return true
    },
    gap: (afterSeq, resumedSeq) => void gaps.push([afterSeq, resumedSeq]),
    caughtUp() {},
    failed: ({ code }) => void failures.push(code),
  }
  return { seen, gaps, failures, outlet }
}

function startHub(journal: LocalJournal) {
  const loops = new Loops(log)
  const hub = new Hub({
    journal,
    history: { read: () => Promise.reject(new Error('not asked for')) },
    lookUpSessions: noSessions,
    log,
    loops,
    filtersPerWorkspace: 100,
  })
  atEnd(() => hub.stop())
  return { hub, loops }
}

test('the hub survives a feed that throws: that feed ends, the others get everything once', async () => {
  const { journal } = await openJournal()
  const { hub, loops } = startHub(journal)
  const [mine, other] = [runRef(), runRef()]
  const [broken, sound] = [collector(1), collector()]
  hub.subscribe({ workspaceId: mine.workspaceId, filter: EVERYTHING, afterSeq: 0, outlet: broken.outlet })
  hub.subscribe({ workspaceId: other.workspaceId, filter: EVERYTHING, afterSeq: 0, outlet: sound.outlet })
  await eventually(() => hub.counts().behind === 0)
  await Promise.all([append(journal, mine), append(journal, other)])
  await append(journal, other)
  await eventually(() => sound.seen.length === 4)
  expect([sound.seen, broken.failures]).toEqual([[3, 4, 5, 6], ['INTERNAL']])
  expect(loops.states().find(({ name }) => name === 'live feeds')!.failures).toBe(1)
})

test('the hub survives frames that cannot be decoded: feeds continue, and each gets everything once', async () => {
  const { journal } = await openJournal()
  const { hub, loops } = startHub(journal)
  const run = runRef()
  const feed = collector()
  hub.subscribe({ workspaceId: run.workspaceId, filter: EVERYTHING, afterSeq: 0, outlet: feed.outlet })
  await eventually(() => hub.counts().behind === 0)
  const recent = journal.recent.bind(journal)
  let calls = 0
  const bad = spyOn(journal, 'recent').mockImplementation((afterSeq, maxBytes) => {
    const frames = recent(afterSeq, maxBytes)
    if (frames === null || frames.length === 0 || calls++ > 0) return frames
    return frames.map((frame) => ({
      ...frame,
      get block(): Buffer {
        throw new Error('no block')
      },
    }))
  })
  await append(journal, run)
  await append(journal, run)
  await eventually(() => feed.seen.length === 4)
  expect(feed.seen).toEqual([1, 2, 3, 4])
  bad.mockRestore()
  await eventually(() => loops.states().every(({ failingMs }) => failingMs === 0))
  expect(loops.states().some(({ failures }) => failures > 0)).toBe(true)
})

test('a feed reports each gap in the files, even one in the middle of a read', async () => {
  const dir = await temporaryDirectory()
  const options = { dir, maxBytes: 1 << 30, keepBytes: 1 << 30, clock: systemClock, log }
  const first = await openLocalJournal(options)
  const run = runRef()
  for (let i = 0; i < 4; i++) await append(first, run)
  await first.close()
  const path = join(dir, '0000000000000001.segment')
  const bytes = fs.readFileSync(path)
  // In the block of the second commit.
  bytes.fill(7, 4096 + 200, 4096 + 210)
  fs.writeFileSync(path, bytes)
  const journal = await openLocalJournal(options)
  atEnd(() => journal.close())
  const { hub } = startHub(journal)
  const feed = collector()
  hub.subscribe({ workspaceId: run.workspaceId, filter: EVERYTHING, afterSeq: 0, outlet: feed.outlet })
  await eventually(() => feed.seen.length === 6)
  expect([feed.seen, feed.gaps]).toEqual([[1, 2, 5, 6, 7, 8], [[2, 4]]])
})

test('loops that start together do not work at the same moment', async () => {
  const loops = new Loops(createLog('silent'))
  const began: string[] = []
  const ends = ['one', 'two', 'three'].map((name) => loops.repeat(name, 100, async () => began.push(name)))
  await eventually(() => began.length >= 3)
  for (const end of ends) await end()
  expect(began.slice(0, 3)).toEqual(['three', 'one', 'two'])
})

test('a call that failed is repeated soon, although its loop has a long interval', async () => {
  const loops = new Loops(log)
  let calls = 0
  const work = async () => {
    if (++calls === 1) throw new Error('a store was restarted')
  }
  const end = loops.repeat('rare', 3_600_000, work, { atOnce: true, retryMs: 5 })
  await eventually(() => expect(calls).toBe(2))
  expect(loops.states()).toMatchObject([{ name: 'rare', failingMs: 0, failures: 1 }])
  await Bun.sleep(30)
  expect(calls).toBe(2)
  await end()
})

test('a call that throws at once is repeated', async () => {
  const loops = new Loops(log)
  let calls = 0
  const work = (): Promise<void> => {
    calls++
    throw new Error('before anything was awaited')
  }
  const end = loops.repeat('hasty', 5, work, { atOnce: true })
  await eventually(() => expect(calls).toBeGreaterThan(2))
  await end()
})
