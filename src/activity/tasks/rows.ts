import { type RowOf, withIsoTimes } from '../../base/timestamp.ts'
import { unixMs } from '../runs/rows.ts'
import type { TaskRecord } from './schema.ts'

/** A row of `tasks` as the store selects it. */
export type StoredTask = RowOf<Omit<TaskRecord, 'id'>> & { readonly task_id: string }

/** SQL text: the columns of {@link StoredTask} of a row `t` of `tasks`. */
export const STORED_TASK = `
  t.task_id, t.run_id, t.agent_id, t.parent_task_id, t.name, t.status, t.input, t.output, t.error_message,
  t.created_at, t.updated_at, t.started_at, t.completed_at`

/**
 * SQL text: the journal's `TaskRow` of a row `t` of `tasks`; `runRow` in `activity/runs/rows.ts` explains why its JSON is
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
export function toTaskRecord({ task_id, ...same }: StoredTask): TaskRecord {
  return { id: task_id, ...withIsoTimes(same) }
}
