import { USAGE_COLUMNS } from '../../activity/runs/rows.ts'
import { ApiError } from '../../base/errors.ts'
import { NIL_UUID, runKey } from '../../base/ids.ts'
import { type ColumnarClient, ColumnarUnavailable } from '../../stores/clickhouse/client.ts'
import type { JournalReader } from '../../stores/journal/journal.ts'
import { ACTIVITY_KINDS, type ActivityKind, KINDS } from '../../stores/journal/kinds.ts'
import type { EventRow, RunRow, ScoreRow, TaskRow } from '../../stores/journal/rows.ts'
import { type Activity, eventActivity, type RowPosition, runActivity, scoreActivity, taskActivity } from './activity.ts'
import { type Filter, isBySession, kindsWith, matchesSession } from './filter.ts'
import type { LookUpSessions } from './run-sessions.ts'

/** Reads activity older than the journal's own files from ClickHouse, for replay (docs/feeds.md#cursors). */
export interface History {
  /**
   * Reads a page of matching activity of a workspace after `afterSeq`, oldest first. A page ends at `untilSeq`, about
   * `bytesMax` of text, 5,000 activities or one second, whichever comes first. Call again from `throughSeq` while it is
   * below `untilSeq`. An activity larger than `bytesMax` comes alone.
   *
   * @throws ApiError UNAVAILABLE when ClickHouse is unavailable; SessionsUnavailable; the reason of `signal` once it is aborted
   */
  read(query: HistoryQuery): Promise<HistoryPage>
}

export interface HistoryQuery {
  readonly workspaceId: string
  readonly filter: Filter
  readonly afterSeq: number
  /** The sink must have loaded everything up to here. */
  readonly untilSeq: number
  readonly signal: AbortSignal
}

export interface HistoryPage {
  readonly items: readonly Activity[]
  /** Every match up to here is in `items` or in earlier pages. */
  readonly throughSeq: number
  /** Where the page starts, if later than requested: activity before it may have been deleted by retention. */
  readonly resumedSeq?: number
}

interface HistoryDeps {
  readonly columnar: Pick<ColumnarClient, 'query'>
  /** The journal's. Rows of other epochs are excluded: their positions belong to another journal. */
  readonly epoch: string
  readonly lookUpSessions: LookUpSessions
  readonly bytesMax?: number | undefined
}

/** Bounds how long decoding a page blocks the event loop: about ten milliseconds. */
const BYTES_MAX = 2 * 1024 * 1024
const ROWS_MAX = 5_000
/** A page ends after this time, so that matches found so far are sent. */
const PAGE_MS = 1_000
/** Positions scanned by the first query. While queries are quick, each range is a multiple of the one before. */
const RANGE_LENGTH = 20_000
const RANGE_GROWTH = 8
const RANGE_QUICK_MS = 100
/** Runs of a range whose sessions are looked up: with more it is shorter. */
const RANGE_RUNS_MAX = 5_000

const RANGE =
  'workspace_id = {workspace:UUID} and epoch = {epoch:String} and seq > {after:UInt64} and seq <= {until:UInt64}'
const IS_WORKSPACE_EVENT = `run_id = '${NIL_UUID}'`
const IS_OF_SESSION = 'run_id in {session_runs:Array(UUID)}'
const KINDS_OF_RUNS = ACTIVITY_KINDS.filter((kind) => kind !== 'run')

