import { hrefOf, hrefOfRun } from '../context/router.ts'
import type { Result } from '../data/api.ts'
import { textOf } from '../data/json.ts'
import { isUuid, NO_RUN } from '../data/records.ts'
import { hrefOfPause } from '../data/waiting.ts'

type Row = Result['rows'][number]

/** Columns of ids by the ends of their names, as in `run_id`, `parent_run_id` and `latest_run`. */
const LINKS: readonly (readonly [RegExp, (id: string, runId: string | null) => string | null])[] = [
  // An id of the caller's own.
  [/(^|_)external_/, () => null],
  [/(^|_)run(_id)?$/, (id) => hrefOfRun(id)],
  [/(^|_)agent(_id)?$/, (id) => hrefOf('agents', [id])],
  [/(^|_)session(_id)?$/, (id) => hrefOf('sessions', [id])],
  [/(^|_)approval(_id)?$/, (id) => hrefOfPause('approvals', id)],
  [/(^|_)request_id$/, (id) => hrefOfPause('input-requests', id)],
  [/(^|_)webhook(_id)?$/, (id) => hrefOf('webhooks', [id])],
  [/(^|_)alert(_id)?$/, (id) => hrefOf('alerts', [id])],
  [/(^|_)task(_id)?$/, (id, runId) => (runId === null ? null : hrefOfRun(runId, { task: id }))],
]

/** The address of what a cell identifies; null if the page has no view of it. An event or a task is shown in its run. */
export function hrefOfCell(column: string, row: Row): string | null {
  const value = textOf(row[column] ?? '')
  const run = textOf(row.run_id ?? '')
  const runId = isUuid(run) && run !== NO_RUN ? run : null
  if (column === 'seq') return runId === null || !/^\d+$/.test(value) ? null : hrefOfRun(runId, { event: value })
  if (!isUuid(value) || value === NO_RUN) return null
  return LINKS.find(([pattern]) => pattern.test(column))?.[1](value, runId) ?? null
}
