import { spellingsOf } from '../../../base/ids.ts'
import { parseTimestamp } from '../../../base/timestamp.ts'
import { SEARCHED_TABLES } from '../../../stores/journal/kinds.ts'
import type { ListRuns } from '../schema.ts'
import type { SearchQuery } from './search-query.ts'

/** A statement for ClickHouse and the values of its placeholders. */
export interface Statement {
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
}

/** A run's position in the list: newest first, by id among runs created in the same millisecond. */
export interface RunPosition {
  readonly run_id: string
  readonly created_ms: number
}

type Filter = Exclude<keyof ListRuns, 'q' | 'limit' | 'cursor' | 'include'>
type RunFilters = Pick<ListRuns, Filter>

/** The list's filters as conditions on ClickHouse's table of runs. */
const CONDITIONS: Readonly<Record<Filter, string>> = {
  status: 'status in {status:Array(String)}',
  agent_id: 'agent_id = {agent_id:UUID}',
  agent_version: 'agent_version = {agent_version:Int64}',
  trigger_type: 'trigger_type = {trigger_type:String}',
  external_run_id: 'external_run_id = {external_run_id:String}',
  parent_run_id: 'parent_run_id = {parent_run_id:UUID}',
  session_id: 'session_id in {session_id:Array(String)}',
  external_user_id: 'external_user_id = {external_user_id:String}',
  tag: 'has(tags, {tag:String})',
  from: 'created_at >= fromUnixTimestamp64Milli({from:Int64})',
  to: 'created_at < fromUnixTimestamp64Milli({to:Int64})',
}

/** Shorter prefixes of ids would match too much: of UUIDs, and of event ids, which have no index. */
const UUID_PART = /^[0-9a-f-]{8,36}$/
const EVENT_ID_LENGTH_MIN = 10
/** Bytes of a text that are read for a snippet. */
const EXCERPT_BYTES = 16_384

/** Selects matching runs after a position of the list, newest first. */
export function runsSql(
  workspaceId: string,
  search: SearchQuery,
  filters: RunFilters,
  after: RunPosition,
  limit: number,
): Statement {
  const given = Object.entries(filters).filter(([, value]) => value !== undefined && [value].flat().length > 0)
  const conditions = given.map(([name]) => `and ${CONDITIONS[name as Filter]}`)
  const values = given.map(([name, value]) => [name, parameterOf(name as Filter, value)])
  const places = matchesSql(search, filters.agent_id === undefined ? '' : 'and agent_id = {agent_id:UUID}')
  return {
    sql: `
      select run_id, toUnixTimestamp64Milli(created_at) as created_ms from runs final
      where workspace_id = {workspace:UUID} ${conditions.join(' ')}
        and (created_at, toString(run_id)) < (fromUnixTimestamp64Milli({after_ms:Int64}), {after_id:String})
        and run_id in (${places})
      order by created_at desc, toString(run_id) desc limit {limit:UInt32}`,
    params: {
      ...Object.fromEntries(values),
      ...termParams(search),
      workspace: workspaceId,
      after_ms: after.created_ms,
      after_id: after.run_id,
      limit,
    },
  }
}

function parameterOf(name: Filter, value: unknown): unknown {
  if (name === 'from' || name === 'to') return parseTimestamp(value as string)
  return name === 'session_id' ? spellingsOf(value as string) : value
}

/** Selects those of these runs that match. */
export function matchingSql(workspaceId: string, search: SearchQuery, runs: RunSet): Statement {
  return {
    sql: `select distinct run_id from (${matchesSql(search, AMONG)})`,
    params: { ...termParams(search), ...runs, workspace: workspaceId },
  }
}

/** Runs and their agents, by which ClickHouse's tables are sorted. */
export interface RunSet {
  readonly runs: readonly string[]
  readonly agents: readonly string[]
}

const AMONG = 'and agent_id in {agents:Array(UUID)} and run_id in {runs:Array(UUID)}'
/**
 * For statements about a few runs: reads the text of their rows only. Otherwise ClickHouse would search all rows around
 * them that are not indexed yet.
 */
export const SETTINGS_AMONG = { query_plan_direct_read_from_text_index: 0 }

/** Selects the ids of runs that match in any table. Each condition has its own index, so UNION ALL combines them, not OR. */
function matchesSql({ terms, idPrefix }: SearchQuery, scope: string): string {
  const scoped = `prewhere workspace_id = {workspace:UUID} ${scope} where`
  const condition = textCondition(terms)
  const places = SEARCHED_TABLES.map((table) => `${table} ${scoped} ${condition}`)
  if (idPrefix !== null) {
    const names = ['external_run_id', 'session_id', 'external_user_id']
    const begins = names.map((name) => `startsWith(lowerUTF8(ifNull(${name}, '')), {id:String})`)
    places.push(`runs ${scoped} (${begins.join(' or ')})`)
    if (UUID_PART.test(idPrefix)) {
      places.push(`tasks ${scoped} startsWith(toString(task_id), {id:String})`)
      // Beginnings are found by the index of Postgres.
      places.push(`runs ${scoped} endsWith(toString(run_id), {id:String})`)
    }
    if (idPrefix.length >= EVENT_ID_LENGTH_MIN) places.push(`events ${scoped} ${EVENT_ID}`)
  }
  return places.map((place) => `select run_id from ${place}`).join(' union all ')
}