const SOURCES: Readonly<Record<ActivityKind, Source>> = {
  event: source<EventRow>(
    KINDS.event.rows,
    '350 + length(event_id) + length(type) + length(payload)',
    `agent_id, run_id, event_id, type, toInt8(level) as level, payload, ${unixMs('occurred_at')}, task_id`,
    eventActivity,
  ),
  task: source<TaskRow>(
    KINDS.task.rows,
    '600 + bytes',
    `workspace_id, agent_id, run_id, task_id, parent_task_id, name, status, input, output, error_message,
     ${unixMs('created_at')}, ${unixMs('updated_at')}, ${unixMs('started_at')}, ${unixMs('completed_at')}`,
    taskActivity,
  ),
  run: source<Omit<RunRow, 'input' | 'output'>>(
    KINDS.run.rows,
    '900 + bytes',
    `workspace_id, agent_id, run_id, agent_name, agent_version, runtime_type, status, trigger_type, external_run_id,
     parent_run_id, session_id, external_user_id, tags, metadata, error_message, error_detail,
     ${unixMs('created_at')}, ${unixMs('started_at')}, ${unixMs('completed_at')}, duration_ms, waiting_ms,
     ${unixMs('waiting_since')}, ${USAGE_COLUMNS.join(', ')}, cost_usd, event_count, ${unixMs('last_event_at')}, pending,
     is_recount`,
    runActivity,
  ),
  score: source<ScoreRow>(
    KINDS.score.rows,
    '600 + bytes',
    `agent_id, run_id, score_id, name, task_id, event_id, session_id, value, toInt8(data_type) as data_type, label, text,
     comment, toInt8(source) as source, metadata, ${unixMs('created_at')}`,
    scoreActivity,
  ),
}

/**
 * Scans the journal's positions range by range. For each range, a first query counts the matches and their size, which reads
 * no payloads (ClickHouse stores string sizes separately); a second one reads as much as the page has room for. A dense
 * range or huge payloads thus take no more memory than a page, and long empty ranges take few queries. For a filter with a
 * condition on sessions or external users, the runs of the range are looked up first, as in live feeds.
 */
export function createHistory({ columnar, epoch, lookUpSessions, bytesMax = BYTES_MAX }: HistoryDeps): History {
  async function readPage({ workspaceId, filter, afterSeq, untilSeq, signal }: HistoryQuery): Promise<HistoryPage> {
    const { whereOf, candidatesOf, params } = conditionsOf(filter)
    const looksUp = KINDS_OF_RUNS.filter((kind) => isBySession(filter) && filter.kinds.has(kind))
    const kinds = filter.workspaceEvents ? [...new Set([...filter.kinds, 'event' as const])] : [...filter.kinds]
    const query: Query = (sql, more) =>
      columnar.query(sql, { params: { workspace: workspaceId, epoch, ...params, ...more }, signal })
    const page = { items: [] as Activity[], bytes: 0, throughSeq: afterSeq }
    const endMs = performance.now() + PAGE_MS
    let length = RANGE_LENGTH
    while (page.throughSeq < untilSeq) {
      signal.throwIfAborted()
      const startedMs = performance.now()
      const range: Range = { after: page.throughSeq, until: Math.min(untilSeq, page.throughSeq + length) }
      if (looksUp.length > 0) {
        const found = await query<RunOfRange>(runsSql(looksUp, candidatesOf), { ...range, runs_max: RANGE_RUNS_MAX })
        const next = found[RANGE_RUNS_MAX]
        if (next !== undefined) range.until = next.first - 1
        range.session_runs = await runsOfSession(workspaceId, filter, found.slice(0, RANGE_RUNS_MAX))
        length = range.until - range.after
      }
      const room = {
        rows: ROWS_MAX - page.items.length,
        bytes: Math.max(0, bytesMax - page.bytes),
        least: page.items.length === 0 ? 1 : 0,
      }
      const shares = await query<Share>(planSql(kinds, whereOf), { ...range, ...room })
      if (performance.now() - startedMs < RANGE_QUICK_MS) length *= RANGE_GROWTH
      const taken = shares.filter(({ taken }) => taken > 0)
      const isWhole = shares.every(({ taken, found }) => taken === found)
      const until = isWhole ? range.until : Math.max(page.throughSeq, ...taken.map(({ last }) => last))
      const read = taken.map(({ kind }) => SOURCES[kind].read(query, whereOf(kind), { ...range, until }, epoch))
      page.items.push(...(await Promise.all(read)).flat().sort((a, b) => a.seq - b.seq))
      page.bytes += taken.reduce((sum, { bytes }) => sum + bytes, 0)
      page.throughSeq = until
      if (!isWhole || performance.now() > endMs) break
    }
    return page
  }

  async function runsOfSession(workspaceId: string, filter: Filter, runs: readonly RunOfRange[]): Promise<string[]> {
    if (runs.length === 0) return []
    const sessions = await lookUpSessions(runs.map(({ run_id: runId }) => ({ workspaceId, runId })))
    const ids = runs.map(({ run_id }) => run_id)
    return ids.filter((id) => {
      const session = sessions.get(runKey(workspaceId, id))
      return session !== undefined && matchesSession(filter, session)
    })
  }

  return {
    read: (query) =>
      readPage(query).catch((error) => {
        if (!(error instanceof ColumnarUnavailable)) throw error
        throw new ApiError('UNAVAILABLE', 'past activity cannot be read at the moment; try again', { cause: error })
      }),
  }
}

