import type { Clock } from '../../base/clock.ts'
import { ApiError, notFound } from '../../base/errors.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf } from '../../base/http/page.ts'
import { Uuid } from '../../base/http/schema.ts'
import { checkVersion } from '../../base/http/version.ts'
import type { Mint } from '../../base/ids.ts'
import { withIsoTimes } from '../../base/timestamp.ts'
import { inTransaction, type Sql } from '../../stores/postgres/connect.ts'
import { pageOfLong } from '../../stores/postgres/long-rows.ts'
import type { KeyRing } from '../../tenants/keys/key-ring.ts'
import { actorOf, type Caller } from '../../tenants/keys/schema.ts'
import { agentColumns, keepVersion, lockAgent, lockAnyAgent, storeVersion } from './rows.ts'
import type { AgentRecord, AgentRow, ArchivedAgent, CreateAgent, EditAgent, ListAgents } from './schema.ts'
import { edited, settingsOf } from './settings.ts'

/** An agent to be registered if its name is new. */
export interface Registration {
  readonly name: string
  /** A repeat finds the agent again by this id, also after it has been renamed. */
  readonly agentId: string
}

const CURSOR = cursorCodec(Uuid)
/** A statement has 65,535 parameters at most, and an agent takes about twenty. */
const REGISTRATIONS_PER_INSERT = 500

/** Agents of a workspace (docs/agents.md). */
export class AgentStore {
  constructor(private readonly deps: { readonly sql: Sql; readonly ring: KeyRing; readonly clock: Clock }) {}

  /** @throws ApiError VALIDATION_ERROR */
  async create(caller: Caller, body: CreateAgent, mint: Mint): Promise<AgentRecord> {
    const { sql, clock } = this.deps
    const row = { ...newRow(caller.workspaceId, mint.uuid(), body, clock), version_created_by: actorOf(caller) }
    // The id exists already if the request is a retry after the response was lost.
    await sql`
      insert into agents ${sql(row)} on conflict (agent_id) do nothing`
    return this.get(caller, row.agent_id)
  }

  /** Also an archived agent. @throws ApiError NOT_FOUND */
  async get(caller: Caller, agentId: string): Promise<AgentRecord> {
    const { sql } = this.deps
    const [row] = await sql<AgentRow[]>`
      select ${agentColumns(sql)} from agents
      where workspace_id = ${caller.workspaceId} and agent_id = ${agentId}`
    if (row === undefined) throw notFound('agent')
    return withIsoTimes(row)
  }

  /**
   * The external agents of these names; registers those that are new, in their order.
   * @param agentsMax external agents of a workspace beyond which none is registered
   * @returns by name, the agent's id; or FORBIDDEN at that number, or if the agent was archived
   */
  async named(
    workspaceId: string,
    wanted: readonly Registration[],
    agentsMax: number,
  ): Promise<Map<string, string | ApiError>> {
    const { sql, clock } = this.deps
    const known = await sql<{ name: string; agent_id: string; status: string }[]>`
      select distinct on (i.name) i.name, a.agent_id, a.status
      from unnest(${wanted.map(({ name }) => name)}::text[], ${wanted.map(({ agentId }) => agentId)}::uuid[]) as i (name, agent_id)
      join agents a on a.agent_id = i.agent_id or a.name = i.name and a.status <> 'archived'
      where a.workspace_id = ${workspaceId} and a.runtime_type = 'external'
      order by i.name, a.status = 'archived', a.created_at, a.agent_id`
    const found = new Map<string, string | ApiError>(
      known.map(({ name, agent_id, status }) => [
        name,
        status === 'archived'
          ? new ApiError('FORBIDDEN', `agent ${JSON.stringify(name)} is archived`, { reason: 'agent_archived' })
          : agent_id,
      ]),
    )
    const missing = wanted.filter(({ name }) => !found.has(name))
    if (missing.length === 0) return found
    const [{ count }] = await sql<{ count: number }[]>`
      select count(*)::int as count from agents where workspace_id = ${workspaceId} and runtime_type = 'external'`
    const room = Math.max(0, agentsMax - count)
    const description = 'Registered by its first trace.'
    const rows = missing
      .slice(0, room)
      .map(({ name, agentId }) => newRow(workspaceId, agentId, { name, description }, clock))
    for (let at = 0; at < rows.length; at += REGISTRATIONS_PER_INSERT)
      await sql`
        insert into agents ${sql(rows.slice(at, at + REGISTRATIONS_PER_INSERT))} on conflict (agent_id) do nothing`
    for (const [index, { name, agentId }] of missing.entries()) {
      const refusal = `agent ${JSON.stringify(name)} is not registered, and the workspace has ${agentsMax} agents, the limit for automatic registration; create it with POST /api/v1/agents`
      found.set(name, index < room ? agentId : new ApiError('FORBIDDEN', refusal, { reason: 'limit_reached' }))
    }
    return found
  }

