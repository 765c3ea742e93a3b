import { t } from 'elysia'
import { cursorCodec, PAGE_LIMIT_DEFAULT } from '../../base/http/page.ts'
import { CursorMs, type PageQuery, Uuid } from '../../base/http/schema.ts'
import type { RunRef } from '../../base/ids.ts'
import { RawJson } from '../../base/raw-json.ts'
import { isoOrNull } from '../../base/timestamp.ts'
import type { PartitionRef } from '../../tenants/partitions/partition.ts'
import { type LoadedDeps, queryLoaded } from '../runs/events.ts'
import type { TaskPage, TaskRecord } from './schema.ts'

/** As for events: a page ends with the task that makes the total of its texts exceed this. */
const PAGE_BYTES_MAX = 8 << 20

const listCursor = cursorCodec(t.Tuple([CursorMs, Uuid]))

/**
 * The tasks of runs that OpenTelemetry reports. There is one for each span, too many for Postgres, so they are written
 * straight to the journal and read from ClickHouse, like events.
 */
export class TelemetryTasks {
  constructor(private readonly deps: LoadedDeps) {}

  /**
   * The tasks of a run, newest first, including all that were acknowledged before the request.
   * @throws ApiError VALIDATION_ERROR for an invalid cursor, UNAVAILABLE while ClickHouse is unavailable or far behind
   */
  async list(caller: PartitionRef, run: RunRef, query: PageQuery): Promise<TaskPage> {
    const limit = query.limit ?? PAGE_LIMIT_DEFAULT
    const [createdAt, taskId] = query.cursor === undefined ? [null, null] : listCursor.decode(query.cursor)
    const order = 'order by created_ms desc, task_id desc'
    const rows = await this.select<TaskRow>(
      caller,
      run,
      `select * except (bytes_before) from (
        select *, count() over () as found,
          sum(bytes) over (${order} rows between unbounded preceding and 1 preceding) as bytes_before
        from (
          select task_id, agent_id, parent_task_id, name, status, input, output, error_message,
            toUnixTimestamp64Milli(created_at) as created_ms, toUnixTimestamp64Milli(updated_at) as updated_ms,
            toUnixTimestamp64Milli(started_at) as started_ms, toUnixTimestamp64Milli(completed_at) as completed_ms,
            ifNull(length(input), 0) + ifNull(length(output), 0) + ifNull(length(error_message), 0) as bytes
          from tasks final
          where workspace_id = {workspace:UUID} and run_id = {run:UUID}
            ${createdAt === null ? '' : 'and (created_ms, task_id) < ({ms:Int64}, {task:UUID})'}
          ${order} limit {limit:UInt32}
        )
      )
      where bytes_before < {bytes:UInt64}
      ${order} limit {limit:UInt32} - 1`,
      { limit: limit + 1, bytes: PAGE_BYTES_MAX, ...(createdAt !== null && { ms: createdAt, task: taskId }) },
    )
    const last = rows.at(-1)
    const more = last !== undefined && last.found > rows.length
    return {
      items: rows.map((row) => toRecord(run, row)),
      next_cursor: more ? listCursor.encode([last.created_ms, last.task_id]) : null,
    }
  }

  /** The ids of those of these tasks that are stored. @throws ApiError UNAVAILABLE */
  async existing(caller: PartitionRef, run: RunRef, taskIds: readonly string[]): Promise<Set<string>> {
    const rows = await this.select<{ task_id: string }>(
      caller,
      run,
      `select distinct task_id from tasks
       where workspace_id = {workspace:UUID} and run_id = {run:UUID} and task_id in {tasks:Array(UUID)}`,
      { tasks: taskIds },
    )
    return new Set(rows.map(({ task_id }) => task_id))
  }

  private async select<Row>(
    caller: PartitionRef,
    run: RunRef,
    sql: string,
    more: Record<string, unknown>,
  ): Promise<Row[]> {
    // The API also takes tasks for these runs, which reach the journal through the outbox.
    await this.deps.partitions.of(caller).flushChanges()
    const params = { ...more, workspace: run.workspaceId, run: run.runId }
    return queryLoaded(this.deps, caller, 'the tasks of this run', sql, params)
  }
}

interface TaskRow extends Pick<TaskRecord, 'agent_id' | 'parent_task_id' | 'name' | 'status' | 'error_message'> {
  readonly task_id: string
  readonly input: string | null
  readonly output: string | null
  readonly created_ms: number
  readonly updated_ms: number
  readonly started_ms: number | null
  readonly completed_ms: number | null
  readonly found: number
}

function toRecord({ runId }: RunRef, row: TaskRow): TaskRecord {
  const { agent_id, parent_task_id, name, status, error_message } = row
  return {
    id: row.task_id,
    run_id: runId,
    agent_id,
    parent_task_id,
    name,
    status,
    input: row.input === null ? null : new RawJson(row.input),
    output: row.output === null ? null : new RawJson(row.output),
    error_message,
    created_at: new Date(row.created_ms).toISOString(),
    updated_at: new Date(row.updated_ms).toISOString(),
    started_at: isoOrNull(row.started_ms),
    completed_at: isoOrNull(row.completed_ms),
  }
}
