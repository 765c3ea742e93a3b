import { ApiError } from '../../base/errors.ts'
import type { RunIdentity } from '../../base/ids.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, pageOf } from '../../http/page.ts'
import { Int, Uuid } from '../../http/schema.ts'
import type { Caller } from '../../keys/schema.ts'
import { inTransaction, type Sql } from '../../postgres/connect.ts'
import {
  type DeletedSession,
  type ListMessages,
  type ListSessions,
  type MessagePage,
  type MessageRecord,
  type SessionPage,
  type SessionRecord,
  type SessionRow,
  toSessionRecord,
} from './schema.ts'

export interface SessionsDeps {
  readonly sql: Sql
  /** Ends a run that waits for its turn in a session that is deleted. */
  readonly cancelRun: (run: RunIdentity, reason: string) => Promise<unknown>
}

const CURSOR = cursorCodec(Uuid)
/** The maximum of the column's type. */
const POSITION_MAX = 2 ** 31 - 1
const MESSAGE_CURSOR = cursorCodec(Int({ minimum: 0, maximum: POSITION_MAX }))

/** Sessions: what hosted agents remember of conversations (docs/specification.md#sessions). */
export class Sessions {
  constructor(private readonly deps: SessionsDeps) {}

  /** Newest first; an agent key sees its own agent's. @throws ApiError FORBIDDEN, VALIDATION_ERROR */
  async list(caller: Caller, query: ListSessions): Promise<SessionPage> {
    const { sql } = this.deps
    const { external_user_id, limit = PAGE_LIMIT_DEFAULT, cursor } = query
    const agentId = query.agent_id?.toLowerCase() ?? caller.agentId
    if (caller.agentId !== null && agentId !== caller.agentId)
      throw new ApiError('FORBIDDEN', 'an agent key can only read sessions of its own agent')
    const rows = await sql<SessionRow[]>`
      select ${columns(sql)} from sessions where workspace_id = ${caller.workspaceId}
        ${agentId === null ? sql`` : sql`and agent_id = ${agentId}`}
        ${external_user_id === undefined ? sql`` : sql`and external_user_id = ${external_user_id}`}
        ${cursor === undefined ? sql`` : sql`and session_id < ${CURSOR.decode(cursor)}`}
      order by session_id desc limit ${limit + 1}`
    const page = pageOf(rows, limit, (row) => CURSOR.encode(row.session_id))
    return { ...page, items: page.items.map(toSessionRecord) }
  }

  /** @throws ApiError NOT_FOUND, FORBIDDEN */
  async get(caller: Caller, sessionId: string): Promise<SessionRecord> {
    const { sql } = this.deps
    const [row] = await sql<SessionRow[]>`
      select ${columns(sql)} from sessions
      where session_id = ${sessionId} and workspace_id = ${caller.workspaceId}`
    if (row === undefined) throw new ApiError('NOT_FOUND', 'session does not exist')
    if (caller.agentId !== null && caller.agentId !== row.agent_id)
      throw new ApiError('FORBIDDEN', 'this session belongs to a different agent than this key')
    return toSessionRecord(row)
  }

  /** Oldest first. @throws ApiError NOT_FOUND, FORBIDDEN, VALIDATION_ERROR */
  async messages(caller: Caller, sessionId: string, query: ListMessages): Promise<MessagePage> {
    const { sql } = this.deps
    const { limit = PAGE_LIMIT_DEFAULT, cursor } = query
    await this.get(caller, sessionId)
    const after = cursor === undefined ? 0 : MESSAGE_CURSOR.decode(cursor)
    const rows = await sql<(Omit<MessageRecord, 'created_at'> & { readonly created_at: Date })[]>`
      select position, role, content, run_id, created_at from session_messages
      where session_id = ${sessionId} and position > ${after} order by position limit ${limit + 1}`
    const page = pageOf(rows, limit, (row) => MESSAGE_CURSOR.encode(row.position))
    return { ...page, items: page.items.map((row) => ({ ...row, created_at: row.created_at.toISOString() })) }
  }

  /**
   * Deletes a session. Its active run continues, but is not remembered; runs that wait for the session are cancelled.
   * @throws ApiError NOT_FOUND, FORBIDDEN
   */
  async delete(caller: Caller, sessionId: string): Promise<DeletedSession> {
    const { sql } = this.deps
    const { workspaceId } = caller
    await this.get(caller, sessionId)
    // The session is deleted last: a run that waits for a deleted session would wait forever.
    for (;;) {
      const waiting = await inTransaction(sql, async (tx) => {
        await tx`select from sessions where workspace_id = ${workspaceId} and session_id = ${sessionId} for update`
        const runs = await tx<{ run_id: string }[]>`
          select run_id from hosted_runs
          where workspace_id = ${workspaceId} and session_id = ${sessionId} and phase = 'waiting'`
        if (runs.length === 0)
          await tx`delete from sessions where workspace_id = ${workspaceId} and session_id = ${sessionId}`
        return [...runs]
      })
      if (waiting.length === 0) return { session_id: sessionId, deleted: true }
      for (const { run_id } of waiting)
        await this.deps.cancelRun({ workspaceId, runId: run_id }, 'its session was deleted')
    }
  }
}

function columns(sql: Sql) {
  return sql`session_id, agent_id, external_user_id, message_count, turn_run_id, created_at, updated_at`
}
