import { type ApiError, invalid } from '../../base/errors.ts'
import { shown } from '../../base/http/validation-message.ts'
import { parseTimestamp } from '../../base/timestamp.ts'
import type { ReportTask } from './schema.ts'
import { isFinal } from './state.ts'

/** When a task began and ended according to its reporter, Unix milliseconds; null for what the report leaves out. */
export interface ReportedTimes {
  readonly startedAt: number | null
  readonly completedAt: number | null
}

/**
 * SQL text: the times of a new task, from a row `i` of reported ones, both null unless reported, and of the time `i.at` of
 * the report. A time that we take ourselves never contradicts a reported one, whatever the clocks say.
 */
export const NEW_TASK_TIMES = `
  coalesce(i.started_at, case
    when i.status = 'running' then i.at
    when i.status in ('completed', 'failed') then least(i.at, i.completed_at)
  end),
  coalesce(i.completed_at, case when i.status in ('completed', 'failed', 'skipped') then greatest(i.at, i.started_at) end),
  i.started_at is not null, i.completed_at is not null`

/**
 * SQL text, for `on conflict do update`: the times of the task `t` after the report `excluded`. A reported time replaces
 * the one before; of two that contradict each other, the one that we took ourselves gives way.
 */
export const UPDATED_TASK_TIMES = `
  select
    case when x.started_at > x.completed_at and not x.is_start_reported and x.is_end_reported
      then x.completed_at else x.started_at end,
    case when x.completed_at < x.started_at and not x.is_end_reported then x.started_at else x.completed_at end,
    x.is_start_reported, x.is_end_reported
  from (select
    case when excluded.is_start_reported or t.started_at is null then excluded.started_at else t.started_at end
      as started_at,
    case when excluded.is_end_reported or t.completed_at is null then excluded.completed_at else t.completed_at end
      as completed_at,
    t.is_start_reported or excluded.is_start_reported as is_start_reported,
    t.is_end_reported or excluded.is_end_reported as is_end_reported
  ) x`

/** SQL text, for the same place: the report and what was reported before would make the task end before it began. */
export const TASK_TIMES_CONTRADICT = `
  (case when excluded.is_end_reported then excluded.completed_at when t.is_end_reported then t.completed_at end
   < case when excluded.is_start_reported then excluded.started_at when t.is_start_reported then t.started_at end)
  is true`

/**
 * The times of a report (docs/tasks.md).
 * @throws ApiError VALIDATION_ERROR for a time of what has not happened, or an end before the start
 */
export function timesOf({ status, started_at, completed_at }: ReportTask['task']): ReportedTimes {
  const startedAt = started_at === undefined ? null : parseTimestamp(started_at)
  const completedAt = completed_at === undefined ? null : parseTimestamp(completed_at)
  if (startedAt !== null && status === 'pending') {
    throw invalid('task.started_at', `a pending task has not begun; got ${shown(started_at)}`)
  }
  if (completedAt !== null && !isFinal(status)) {
    throw invalid('task.completed_at', `a ${status} task has not ended; got ${shown(completed_at)}`)
  }
  if (startedAt !== null && completedAt !== null && completedAt < startedAt) {
    throw invalid('task.completed_at', `expected no time before task.started_at; got ${shown(completed_at)}`)
  }
  return { startedAt, completedAt }
}

/** The error for a report whose time contradicts one that was reported before. */
export function contradiction({ completedAt }: ReportedTimes): ApiError {
  return completedAt === null
    ? invalid('task.started_at', 'expected no time after the completed_at that was reported before')
    : invalid('task.completed_at', 'expected no time before the started_at that was reported before')
}
