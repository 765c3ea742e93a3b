import { addressState, texts } from '../context/address-state.ts'
import type { Params, Queries } from '../data/api.ts'
import { isUuid, RUN_STATUSES, type RunSummary } from '../data/records.ts'
import { rangeOf } from '../parts/range.tsx'

/** Which runs the list shows, in which order. Its members are those of the address. */
export interface RunFilter extends Readonly<Record<ExactName, string>> {
  /** Unix milliseconds; null: any time. */
  readonly fromMs: number | null
  readonly toMs: number | null
  /** A search for what was said in the runs. */
  readonly text: string
  readonly sort: SortColumn
  readonly isAscending: boolean
}

/** Filters for one exact value, by the columns of runs, which API and SQL call the same. */
const COLUMNS = {
  agent: 'agent_id',
  version: 'agent_version',
  trigger: 'trigger_type',
  external: 'external_run_id',
  session: 'session_id',
  user: 'external_user_id',
  parent: 'parent_run_id',
} as const
const COLUMN_FILTERS = Object.entries(COLUMNS) as [keyof typeof COLUMNS, (typeof COLUMNS)[keyof typeof COLUMNS]][]

/** `status` is a list, separated by commas. */
type ExactName = keyof typeof COLUMNS | 'status' | 'tag'
const ID_FILTERS: readonly string[] = ['agent', 'parent'] satisfies ExactName[]
const VERSION = /^[1-9]\d{0,8}$/

/** The list of runs in its address: these members are texts, which {@link filterOf} reads. */
export const RUNS = addressState(
  texts(
    ...(['q', 'status', 'tag', 'range', 'from', 'to', 'agent', 'version', 'trigger', 'external'] as const),
    ...(['session', 'user', 'parent', 'sort', 'cols', 'view'] as const),
  ),
)

/** What the list can be sorted by, with the expressions of SQL. */
const SORTS = {
  started: 'created_at',
  agent: 'agent_name',
  status: 'status',
  duration: 'active_ms',
  events: 'event_count',
  tokens: 'total_tokens',
  cost: 'cost_usd',
}
type SortColumn = keyof typeof SORTS

export function isSortable(name: string): name is SortColumn {
  return Object.hasOwn(SORTS, name)
}

export function filterOf(query: Readonly<Record<string, string>>, nowMs: number): RunFilter {
  const given = RUNS.of(query)
  const isLimited = given.range !== '' || (given.from !== '' && given.to !== '')
  const { fromMs, toMs, isMoving } = rangeOf(given, nowMs)
  const text = given.q.trim()
  // A search lists the newest first, whatever order is chosen.
  const [sort = '', direction] = text === '' ? given.sort.split('.') : []
  const exact = ([...Object.keys(COLUMNS), 'status', 'tag'] as ExactName[]).map((name) => [
    name,
    exactValue(name, given[name]),
  ])
  return {
    ...(Object.fromEntries(exact) as Record<ExactName, string>),
    fromMs: isLimited ? fromMs : null,
    // A moving range has no end: new runs belong to it.
    toMs: isLimited && !isMoving ? toMs : null,
    text,
    sort: isSortable(sort) ? sort : 'started',
    isAscending: direction === 'asc',
  }
}

/** Why a filter cannot have this value; undefined if it can. */
export function problemOf(name: string, text: string): string | undefined {
  if (text === '') return undefined
  if (ID_FILTERS.includes(name) && !isUuid(text)) return 'Not an id: it has 32 hexadecimal digits.'
  return name === 'version' && !VERSION.test(text) ? 'Not a version: it is a number from 1 on.' : undefined
}

/** The value of a filter; empty if it is not valid. People paste ids in either case. */
function exactValue(name: ExactName, text: string): string {
  if (name === 'status') return statusesOf(text).join()
  if (problemOf(name, text) !== undefined) return ''
  return ID_FILTERS.includes(name) ? text.toLowerCase() : text
}

/** The statuses that a list names, in their usual order. */
export function statusesOf(list: string): readonly string[] {
  const named = new Set(list.split(','))
  return RUN_STATUSES.filter((status) => named.has(status))
}

