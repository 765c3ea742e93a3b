import { arrayLiteral, isErased, RUN_ROW_COLUMNS, runsToOutbox } from '../../activity/runs/rows.ts'
import { runKey, uuidOrNull } from '../../base/ids.ts'
import type { RawJson } from '../../base/raw-json.ts'
import { type Batcher, createBatcher } from '../../stores/postgres/batcher.ts'
import { jsonArray, type Sql } from '../../stores/postgres/connect.ts'

/** Metadata that say only where the run was reported. */
export const BARE_METADATA = /^\{"source":"[a-z-]+"\}$/

/** What an export says about a run; null or empty for what it does not say. */
export interface RunReport {
  readonly runId: string
  readonly workspaceId: string
  readonly agentId: string
  readonly externalRunId: string
  readonly parentRunId: string | null
  readonly externalUserId: string | null
  readonly sessionId: string | null
  readonly tags: readonly string[]
  readonly metadata: RawJson
  readonly input: RawJson | null
  /** Unix milliseconds, like `at`. */
  readonly startedAt: number
  readonly at: number
}

/** `missing`: the agent does not exist, is archived, or is hosted. `erased`: the run was deleted. */
export type RunUpserted = 'created' | 'changed' | 'unchanged' | 'missing' | 'erased'

/**
 * Starts runs from the first export that reports them, and adds what later exports say, in batches. A later export may
 * move the start back and fill in missing values, but never replaces one. If nothing changes, nothing is written.
 */
export function createRunUpserts(sql: Sql): Batcher<RunReport, RunUpserted> {
  return createBatcher<RunReport, RunUpserted>({
    run: (reports) => upsert(sql, reports),
    keyOf: ({ workspaceId, runId }) => runKey(workspaceId, runId),
    ownerOf: ({ workspaceId }) => workspaceId,
    bytesOf: ({ input, metadata }) => (input?.text.length ?? 0) + metadata.text.length + 500,
  })
}

interface UpsertOutcome {
  readonly known: boolean
  readonly erased: boolean
  readonly applied: boolean
  readonly created: boolean
}

/** Locks the rows in order of workspace and run_id, as every statement on several runs does, to avoid deadlocks. */
async function upsert(sql: Sql, reports: readonly RunReport[]): Promise<RunUpserted[]> {
  const bareMetadata = sql`r.metadata::text ~ ${BARE_METADATA.source}`
  const newMetadata = sql`${bareMetadata} and excluded.metadata::text <> r.metadata::text`
  const newTags = sql`r.tags = '{}' and excluded.tags <> '{}'`
  const outcomes = await sql<UpsertOutcome[]>`
    with item as (
      select * from unnest(
        ${reports.map((report) => report.runId)}::uuid[], ${reports.map((report) => report.workspaceId)}::uuid[],
        ${reports.map((report) => report.agentId)}::uuid[], ${reports.map((report) => report.externalRunId)}::text[],
        ${reports.map((report) => report.parentRunId)}::uuid[], ${reports.map((report) => report.sessionId)}::text[],
        ${reports.map((report) => uuidOrNull(report.sessionId))}::uuid[],
        ${reports.map((report) => report.externalUserId)}::text[],
        ${reports.map((report) => arrayLiteral(report.tags))}::text[], ${jsonArray(sql, reports, 'metadata')},
        ${jsonArray(sql, reports, 'input')},
        ${reports.map((report) => new Date(report.startedAt).toISOString())}::timestamptz[],
        ${reports.map((report) => new Date(report.at).toISOString())}::timestamptz[]
      ) with ordinality as i (run_id, workspace_id, agent_id, external_run_id, parent_run_id, session_id,
                              hosted_session_id, external_user_id, tags, metadata, input, started_at, at, n)
    ), checked as (
      select i.*, a.version,
        -- A session that the service itself runs consists of its own runs only.
        case when not exists (
          select from sessions s where s.session_id = i.hosted_session_id and s.workspace_id = i.workspace_id
        ) then i.session_id end as own_session_id,
        ${sql.unsafe(isErased('i'))} as erased
      from item i
      join agents a on a.agent_id = i.agent_id and a.workspace_id = i.workspace_id
      where a.runtime_type = 'external' and a.status <> 'archived'
    ), applied as (
      insert into runs as r (
        run_id, workspace_id, agent_id, agent_version, runtime_type, status, trigger_type, external_run_id,
        parent_run_id, session_id, external_user_id, tags, metadata, input, created_at, started_at
      )
      select c.run_id, c.workspace_id, c.agent_id, c.version, 'external', 'running', 'sdk', c.external_run_id,
        c.parent_run_id, c.own_session_id, c.external_user_id, c.tags::text[], c.metadata, coalesce(c.input, '{}'), c.at,
        c.started_at
      from checked c where not c.erased order by c.workspace_id, c.run_id
      on conflict (workspace_id, run_id) do update set
        started_at = least(r.started_at, excluded.started_at),
        session_id = coalesce(r.session_id, excluded.session_id),
        external_user_id = coalesce(r.external_user_id, excluded.external_user_id),
        tags = case when r.tags = '{}' then excluded.tags else r.tags end,
        input = case when r.input::text = '{}' then excluded.input else r.input end,
        metadata = case when ${bareMetadata} then excluded.metadata else r.metadata end,
        version = r.version + (${newTags} or ${newMetadata})::int
      where r.agent_id = excluded.agent_id and (
        excluded.started_at < r.started_at
        or r.session_id is null and excluded.session_id is not null
        or r.external_user_id is null and excluded.external_user_id is not null
        or ${newTags}
        or r.input::text = '{}' and excluded.input::text <> '{}'
        or ${newMetadata}
      )
      returning ${sql.unsafe(RUN_ROW_COLUMNS)}, r.xmax = 0 as created
    ), logged as (${sql.unsafe(runsToOutbox('applied r'))})
    select c.run_id is not null as known, coalesce(c.erased, false) as erased, r.run_id is not null as applied,
      coalesce(r.created, false) as created
    from item i left join checked c on c.n = i.n
      left join applied r on r.workspace_id = i.workspace_id and r.run_id = i.run_id
    order by i.n`
  return outcomes.map(({ known, erased, applied, created }) =>
    !known ? 'missing' : erased ? 'erased' : created ? 'created' : applied ? 'changed' : 'unchanged',
  )
}
