import { t } from 'elysia'
import type { Clock } from '../../base/clock.ts'
import { previewOf } from '../../base/conventions/preview.ts'
import { ApiError, invalid, notFound } from '../../base/errors.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT } from '../../base/http/page.ts'
import { CursorMs, Uuid } from '../../base/http/schema.ts'
import { checkVersion } from '../../base/http/version.ts'
import { type Mint, NIL_UUID, type RunIdentity, type RunRef, spellingsOf } from '../../base/ids.ts'
import type { Limits } from '../../base/limits.ts'
import { EMPTY_OBJECT } from '../../base/raw-json.ts'
import { dateOf } from '../../base/timestamp.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import { agentToRead, type Caller } from '../../tenants/keys/schema.ts'
import { readable, reportable } from './access.ts'
import type { RunDirectory } from './directory.ts'
import { checkSize, checkTags, checkText } from './limits.ts'
import {
  previewText,
  RUN_ROW_COLUMNS,
  runsToOutbox,
  STORED_RUN,
  type StoredRun,
  storedRun,
  toRunRecord,
  unixMs,
} from './rows.ts'
import type {
  CancelRun,
  CompleteRun,
  EditRun,
  FailRun,
  ListedRun,
  ListRuns,
  RunEnded,
  RunPage,
  RunRecord,
  RunStarted,
  StartRun,
} from './schema.ts'
import { createRunStarts } from './starts.ts'
import type { RunStatus, TerminalStatus } from './state.ts'
import { createRunTransitions, type RunTransition } from './transitions.ts'

export interface RunStoreDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly limits: Limits
  readonly directory: RunDirectory
  /** Cancels a run of a hosted agent; false if it has already ended. */
  readonly cancelHosted: (run: RunIdentity, reason: string | null) => Promise<boolean>
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
}

/** A page ends with the run whose free-form members exceed this total: each of 200 runs may have 13 MiB. */
const PAGE_BYTES_MAX = 8 << 20
const NO_RESULT: RunResult = { output: null, errorMessage: null, errorDetail: null, usage: null }

const listCursor = cursorCodec(t.Tuple([CursorMs, Uuid]))

/**
 * Starts, ends and reads runs for callers (docs/runs.md). Errors are ApiErrors with the codes named
 * there.
 */
export class RunStore {
  private readonly starts: ReturnType<typeof createRunStarts>
  private readonly transitions: ReturnType<typeof createRunTransitions>

  constructor(private readonly deps: RunStoreDeps) {
    this.starts = createRunStarts(deps.sql)
    this.transitions = createRunTransitions(deps.sql)
  }

  /** @throws ApiError VALIDATION_ERROR, PAYLOAD_TOO_LARGE, FORBIDDEN, NOT_FOUND, CONFLICT, UNAVAILABLE */
  async start(caller: Caller, body: StartRun, mint: Mint): Promise<RunStarted> {
    const { sql, clock, limits, directory, onChange } = this.deps
    if (body.run_id === NIL_UUID) throw invalid('run_id', `${NIL_UUID} stands for no run; choose another UUID`)
    checkText('external_run_id', body.external_run_id, limits.external_id_length)
    checkText('session_id', body.session_id, limits.external_id_length, 1)
    checkText('external_user_id', body.external_user_id, limits.external_id_length, 1)
    checkTags(body.tags, limits)
    checkSize('input', body.input, limits.run_input_bytes)
    checkSize('metadata', body.metadata, limits.run_input_bytes)
    const agentId = body.agent_id.toLowerCase()
    if (agentId !== caller.agentId) throw await refusalOfAgent(sql, caller, agentId)
    const started = directory.starting()
    const { ref, created } = await this.starts.submit({
      runId: body.run_id?.toLowerCase() ?? mint.uuid(),
      hasChosenId: body.run_id !== undefined,
      workspaceId: caller.workspaceId,
      agentId,
      triggerType: body.trigger_type ?? 'sdk',
      // Programs without one may send an empty one.
      externalRunId: body.external_run_id || null,
      parentRunId: body.parent_run_id?.toLowerCase() ?? null,
      sessionId: body.session_id ?? null,
      externalUserId: body.external_user_id ?? null,
      tags: body.tags ?? [],
      metadata: body.metadata ?? EMPTY_OBJECT,
      input: body.input ?? EMPTY_OBJECT,
      at: clock.now(),
    })
    if (created) {
      started(caller, ref)
      onChange()
    }
    return { run_id: ref.runId }
  }

