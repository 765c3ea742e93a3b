import { ApiError } from '../../base/errors.ts'
import { withIsoTimes } from '../../base/timestamp.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { type UsageColumns, usageRecord } from '../runs/rows.ts'
import { figuresOf } from './figures.ts'
import { USER_RUNS_COUNTED, type UserRecord } from './schema.ts'

interface UserRow extends UsageColumns {
  readonly run_count: number
  readonly is_partial: boolean
  readonly failed_count: number
  readonly waiting_count: number
  readonly completed_count: number
  readonly session_count: number
  readonly cost_usd: number
  readonly agent_ids: string[]
  readonly first_seen_at: Date
  readonly last_activity_at: Date
}

/** Reads users of agents, which are derived from the runs that name them: nothing else is stored about a user. */
export class UserReader {
  constructor(private readonly sql: Sql) {}

  /** @throws ApiError NOT_FOUND if no run that the caller may read names the user */
  async get({ workspaceId, agentId }: Caller, user: string): Promise<UserRecord> {
    const { sql } = this
    const ofUser = sql`n.external_user_id = ${user} and n.workspace_id = ${workspaceId}`
    // Compared so that no index of agents is taken: these runs are in order already.
    const ofAgent = agentId === null ? sql`true` : sql`n.agent_id is not distinct from ${agentId}`
    const [row] = await sql<UserRow[]>`
      select ${figuresOf(sql, 'n')}, count(distinct n.session_id)::int as session_count,
        (count(*) filter (where n.status = 'completed'))::int as completed_count,
        exists (select from runs n where ${ofUser} offset ${USER_RUNS_COUNTED}) as is_partial,
        coalesce((
          select n.created_at from (
            select n.* from runs n where ${ofUser} order by n.created_at, n.run_id limit ${USER_RUNS_COUNTED}
          ) n where ${ofAgent} order by n.created_at, n.run_id limit 1
        ), min(n.created_at)) as first_seen_at
      from (
        select n.* from runs n where ${ofUser} order by n.created_at desc, n.run_id desc limit ${USER_RUNS_COUNTED}
      ) n where ${ofAgent}
      having count(*) > 0`
    if (row === undefined) throw new ApiError('NOT_FOUND', 'no run names this user')
    return toRecord(user, row)
  }
}

function toRecord(user: string, row: UserRow): UserRecord {
  const { run_count, failed_count, completed_count } = row
  const ended = failed_count + completed_count
  return {
    external_user_id: user,
    run_count: run_count,
    is_partial: row.is_partial,
    session_count: row.session_count,
    failed_count,
    waiting_count: row.waiting_count,
    usage: usageRecord(row),
    cost_usd: row.cost_usd,
    agent_ids: row.agent_ids,
    failure_rate: ended === 0 ? null : failed_count / ended,
    ...withIsoTimes({ first_seen_at: row.first_seen_at, last_seen_at: row.last_activity_at }),
  }
}
