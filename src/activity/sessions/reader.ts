import { t } from 'elysia'
import { previewOf } from '../../base/conventions/preview.ts'
import { definedOf } from '../../base/defined.ts'
import { ApiError, notFound } from '../../base/errors.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf } from '../../base/http/page.ts'
import { CursorMs, Uuid } from '../../base/http/schema.ts'
import { spellingsOf, uuidOrNull } from '../../base/ids.ts'
import { type RowOf, withIsoTimes } from '../../base/timestamp.ts'
import { inTransaction, type Sql } from '../../stores/postgres/connect.ts'
import { agentToRead, type Caller } from '../../tenants/keys/schema.ts'
import { previewText, type UsageColumns, usageRecord } from '../runs/rows.ts'
import { figuresOf, matching, sessionExists } from './figures.ts'
import { LISTED_RUNS_COUNTED, type ListSessions, SESSION_RUNS_COUNTED, type SessionRecord } from './schema.ts'

/** Runs read for one page at most: thousands of the newest may belong to one session. */
const RUNS_WALKED_MAX = 20_000
/** Runs read in the first step for each session of a page, and the growth of each further step. */
const RUNS_PER_SESSION = 4
const STEP_FACTOR = 4

const CURSOR = cursorCodec(t.Tuple([CursorMs, Uuid]))
type Position = ReturnType<typeof CURSOR.decode>

/**
 * Reads sessions, which are derived from the runs that name them: nothing else is stored about external sessions
 * (docs/runs.md#sessions-and-users).
 */
export class SessionReader {
  constructor(private readonly sql: Sql) {}

  /** Newest activity first. @throws ApiError FORBIDDEN, VALIDATION_ERROR */
  async list(caller: Caller, query: ListSessions): Promise<PageOf<SessionRecord>> {
    const { limit = PAGE_LIMIT_DEFAULT } = query
    const wanted = definedOf({ ...query, agent_id: agentToRead(caller, query.agent_id, 'sessions') ?? undefined })
    const { found, end } = await this.walk(caller.workspaceId, wanted, limit)
    const names = found.map(({ session_id }) => session_id)
    const listed = await this.read(caller, found, LISTED_RUNS_COUNTED)
    const rows = new Map(listed.map((row) => [row.session_id, row]))
    return {
      items: names.flatMap((name) => rows.get(name) ?? []).map(toRecord),
      next_cursor: end === null ? null : CURSOR.encode(end),
    }
  }

  /** @throws ApiError NOT_FOUND, FORBIDDEN */
  async get(caller: Caller, sessionId: string): Promise<SessionRecord> {
    const names = spellingsOf(sessionId).map((session_id) => ({ session_id }))
    let rows = await this.read(caller, names, SESSION_RUNS_COUNTED)
    if (rows.length === 0 && caller.agentId !== null)
      rows = await this.read(caller, await this.ofAgent(caller.agentId, spellingsOf(sessionId)), SESSION_RUNS_COUNTED)
    const row = rows.find((each) => each.session_id === sessionId) ?? rows[0]
    if (row !== undefined) return toRecord(row)
    if (caller.agentId !== null && (await this.read({ ...caller, agentId: null }, names, 1)).length > 0)
      throw new ApiError('FORBIDDEN', 'this session belongs to a different agent than this key', {
        reason: 'wrong_agent',
      })
    throw notFound('session')
  }

  /**
   * Finds the sessions of a page: walks the matching runs, newest first, and lists each session at its newest one.
   * @returns end: the position after which the next page begins; null if there are no further runs
   */
  private async walk(workspaceId: string, wanted: ListSessions, limit: number) {
    const start = wanted.cursor === undefined ? null : CURSOR.decode(wanted.cursor)
    const found: WalkedRun[] = []
    const seen = new Set<string>()
    let position = start
    let size = limit * RUNS_PER_SESSION
    for (let left = RUNS_WALKED_MAX; left > 0; left -= size, size = Math.min(left, size * STEP_FACTOR)) {
      const runs = await this.step(workspaceId, wanted, position, size)
      const first = runs.filter(({ session_id }) => !seen.has(session_id) && seen.add(session_id))
      // On an earlier page, a session was listed at a newer run.
      found.push(...(start === null ? first : await this.newestOnly(workspaceId, wanted, first)))
      if (found.length > limit) break
      position = positionOf(runs.at(-1)) ?? position
      if (runs.length < size) return { found, end: null }
    }
    if (found.length <= limit) return { found, end: position }
    return { found: found.slice(0, limit), end: positionOf(found[limit - 1]) }
  }

