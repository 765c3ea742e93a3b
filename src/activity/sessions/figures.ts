import { dateOf } from '../../base/timestamp.ts'
import type { Sql, TransactionSql } from '../../stores/postgres/connect.ts'
import { boundedTokens, roundedUsd, USAGE_COLUMNS } from '../runs/rows.ts'
import type { ListSessions } from './schema.ts'

/** Fragments of SQL about runs. Each takes the alias of the table of runs. */

/** The aggregates over a group of runs that sessions and users have in common. */
export function figuresOf(sql: Sql, run: string) {
  return sql.unsafe(`count(*)::int as run_count,
    (count(*) filter (where ${run}.status in ('failed', 'timed_out')))::int as failed_count,
    (count(*) filter (where ${run}.status in ('awaiting_approval', 'awaiting_input')))::int as waiting_count,
    ${USAGE_COLUMNS.map((name) => `${boundedTokens(`sum(${run}.${name})`)} as ${name}`).join(', ')},
    ${roundedUsd(`sum(${run}.cost_usd)`)} as cost_usd,
    (array_agg(distinct ${run}.agent_id))[1:10] as agent_ids,
    max(greatest(${run}.created_at, ${run}.last_event_at, ${run}.completed_at)) as last_activity_at`)
}

/**
 * Whether the session of a run still exists: hosted sessions can be deleted. `case`, because ids of external sessions need
 * not be UUIDs.
 */
export function sessionExists(sql: Sql, run: string) {
  return sql.unsafe(`case when ${run}.runtime_type = 'hosted' then exists (
      select from sessions k where k.session_id = ${run}.session_id::uuid and k.workspace_id = ${run}.workspace_id
    ) else true end`)
}

/**
 * The conditions of a list, each preceded by `and`.
 * @param operator `is not distinct from` keeps Postgres from using an index of these columns: for runs of a known session,
 * it should use that of the session
 */
export function matching(
  sql: Sql | TransactionSql,
  run: string,
  operator: '=' | 'is not distinct from',
  { kind, agent_id, external_user_id, from, to }: ListSessions,
) {
  const column = (name: string, compared: string = operator) => sql.unsafe(`and ${run}.${name} ${compared}`)
  const and = [
    kind !== undefined && sql`${column('runtime_type')} ${kind}`,
    agent_id !== undefined && sql`${column('agent_id')} ${agent_id}`,
    external_user_id !== undefined && sql`${column('external_user_id')} ${external_user_id}`,
    from !== undefined && sql`${column('created_at', '>=')} ${dateOf(from)}`,
    to !== undefined && sql`${column('created_at', '<')} ${dateOf(to)}`,
  ]
  return and.filter((condition) => condition !== false).reduce((all, one) => sql`${all} ${one}`, sql``)
}
