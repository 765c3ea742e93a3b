import { arrayLiteral, RUN_ROW_COLUMNS, runsToOutbox } from '../../activity/runs/rows.ts'
import { type RunIdentity, runKey, uuidOrNull } from '../../base/ids.ts'
import type { RawJson } from '../../base/raw-json.ts'
import { type Batcher, createBatcher } from '../../stores/postgres/batcher.ts'
import type { Sql } from '../../stores/postgres/connect.ts'

/** What later events say about the trace of a run that is stored; null or empty for what stays as it is. */
export interface TraceChange extends RunIdentity {
  readonly externalUserId: string | null
  readonly sessionId: string | null
  readonly tags: readonly string[]
  readonly metadata: RawJson
  readonly input: RawJson | null
  /** Only for a run that has ended: the end of the others sets it. */
  readonly output: RawJson | null
}

/** Replaces what runs were said to be, in batches. Returns whether anything changed. */
export function createTraceChanges(sql: Sql): Batcher<TraceChange, boolean> {
  return createBatcher<TraceChange, boolean>({
    run: (changes) => update(sql, changes),
    keyOf: ({ workspaceId, runId }) => runKey(workspaceId, runId),
    ownerOf: ({ workspaceId }) => workspaceId,
    bytesOf: ({ input, output, metadata }) =>
      (input?.text.length ?? 0) + (output?.text.length ?? 0) + metadata.text.length + 500,
  })
}

/** Locks the rows in order of workspace and run_id, as every statement on several runs does, to avoid deadlocks. */
async function update(sql: Sql, changes: readonly TraceChange[]): Promise<boolean[]> {
  const newMetadata = sql`i.metadata::text <> r.metadata::text`
  const newTags = sql`i.tags <> '{}' and i.tags::text[] <> r.tags`
  const outcomes = await sql<{ changed: boolean }[]>`
    with item as (
      select * from unnest(
        ${changes.map((change) => change.runId)}::uuid[], ${changes.map((change) => change.workspaceId)}::uuid[],
        ${changes.map((change) => change.sessionId)}::text[],
        ${changes.map((change) => uuidOrNull(change.sessionId))}::uuid[],
        ${changes.map((change) => change.externalUserId)}::text[],
        ${changes.map((change) => arrayLiteral(change.tags))}::text[], ${changes.map((change) => change.metadata)}::json[],
        ${changes.map((change) => change.input)}::json[], ${changes.map((change) => change.output)}::json[]
      ) with ordinality as i (run_id, workspace_id, session_id, hosted_session_id, external_user_id, tags, metadata, input,
                              output, n)
    ), locked as materialized (
      select i.*,
        -- A session that the service itself runs consists of its own runs only.
        case when not exists (
          select from sessions s where s.session_id = i.hosted_session_id and s.workspace_id = i.workspace_id
        ) then i.session_id end as own_session_id
      from runs r join item i on i.workspace_id = r.workspace_id and i.run_id = r.run_id
      where r.runtime_type = 'external'
      order by r.workspace_id, r.run_id for no key update of r
    ), updated as (
      update runs r set
        session_id = coalesce(i.own_session_id, r.session_id),
        external_user_id = coalesce(i.external_user_id, r.external_user_id),
        tags = case when i.tags = '{}' then r.tags else i.tags::text[] end,
        metadata = i.metadata,
        version = r.version + (${newTags} or ${newMetadata})::int,
        input = coalesce(i.input, r.input),
        output = case when r.status = 'completed' then coalesce(i.output, r.output) else r.output end
      from locked i
      where r.workspace_id = i.workspace_id and r.run_id = i.run_id and (
        i.own_session_id is distinct from r.session_id and i.own_session_id is not null
        or i.external_user_id is distinct from r.external_user_id and i.external_user_id is not null
        or ${newTags}
        or ${newMetadata}
        or i.input is not null and i.input::text <> r.input::text
        or r.status = 'completed' and i.output is not null and i.output::text is distinct from r.output::text
      )
      returning ${sql.unsafe(RUN_ROW_COLUMNS)}
    ), logged as (${sql.unsafe(runsToOutbox('updated r'))})
    select r.run_id is not null as changed
    from item i left join updated r on r.workspace_id = i.workspace_id and r.run_id = i.run_id order by i.n`
  return outcomes.map(({ changed }) => changed)
}
