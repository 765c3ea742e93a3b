import type { Clock } from '../../base/clock.ts'
import { ApiError, notFound } from '../../base/errors.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf, pageOf } from '../../base/http/page.ts'
import { Int, type PageQuery } from '../../base/http/schema.ts'
import { withIsoTimes } from '../../base/timestamp.ts'
import { inTransaction, type Sql, type TransactionSql } from '../../stores/postgres/connect.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { personName } from '../../tenants/people/names.ts'
import { agentColumns, lockAgent, originColumns, settingColumns, storeVersion } from './rows.ts'
import type { AgentRecord } from './schema.ts'
import type { Settings } from './settings.ts'
import {
  AGENT_VERSION_MAX,
  type AgentVersion,
  type AgentVersionRow,
  type AgentVersionSummary,
  type AgentVersionSummaryRow,
} from './version-schema.ts'

const CURSOR = cursorCodec(Int({ minimum: 1, maximum: AGENT_VERSION_MAX }))

/**
 * The versions of agents (docs/agents.md#agent-versions). The current version is the row in `agents`; `agent_versions`
 * has the earlier ones. Versions of archived agents are never returned.
 */
export class AgentVersions {
  constructor(private readonly deps: { readonly sql: Sql; readonly clock: Clock }) {}

  /** @throws ApiError NOT_FOUND */
  async list(caller: Caller, agentId: string, query: PageQuery): Promise<PageOf<AgentVersionSummary>> {
    const { sql } = this.deps
    const { limit = PAGE_LIMIT_DEFAULT, cursor } = query
    const rows = await sql<AgentVersionSummaryRow[]>`
      select ${summaryColumns(sql)} from (${allVersions(sql, caller, agentId)}) v
      ${cursor === undefined ? sql`` : sql`where version < ${CURSOR.decode(cursor)}`}
      order by version desc limit ${limit + 1}`
    // An agent always has a current version.
    if (rows.length === 0 && cursor === undefined) throw notFound('agent')
    return pageOf(rows, limit, ({ version }) => CURSOR.encode(version), withIsoTimes)
  }

  /** @throws ApiError NOT_FOUND */
  async get(caller: Caller, agentId: string, version: number): Promise<AgentVersion> {
    const { sql } = this.deps
    const [row] = await sql<AgentVersionRow[]>`
      select ${summaryColumns(sql)}, ${settingColumns(sql)} from (${allVersions(sql, caller, agentId)}) v
      where version = ${version}`
    if (row === undefined) throw await this.notFound(sql, caller, agentId, version)
    return withIsoTimes(row)
  }

  /**
   * Makes the configuration of an earlier version the next version; does nothing if the agent already has it. Keeps the
   * status: a paused agent stays paused.
   * @throws ApiError NOT_FOUND
   */
  async restore(caller: Caller, agentId: string, version: number): Promise<AgentRecord> {
    const { sql, clock } = this.deps
    return inTransaction(sql, async (tx) => {
      const row = await lockAgent(tx, caller, agentId)
      const [settings] = await tx<Settings[]>`
        select ${settingColumns(tx)} from (${allVersions(tx, caller, agentId)}) v where version = ${version}`
      if (settings === undefined) throw await this.notFound(tx, caller, agentId, version)
      const origin = { caller, nowMs: clock.now(), restoredFrom: version }
      return withIsoTimes(await storeVersion(tx, row, { ...settings, status: row.status }, origin))
    }) as Promise<AgentRecord>
  }

  /** Why a version was not found. */
  private async notFound(sql: Sql | TransactionSql, { workspaceId }: Caller, agentId: string, version: number) {
    const [agent] = await sql<{ version: number }[]>`
      select version from agents
      where workspace_id = ${workspaceId} and agent_id = ${agentId} and status <> 'archived'`
    if (agent === undefined) return notFound('agent')
    return new ApiError(
      'NOT_FOUND',
      version > agent.version
        ? `the agent has no version ${version}; its current version is ${agent.version}`
        : `version ${version} is no longer kept`,
    )
  }
}

/** Selects all versions of an agent; none if it is archived. */
function allVersions(sql: Sql | TransactionSql, { workspaceId }: Caller, agentId: string) {
  const columns = sql`workspace_id, ${agentColumns(sql)}, ${originColumns(sql)}`
  const agent = sql`workspace_id = ${workspaceId} and agent_id = ${agentId}`
  return sql`
    select ${columns} from agents where ${agent} and status <> 'archived'
    union all
    select ${columns} from agent_versions
    where ${agent} and exists (select from agents where ${agent} and status <> 'archived')`
}

/** The columns of an {@link AgentVersionSummaryRow}, selected from {@link allVersions} as `v`. */
function summaryColumns(sql: Sql | TransactionSql) {
  return sql`agent_id, version, updated_at as created_at, version_created_by as created_by,
    ${personName(sql, 'v.version_created_by', 'v.workspace_id')} as created_by_person, version_changes as changes,
    version_restored_from as restored_from`
}
