import { isUuid, type RunSummary } from '../data/records.ts'
import { rangeOf } from '../parts/range.tsx'

/** Which runs the list shows, in which order. Its members are those of the address. */
export interface RunFilter {
  readonly status: string
  readonly agent: string
  readonly trigger: string
  readonly tag: string
  readonly external: string
  readonly session: string
  readonly parent: string
  /** Unix milliseconds; null: any time. */
  readonly fromMs: number | null
  readonly toMs: number | null
  /** Free text. */
  readonly text: string
  readonly sort: SortColumn
  readonly isAscending: boolean
}

const SORT_COLUMNS = ['started', 'agent', 'status', 'duration', 'events', 'tokens', 'cost'] as const
export type SortColumn = (typeof SORT_COLUMNS)[number]

export function filterOf(query: Readonly<Record<string, string>>, nowMs: number): RunFilter {
  const isLimited = query.range !== undefined || (query.from !== undefined && query.to !== undefined)
  const { fromMs, toMs, isMoving } = rangeOf(query, nowMs)
  const [name = '', direction] = (query.sort ?? '').split('.')
  return {
    status: query.status ?? '',
    agent: idOf(query.agent),
    trigger: query.trigger ?? '',
    tag: query.tag ?? '',
    external: query.external ?? '',
    session: idOf(query.session),
    parent: idOf(query.parent),
    fromMs: isLimited ? fromMs : null,
    // A moving range has no end: new runs belong to it.
    toMs: isLimited && !isMoving ? toMs : null,
    text: (query.q ?? '').trim(),
    sort: SORT_COLUMNS.find((each) => each === name) ?? 'started',
    isAscending: direction === 'asc',
  }
}

/** People paste ids in either case. */
function idOf(text = ''): string {
  return isUuid(text) ? text.toLowerCase() : ''
}

export function isFiltered(filter: RunFilter): boolean {
  const { status, agent, trigger, tag, external, session, parent, fromMs, text } = filter
  return fromMs !== null || [status, agent, trigger, tag, external, session, parent, text].some((value) => value !== '')
}

/** The list of the API can answer it: newest first, without free text. Otherwise SQL does. */
export function isPlain({ text, sort, isAscending }: RunFilter): boolean {
  return text === '' && sort === 'started' && !isAscending
}

/** Whether a run of the feed belongs to the list. */
export function matches(run: RunSummary, filter: RunFilter): boolean {
  const createdMs = Date.parse(run.created_at)
  return (
    (filter.status === '' || run.status === filter.status) &&
    (filter.agent === '' || run.agent_id === filter.agent) &&
    (filter.trigger === '' || run.trigger_type === filter.trigger) &&
    (filter.tag === '' || run.tags.includes(filter.tag)) &&
    (filter.external === '' || run.external_run_id === filter.external) &&
    (filter.session === '' || run.session_id === filter.session) &&
    (filter.parent === '' || run.parent_run_id === filter.parent) &&
    (filter.fromMs === null || createdMs >= filter.fromMs) &&
    (filter.toMs === null || createdMs < filter.toMs)
  )
}