/** Event ids that the service mints are in upper case; the prefix is in lower case. */
const EVENT_ID = '(startsWith(event_id, {id:String}) or startsWith(event_id, {id_upper:String}))'

/** The condition on `search_text`. The index finds words; the text is read only for terms that must occur literally. */
function textCondition(terms: SearchQuery['terms']): string {
  const hasWords = terms.some(({ tokens }) => tokens.length > 0)
  const written = terms.flatMap((term, i) => (term.isWord ? [] : [`position(search_text, {term${i}:String}) > 0`]))
  return [...(hasWords ? ['hasAllTokens(search_text, {words:Array(String)})'] : []), ...written].join(' and ')
}

function termParams({ terms, idPrefix }: SearchQuery): Record<string, unknown> {
  const written = terms.map((term, i) => [`term${i}`, term.normal])
  return {
    words: [...new Set(terms.flatMap(({ tokens }) => tokens))],
    ...Object.fromEntries(written),
    id: idPrefix ?? '',
    id_upper: (idPrefix ?? '').toUpperCase(),
  }
}

/** The texts of a run that match. Long ones are cut around the first word. */
export interface FoundRun {
  readonly run_id: string
  readonly agent_name: string
  readonly external_run_id: string | null
  readonly session_id: string | null
  readonly external_user_id: string | null
  readonly tag_texts: string
  readonly error_message: string | null
  readonly error_detail: string | null
  readonly metadata: string
  readonly input: string
  readonly output: string | null
}

/** Selects a {@link FoundRun} for each run whose own texts match. */
export function ownTextsSql(workspaceId: string, search: SearchQuery, runs: RunSet): Statement {
  const texts = ['error_message', 'error_detail', 'metadata', 'input', 'output'].map(excerpt)
  return {
    sql: `
      select run_id, agent_name, external_run_id, session_id, external_user_id,
        arrayStringConcat(tags, ' ') as tag_texts, ${texts.join(', ')}
      from runs final prewhere workspace_id = {workspace:UUID} ${AMONG} where ${textCondition(search.terms)}`,
    params: { ...termParams(search), ...runs, workspace: workspaceId, first: firstOf(search) },
  }
}

/** The first matching event of a run. */
export interface FoundEvent {
  readonly run_id: string
  readonly event_id: string
  readonly seq: number
  readonly type: string
  readonly task_id: string | null
  readonly payload: string
}

/** Selects a {@link FoundEvent} for each run that has one. */
export function eventsSql(workspaceId: string, search: SearchQuery, runs: RunSet): Statement {
  const { terms, idPrefix } = search
  const scoped = `prewhere workspace_id = {workspace:UUID} ${AMONG}`
  const byId = idPrefix !== null && idPrefix.length >= EVENT_ID_LENGTH_MIN
  const matches = byId ? `((${textCondition(terms)}) or ${EVENT_ID})` : textCondition(terms)
  return {
    sql: `
      select run_id, event_id, seq, type, task_id, ${excerpt('payload')} from events
      ${scoped} where (run_id, seq) in (
        select run_id, min(seq) from events ${scoped} where ${matches} group by run_id
      )
      limit 1 by run_id`,
    params: { ...termParams(search), ...runs, workspace: workspaceId, first: firstOf(search) },
  }
}

/** The first matching state of a task of a run. */
export interface FoundTask {
  readonly run_id: string
  readonly task_id: string
  readonly name: string
  readonly input: string | null
  readonly output: string | null
  readonly error_message: string | null
}

/** Selects a {@link FoundTask} for each run that has one. */
export function tasksSql(workspaceId: string, search: SearchQuery, runs: RunSet): Statement {
  const { terms, idPrefix } = search
  const scoped = `prewhere workspace_id = {workspace:UUID} ${AMONG}`
  const byId = idPrefix !== null && UUID_PART.test(idPrefix)
  const matches = byId
    ? `((${textCondition(terms)}) or startsWith(toString(task_id), {id:String}))`
    : textCondition(terms)
  const texts = ['input', 'output', 'error_message'].map(excerpt)
  return {
    sql: `
      select run_id, task_id, name, ${texts.join(', ')} from task_changes
      ${scoped} where (run_id, seq) in (
        select run_id, min(seq) from task_changes ${scoped} where ${matches} group by run_id
      )
      limit 1 by run_id`,
    params: { ...termParams(search), ...runs, workspace: workspaceId, first: firstOf(search) },
  }
}

/** What a snippet is centred on: the first word, or else the first term. */
function firstOf({ terms }: SearchQuery): string {
  const [{ tokens, normal }] = terms as [SearchQuery['terms'][number]]
  return tokens[0] ?? normal
}

/** A short text as a whole; of a longer one, the part around the first word. */
function excerpt(column: string): string {
  const at = `positionCaseInsensitive(${column}, {first:String})`
  const from = `if(length(${column}) <= ${EXCERPT_BYTES}, 1, greatest(1, toInt64(${at}) - ${EXCERPT_BYTES / 2}))`
  return `toValidUTF8(substring(${column}, ${from}, ${EXCERPT_BYTES})) as ${column}`
}