  /**
   * The next runs of a walk. Each condition has an index in the order of the list; for both kinds, two index scans are
   * merged. Sorting is disabled, because without recent statistics Postgres expects few runs and would read and sort all,
   * which exceeds the statement timeout (measured with 1,000,000 runs).
   */
  private step(workspaceId: string, wanted: ListSessions, before: Position | null, size: number): Promise<WalkedRun[]> {
    const { kind, agent_id, external_user_id } = wanted
    return inTransaction(this.sql, async (sql) => {
      await sql`select set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true)`
      const runs = (ofKind: ReturnType<Sql>) => sql`(
        select r.session_id, r.run_id, r.created_at from runs r
        where r.workspace_id = ${workspaceId} and r.session_id is not null ${ofKind} ${matching(sql, 'r', '=', wanted)}
          ${before === null ? sql`` : sql`and (r.created_at, r.run_id) < (${new Date(before[0])}, ${before[1]}::uuid)`}
        order by r.created_at desc, r.run_id desc limit ${size})`
      if (agent_id !== undefined || external_user_id !== undefined) return sql<WalkedRun[]>`${runs(sql``)}`
      // Literals instead of parameters, so that Postgres can use the partial index of the kind.
      if (kind === 'hosted') return sql<WalkedRun[]>`${runs(sql`and r.runtime_type = 'hosted'`)}`
      if (kind === 'external') return sql<WalkedRun[]>`${runs(sql`and r.runtime_type = 'external'`)}`
      return sql<WalkedRun[]>`
        ${runs(sql`and r.runtime_type = 'hosted'`)} union all ${runs(sql`and r.runtime_type = 'external'`)}
        order by created_at desc, run_id desc limit ${size}`
    })
  }

  /** Of these runs, those that are the newest matching run of their session. */
  private async newestOnly(workspaceId: string, wanted: ListSessions, runs: readonly WalkedRun[]) {
    const { sql } = this
    const newest = await sql<{ run_id: string }[]>`
      select newest.run_id from unnest(${runs.map(({ session_id }) => session_id)}::text[]) as i (session_id)
      cross join lateral (
        select n.run_id from runs n
        where n.session_id = i.session_id and n.workspace_id = ${workspaceId}
          ${matching(sql, 'n', 'is not distinct from', wanted)}
        order by n.created_at desc, n.run_id desc limit 1
      ) newest`
    const ids = new Set(newest.map(({ run_id }) => run_id))
    return runs.filter(({ run_id }) => ids.has(run_id))
  }

  /** Those of these sessions that a run of the agent names, with the newest: behind very many runs of others. */
  private ofAgent(agentId: string, names: readonly string[]) {
    return this.sql<Named[]>`
      select distinct on (n.session_id) n.session_id, n.run_id from (
        select session_id, run_id, created_at from runs where agent_id = ${agentId} and session_id is not null
        order by created_at desc, run_id desc limit ${RUNS_WALKED_MAX}
      ) n where n.session_id = any (${names}::text[]) order by n.session_id, n.created_at desc, n.run_id desc`
  }

