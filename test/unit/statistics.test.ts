import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { mint, type RunRef } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { openLocalJournal } from '../../src/journal/local/journal.ts'
import { startRunStatistics } from '../../src/runs/statistics.ts'
import { batchOf } from '../support/events.ts'
import { freshDatabase } from '../support/postgres.ts'
import { seededRandom } from '../support/random.ts'
import { newCaller, storesOn } from '../support/runs.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

const log = createLog('silent')
let database: Awaited<ReturnType<typeof freshDatabase>>
beforeAll(async () => {
  database = await freshDatabase()
})

async function fixture(runs: number) {
  const { sql } = database
  const dir = join(await temporaryDirectory(), 'journal')
  const journal = await openLocalJournal({ dir, maxBytes: 1 << 30, keepBytes: 0, clock: systemClock, log })
  atEnd(() => journal.close())
  const caller = await newCaller(sql)
  const stores = storesOn(sql)
  const refs: RunRef[] = []
  for (let index = 0; index < runs; index++) {
    const { run_id } = await stores.runs.start(caller, { agent_id: caller.agentId }, mint)
    refs.push((await stores.directory.find(caller.workspaceId, run_id)) as RunRef)
  }
  const wanted = new Map(refs.map(({ runId }) => [runId, 0]))
  async function report(run: RunRef, events: number): Promise<void> {
    wanted.set(run.runId, (wanted.get(run.runId) ?? 0) + events)
    await journal.appendEvents(batchOf(run, Array(events).fill({ type: 'e' })))
  }
  async function counted(): Promise<Map<string, number>> {
    const rows = await sql<{ run_id: string; event_count: number }[]>`
      select run_id, event_count from runs where workspace_id = ${caller.workspaceId}`
    return new Map(rows.map((row) => [row.run_id, row.event_count]))
  }
  return { sql, journal, refs, wanted, report, counted, caller }
}

describe('run statistics', () => {
  test('count events that arrived while they were stopped, each once', async () => {
    const { sql, journal, refs, wanted, report, counted } = await fixture(3)
    await report(refs[0], 3)
    const first = await startRunStatistics({ sql, journal, log, intervalMs: 1 })
    await first.flush()
    await report(refs[1], 4)
    await first.stop()
    await report(refs[0], 1)
    await report(refs[2], 2)
    const second = await startRunStatistics({ sql, journal, log, intervalMs: 1 })
    await second.flush()
    expect(await counted()).toEqual(wanted)
    expect(second.lag()).toBe(0)
    await second.stop()
  })

  test('count what a journal gives only later, although it knows of no gap', async () => {
    const { sql, journal, refs, wanted, report, counted } = await fixture(1)
    await report(refs[0], 3)
    let empty = 0
    // As a lagging server of the log might.
    const read: typeof journal.read = async (...args) => (++empty > 2 ? journal.read(...args) : [])
    const seen = new Proxy(journal, { get: (of, name) => (name === 'read' ? read : Reflect.get(of, name, of)) })
    const statistics = await startRunStatistics({ sql, journal: seen, log, intervalMs: 1 })
    await statistics.flush()
    expect(empty).toBeGreaterThan(2)
    expect(await counted()).toEqual(wanted)
    await statistics.stop()
  })

  test('a flush waits for acknowledged events, however long the interval', async () => {
    const { sql, journal, refs, wanted, report, counted } = await fixture(1)
    const statistics = await startRunStatistics({ sql, journal, log, intervalMs: 3_600_000 })
    await report(refs[0], 5)
    await statistics.flush()
    expect(await counted()).toEqual(wanted)
    await statistics.stop()
    await report(refs[0], 1)
    await expect(statistics.flush()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  })

  test('count each event once with several processes and broken connections', async () => {
    const random = seededRandom('run statistics')
    const { sql, journal, refs, wanted, report, counted } = await fixture(5)
    const all = await Promise.all([1, 2].map(() => startRunStatistics({ sql, journal, log, intervalMs: 1 })))
    for (let round = 0; round < 60; round++) {
      await report(random.pick(refs), random.int(1, 9))
      if (random.bool(0.15)) {
        await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and query like '%advanced%' and pid <> pg_backend_pid()`.catch(() => {})
      }
    }
    await Promise.all(all.map((statistics) => statistics.flush()))
    expect(await counted()).toEqual(wanted)
    await Promise.all(all.map((statistics) => statistics.stop()))
  })

  test('record when the last event was received', async () => {
    const { sql, journal, refs, report, caller } = await fixture(1)
    const statistics = await startRunStatistics({ sql, journal, log, intervalMs: 1 })
    const before = Date.now()
    await report(refs[0], 1)
    await statistics.flush()
    const [run] = await sql`select last_event_at from runs where workspace_id = ${caller.workspaceId}`
    expect(run.last_event_at.getTime()).toBeWithin(before, Date.now() + 1)
    await statistics.stop()
  })
})
