import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { RunCounts } from '../../src/activity/runs/counts.ts'
import { startRunStatistics } from '../../src/activity/runs/statistics.ts'
import { startUsageChanges, usageLag } from '../../src/activity/runs/usage-changes.ts'
import { systemClock } from '../../src/base/clock.ts'
import { mint, type RunRef } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { Metrics } from '../../src/base/metrics.ts'
import { SetAside } from '../../src/base/set-aside.ts'
import type { Journal } from '../../src/stores/journal/journal.ts'
import { openLocalJournal } from '../../src/stores/journal/local/journal.ts'
import type { Sql } from '../../src/stores/postgres/connect.ts'
import { batchOf } from '../support/events.ts'
import { eventually } from '../support/eventually.ts'
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
    const first = await startRunStatistics({ counts: new RunCounts(sql), journal, log, intervalMs: 1 })
    await first.flush()
    await report(refs[1], 4)
    await first.stop()
    await report(refs[0], 1)
    await report(refs[2], 2)
    const second = await startRunStatistics({ counts: new RunCounts(sql), journal, log, intervalMs: 1 })
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
    const statistics = await startRunStatistics({ counts: new RunCounts(sql), journal: seen, log, intervalMs: 1 })
    await statistics.flush()
    expect(empty).toBeGreaterThan(2)
    expect(await counted()).toEqual(wanted)
    await statistics.stop()
  })

  test('count nothing again after epochs in which nobody has counted', async () => {
    const { sql, journal, wanted, refs, report, counted } = await fixture(1)
    await report(refs[0]!, 3)
    const first = await startRunStatistics({ counts: new RunCounts(sql), journal, log, intervalMs: 1 })
    await first.flush()
    await first.stop()
    const epochs = [...journal.epochs, { epoch: 'second', firstSeq: 4 }, { epoch: 'third', firstSeq: 4 }]
    const renewed = new Proxy(journal, {
      get(target, name) {
        if (name === 'epochs') return epochs
        if (name === 'epoch') return 'third'
        const value = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    await report(refs[0]!, 2)
    const next = await startRunStatistics({ counts: new RunCounts(sql), journal: renewed, log, intervalMs: 1 })
    await next.flush()
    await next.stop()
    expect(await counted()).toEqual(wanted)
  })

  test('a flush waits for acknowledged events, however long the interval', async () => {
    const { sql, journal, refs, wanted, report, counted } = await fixture(1)
    const statistics = await startRunStatistics({ counts: new RunCounts(sql), journal, log, intervalMs: 3_600_000 })
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
    const all = await Promise.all(
      [1, 2].map(() => startRunStatistics({ counts: new RunCounts(sql), journal, log, intervalMs: 1 })),
    )
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
    const statistics = await startRunStatistics({ counts: new RunCounts(sql), journal, log, intervalMs: 1 })
    const before = Date.now()
    await report(refs[0], 1)
    await statistics.flush()
    const [run] = await sql`select last_event_at from runs where workspace_id = ${caller.workspaceId}`
    expect(run.last_event_at.getTime()).toBeWithin(before, Date.now() + 1)
    await statistics.stop()
  })

  test('a sum of tokens that is too large for its column stops nobody', async () => {
    const { sql, journal, refs, wanted, report, counted } = await fixture(2)
    await sql`update runs set input_tokens = 9223372036854775807 - 500000000000 where run_id = ${refs[0].runId}`
    const statistics = await startRunStatistics({ counts: new RunCounts(sql), journal, log, intervalMs: 1 })
    await reportTokens(journal, refs[0], 1e12)
    wanted.set(refs[0].runId, 1)
    await report(refs[1], 2)
    await statistics.flush()
    expect(await counted()).toEqual(wanted)
    const [{ input_tokens }] = await sql`select input_tokens from runs where run_id = ${refs[0].runId}`
    expect(input_tokens).toBe(Number.MAX_SAFE_INTEGER)
    await statistics.stop()
  })

  test('runs whose counts the database refuses are set aside after two failures; all others are counted', async () => {
    const { sql, journal, refs, wanted, report, counted, caller } = await fixture(7)
    const poisoned = [refs[2].runId, refs[5].runId]
    await refuseCounts(sql, caller.workspaceId, poisoned)
    for (const [index, run] of refs.entries()) await report(run, index + 1)
    const setAside = new SetAside(new Metrics())
    const statistics = await startRunStatistics({ counts: new RunCounts(sql), journal, log, setAside, intervalMs: 1 })
    await statistics.flush()
    for (const runId of poisoned) wanted.set(runId, 0)
    expect(await counted()).toEqual(wanted)
    expect(setAside.of('run_statistics')).toBe(2)
    expect(statistics.lag()).toBe(0)
    await sql`drop trigger refused on runs`
    // What comes later is counted again.
    await report(refs[2], 4)
    await statistics.flush()
    expect(await counted()).toEqual(wanted)
    await statistics.stop()
  })

  test('runs whose usage cannot be written to the outbox are set aside; all others are written', async () => {
    const { sql, refs, caller } = await fixture(5)
    await sql`truncate outbox`
    // One of them was noted while the clock was hours ahead.
    await sql`
      insert into run_usage_changes (run_id, workspace_id, due_at)
      select run_id, workspace_id, case run_id when ${refs[0].runId} then now() + interval '6 hours' else now() end
      from runs where workspace_id = ${caller.workspaceId}`
    await sql.unsafe(`
      create or replace function refuse() returns trigger language plpgsql as
        $$ begin raise exception 'out of range' using errcode = '22003'; end $$;
      create trigger refused before insert on outbox for each row
        when (new.body ->> 'run_id' = '${refs[3].runId}') execute function refuse()`)
    const setAside = new SetAside(new Metrics())
    const usage = startUsageChanges({ sql, log, setAside, onChange: () => {} })
    const written = await eventually(async () => {
      const rows = await sql<{ run_id: string }[]>`select body ->> 'run_id' as run_id from outbox order by run_id`
      return rows.length > 0 && rows.map(({ run_id }) => run_id)
    })
    expect(written).toEqual(refs.flatMap(({ runId }, index) => (index === 3 ? [] : [runId])).sort())
    expect(setAside.of('run_usage')).toBe(1)
    await usage.stop()
    expect(await usageLag(sql)).toBe(0)
    await sql`drop trigger refused on outbox`
  })
})

function reportTokens(journal: Journal, run: RunRef, tokens: number) {
  return journal.appendEvents(batchOf(run, [{ type: 'llm.call', payload: { input_tokens: tokens } }]))
}

/** Makes the database refuse to change the counts of these runs, as it refuses a number that is too large. */
async function refuseCounts(sql: Sql, workspaceId: string, runIds: readonly string[]): Promise<void> {
  await sql.unsafe(`
    create or replace function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'out of range' using errcode = '22003'; end $$;
    create trigger refused before update on runs for each row
      when (old.workspace_id = '${workspaceId}' and old.run_id in (${runIds.map((id) => `'${id}'`).join(', ')}))
      execute function refuse()`)
}