  /**
   * Those of these sessions that exist, in any order. An agent key counts only the runs of its agent.
   * @param named a run of each that is counted in any case
   * @param counted the newest runs of each that are read, of all agents: it takes no longer the longer a session lives
   */
  private async read(
    { workspaceId, agentId }: Pick<Caller, 'workspaceId' | 'agentId'>,
    named: readonly Named[],
    counted: number,
  ): Promise<SessionRow[]> {
    if (named.length === 0) return []
    const { sql } = this
    const names = named.map(({ session_id }) => session_id)
    const ofSession = sql`n.session_id = f.session_id and n.workspace_id = ${workspaceId}`
    const ofAgent = agentId === null ? {} : { agent_id: agentId }
    const isShown = sql`${sessionExists(sql, 'n')} ${matching(sql, 'n', 'is not distinct from', ofAgent)}`
    return sql<SessionRow[]>`
      select f.session_id, s.session_id is not null as is_hosted, coalesce(s.agent_id, last.agent_id) as agent_id,
        case when s.session_id is null then totals.last_user else s.external_user_id end as external_user_id,
        coalesce(s.message_count, 0) as message_count, s.turn_run_id as active_run_id,
        totals.*, ${counted}::int as counted, last.status, first.input as first_input,
        last.input as last_input, last.output as last_output, last.error_message,
        coalesce(s.created_at, first.created_at, totals.oldest_at) as created_at, s.updated_at
      from unnest(
        ${names}::text[], ${names.map(uuidOrNull)}::uuid[], ${named.map(({ run_id }) => run_id ?? null)}::uuid[]
      ) as f (session_id, hosted_id, run_id)
      left join sessions s on s.session_id = f.hosted_id and s.workspace_id = ${workspaceId}
        and s.session_id::text = f.session_id
      cross join lateral (
        select ${figuresOf(sql, 'n')}, min(n.created_at) as oldest_at,
          exists (select from runs n where ${ofSession} offset ${counted}) as is_partial,
          (array_agg(n.run_id order by n.created_at desc, n.run_id desc))[1] as last_run_id,
          (array_agg(n.external_user_id order by n.created_at desc) filter (where n.external_user_id is not null))[1]
            as last_user,
          coalesce((array_agg(distinct n.external_user_id) filter (where n.external_user_id is not null))[1:10], '{}')
            as external_user_ids
        from (
          select n.* from (
            select n.* from runs n where ${ofSession} order by n.created_at desc, n.run_id desc limit ${counted}
          ) n where n.run_id is distinct from f.run_id
          union all
          select n.* from runs n where n.run_id = f.run_id and n.workspace_id = ${workspaceId}
        ) n where ${isShown}
      ) totals
      left join lateral (
        select n.created_at, ${sql.unsafe(previewText('n.input'))} as input from (
          select n.* from runs n where ${ofSession} order by n.created_at, n.run_id limit ${counted}
        ) n where ${isShown} order by n.created_at, n.run_id limit 1
      ) first on true
      cross join lateral (
        select n.agent_id, n.status, left(n.error_message, 240) as error_message,
          ${sql.unsafe(previewText('n.input'))} as input, ${sql.unsafe(previewText('n.output'))} as output
        from runs n where n.run_id = totals.last_run_id and n.workspace_id = ${workspaceId}
      ) last`
  }
}

/** A session, and a run of it. */
interface Named {
  readonly session_id: string
  readonly run_id?: string
}

interface WalkedRun {
  readonly session_id: string
  readonly run_id: string
  readonly created_at: Date
}

function positionOf(run: WalkedRun | undefined): Position | null {
  return run === undefined ? null : [run.created_at.getTime(), run.run_id]
}

type SameMembers = Omit<RowOf<SessionRecord>, 'kind' | 'usage' | 'first_message' | 'last_message' | 'updated_at'>

interface SessionRow extends SameMembers, UsageColumns {
  readonly is_hosted: boolean
  /** So many runs are counted at most. */
  readonly counted: number
  readonly first_input: string | null
  readonly last_input: string | null
  readonly last_output: string | null
  readonly error_message: string | null
  /** Null for an external session. */
  readonly updated_at: Date | null
}

function toRecord(row: SessionRow): SessionRecord {
  const { first_input, last_input, last_output, error_message } = row
  const lastOutput = last_output === null ? null : previewOf(last_output, 'output')
  const times = { created_at: row.created_at, updated_at: row.updated_at ?? row.last_activity_at }
  return {
    session_id: row.session_id,
    kind: row.is_hosted ? 'hosted' : 'external',
    agent_id: row.agent_id,
    external_user_id: row.external_user_id,
    message_count: row.message_count,
    active_run_id: row.active_run_id,
    status: row.status,
    run_count: Math.min(row.run_count, row.counted),
    is_partial: row.is_partial,
    failed_count: row.failed_count,
    waiting_count: row.waiting_count,
    usage: usageRecord(row),
    cost_usd: row.cost_usd,
    agent_ids: row.agent_ids,
    external_user_ids: row.external_user_ids,
    first_message: first_input === null ? null : previewOf(first_input, 'input'),
    last_message: lastOutput ?? error_message ?? (last_input === null ? null : previewOf(last_input, 'input')),
    last_run_id: row.last_run_id,
    ...withIsoTimes({ ...times, last_activity_at: row.last_activity_at }),
  }
}
