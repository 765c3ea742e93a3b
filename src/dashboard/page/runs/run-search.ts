import type { Params, Queries } from '../data/api.ts'
import type { RunSummary } from '../data/records.ts'
import type { RunFilter, SortColumn } from './filters.ts'

/** Runs found by SQL: for free text and for orders that the list of the API does not have. */

export const FOUND_MAX = 200

const EXPRESSIONS: Readonly<Record<SortColumn, string>> = {
  started: 'created_at',
  agent: 'agent_name',
  status: 'status',
  duration: 'duration_ms',
  events: 'event_count',
  tokens: 'input_tokens + output_tokens',
  cost: 'cost_usd',
}

const COLUMNS = `run_id, agent_id, status, trigger_type, external_run_id, parent_run_id, session_id, tags, error_message,
  toUnixTimestamp64Milli(created_at) AS created, toUnixTimestamp64Milli(started_at) AS started,
  toUnixTimestamp64Milli(completed_at) AS completed, duration_ms, input_tokens, output_tokens, cost_usd`

const TEXT_COLUMNS = ['toString(run_id)', "ifNull(external_run_id, '')", "ifNull(error_message, '')", 'agent_name']

/** @throws ApiFailure */
export async function findRuns(queries: Queries, filter: RunFilter, signal: AbortSignal): Promise<RunSummary[]> {
  const { text, params } = searchQuery(filter)
  const { rows } = await queries.run(text, params, signal)
  return rows.map((row) => runOf(row as unknown as Row))
}

export function searchQuery(filter: RunFilter): { readonly text: string; readonly params: Params } {
  const { conditions, params } = conditionsOf(filter)
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const order = `${EXPRESSIONS[filter.sort]} ${filter.isAscending ? 'ASC' : 'DESC'} NULLS LAST, created_at DESC`
  // Counting events is the only expensive part, so it is done only for its own order.
  const counts =
    'LEFT JOIN (SELECT run_id, count() AS event_count FROM events GROUP BY run_id) AS counts USING (run_id)'
  const isCounted = filter.sort === 'events'
  const from = `FROM runs ${isCounted ? counts : ''}`
  return {
    text: `SELECT ${COLUMNS}${isCounted ? ', event_count' : ''} ${from} ${where} ORDER BY ${order} LIMIT ${FOUND_MAX}`,
    params,
  }
}

function conditionsOf(filter: RunFilter) {
  const conditions: string[] = []
  const params: Record<string, string | number> = {}
  const add = (name: string, value: string | number | null, condition: string) => {
    if (value === '' || value === null) return
    conditions.push(condition)
    params[name] = value
  }
  add('status', filter.status, 'status = {status:String}')
  add('agent', filter.agent, 'agent_id = {agent:UUID}')
  add('trigger', filter.trigger, 'trigger_type = {trigger:String}')
  add('tag', filter.tag, 'has(tags, {tag:String})')
  add('external', filter.external, 'external_run_id = {external:String}')
  add('session', filter.session, 'session_id = {session:UUID}')
  add('parent', filter.parent, 'parent_run_id = {parent:UUID}')
  add('from', filter.fromMs, 'created_at >= fromUnixTimestamp64Milli({from:Int64})')
  add('to', filter.toMs, 'created_at < fromUnixTimestamp64Milli({to:Int64})')
  const found = TEXT_COLUMNS.map((column) => `positionCaseInsensitiveUTF8(${column}, {text:String}) > 0`)
  const inTags = "positionCaseInsensitiveUTF8(arrayStringConcat(tags, ' '), {text:String}) > 0"
  add('text', filter.text, `(${[...found, inTags].join(' OR ')})`)
  return { conditions, params }
}

interface Row {
  readonly run_id: string
  readonly agent_id: string
  readonly status: RunSummary['status']
  readonly trigger_type: RunSummary['trigger_type']
  readonly external_run_id: string | null
  readonly parent_run_id: string | null
  readonly session_id: string | null
  readonly tags: string[]
  readonly error_message: string | null
  readonly created: number
  readonly started: number | null
  readonly completed: number | null
  readonly duration_ms: number | null
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cost_usd: number
  readonly event_count?: number
}

function runOf(row: Row): RunSummary {
  const { created, started, completed, input_tokens, output_tokens, event_count, ...same } = row
  const timestamp = (ms: number | null) => (ms === null ? null : new Date(Number(ms)).toISOString())
  return {
    ...same,
    created_at: new Date(Number(created)).toISOString(),
    started_at: timestamp(started),
    completed_at: timestamp(completed),
    usage: { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens },
    // Unknown to SQL unless asked for; the feed fills it in when the run changes.
    event_count: event_count ?? -1,
    agent_version: 0,
    external_user_id: null,
    metadata: {},
    error_detail: null,
    last_event_at: null,
    pending: null,
  }
}
