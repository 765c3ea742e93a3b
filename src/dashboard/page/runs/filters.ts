import type { Params, Queries } from '../data/api.ts'
import { isUuid, type RunSummary } from '../data/records.ts'
import { rangeOf } from '../parts/range.tsx'

/** Which runs the list shows, in which order. Its members are those of the address. */
export interface RunFilter extends Readonly<Record<ExactName, string>> {
  /** Unix milliseconds; null: any time. */
  readonly fromMs: number | null
  readonly toMs: number | null
  /** Free text. */
  readonly text: string
  readonly sort: SortColumn
  readonly isAscending: boolean
}

/** Filters for one exact value, by the columns of runs, which API and SQL call the same. */
const COLUMNS = {
  status: 'status',
  agent: 'agent_id',
  trigger: 'trigger_type',
  external: 'external_run_id',
  session: 'session_id',
  parent: 'parent_run_id',
} as const
const COLUMN_FILTERS = Object.entries(COLUMNS) as [keyof typeof COLUMNS, (typeof COLUMNS)[keyof typeof COLUMNS]][]

type ExactName = keyof typeof COLUMNS | 'tag'
export const ID_FILTERS: readonly string[] = ['agent', 'session', 'parent'] satisfies ExactName[]

/** What the list can be sorted by, with the expressions of SQL. */
const SORTS = {
  started: 'created_at',
  agent: 'agent_name',
  status: 'status',
  duration: 'duration_ms',
  events: 'event_count',
  tokens: 'total_tokens',
  cost: 'cost_usd',
}
type SortColumn = keyof typeof SORTS

export function isSortable(name: string): name is SortColumn {
  return Object.hasOwn(SORTS, name)
}

export function filterOf(query: Readonly<Record<string, string>>, nowMs: number): RunFilter {
  const isLimited = query.range !== undefined || (query.from !== undefined && query.to !== undefined)
  const { fromMs, toMs, isMoving } = rangeOf(query, nowMs)
  const [sort = '', direction] = (query.sort ?? '').split('.')
  const exact = ([...Object.keys(COLUMNS), 'tag'] as ExactName[]).map((name) => [name, exactValue(name, query[name])])
  return {
    ...(Object.fromEntries(exact) as Record<ExactName, string>),
    fromMs: isLimited ? fromMs : null,
    // A moving range has no end: new runs belong to it.
    toMs: isLimited && !isMoving ? toMs : null,
    text: (query.q ?? '').trim(),
    sort: isSortable(sort) ? sort : 'started',
    isAscending: direction === 'asc',
  }
}

/** People paste ids in either case. */
function exactValue(name: ExactName, text = ''): string {
  if (!ID_FILTERS.includes(name)) return text
  return isUuid(text) ? text.toLowerCase() : ''
}

export function isFiltered(filter: RunFilter): boolean {
  const { tag, text, fromMs } = filter
  return fromMs !== null || tag !== '' || text !== '' || COLUMN_FILTERS.some(([name]) => filter[name] !== '')
}

/** The list of the API can answer it: newest first, without free text. Otherwise SQL does. */
export function isPlain({ text, sort, isAscending }: RunFilter): boolean {
  return text === '' && sort === 'started' && !isAscending
}

/** Whether a run of the feed belongs to the list. */
export function matches(run: RunSummary, filter: RunFilter): boolean {
  const { tag, fromMs, toMs } = filter
  const createdMs = Date.parse(run.created_at)
  return (
    COLUMN_FILTERS.every(([name, column]) => filter[name] === '' || run[column] === filter[name]) &&
    (tag === '' || run.tags.includes(tag)) &&
    (fromMs === null || createdMs >= fromMs) &&
    (toMs === null || createdMs < toMs)
  )
}

/** The filter as the list of the API takes it. */
export function queryOf(filter: RunFilter) {
  const timestamp = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
  return {
    ...Object.fromEntries(COLUMN_FILTERS.map(([name, column]) => [column, filter[name]])),
    tag: filter.tag,
    from: timestamp(filter.fromMs),
    to: timestamp(filter.toMs),
  }
}

/** Maximum runs that {@link findRuns} returns. */
export const FOUND_MAX = 200

const SEARCHED = [
  'toString(run_id)',
  "ifNull(external_run_id, '')",
  "ifNull(error_message, '')",
  'agent_name',
  "arrayStringConcat(tags, ' ')",
]

/** Members of a run that the query does not return. The feed fills them in when the run changes. */
const UNKNOWN = {
  event_count: -1,
  agent_version: 0,
  external_user_id: null,
  metadata: {},
  error_detail: null,
  last_event_at: null,
  pending: null,
}
type FoundRun = Omit<RunSummary, keyof typeof UNKNOWN | 'usage'> & RunSummary['usage']

/** Finds runs by SQL: for free text and for orders that the list of the API does not have. @throws ApiFailure */
export async function findRuns(queries: Queries, filter: RunFilter, signal: AbortSignal): Promise<RunSummary[]> {
  const { text, params } = searchQuery(filter)
  const { rows } = await queries.run(text, params, signal)
  return (rows as unknown as FoundRun[]).map(({ input_tokens, output_tokens, total_tokens, ...run }) => {
    return { ...UNKNOWN, ...run, usage: { input_tokens, output_tokens, total_tokens } }
  })
}

export function searchQuery(filter: RunFilter): { readonly text: string; readonly params: Params } {
  const conditions: string[] = []
  const params: Record<string, string | number> = {}
  const add = (name: string, value: string | number | null, condition: string) => {
    if (value === '' || value === null) return
    conditions.push(condition)
    params[name] = value
  }
  for (const [name, column] of COLUMN_FILTERS)
    add(name, filter[name], `${column} = {${name}:${ID_FILTERS.includes(name) ? 'UUID' : 'String'}}`)
  add('tag', filter.tag, 'has(tags, {tag:String})')
  add('from', filter.fromMs, 'created_at >= fromUnixTimestamp64Milli({from:Int64})')
  add('to', filter.toMs, 'created_at < fromUnixTimestamp64Milli({to:Int64})')
  const found = SEARCHED.map((column) => `positionCaseInsensitiveUTF8(${column}, {text:String}) > 0`)
  add('text', filter.text, `(${found.join(' OR ')})`)
  // Counting events is the only expensive part, so it is done only for its own order.
  const isCounted = filter.sort === 'events'
  const counts =
    'LEFT JOIN (SELECT run_id, count() AS event_count FROM events GROUP BY run_id) AS counts USING (run_id)'
  return {
    text: `SELECT run_id, agent_id, status, trigger_type, external_run_id, parent_run_id, session_id, tags, error_message,
      created_at, started_at, completed_at, duration_ms, cost_usd,
      input_tokens, output_tokens, input_tokens + output_tokens AS total_tokens ${isCounted ? ', event_count' : ''}
      FROM runs ${isCounted ? counts : ''} ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
      ORDER BY ${SORTS[filter.sort]} ${filter.isAscending ? 'ASC' : 'DESC'} NULLS LAST, created_at DESC LIMIT ${FOUND_MAX}`,
    params,
  }
}
