import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { ApiError } from '../../src/base/errors.ts'
import { mint } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { Metrics } from '../../src/base/metrics.ts'
import { SetAside } from '../../src/base/set-aside.ts'
import type { Journal } from '../../src/stores/journal/journal.ts'
import { outboxLag, startOutboxRelay } from '../../src/stores/journal/outbox-relay.ts'
import { RelayedRows } from '../../src/stores/journal/outbox-rows.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import { eventually } from '../support/eventually.ts'
import { openLocal } from '../support/journals.ts'
import { freshDatabase } from '../support/postgres.ts'
import { seededRandom } from '../support/random.ts'
import { runRow } from '../support/rows.ts'
import { type Change, newCaller, recordingJournal, storesOn } from '../support/runs.ts'
import { postgresProxy } from '../support/tcp-proxy.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

const log = createLog('silent')
let database: Awaited<ReturnType<typeof freshDatabase>>
beforeAll(async () => {
  database = await freshDatabase()
})

async function openJournal(dir?: string): Promise<{ journal: Journal; dir: string }> {
  const path = dir ?? join(await temporaryDirectory(), 'journal')
  const journal = await openLocal(path)
  atEnd(() => journal.close())
  return { journal, dir: path }
}

/**
 * Starts a relay to a new journal.
 * @param afterAppend called after each append
 */
async function startRelay(afterAppend?: () => Promise<void>) {
  const { journal } = await openJournal()
  return { journal, ...relayTo(journal, afterAppend) }
}

function relayTo(journal: Journal, afterAppend?: () => Promise<void>) {
  const changes: Change[] = []
  const relay = startOutboxRelay({
    rows: new RelayedRows(database.sql),
    journal: recordingJournal(journal, changes, afterAppend),
    log,
  })
  return { relay, changes }
}

async function fixture(onChange?: () => void) {
  await database.sql`truncate outbox`
  const caller = await newCaller(database.sql)
  return { sql: database.sql, caller, ...storesOn(database.sql, onChange) }
}

const task = (status: 'running' | 'completed', id = crypto.randomUUID()) => ({ id, name: 't', status }) as const
/** Terminates the relay's connection that holds the lock. */
async function cutConnection(): Promise<void> {
  await database.sql`
    select pg_terminate_backend(l.pid) from pg_locks l join pg_database d on d.oid = l.database
    where l.locktype = 'advisory' and d.datname = current_database()`
}

const waiting = async () => (await database.sql`select from outbox`).length
const statusesOf = (changes: readonly Change[], runId: string) =>
  changes.filter(({ row }) => row.run_id === runId).map(({ kind, row }) => `${kind} ${row.status}`)

