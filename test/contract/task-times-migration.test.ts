import { expect, test } from 'bun:test'
import { copyFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { createColumnarClient } from '../../src/clickhouse/client.ts'
import { migrateClickHouse } from '../../src/clickhouse/migrate.ts'
import { RecordBlock } from '../../src/journal/blocks/record-block.ts'
import type { TaskRow } from '../../src/journal/rows.ts'
import { taskActivity } from '../../src/live/activity.ts'
import { parseFilter } from '../../src/live/filter.ts'
import { createHistory } from '../../src/live/history.ts'
import { migratePostgres } from '../../src/postgres/migrate.ts'
import { TASK_STATUSES } from '../../src/tasks/state.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { runRef } from '../support/events.ts'
import { emptyDatabase } from '../support/postgres.ts'
import { taskRow } from '../support/rows.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** Tasks of the previous version get start and end times from their reports, the same in both stores and in feeds. */

const log = createLog('error')
const MIGRATIONS = join(import.meta.dir, '..', '..', 'sql')
const CREATED = 1_767_225_600_000
const UPDATED = CREATED + 5_000
/** Start and end in milliseconds after the first report. */
const EXPECTED = {
  pending: [null, null],
  running: [0, null],
  completed: [0, 5_000],
  failed: [0, 5_000],
  skipped: [null, 5_000],
}

test('Postgres: takes the times of the first and the last report', async () => {
  const { url, sql } = await emptyDatabase()
  await migratePostgres(url, log, await migrationsBefore('postgres', '0012'))
  await sql`insert into workspaces (workspace_id, name, created_at, updated_at) values (${runRef().workspaceId}, 'w', now(), now())`
  const [{ workspace_id }] = await sql<{ workspace_id: string }[]>`select workspace_id from workspaces`
  const { agentId, runId } = runRef()
  await sql`
    insert into agents (agent_id, workspace_id, name, runtime_type, metadata, created_at, updated_at)
    values (${agentId}, ${workspace_id}, 'a', 'external', '{}', now(), now())`
  await sql`
    insert into runs (run_id, workspace_id, agent_id, agent_version, runtime_type, status, trigger_type, metadata, input, created_at)
    values (${runId}, ${workspace_id}, ${agentId}, 1, 'external', 'running', 'sdk', '{}', '{}', now())`
  for (const status of TASK_STATUSES)
    await sql`
      insert into tasks (run_id, task_id, workspace_id, agent_id, name, status, created_at, updated_at)
      values (${runId}, ${crypto.randomUUID()}, ${workspace_id}, ${agentId}, 'old', ${status}, ${new Date(CREATED)}, ${new Date(UPDATED)})`
  await migratePostgres(url, log)
  const rows = await sql<{ status: string; started_at: Date | null; completed_at: Date | null }[]>`
    select status, started_at, completed_at from tasks where not is_start_reported and not is_end_reported`
  const after = (time: Date | null) => (time === null ? null : time.getTime() - CREATED)
  expect(Object.fromEntries(rows.map((row) => [row.status, [after(row.started_at), after(row.completed_at)]]))).toEqual(
    EXPECTED,
  )
})

test('ClickHouse and feeds: the same, for existing rows and for older frames that are loaded later', async () => {
  const { backend } = await freshColumnarDatabase()
  const name = `test_times_${process.pid}`
  const client = createColumnarClient(backend, name)
  await migrateClickHouse(client, log, await migrationsBefore('clickhouse', '0007'))
  const signal = new AbortController().signal
  const run = runRef()
  const old = TASK_STATUSES.map((status): TaskRow => {
    const {
      started_at: _,
      completed_at: __,
      ...row
    } = taskRow(run, { status, created_at: CREATED, updated_at: UPDATED })
    return row
  })
  const insert = async (block: RecordBlock<TaskRow>, firstSeq: number, rows: readonly TaskRow[]) => {
    block.add(rows, [])
    const pieces = block.build(firstSeq, UPDATED, 'epoch-1')
    for (const table of ['tasks', 'task_changes']) await client.insertNative(table, pieces, `${firstSeq}`, signal)
  }
  await insert(oldBlock(), 1, old)
  await migrateClickHouse(client, log)
  const later = old.map((row) => ({ ...row, task_id: Bun.randomUUIDv7() }))
  await insert(oldBlock(), 6, later)
  const own = taskRow(run, { status: 'failed', started_at: null, completed_at: null })
  await insert(RecordBlock.ofTasks(), 11, [own])
  const rows = await client.query<{ status: string; times: (number | null)[] }>(
    `select status, [toUnixTimestamp64Milli(started_at) - ${CREATED}, toUnixTimestamp64Milli(completed_at) - ${CREATED}] as times
     from tasks final order by seq`,
  )
  const expected = TASK_STATUSES.map((status) => ({ status, times: EXPECTED[status] }))
  expect(rows).toEqual([...expected, ...expected, { status: 'failed', times: [null, null] }])
  const filter = parseFilter({ kind: 'task' }, 'filter', { agentId: null, runId: null })
  const history = createHistory({ columnar: client, epoch: 'epoch-1' })
  const { items } = await history.read({ workspaceId: run.workspaceId, filter, afterSeq: 0, untilSeq: 11, signal })
  expect(items.map(({ text }) => text)).toEqual(
    [...old, ...later, own].map(
      (row, i) => taskActivity({ epoch: 'epoch-1', seq: i + 1, receivedAt: UPDATED }, row).text,
    ),
  )
  await client.command(`drop database ${name}`, { database: 'default' })
  await client.close()
})

/** A block as the previous version wrote it. */
function oldBlock(): RecordBlock<TaskRow> {
  return new RecordBlock<TaskRow>([
    ['workspace_id', 'UUID'],
    ['agent_id', 'UUID'],
    ['run_id', 'UUID'],
    ['task_id', 'UUID'],
    ['parent_task_id', 'UUID', 'null'],
    ['name', 'String'],
    ['status', 'String'],
    ['input', 'String', 'null'],
    ['output', 'String', 'null'],
    ['error_message', 'String', 'null'],
    ['created_at', "DateTime64(3, 'UTC')"],
    ['updated_at', "DateTime64(3, 'UTC')"],
  ])
}

async function migrationsBefore(store: string, number: string): Promise<string> {
  const directory = await temporaryDirectory()
  const from = join(MIGRATIONS, store)
  for (const each of (await readdir(from)).filter((file) => file < number))
    await copyFile(join(from, each), join(directory, each))
  return directory
}
