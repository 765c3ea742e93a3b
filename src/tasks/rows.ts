import type { RawJson } from '../base/raw-json.ts'
import { isoOrNull, unixMs } from '../runs/rows.ts'
import type { TaskRecord } from './schema.ts'
import type { TaskStatus } from './state.ts'

/** A row of `tasks` as the store selects it. */
export interface StoredTask {
  readonly task_id: string
  readonly run_id: string
  readonly agent_id: string
  readonly parent_task_id: string | null
  readonly name: string
  readonly status: TaskStatus
  readonly input: RawJson | null
  readonly output: RawJson | null
  readonly error_message: string | null
  readonly created_at: Date
  readonly updated_at: Date
  readonly started_at: Date | null
  readonly completed_at: Date | null
}

/** SQL text: the columns of {@link StoredTask} of a row `t` of `tasks`. */
export const STORED_TASK = `
  t.task_id, t.run_id, t.agent_id, t.parent_task_id, t.name, t.status, t.input, t.output, t.error_message,
  t.created_at, t.updated_at, t.started_at, t.completed_at`

/**
 * SQL text: the journal's `TaskRow` of a row `t` of `tasks`; `RUN_ROW` in `runs/rows.ts` explains why its JSON is
 * strings.
 */
export const TASK_ROW = `
  (select row_to_json(x) from (select
    t.workspace_id, t.agent_id, t.run_id, t.task_id, t.parent_task_id, t.name, t.status, t.input::text as input,
    t.output::text as output, t.error_message, ${unixMs('t.created_at')} as created_at,
    ${unixMs('t.updated_at')} as updated_at, ${unixMs('t.started_at')} as started_at,
    ${unixMs('t.completed_at')} as completed_at
  ) x)`

/** The record a client sees. */
export function toTaskRecord(task: StoredTask): TaskRecord {
  const { task_id, created_at, updated_at, started_at, completed_at, ...same } = task
  return {
    id: task_id,
    ...same,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
    started_at: isoOrNull(started_at),
    completed_at: isoOrNull(completed_at),
  }
}
