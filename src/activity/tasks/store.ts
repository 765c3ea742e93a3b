import { t } from 'elysia'
import type { Clock } from '../../base/clock.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT } from '../../base/http/page.ts'
import { CursorMs, type PageQuery, Uuid } from '../../base/http/schema.ts'
import { isDerivedId } from '../../base/ids.ts'
import type { Limits } from '../../base/limits.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { readable, reportable } from '../runs/access.ts'
import type { RunDirectory } from '../runs/directory.ts'
import { checkSize, checkText } from '../runs/limits.ts'
import { STORED_TASK, type StoredTask, toTaskRecord } from './rows.ts'
import type { ReportTask, TaskPage, TaskReported } from './schema.ts'
import type { TelemetryTasks } from './telemetry-tasks.ts'
import { timesOf } from './times.ts'
import { createTaskUpserts } from './upserts.ts'

interface TaskStoreDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly limits: Limits
  readonly directory: RunDirectory
  /** Reads the tasks of runs that OpenTelemetry reports. */
  readonly telemetry: Pick<TelemetryTasks, 'list'>
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
}

/** A page ends with the task whose free-form members exceed this total. */
const PAGE_BYTES_MAX = 8 << 20

const listCursor = cursorCodec(t.Tuple([CursorMs, Uuid]))

/** Reports and reads tasks of runs for callers (docs/tasks.md). */
export class TaskStore {
  private readonly upserts: ReturnType<typeof createTaskUpserts>

  constructor(private readonly deps: TaskStoreDeps) {
    this.upserts = createTaskUpserts(deps.sql)
  }

  /**
   * Creates the task or updates it; a report out of order changes nothing.
   * @throws ApiError VALIDATION_ERROR, PAYLOAD_TOO_LARGE, NOT_FOUND, FORBIDDEN, CONFLICT, UNAVAILABLE
   */
  async report(caller: Caller, { run_id, task }: ReportTask): Promise<TaskReported> {
    const { clock, limits, directory } = this.deps
    checkText('task.name', task.name, limits.task_name_length, 1)
    checkText('task.error_message', task.error_message, limits.run_output_bytes)
    checkSize('task.input', task.input, limits.run_input_bytes)
    checkSize('task.output', task.output, limits.run_output_bytes)
    const { startedAt, completedAt } = timesOf(task)
    const run = reportable(caller, await directory.find(caller.workspaceId, run_id.toLowerCase()))
    const reported = await this.upserts.submit({
      runId: run.runId,
      taskId: task.id.toLowerCase(),
      workspaceId: run.workspaceId,
      agentId: run.agentId,
      parentTaskId: task.parent_task_id?.toLowerCase() ?? null,
      name: task.name,
      status: task.status,
      input: task.input ?? null,
      output: task.output ?? null,
      errorMessage: task.error_message ?? null,
      startedAt,
      completedAt,
      at: clock.now(),
    })
    if (reported.applied) this.deps.onChange()
    return reported
  }

  /** The tasks of a run, newest first. @throws ApiError NOT_FOUND, FORBIDDEN, VALIDATION_ERROR, UNAVAILABLE */
  async list(caller: Caller, runId: string, query: PageQuery): Promise<TaskPage> {
    const { sql, directory, telemetry } = this.deps
    const run = readable(caller, await directory.find(caller.workspaceId, runId.toLowerCase()))
    if (isDerivedId(run.runId)) return telemetry.list(caller, run, query)
    const limit = query.limit ?? PAGE_LIMIT_DEFAULT
    const [createdAt, taskId] = query.cursor === undefined ? [null, null] : listCursor.decode(query.cursor)
    // `bytes_before` and `found` belong to the page before it is cut by size.
    const rows = await sql<(StoredTask & { found: number })[]>`
      select ${sql.unsafe(STORED_TASK)}, t.found from (
        select page.*, count(*) over () as found,
          sum(bytes) over (order by created_at desc, task_id desc rows between unbounded preceding and 1 preceding)
            as bytes_before
        from (
          select ${sql.unsafe(STORED_TASK)}, coalesce(octet_length(t.input::text), 0)
            + coalesce(octet_length(t.output::text), 0) + coalesce(octet_length(t.error_message), 0) as bytes
          from tasks t
          where t.workspace_id = ${run.workspaceId} and t.run_id = ${run.runId}
            ${createdAt === null ? sql`` : sql`and (t.created_at, t.task_id) < (${new Date(createdAt)}, ${taskId}::uuid)`}
          order by t.created_at desc, t.task_id desc limit ${limit + 1}
        ) page
      ) t
      where coalesce(t.bytes_before, 0) < ${PAGE_BYTES_MAX}
      order by t.created_at desc, t.task_id desc limit ${limit}`
    const last = rows.at(-1)
    const more = last !== undefined && last.found > rows.length
    return {
      items: rows.map(({ found: _, ...task }) => toTaskRecord(task)),
      next_cursor: more ? listCursor.encode([last.created_at.getTime(), last.task_id]) : null,
    }
  }
}