  private async end(run: RunRef, to: TerminalStatus, what: Partial<RunResult>): Promise<RunEnded> {
    const { clock, onChange } = this.deps
    const { runId, workspaceId } = run
    const ended = await this.transitions.submit({ runId, workspaceId, to, at: clock.now(), ...NO_RESULT, ...what })
    if (!ended.already) onChange()
    return ended
  }

  /** @throws ApiError PAYLOAD_TOO_LARGE, NOT_FOUND, FORBIDDEN, CONFLICT, UNAVAILABLE */
  async complete(caller: Caller, body: CompleteRun): Promise<RunEnded> {
    const { limits, directory } = this.deps
    checkSize('output', body.output, limits.run_output_bytes)
    const run = reportable(caller, await directory.find(caller.workspaceId, body.run_id.toLowerCase()))
    return this.end(run, 'completed', { output: body.output ?? EMPTY_OBJECT, usage: body.usage ?? null })
  }

  /** @throws ApiError VALIDATION_ERROR, PAYLOAD_TOO_LARGE, NOT_FOUND, FORBIDDEN, CONFLICT, UNAVAILABLE */
  async fail(caller: Caller, body: FailRun): Promise<RunEnded> {
    const { limits, directory } = this.deps
    checkText('error_message', body.error_message, limits.run_output_bytes)
    checkSize('error_detail', body.error_detail, limits.run_output_bytes)
    const run = reportable(caller, await directory.find(caller.workspaceId, body.run_id.toLowerCase()))
    const { error_message: errorMessage, error_detail: errorDetail = EMPTY_OBJECT, usage = null } = body
    return this.end(run, 'failed', { errorMessage, errorDetail, usage })
  }

  /** @throws ApiError VALIDATION_ERROR, NOT_FOUND, FORBIDDEN, CONFLICT, UNAVAILABLE */
  async cancel(caller: Caller, runId: string, body: CancelRun): Promise<RunEnded> {
    const { limits, cancelHosted } = this.deps
    checkText('reason', body.reason, limits.run_output_bytes)
    const run = await this.find(caller, runId)
    const errorMessage = body.reason ?? null
    if (run.runtimeType === 'external') return this.end(run, 'cancelled', { errorMessage })
    const isDone = await cancelHosted(run, errorMessage)
    // Returns the current state of the run, as for one that ended before.
    return { ...(await this.end(run, 'cancelled', { errorMessage })), already: !isDone }
  }

  /**
   * The run, if the caller may read it.
   * @throws ApiError NOT_FOUND, FORBIDDEN, UNAVAILABLE
   */
  async find(caller: Caller, runId: string): Promise<RunRef> {
    return readable(caller, await this.deps.directory.find(caller.workspaceId, runId.toLowerCase()))
  }

  /** @throws ApiError NOT_FOUND, FORBIDDEN, UNAVAILABLE */
  async get(caller: Caller, runId: string): Promise<RunRecord> {
    return toRunRecord(await this.read<StoredRun>(caller, runId, STORED_RUN))
  }

  /**
   * Replaces the tags or the metadata. It is a row of its own in the journal, so feeds and SQL have it, but no end of the run.
   * @param version the one that the call names; undefined: any
   * @throws ApiError VALIDATION_ERROR, PAYLOAD_TOO_LARGE, NOT_FOUND, FORBIDDEN, UNAVAILABLE; CONFLICT at another version
   */
  async edit(
    caller: Caller,
    runId: string,
    { tags, metadata }: EditRun,
    version: number | undefined,
  ): Promise<RunRecord> {
    const { sql, limits, onChange } = this.deps
    checkTags(tags, limits)
    checkSize('metadata', metadata, limits.run_input_bytes)
    const ref = await this.find(caller, runId)
    if (tags === undefined && metadata === undefined) {
      const run = await this.get(caller, runId)
      checkVersion('a run', run, version)
      return run
    }
    const at = version === undefined ? sql`` : sql`and r.version = ${version}`
    const [run] = await sql<StoredRun[]>`
      with updated as (
        update runs r set
          tags = coalesce(${tags ?? null}::text[], r.tags), metadata = coalesce(${metadata ?? null}::json, r.metadata),
          version = r.version + 1
        where r.workspace_id = ${ref.workspaceId} and r.run_id = ${ref.runId} ${at}
        returning ${sql.unsafe(RUN_ROW_COLUMNS)}, r.version
      ), logged as (${sql.unsafe(runsToOutbox('updated r', true))})
      select ${sql.unsafe(STORED_RUN)} from updated r`
    if (run === undefined) {
      checkVersion('a run', await this.read(caller, runId, 'r.version'), version)
      throw notFound('run')
    }
    onChange()
    return toRunRecord(run)
  }