describe('the outbox relay', () => {
  test('appends every committed change once, unchanged, in the order of each run, and empties the outbox', async () => {
    const { relay, changes } = await startRelay()
    const { runs, tasks, caller } = await fixture(relay.wake)
    const ids = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const { run_id } = await runs.start(caller, { agent_id: caller.agentId, external_run_id: `${index}` }, mint)
        const first = task('running')
        await tasks.report(caller, { run_id, task: first })
        if (index % 2 === 0) await tasks.report(caller, { run_id, task: { ...first, status: 'completed' } })
        await runs.complete(caller, { run_id })
        await tasks.report(caller, { run_id, task: task('completed') })
        return run_id
      }),
    )
    await relay.flush()
    expect(await waiting()).toBe(0)
    expect(await outboxLag(database.sql)).toBe(0)
    ids.forEach((id, index) => {
      const middle = index % 2 === 0 ? ['task running', 'task completed'] : ['task running']
      expect(statusesOf(changes, id)).toEqual(['run running', ...middle, 'run completed', 'task completed'])
    })
    const [stored] = await database.sql`select created_at, completed_at from runs where run_id = ${ids[0]}`
    expect(changes.findLast(({ kind, row }) => kind === 'run' && row.run_id === ids[0])?.row).toEqual(
      runRow(
        { ...caller, runId: ids[0]!, runtimeType: 'external' },
        {
          ...{ agent_name: 'an agent', status: 'completed', external_run_id: '0', output: '{}' },
          created_at: stored!.created_at.getTime(),
          started_at: stored!.created_at.getTime(),
          completed_at: stored!.completed_at.getTime(),
          duration_ms: stored!.completed_at - stored!.created_at,
        },
      ),
    )
    await relay.stop()
  })

  test('keeps the order of each run even when one round carries many of its changes', async () => {
    const { runs, tasks, caller } = await fixture()
    const { run_id } = await runs.start(caller, { agent_id: caller.agentId }, mint)
    await tasks.report(caller, { run_id, task: task('completed') })
    await runs.complete(caller, { run_id })
    await tasks.report(caller, { run_id, task: task('running') })
    const { relay, changes } = await startRelay()
    await relay.flush()
    expect(statusesOf(changes, run_id)).toEqual(['run running', 'task completed', 'run completed', 'task running'])
    await relay.stop()
  })

  test('finds changes that another process committed, without a notification', async () => {
    const { relay, changes } = await startRelay()
    const { runs, caller } = await fixture()
    await relay.flush()
    await runs.start(caller, { agent_id: caller.agentId }, mint)
    await eventually(() => changes.length === 1)
    await relay.stop()
  })

  test('appends nothing twice when connections are lost again and again while more changes arrive', async () => {
    const { runs, tasks, caller } = await fixture()
    const ids: string[] = []
    const begin = async () => ids.push((await runs.start(caller, { agent_id: caller.agentId }, mint)).run_id)
    await begin()
    await tasks.report(caller, { run_id: ids[0], task: task('running') })
    const { relay, changes } = await startRelay(async () => {
      if (ids.length < 4) await begin()
      await cutConnection()
    })
    await eventually(async () => ids.length === 4 && (await waiting()) === 0)
    expect(changes.filter(({ kind }) => kind === 'run').map(({ row }) => row.run_id)).toEqual(ids)
    expect(statusesOf(changes, ids[0])).toEqual(['run running', 'task running'])
    await relay.stop()
  })

  test('appends nothing twice after a crash between append and delete', async () => {
    const { runs, tasks, caller } = await fixture()
    const { run_id } = await runs.start(caller, { agent_id: caller.agentId }, mint)
    await tasks.report(caller, { run_id, task: task('running') })
    await tasks.report(caller, { run_id, task: task('running') })
    const first = await openJournal()
    // The process hangs when both frames are durable.
    const before = relayTo(first.journal, async () => void (await new Promise(() => {})))
    await eventually(() => before.changes.length === 3)
    await first.journal.close()
    await cutConnection()
    expect(await waiting()).toBe(3)
    const second = await openJournal(first.dir)
    const { relay, changes } = relayTo(second.journal)
    await relay.flush()
    expect(statusesOf([...before.changes, ...changes], run_id)).toEqual(['run running', 'task running', 'task running'])
    expect(await waiting()).toBe(0)
    await relay.stop()
  })

  test('appends new changes of a restored database that reuses outbox ids', async () => {
    const { runs, caller, sql } = await fixture()
    const { relay, changes } = await startRelay()
    const ids: string[] = []
    for (let round = 0; round < 3; round++) {
      await sql`truncate outbox restart identity`
      ids.push((await runs.start(caller, { agent_id: caller.agentId }, mint)).run_id)
      await relay.flush()
    }
    expect(changes.map(({ row }) => row.run_id)).toEqual(ids)
    await relay.stop()
  })

  test('several processes on one database append each change once', async () => {
    const random = seededRandom('relay: several processes')
    const { journal } = await openJournal()
    const changes: Change[] = []
    const relays = Array.from({ length: 3 }, () =>
      startOutboxRelay({ rows: new RelayedRows(database.sql), journal: recordingJournal(journal, changes), log }),
    )
    const { runs, caller } = await fixture(() => random.pick(relays).wake())
    const ids = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const { run_id } = await runs.start(caller, { agent_id: caller.agentId }, mint)
        await runs.complete(caller, { run_id })
        return run_id
      }),
    )
    await Promise.all(relays.map((relay) => relay.flush()))
    for (const id of ids) expect(statusesOf(changes, id)).toEqual(['run running', 'run completed'])
    expect(changes).toHaveLength(120)
    await Promise.all(relays.map((relay) => relay.stop()))
  })

  test('a process that vanishes with the lock holds up the others for a few times the idle timeout', async () => {
    const proxy = await postgresProxy(database.url)
    const sql = connectPostgres(proxy.url, { log, max: 1, statementTimeoutMs: 2_000 })
    atEnd(() => sql.end({ timeout: 1 }))
    const { runs, caller } = await fixture()
    await runs.start(caller, { agent_id: caller.agentId }, mint)
    const rows = new RelayedRows(sql)
    atEnd(() => rows.close())
    const taken = async () => (await rows.take()).length === 1
    await eventually(taken)
    proxy.vanish()
    const { relay, changes } = await startRelay()
    await eventually(() => changes.length === 1).finally(relay.stop)
    expect(await waiting()).toBe(0)
  })

  test('changes wait in the outbox while the journal rejects them, then are appended', async () => {
    const { runs, caller } = await fixture()
    const { run_id } = await runs.start(caller, { agent_id: caller.agentId }, mint)
    const { journal } = await openJournal()
    const changes: Change[] = []
    let refusals = 0
    const full = new Proxy(recordingJournal(journal, changes), {
      get(target, name) {
        if (name === 'appendRuns' && refusals++ < 2) return () => Promise.reject(new ApiError('UNAVAILABLE', 'full'))
        return Reflect.get(target, name)
      },
    })
    const relay = startOutboxRelay({ rows: new RelayedRows(database.sql), journal: full, log })
    await eventually(() => refusals > 0)
    expect(await outboxLag(database.sql)).toBe(1)
    await relay.flush()
    expect(statusesOf(changes, run_id)).toEqual(['run running'])
    await relay.stop()
  })

  test('rows that the journal cannot store are set aside after two failures, and stop no others', async () => {
    const { sql, runs, caller } = await fixture()
    const ids = []
    for (let n = 0; n < 7; n++) ids.push((await runs.start(caller, { agent_id: caller.agentId }, mint)).run_id)
    const broken = [ids[1], ids[4]]
    await sql`
      update outbox set body = (body::jsonb || '{"tags": null}')::json where body ->> 'run_id' = any(${broken}::text[])`
    const { journal } = await openJournal()
    const changes: Change[] = []
    const setAside = new SetAside(new Metrics())
    const relay = startOutboxRelay({
      rows: new RelayedRows(sql),
      journal: recordingJournal(journal, changes),
      log,
      setAside,
    })
    await relay.flush()
    expect(changes.map(({ row }) => row.run_id)).toEqual(ids.filter((id) => !broken.includes(id)))
    expect(setAside.of('outbox')).toBe(2)
    expect(await waiting()).toBe(0)
    const kept =
      await sql`select body ->> 'run_id' as run_id, kind, workspace_id from outbox_set_aside order by outbox_id`
    expect([...kept]).toEqual(broken.map((run_id) => ({ run_id, kind: 'run', workspace_id: caller.workspaceId })))
    await relay.stop()
  })

  test('rejects a pending flush when the relay stops', async () => {
    await fixture()
    const { journal } = await openJournal()
    const relay = startOutboxRelay({ rows: new RelayedRows(database.sql), journal, log })
    await relay.flush()
    const stopped = relay.stop()
    await expect(relay.flush()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await stopped
  })
})