export function isFiltered(filter: RunFilter): boolean {
  const { status, tag, text, fromMs } = filter
  return (
    fromMs !== null ||
    status !== '' ||
    tag !== '' ||
    text !== '' ||
    COLUMN_FILTERS.some(([name]) => filter[name] !== '')
  )
}

/** Whether the list of the API can answer it, newest first. Otherwise SQL does. */
export function isPlain({ sort, isAscending }: RunFilter): boolean {
  return sort === 'started' && !isAscending
}

/** Whether a run of the feed belongs to the list. With a search, this cannot be known. */
export function matches(run: RunSummary, filter: RunFilter): boolean {
  const { status, tag, text, fromMs, toMs } = filter
  const createdMs = Date.parse(run.created_at)
  return (
    text === '' &&
    COLUMN_FILTERS.every(([name, column]) => filter[name] === '' || String(run[column]) === filter[name]) &&
    (status === '' || status.split(',').includes(run.status)) &&
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
    q: filter.text,
    status: filter.status,
    tag: filter.tag,
    from: timestamp(filter.fromMs),
    to: timestamp(filter.toMs),
  }
}

/** Maximum runs that {@link findRuns} returns. */
export const FOUND_MAX = 200

/** Members of a run that the query does not return. The feed fills them in when the run changes. */
const UNKNOWN = {
  event_count: -1,
  metadata: {},
  error_detail: null,
  last_event_at: null,
  pending: null,
}
type FoundRun = Omit<RunSummary, keyof typeof UNKNOWN | 'usage'> & RunSummary['usage']

/** Finds runs by SQL: for orders that the list of the API does not have. @throws ApiFailure */
export async function findRuns(queries: Queries, filter: RunFilter, signal: AbortSignal): Promise<RunSummary[]> {
  const { text, params } = searchQuery(filter)
  const { rows } = await queries.run(text, params, signal)
  return (rows as unknown as FoundRun[]).map(
    ({
      input_tokens,
      output_tokens,
      total_tokens,
      cache_read_tokens,
      cache_write_tokens,
      reasoning_tokens,
      ...run
    }) => {
      const parts = { cache_read_tokens, cache_write_tokens, reasoning_tokens }
      return { ...UNKNOWN, ...run, usage: { input_tokens, output_tokens, total_tokens, ...parts } }
    },
  )
}

/** The SQL types of placeholders that are not strings. */
const TYPES = new Map<string, string>([...ID_FILTERS.map((name) => [name, 'UUID'] as const), ['version', 'Int64']])

export function searchQuery(filter: RunFilter): { readonly text: string; readonly params: Params } {
  const conditions: string[] = []
  const params: Record<string, string | number> = {}
  const add = (name: string, value: string | number | null, condition: string) => {
    if (value === '' || value === null) return
    conditions.push(condition)
    params[name] = value
  }
  for (const [name, column] of COLUMN_FILTERS)
    add(name, filter[name], `${column} = {${name}:${TYPES.get(name) ?? 'String'}}`)
  add('status', filter.status, "has(splitByChar(',', {status:String}), status)")
  add('tag', filter.tag, 'has(tags, {tag:String})')
  add('from', filter.fromMs, 'created_at >= fromUnixTimestamp64Milli({from:Int64})')
  add('to', filter.toMs, 'created_at < fromUnixTimestamp64Milli({to:Int64})')
  // Counting events is the only expensive part, so it is done only for its own order.
  const isCounted = filter.sort === 'events'
  const counts =
    'LEFT JOIN (SELECT run_id, count() AS event_count FROM events GROUP BY run_id) AS counts USING (run_id)'
  return {
    text: `SELECT run_id, agent_id, agent_version, status, trigger_type, external_run_id, parent_run_id, session_id,
      external_user_id, tags, error_message,
      created_at, started_at, completed_at, duration_ms, active_ms, waiting_ms, waiting_since, cost_usd,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,
      input_tokens + output_tokens AS total_tokens ${isCounted ? ', event_count' : ''}
      FROM runs ${isCounted ? counts : ''} ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
      ORDER BY ${SORTS[filter.sort]} ${filter.isAscending ? 'ASC' : 'DESC'} NULLS LAST, created_at DESC LIMIT ${FOUND_MAX}`,
    params,
  }
}
