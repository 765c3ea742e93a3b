import { t } from 'elysia'
import {
  Body,
  Described,
  FreeForm,
  Named,
  Nullable,
  OneOf,
  Page,
  Timestamp,
  TimestampIn,
  Uuid,
} from '../../base/http/schema.ts'
import { TASK_STATUSES } from './state.ts'

/** The wire format of tasks (docs/tasks.md). */

const TaskStatus = Named('TaskStatus', OneOf(TASK_STATUSES, '`completed`, `failed` and `skipped` are final.'))

/** Body of `POST /api/ingest/v1/tasks`. Fields left out of a later call keep their value. */
export const ReportTask = Named(
  'ReportTask',
  Body({
    run_id: Described(Uuid, 'The run that the task belongs to.'),
    task: Body(
      {
        id: Described(Uuid, 'Chosen by the caller; identifies the task in later calls.'),
        name: t.String({ description: 'The name of the task.' }),
        status: TaskStatus,
        input: t.Optional(Described(FreeForm, 'The input of the task.')),
        output: t.Optional(Described(FreeForm, 'The output of the task.')),
        error_message: t.Optional(t.String({ description: 'Why it failed.' })),
        parent_task_id: t.Optional(Described(Uuid, 'The task of the same run that this one is part of.')),
        started_at: t.Optional(
          Described(TimestampIn, 'When it began. Default: when it was first reported as begun. Not with `pending`.'),
        ),
        completed_at: t.Optional(
          Described(
            TimestampIn,
            'When it ended, not before it began. Default: when it was first reported as ended. Only with a final status.',
          ),
        ),
      },
      { description: 'The current state of the task.' },
    ),
  }),
)
export type ReportTask = typeof ReportTask.static

/** Response of `POST /api/ingest/v1/tasks`. */
export const TaskReported = Named(
  'TaskReported',
  t.Object({
    task_id: Described(Uuid, 'The task.'),
    status: Described(TaskStatus, 'The status after the call.'),
    created: t.Boolean({ description: 'This call reported the task for the first time.' }),
    applied: t.Boolean({
      description: 'False if the transition is not legal (backwards, or out of a final status): nothing changed.',
    }),
  }),
)
export type TaskReported = typeof TaskReported.static

/** A task as clients see it. */
export const TaskRecord = Named(
  'Task',
  t.Object(
    {
      id: Described(Uuid, 'The id that the caller chose.'),
      run_id: Described(Uuid, 'The run that it belongs to.'),
      agent_id: Described(Uuid, 'The agent of that run.'),
      parent_task_id: Described(Nullable(Uuid), 'The task that it is part of.'),
      name: t.String({ description: 'The name of the task.' }),
      status: TaskStatus,
      input: Described(Nullable(FreeForm), 'The input of the task.'),
      output: Described(Nullable(FreeForm), 'The output of the task.'),
      error_message: Described(Nullable(t.String()), 'Why it failed.'),
      created_at: Described(Timestamp, 'When it was first reported.'),
      updated_at: Described(Timestamp, 'When it last changed.'),
      started_at: Described(Nullable(Timestamp), 'When it began; null while it has not, or if it was skipped before.'),
      completed_at: Described(Nullable(Timestamp), 'When it ended; null while it has not.'),
    },
    { description: 'A step of a run.' },
  ),
)
export type TaskRecord = typeof TaskRecord.static

/** Newest first. A page ends early when its tasks together pass 8 MiB; `next_cursor` says whether more follow. */
export const TaskPage = Page('TaskPage', TaskRecord)
export type TaskPage = typeof TaskPage.static
