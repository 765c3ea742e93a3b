import type { ApiError } from '../../base/errors.ts'
import { notFound } from '../../base/errors.ts'
import { runKey } from '../../base/ids.ts'
import type { RawJson } from '../../base/raw-json.ts'
import { isoOrNull } from '../../base/timestamp.ts'
import { type Batcher, createBatcher } from '../../stores/postgres/batcher.ts'
import { isForeignKeyViolation, jsonArray, type Sql } from '../../stores/postgres/connect.ts'
import { findRuns } from '../runs/rows.ts'
import { TASK_ROW } from './rows.ts'
import type { TaskReported } from './schema.ts'
import { NEXT, TASK_TRANSITIONS, type TaskStatus } from './state.ts'
import {
  contradiction,
  NEW_TASK_TIMES,
  type ReportedTimes,
  TASK_TIMES_CONTRADICT,
  UPDATED_TASK_TIMES,
} from './times.ts'

/** A reported task; null for omitted fields. */
interface TaskReport extends ReportedTimes {
  readonly runId: string
  readonly taskId: string
  readonly workspaceId: string
  readonly agentId: string
  readonly parentTaskId: string | null
  readonly name: string
  readonly status: TaskStatus
  readonly input: RawJson | null
  readonly output: RawJson | null
  readonly errorMessage: string | null
  /** When it was reported. Unix milliseconds. */
  readonly at: number
}

/** Creates and updates tasks in batches: one statement does the guarded upserts and writes their outbox rows. */
export function createTaskUpserts(sql: Sql): Batcher<TaskReport, TaskReported> {
  return createBatcher<TaskReport, TaskReported>({
    run: (reports) => store(sql, reports),
    keyOf,
    ownerOf: ({ workspaceId }) => workspaceId,
    bytesOf: (report) => (report.input?.text.length ?? 0) + (report.output?.text.length ?? 0) + 500,
  })
}

async function store(sql: Sql, reports: readonly TaskReport[]): Promise<(TaskReported | ApiError)[]> {
  let outcomes: readonly UpsertOutcome[]
  try {
    outcomes = await upsert(sql, reports)
  } catch (error) {
    if (!isForeignKeyViolation(error)) throw error
    return storeWithoutDeleted(sql, reports, error)
  }
  const unapplied = reports.filter((_, index) => !outcomes[index].applied)
  const standing = unapplied.length === 0 ? new Map<string, TaskStatus>() : await findStanding(sql, unapplied)
  return reports.map((report, index) => {
    const { applied, created } = outcomes[index]
    const before = applied ? undefined : standing.get(keyOf(report))
    // Not refused for its status, so for its times.
    if (before !== undefined && NEXT[before].includes(report.status)) return contradiction(report)
    return { task_id: report.taskId, status: before ?? report.status, created, applied }
  })
}

/** A run may have been deleted since the call found it: its tasks are refused, the others stored. */
async function storeWithoutDeleted(sql: Sql, reports: readonly TaskReport[], error: unknown) {
  const runs = await findRuns(sql, reports, 'r.run_id')
  const isKept = ({ workspaceId, runId }: TaskReport) => runs.has(runKey(workspaceId, runId))
  const kept = reports.filter(isKept)
  if (kept.length === reports.length) throw error
  const stored = (kept.length === 0 ? [] : await store(sql, kept)).values()
  return reports.map((report) => (isKept(report) ? stored.next().value! : notFound('run')))
}

function keyOf(report: TaskReport): string {
  return runKey(report.workspaceId, report.runId) + report.taskId
}

interface UpsertOutcome {
  readonly applied: boolean
  readonly created: boolean
}

/**
 * Inserts in key order, so that two statements on the same tasks cannot deadlock. A row inserted by this statement has no
 * `xmax`; one that it updated was locked first and has one.
 */