/** History that reports positions whose rows the journal lost before they were in ClickHouse (docs/feeds.md#cursors). */
export function withGaps(history: History, journal: Pick<JournalReader, 'gaps' | 'epochs'>): History {
  return {
    async read(query) {
      const { afterSeq, untilSeq } = query
      const epochSeq = journal.epochs[journal.epochs.length - 1].firstSeq
      const lost = journal.gaps
        .map((gap) => ({ afterSeq: Math.max(gap.afterSeq, gap.loadedSeq), throughSeq: gap.throughSeq }))
        .find((gap) => gap.throughSeq > afterSeq && gap.throughSeq >= epochSeq && gap.afterSeq < gap.throughSeq)
      if (lost === undefined || lost.afterSeq >= untilSeq) return history.read(query)
      // Read up to the gap first; the next page starts with it.
      if (lost.afterSeq > afterSeq) return history.read({ ...query, untilSeq: lost.afterSeq })
      const throughSeq = Math.min(lost.throughSeq, untilSeq)
      return { items: [], throughSeq, resumedSeq: throughSeq }
    },
  }
}

type Query = <Row>(sql: string, params: object) => Promise<Row[]>

/** How much activity of one kind a range contains, and how much of it fits into the page. */
interface Share {
  readonly kind: ActivityKind
  /** Counted up to one more than fits. */
  readonly found: number
  readonly taken: number
  /** The position of the last one that fits. */
  readonly last: number
  readonly bytes: number
}

/** Positions, as parameters of a query. */
interface Range {
  readonly after: number
  until: number
  /** For {@link IS_OF_SESSION}. */
  session_runs?: readonly string[]
}

/** A run with activity in a range, and the position of the first. */
interface RunOfRange {
  readonly run_id: string
  readonly first: number
}

/** The runs of a range in the order of their first activity, up to one more than are looked up. */
function runsSql(kinds: readonly ActivityKind[], candidatesOf: (kind: ActivityKind) => string): string {
  const rows = kinds.map((kind) => `select run_id, seq from ${SOURCES[kind].table} where ${candidatesOf(kind)}`)
  return `
    select run_id, min(seq) as first from (${rows.join(' union all ')})
    group by run_id order by first limit {runs_max:UInt64} + 1`
}

function planSql(kinds: readonly ActivityKind[], whereOf: (kind: ActivityKind) => string): string {
  const sizes = kinds.map((kind) => {
    const { table, bytes } = SOURCES[kind]
    return `select '${kind}' as kind, seq, ${bytes} as bytes from ${table} where ${whereOf(kind)}`
  })
  return `
    select kind, count() as found, countIf(fits) as taken, maxIf(seq, fits) as last, sumIf(size, fits) as bytes from (
      select kind, seq, bytes as size, row_number() over (order by seq) as rank,
        sum(bytes) over (order by seq rows between unbounded preceding and current row) as bytes_so_far,
        rank <= {least:UInt64} or (rank <= {rows:UInt64} and bytes_so_far <= {bytes:UInt64}) as fits
      from (select * from (${sizes.join(' union all ')}) order by seq limit {rows:UInt64} + 1)
    )
    group by kind`
}

type Source = ReturnType<typeof source>

/**
 * The table that holds the activity of one kind.
 * @param bytes SQL expression: the approximate length of a row's activity text
 * @param columns SQL select list: the members of `Row`
 */
