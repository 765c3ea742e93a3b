import { t } from 'elysia'
import { Body, FreeForm, Nullable, Page, PageQuery, Timestamp, Uuid } from '../http/schema.ts'
import { TASK_STATUSES } from './state.ts'

/** What of a task goes over the wire (docs/specification.md#tasks). */

// Elysia would fill a missing optional word with the first one, hence the explicit default.
const TaskStatusName = t.UnionEnum(TASK_STATUSES, { default: undefined })

/** Body of `POST /api/ingest/v1/tasks`. Fields left out of a later call keep their value. */
export const ReportTask = Body({
  run_id: Uuid,
  task: Body({
    id: Uuid,
    name: t.String(),
    status: TaskStatusName,
    input: t.Optional(FreeForm),
    output: t.Optional(FreeForm),
    error_message: t.Optional(t.String()),
    parent_task_id: t.Optional(Uuid),
  }),
})
export type ReportTask = typeof ReportTask.static

/** Answer of `POST /api/ingest/v1/tasks`. */
export const TaskReported = t.Object({
  task_id: Uuid,
  status: t.UnionEnum(TASK_STATUSES, { default: undefined, description: 'As it stands after the call.' }),
  created: t.Boolean(),
  applied: t.Boolean({ description: 'False for a step backwards or out of a terminal status: nothing has changed.' }),
})
export type TaskReported = typeof TaskReported.static

/** A task as clients read it. */
export const TaskRecord = t.Object({
  id: Uuid,
  run_id: Uuid,
  agent_id: Uuid,
  parent_task_id: Nullable(Uuid),
  name: t.String(),
  status: TaskStatusName,
  input: Nullable(FreeForm),
  output: Nullable(FreeForm),
  error_message: Nullable(t.String()),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type TaskRecord = typeof TaskRecord.static

/** Query of `GET /api/v1/runs/:runId/tasks`. */
export const ListTasks = t.Object(PageQuery, { additionalProperties: false })
export type ListTasks = typeof ListTasks.static

/** Newest first. A page ends early when its tasks together pass 8 MiB; `next_cursor` tells whether more follow. */
export const TaskPage = Page(TaskRecord)
export type TaskPage = typeof TaskPage.static
