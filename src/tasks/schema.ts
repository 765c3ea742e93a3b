import { t } from 'elysia'
import { Body, Described, FreeForm, Named, Nullable, Page, PageQuery, Timestamp, Uuid } from '../http/schema.ts'
import { TASK_STATUSES } from './state.ts'

/** What of a task goes over the wire (docs/specification.md#tasks). */

// Elysia would fill a missing optional word with the first one, hence the explicit default.
const TaskStatus = Named(
  'TaskStatus',
  t.UnionEnum(TASK_STATUSES, {
    default: undefined,
    description: '`completed`, `failed` and `skipped` are final.',
  }),
)

/** Body of `POST /api/ingest/v1/tasks`. Fields left out of a later call keep their value. */
export const ReportTask = Named(
  'ReportTask',
  Body({
    run_id: Described(Uuid, 'The run that the task belongs to.'),
    task: Body(
      {
        id: Described(Uuid, 'Chosen by the caller: names the task in later calls.'),
        name: t.String({ description: 'What the task is about.' }),
        status: TaskStatus,
        input: t.Optional(Described(FreeForm, 'What the task was given.')),
        output: t.Optional(Described(FreeForm, 'What the task produced.')),
        error_message: t.Optional(t.String({ description: 'Why it failed.' })),
        parent_task_id: t.Optional(Described(Uuid, 'The task of the same run that it is a part of.')),
      },
      { description: 'The task as it stands now.' },
    ),
  }),
)
export type ReportTask = typeof ReportTask.static

/** Answer of `POST /api/ingest/v1/tasks`. */
export const TaskReported = Named(
  'TaskReported',
  t.Object({
    task_id: Described(Uuid, 'The task.'),
    status: Described(TaskStatus, 'As it stands after the call.'),
    created: t.Boolean({ description: 'This call reported the task for the first time.' }),
    applied: t.Boolean({ description: 'False for a step backwards or out of a terminal status: nothing has changed.' }),
  }),
)
export type TaskReported = typeof TaskReported.static

/** A task as clients read it. */
export const TaskRecord = Named(
  'Task',
  t.Object(
    {
      id: Described(Uuid, 'The id that the caller chose.'),
      run_id: Described(Uuid, 'The run it belongs to.'),
      agent_id: Described(Uuid, 'The agent of that run.'),
      parent_task_id: Described(Nullable(Uuid), 'The task it is a part of.'),
      name: t.String({ description: 'What the task is about.' }),
      status: TaskStatus,
      input: Described(Nullable(FreeForm), 'What the task was given.'),
      output: Described(Nullable(FreeForm), 'What the task produced.'),
      error_message: Described(Nullable(t.String()), 'Why it failed.'),
      created_at: Described(Timestamp, 'When it was reported first.'),
      updated_at: Described(Timestamp, 'When it changed last.'),
    },
    { description: 'A step of a run.' },
  ),
)
export type TaskRecord = typeof TaskRecord.static

/** Query of `GET /api/v1/runs/:runId/tasks`. */
export const ListTasks = t.Object(PageQuery, { additionalProperties: false })
export type ListTasks = typeof ListTasks.static

/** Newest first. A page ends early when its tasks together pass 8 MiB; `next_cursor` tells whether more follow. */
export const TaskPage = Page('TaskPage', TaskRecord)
export type TaskPage = typeof TaskPage.static
