import { ApiError, notFound } from '../../base/errors.ts'
import { encodeJson } from '../../base/raw-json.ts'
import type { Sql, TransactionSql } from '../../stores/postgres/connect.ts'
import { actorOf, type Caller } from '../../tenants/keys/schema.ts'
import type { AgentRow } from './schema.ts'
import type { Settings } from './settings.ts'

/** Rows of agents and of their versions. */

/** Versions that are kept per agent, including the current one: as many as the longest page of the list has. */
const VERSIONS_KEPT = 200

/** How a version came about. */
interface Origin {
  readonly caller: Caller
  readonly nowMs: number
  /** The version whose settings were restored. */
  readonly restoredFrom: number | null
}

/** The columns of an {@link AgentRow}. */
export function agentColumns(sql: Sql | TransactionSql) {
  return sql`agent_id, ${settingColumns(sql)}, version, created_at, updated_at`
}

/** The columns of {@link Settings}. */
export function settingColumns(sql: Sql | TransactionSql) {
  return sql`name, description, runtime_type, status, model, prompt, tools, output_schema, input_schema, expose,
    allow_input_requests, temperature, max_output_tokens, max_steps, timeout_seconds, budget_usd, stale_after_seconds, metadata`
}

/** The columns that say how a version came about. */
export function originColumns(sql: Sql | TransactionSql) {
  return sql`version_created_by, version_changes, version_restored_from`
}

/** The agent, locked until the transaction ends. @throws ApiError NOT_FOUND if it does not exist or is archived */
export async function lockAgent(tx: TransactionSql, caller: Caller, agentId: string): Promise<AgentRow> {
  const row = await lockAnyAgent(tx, caller, agentId)
  if (row.status === 'archived') throw new ApiError('NOT_FOUND', 'the agent is archived: restore it first')
  return row
}

/** The same, also if it is archived. @throws ApiError NOT_FOUND */
export async function lockAnyAgent(tx: TransactionSql, { workspaceId }: Caller, agentId: string): Promise<AgentRow> {
  const [row] = await tx<AgentRow[]>`
    select ${agentColumns(tx)} from agents where workspace_id = ${workspaceId} and agent_id = ${agentId} for update`
  if (row === undefined) throw notFound('agent')
  return row
}

/**
 * Makes `settings` the next version of a locked agent and keeps the version that it replaces; does nothing if they are equal.
 * Deletes the oldest versions beyond {@link VERSIONS_KEPT}.
 * @returns the agent afterwards
 */
export async function storeVersion(
  tx: TransactionSql,
  row: AgentRow,
  settings: Settings,
  { caller, nowMs, restoredFrom }: Origin,
): Promise<AgentRow> {
  const names = Object.keys(settings) as (keyof Settings)[]
  const changes = names.filter((name) => encodeJson(settings[name]) !== encodeJson(row[name]))
  if (changes.length === 0) return row
  const next = { ...settings, version: row.version + 1, updated_at: new Date(nowMs) }
  const origin = { version_created_by: actorOf(caller), version_changes: changes, version_restored_from: restoredFrom }
  const isAgent = tx`workspace_id = ${caller.workspaceId} and agent_id = ${row.agent_id}`
  await keepVersion(tx, caller, row.agent_id)
  await tx`delete from agent_versions where ${isAgent} and version <= ${next.version - VERSIONS_KEPT}`
  await tx`update agents set ${tx({ ...next, ...origin } as never)} where ${isAgent}`
  return { ...row, ...next }
}

/** Keeps the current version of a locked agent before it is replaced. */
export async function keepVersion(tx: TransactionSql, { workspaceId }: Caller, agentId: string): Promise<void> {
  await tx`
    insert into agent_versions (workspace_id, ${agentColumns(tx)}, ${originColumns(tx)})
    select workspace_id, ${agentColumns(tx)}, ${originColumns(tx)} from agents
    where workspace_id = ${workspaceId} and agent_id = ${agentId}`
}