function source<Row>(
  table: string,
  bytes: string,
  columns: string,
  toActivity: (position: RowPosition, row: Row) => Activity,
) {
  return {
    table,
    bytes,
    async read(query: Query, where: string, range: Range, epoch: string): Promise<Activity[]> {
      // Rows in flight when the change tables were created may exist twice: copied, and loaded afterwards.
      const sql = `
        select ${columns}, seq, ${unixMs('received_at')} from ${table} where ${where} order by seq limit 1 by seq`
      const rows = await query<Row & { readonly seq: number; readonly received_at: number }>(sql, range)
      return rows.map((row) => toActivity({ epoch, seq: row.seq, receivedAt: row.received_at }, row))
    },
  }
}

function unixMs(column: string): string {
  return `toUnixTimestamp64Milli(${column}) as ${column}`
}

interface Conditions {
  /** The conditions on fields that the table of a kind has. */
  readonly whereOf: (kind: ActivityKind) => string
  /** The same without the condition on the session of a run, which these tables do not have. */
  readonly candidatesOf: (kind: ActivityKind) => string
  readonly params: Record<string, unknown>
}

function conditionsOf(filter: Filter): Conditions {
  const { agentIds, runIds, taskIds, sessionIds, externalUserIds, types, level, statuses, tags } = filter
  const params: Record<string, unknown> = {}
  const all: { readonly kinds: readonly ActivityKind[]; readonly condition: string }[] = []
  const add = (
    kinds: readonly ActivityKind[],
    name: string,
    values: Iterable<unknown> | undefined,
    condition: string,
  ) => {
    if (values === undefined) return
    params[name] = [...values]
    all.push({ kinds, condition })
  }
  add(kindsWith('agent_id'), 'agents', agentIds, 'agent_id in {agents:Array(UUID)}')
  add(kindsWith('run_id'), 'runs', runIds, 'run_id in {runs:Array(UUID)}')
  add(kindsWith('task_id'), 'tasks', taskIds, 'task_id in {tasks:Array(UUID)}')
  add(['run'], 'sessions', sessionIds, 'session_id in {sessions:Array(String)}')
  add(['run'], 'external_users', externalUserIds, 'external_user_id in {external_users:Array(String)}')
  if (isBySession(filter)) all.push({ kinds: KINDS_OF_RUNS, condition: IS_OF_SESSION })
  add(kindsWith('status'), 'statuses', statuses, 'status in {statuses:Array(String)}')
  add(kindsWith('tag'), 'tags', tags, 'hasAny(tags, {tags:Array(String)})')
  if (level !== undefined) {
    params.level = level
    all.push({ kinds: kindsWith('level'), condition: 'toInt8(level) >= {level:Int8}' })
  }
  if (types !== undefined) {
    const alternatives = types.map((type, i) => {
      const isPrefix = type.endsWith('*')
      params[`type${i}`] = isPrefix ? type.slice(0, -1) : type
      return isPrefix ? `startsWith(type, {type${i}:String})` : `type = {type${i}:String}`
    })
    all.push({ kinds: kindsWith('type'), condition: `(${alternatives.join(' or ')})` })
  }
  const matchesOf = (kind: ActivityKind) => {
    const ofKind = all.filter(({ kinds }) => kinds.includes(kind)).map(({ condition }) => condition)
    return filter.kinds.has(kind) ? [`not ${IS_WORKSPACE_EVENT}`, ...ofKind] : ['false']
  }
  const candidatesOf = (kind: ActivityKind) =>
    [RANGE, ...matchesOf(kind).filter((condition) => condition !== IS_OF_SESSION)].join(' and ')
  const whereOf = (kind: ActivityKind) => {
    const matches = matchesOf(kind).join(' and ')
    return kind === 'event' && filter.workspaceEvents
      ? `${RANGE} and (${IS_WORKSPACE_EVENT} or (${matches}))`
      : `${RANGE} and ${matches}`
  }
  return { whereOf, candidatesOf, params }
}