async function upsert(sql: Sql, reports: readonly TaskReport[]): Promise<readonly UpsertOutcome[]> {
  return sql<UpsertOutcome[]>`
    with item as (
      select * from unnest(
        ${reports.map((report) => report.runId)}::uuid[], ${reports.map((report) => report.taskId)}::uuid[],
        ${reports.map((report) => report.workspaceId)}::uuid[], ${reports.map((report) => report.agentId)}::uuid[],
        ${reports.map((report) => report.parentTaskId)}::uuid[], ${reports.map((report) => report.name)}::text[],
        ${reports.map((report) => report.status)}::text[], ${jsonArray(sql, reports, 'input')},
        ${jsonArray(sql, reports, 'output')}, ${reports.map((report) => report.errorMessage)}::text[],
        ${reports.map((report) => isoOrNull(report.startedAt))}::timestamptz[],
        ${reports.map((report) => isoOrNull(report.completedAt))}::timestamptz[],
        ${reports.map((report) => isoOrNull(report.at))}::timestamptz[]
      ) with ordinality as i (run_id, task_id, workspace_id, agent_id, parent_task_id, name, status, input, output,
                              error_message, started_at, completed_at, at, n)
    ), applied as (
      insert into tasks as t (run_id, task_id, workspace_id, agent_id, parent_task_id, name, status, input, output,
                              error_message, created_at, updated_at, started_at, completed_at, is_start_reported,
                              is_end_reported)
      select i.run_id, i.task_id, i.workspace_id, i.agent_id, i.parent_task_id, i.name, i.status, i.input, i.output,
        i.error_message, i.at, i.at, ${sql.unsafe(NEW_TASK_TIMES)}
      from item i order by i.workspace_id, i.run_id, i.task_id
      on conflict (workspace_id, run_id, task_id) do update set
        parent_task_id = coalesce(excluded.parent_task_id, t.parent_task_id), name = excluded.name,
        status = excluded.status, input = coalesce(excluded.input, t.input),
        output = coalesce(excluded.output, t.output),
        error_message = coalesce(excluded.error_message, t.error_message),
        updated_at = greatest(excluded.updated_at, t.updated_at),
        (started_at, completed_at, is_start_reported, is_end_reported) = (${sql.unsafe(UPDATED_TASK_TIMES)})
      where t.status || '>' || excluded.status = any(${TASK_TRANSITIONS as string[]}::text[])
        and not ${sql.unsafe(TASK_TIMES_CONTRADICT)}
      returning t.run_id, t.task_id, t.workspace_id, t.agent_id, t.parent_task_id, t.name, t.status, t.input, t.output,
        t.error_message, t.created_at, t.updated_at, t.started_at, t.completed_at, t.xmax = 0 as created
    ), logged as (
      insert into outbox (workspace_id, kind, body)
      select t.workspace_id, 'task', ${sql.unsafe(TASK_ROW)} from applied t
    )
    select t.task_id is not null as applied, coalesce(t.created, false) as created
    from item i left join applied t
      on t.workspace_id = i.workspace_id and t.run_id = i.run_id and t.task_id = i.task_id
    order by i.n`
}

interface StandingTask {
  readonly workspace_id: string
  readonly run_id: string
  readonly task_id: string
  readonly status: TaskStatus
}

/** A second statement, because the first one's snapshot may be older than the status that it conflicted with. */
async function findStanding(sql: Sql, reports: readonly TaskReport[]): Promise<Map<string, TaskStatus>> {
  const rows = await sql<StandingTask[]>`
    select t.workspace_id, t.run_id, t.task_id, t.status
    from tasks t
    join unnest(
      ${reports.map((report) => report.runId)}::uuid[], ${reports.map((report) => report.taskId)}::uuid[],
      ${reports.map((report) => report.workspaceId)}::uuid[]
    ) as i (run_id, task_id, workspace_id) using (run_id, task_id, workspace_id)`
  return new Map(rows.map((row) => [runKey(row.workspace_id, row.run_id) + row.task_id, row.status]))
}