  /** @throws ApiError NOT_FOUND, FORBIDDEN, UNAVAILABLE */
  async status(caller: Caller, runId: string): Promise<RunStatus> {
    return (await this.read<{ status: RunStatus }>(caller, runId, 'r.status')).status
  }

  private async read<Row extends object>(caller: Caller, runId: string, columns: string): Promise<Row> {
    const { sql } = this.deps
    const ref = await this.find(caller, runId)
    const [run] = await sql<Row[]>`
      select ${sql.unsafe(columns)} from runs r where r.workspace_id = ${ref.workspaceId} and r.run_id = ${ref.runId}`
    if (run === undefined) throw notFound('run')
    return run
  }

  /**
   * Newest first; an agent key sees its own agent's runs only.
   * @throws ApiError FORBIDDEN for an agent key that asks for another agent, VALIDATION_ERROR, UNAVAILABLE
   */
  async list(caller: Caller, query: ListRuns): Promise<RunPage> {
    return listRuns(this.deps.sql, caller.workspaceId, scoped(caller, query))
  }

  /** Positions of the first `count` runs of the list. @throws ApiError like {@link list} */
  async newest(caller: Caller, query: SelectRuns, count: number): Promise<ListedPosition[]> {
    const { sql } = this.deps
    return sql<ListedPosition[]>`
      select r.run_id, r.agent_id, ${sql.unsafe(unixMs('r.created_at'))} as created_ms from runs r
      where r.workspace_id = ${caller.workspaceId}
        ${conditions(sql, caller.workspaceId, scoped(caller, query), count)}
      order by r.created_at desc, r.run_id desc limit ${count}`
  }

  /** A page of those of these runs that are in the list, newest first. @throws ApiError like {@link list} */
  async listed(caller: Caller, query: ListRuns, runIds: readonly string[]): Promise<RunPage> {
    const { cursor: _cursor, ...filters } = scoped(caller, query)
    return listRuns(this.deps.sql, caller.workspaceId, { ...filters, run_ids: runIds })
  }

  /** The `cursor` of the page that begins after a run. */
  cursorAt({ created_ms, run_id }: Pick<ListedPosition, 'created_ms' | 'run_id'>): string {
    return listCursor.encode([created_ms, run_id])
  }

  /**
   * The runs that name this one as their parent. @throws ApiError NOT_FOUND, FORBIDDEN, VALIDATION_ERROR, UNAVAILABLE
   */
  async children(
    caller: Caller,
    runId: string,
    page: Pick<ListRuns, 'limit' | 'cursor' | 'include'>,
  ): Promise<RunPage> {
    const { runId: parent } = await this.find(caller, runId)
    return this.list(caller, { ...page, parent_run_id: parent })
  }
}

/** Conditions of the list, and those of a search. */
interface SelectRuns extends ListRuns {
  readonly run_ids?: readonly string[]
  readonly run_id_range?: readonly [first: string, last: string]
}

/** A run of the list, and its position there. */
export interface ListedPosition {
  readonly run_id: string
  readonly agent_id: string
  readonly created_ms: number
}

/** The query, limited to the agent of an agent key. @throws ApiError FORBIDDEN for another agent */
function scoped<Query extends ListRuns>(caller: Caller, query: Query): Query {
  return { ...query, agent_id: agentToRead(caller, query.agent_id, 'runs') ?? undefined }
}

type RunResult = Pick<RunTransition, 'output' | 'errorMessage' | 'errorDetail' | 'usage'>

/**
 * FORBIDDEN for another agent of the workspace, NOT_FOUND for any other, so that no caller learns of agents elsewhere
 * (docs/keys.md#key-scope).
 */
async function refusalOfAgent(sql: Sql, caller: Caller, agentId: string): Promise<ApiError> {
  const [agent] = await sql`select from agents where agent_id = ${agentId} and workspace_id = ${caller.workspaceId}`
  return agent === undefined
    ? notFound('agent', { param: 'agent_id' })
    : new ApiError('FORBIDDEN', 'this key belongs to another agent', { reason: 'wrong_agent', param: 'agent_id' })
}

interface ListedRow extends StoredRun {
  readonly found: number
  /** For previews. */
  readonly input_text: string | null
  readonly output_text: string | null
}