  /** Archived agents only by their status. */
  async list(caller: Caller, query: ListAgents): Promise<PageOf<AgentRecord>> {
    const { sql } = this.deps
    const { status, runtime_type, limit = PAGE_LIMIT_DEFAULT, cursor } = query
    return pageOfLong<string, AgentRow, AgentRecord>(sql, {
      keys: sql`
        select agent_id from agents where workspace_id = ${caller.workspaceId}
          ${cursor === undefined ? sql`` : sql`and agent_id < ${CURSOR.decode(cursor)}`}
          ${status === undefined ? sql`and status <> 'archived'` : sql`and status = ${status}`}
          ${runtime_type === undefined ? sql`` : sql`and runtime_type = ${runtime_type}`}
        order by agent_id desc limit ${limit + 1}`,
      limit,
      long: ['description', 'prompt', 'tools', 'output_schema', 'input_schema', 'metadata'],
      row: (key) => sql`from agents where agent_id = ${key}`,
      read: (keys) => sql`
        select ${agentColumns(sql)} from agents
        where workspace_id = ${caller.workspaceId} and agent_id = any(${keys}::uuid[]) order by agent_id desc`,
      cursorOf: CURSOR.encode,
      toItem: withIsoTimes,
    })
  }

  /**
   * Changes the given fields. Makes a new version if any value differs.
   * @param expected the only version that is edited; undefined: any
   * @throws ApiError NOT_FOUND, VALIDATION_ERROR; CONFLICT at another version
   */
  async edit(caller: Caller, agentId: string, edit: EditAgent, expected: number | undefined): Promise<AgentRecord> {
    const { sql, clock } = this.deps
    return inTransaction(sql, async (tx) => {
      const row = await lockAgent(tx, caller, agentId)
      checkVersion('an agent', row, expected)
      const { agent_id, version, created_at, updated_at, ...settings } = row
      const origin = { caller, nowMs: clock.now(), restoredFrom: null }
      return withIsoTimes(await storeVersion(tx, row, edited(settings, edit), origin))
    }) as Promise<AgentRecord>
  }

  /**
   * Archives the agent and revokes its keys. Its runs stay readable; any other request for it answers NOT_FOUND.
   * @param expected the only version that is archived; undefined: any
   * @throws ApiError NOT_FOUND; CONFLICT at another version; UNAVAILABLE if another process has not confirmed in time
   */
  async archive(caller: Caller, agentId: string, expected: number | undefined): Promise<ArchivedAgent> {
    const { ring, clock } = this.deps
    const now = new Date(clock.now())
    const before = await ring.change({ scope: 'agent', id: agentId, invalidates: true }, async (tx) => {
      const [agent] = await tx<{ status: string; version: number }[]>`
        select status, version from agents where workspace_id = ${caller.workspaceId} and agent_id = ${agentId} for update`
      if (agent === undefined) throw notFound('agent')
      if (agent.status !== 'archived') {
        checkVersion('an agent', agent, expected)
        await keepVersion(tx, caller, agentId)
        await tx`
          update agents set status = 'archived', version = version + 1, updated_at = ${now},
            version_created_by = ${actorOf(caller)}, version_changes = '{status}', version_restored_from = null
          where workspace_id = ${caller.workspaceId} and agent_id = ${agentId}`
      }
      await tx`
        update api_keys set revoked_at = ${now}
        where workspace_id = ${caller.workspaceId} and agent_id = ${agentId} and revoked_at is null`
      // They would be valid again once the agent is restored.
      await tx`
        update feed_tokens set expires_at = ${now}
        where workspace_id = ${caller.workspaceId} and agent_id = ${agentId} and expires_at > ${now}`
      return agent.status
    })
    // Only now, because an earlier attempt may have failed before every process confirmed it.
    if (before === 'archived') throw notFound('agent')
    return { agent_id: agentId, status: 'archived' }
  }

  /**
   * Gives an archived agent the status that it had before; does nothing to another one. Its keys stay revoked.
   * @throws ApiError NOT_FOUND; CONFLICT if another agent has its name by now: reports by name would go to either
   */
  async restore(caller: Caller, agentId: string): Promise<AgentRecord> {
    const { sql, clock } = this.deps
    const { workspaceId } = caller
    return inTransaction(sql, async (tx) => {
      const row = await lockAnyAgent(tx, caller, agentId)
      if (row.status !== 'archived') return withIsoTimes(row)
      const namesakes = await tx`
        select from agents
        where workspace_id = ${workspaceId} and name = ${row.name} and status <> 'archived' limit 1`
      if (namesakes.length > 0) throw nameTaken(row.name)
      const [before] = await tx<Pick<AgentRow, 'status'>[]>`
        select status from agent_versions
        where workspace_id = ${workspaceId} and agent_id = ${row.agent_id} and version = ${row.version - 1}`
      const { agent_id, version, created_at, updated_at, ...settings } = row
      const origin = { caller, nowMs: clock.now(), restoredFrom: null }
      return withIsoTimes(await storeVersion(tx, row, { ...settings, status: before?.status ?? 'active' }, origin))
    }) as Promise<AgentRecord>
  }
}

function nameTaken(name: string): ApiError {
  const message = `another agent is named ${JSON.stringify(name)} now: rename or archive it first`
  return new ApiError('CONFLICT', message, { reason: 'name_taken' })
}

function newRow(workspaceId: string, agentId: string, body: CreateAgent, clock: Clock) {
  const now = new Date(clock.now())
  const ids = { agent_id: agentId, workspace_id: workspaceId }
  return { ...settingsOf(body), ...ids, version: 1, created_at: now, updated_at: now }
}