async function listRuns(sql: Sql, workspaceId: string, query: SelectRuns): Promise<RunPage> {
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT
  const included = new Set(query.include)
  const content = (name: 'input' | 'output') => (included.has(name) ? `r.${name}` : `null::json as ${name}`)
  const bytesOf = (name: 'input' | 'output') =>
    included.has(name) ? `coalesce(octet_length(r.${name}::text), 0)` : '0'
  // `bytes_before` and `found` belong to the page before it is cut by size.
  const rows = await sql<ListedRow[]>`
    select ${sql.unsafe(STORED_RUN)}, r.input_text, r.output_text, r.found from (
      select page.*, count(*) over () as found,
        sum(bytes) over (order by created_at desc, run_id desc rows between unbounded preceding and 1 preceding)
          as bytes_before
      from (
        select ${sql.unsafe(storedRun(content('input'), content('output')))},
          ${sql.unsafe(previewText('r.input'))} as input_text, ${sql.unsafe(previewText('r.output'))} as output_text,
          ${sql.unsafe(`${bytesOf('input')} + ${bytesOf('output')}`)}
          + octet_length(r.metadata::text) + coalesce(octet_length(r.error_message), 0)
          + coalesce(octet_length(r.error_detail::text), 0) as bytes
        from runs r
        where r.workspace_id = ${workspaceId} ${conditions(sql, workspaceId, query, limit)}
        order by r.created_at desc, r.run_id desc limit ${limit + 1}
      ) page
    ) r
    where coalesce(r.bytes_before, 0) < ${PAGE_BYTES_MAX}
    order by r.created_at desc, r.run_id desc limit ${limit}`
  const last = rows.at(-1)
  const more = last !== undefined && last.found > rows.length
  return {
    items: rows.map((row) => toListedRun(row, included)),
    next_cursor: more ? listCursor.encode([last.created_at.getTime(), last.run_id]) : null,
  }
}

function toListedRun(
  { found: _, input_text, output_text, ...run }: ListedRow,
  included: ReadonlySet<string>,
): ListedRun {
  const { input, output, ...record } = toRunRecord(run)
  return {
    ...record,
    ...(included.has('input') && { input }),
    ...(included.has('output') && { output }),
    input_preview: input_text === null ? null : previewOf(input_text, 'input'),
    output_preview: output_text === null ? null : previewOf(output_text, 'output'),
  }
}

function conditions(sql: Sql, workspaceId: string, query: SelectRuns, limit: number) {
  const {
    agent_id,
    agent_version,
    trigger_type,
    external_run_id,
    parent_run_id,
    session_id,
    external_user_id,
    tag,
    from,
    to,
    cursor,
    run_ids,
    run_id_range: range,
  } = query
  const and = [
    agent_id !== undefined && sql`and r.agent_id = ${agent_id}`,
    agent_version !== undefined && sql`and r.agent_version = ${agent_version}`,
    trigger_type !== undefined && sql`and r.trigger_type = ${trigger_type}`,
    external_run_id !== undefined && sql`and r.external_run_id = ${external_run_id}`,
    parent_run_id !== undefined && sql`and r.parent_run_id = ${parent_run_id}`,
    session_id !== undefined && sql`and r.session_id in ${sql(spellingsOf(session_id))}`,
    external_user_id !== undefined && sql`and r.external_user_id = ${external_user_id}`,
    tag !== undefined && sql`and r.tags <> '{}' and r.tags @> ${[tag]}::text[]`,
    from !== undefined && sql`and r.created_at >= ${dateOf(from)}`,
    to !== undefined && sql`and r.created_at < ${dateOf(to)}`,
    run_ids !== undefined && sql`and r.run_id = any(${run_ids}::uuid[])`,
    range !== undefined && sql`and r.run_id between ${range[0]}::uuid and ${range[1]}::uuid`,
    cursor !== undefined && after(sql, listCursor.decode(cursor)),
  ]
  const others = and.filter((condition) => condition !== false).reduce((all, one) => sql`${all} ${one}`, sql``)
  const statuses = [...new Set(query.status)]
  if (statuses.length === 0) return others
  if (statuses.length === 1) return sql`and r.status = ${statuses[0]} ${others}`
  // The newest of each status: the index has them in order, whereas `any` would sort all runs of these statuses.
  return sql`and r.run_id in (
    select newest.run_id from unnest(${statuses}::text[]) as wanted (status) cross join lateral (
      select r.run_id, r.created_at from runs r
      where r.workspace_id = ${workspaceId} and r.status = wanted.status ${others}
      order by r.created_at desc, r.run_id desc limit ${limit + 1}
    ) newest
    order by newest.created_at desc, newest.run_id desc limit ${limit + 1})`
}

function after(sql: Sql, [createdAt, runId]: readonly [number, string]) {
  return sql`and (r.created_at, r.run_id) < (${new Date(createdAt)}, ${runId}::uuid)`
}
