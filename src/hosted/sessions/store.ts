import { ApiError } from '../../base/errors.ts'
import type { RunIdentity } from '../../base/ids.ts'
import { type RowOf, withIsoTimes } from '../../base/timestamp.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf, pageOf } from '../../http/page.ts'
import { Int, type PageQuery, Uuid } from '../../http/schema.ts'
import type { Caller } from '../../keys/schema.ts'
import { inTransaction, type Sql } from '../../postgres/connect.ts'
import type { HostedContext } from '../run/context.ts'
import { phaseIs } from '../store/fragments.ts'
import type { DeletedSession, ListSessions, MessageRecord, SessionRecord } from './schema.ts'

const CURSOR = cursorCodec(Uuid)
/** The maximum of the column's type. */
const POSITION_MAX = 2 ** 31 - 1
const MESSAGE_CURSOR = cursorCodec(Int({ minimum: 0, maximum: POSITION_MAX }))

/** Sessions: what hosted agents remember of conversations (docs/specification.md#sessions). */
export class Sessions {
  /** @param cancelRun ends a run that waits for its turn in a session that is deleted */
  constructor(
    private readonly context: HostedContext,
    private readonly cancelRun: (run: RunIdentity, reason: string) => Promise<unknown>,
  ) {}

  /** Newest first; an agent key sees its own agent's. @throws ApiError FORBIDDEN, VALIDATION_ERROR */
  async list(caller: Caller, query: ListSessions): Promise<PageOf<SessionRecord>> {
    const { sql } = this.context
    const { external_user_id, limit = PAGE_LIMIT_DEFAULT, cursor } = query
    const agentId = query.agent_id?.toLowerCase() ?? caller.agentId
    if (caller.agentId !== null && agentId !== caller.agentId)
      throw new ApiError('FORBIDDEN', 'an agent key can only read sessions of its own agent')
    const rows = await sql<RowOf<SessionRecord>[]>`
      select ${columns(sql)} from sessions where workspace_id = ${caller.workspaceId}
        ${agentId === null ? sql`` : sql`and agent_id = ${agentId}`}
        ${external_user_id === undefined ? sql`` : sql`and external_user_id = ${external_user_id}`}
        ${cursor === undefined ? sql`` : sql`and session_id < ${CURSOR.decode(cursor)}`}
      order by session_id desc limit ${limit + 1}`
    return pageOf(rows, limit, (row) => CURSOR.encode(row.session_id), withIsoTimes)
  }

  /** @throws ApiError NOT_FOUND, FORBIDDEN */
  async get(caller: Caller, sessionId: string): Promise<SessionRecord> {
    const { sql } = this.context
    const [row] = await sql<RowOf<SessionRecord>[]>`
      select ${columns(sql)} from sessions
      where session_id = ${sessionId} and workspace_id = ${caller.workspaceId}`
    if (row === undefined) throw new ApiError('NOT_FOUND', 'session does not exist')
    if (caller.agentId !== null && caller.agentId !== row.agent_id)
      throw new ApiError('FORBIDDEN', 'this session belongs to a different agent than this key')
    return withIsoTimes(row)
  }

  /** Oldest first. @throws ApiError NOT_FOUND, FORBIDDEN, VALIDATION_ERROR */
  async messages(caller: Caller, sessionId: string, query: PageQuery): Promise<PageOf<MessageRecord>> {
    const { sql } = this.context
    const { limit = PAGE_LIMIT_DEFAULT, cursor } = query
    await this.get(caller, sessionId)
    const after = cursor === undefined ? 0 : MESSAGE_CURSOR.decode(cursor)
    const rows = await sql<(Omit<MessageRecord, 'created_at'> & { readonly created_at: Date })[]>`
      select position, role, content, run_id, created_at from session_messages
      where session_id = ${sessionId} and position > ${after} order by position limit ${limit + 1}`
    return pageOf(rows, limit, (row) => MESSAGE_CURSOR.encode(row.position), withIsoTimes)
  }

  /**
   * Deletes a session. Its active run continues, but is not remembered; runs that wait for the session are cancelled.
   * @throws ApiError NOT_FOUND, FORBIDDEN
   */
  async delete(caller: Caller, sessionId: string): Promise<DeletedSession> {
    const { sql } = this.context
    const { workspaceId } = caller
    await this.get(caller, sessionId)
    // The session is deleted last: a run that waits for a deleted session would wait forever.
    for (;;) {
      const waiting = await inTransaction(sql, async (tx) => {
        await tx`select from sessions where workspace_id = ${workspaceId} and session_id = ${sessionId} for update`
        const runs = await tx<{ run_id: string }[]>`
          select run_id from hosted_runs
          where workspace_id = ${workspaceId} and session_id = ${sessionId} and ${phaseIs(tx, 'waiting')}`
        if (runs.length === 0)
          await tx`delete from sessions where workspace_id = ${workspaceId} and session_id = ${sessionId}`
        return [...runs]
      })
      if (waiting.length === 0) return { session_id: sessionId, deleted: true }
      for (const { run_id } of waiting) await this.cancelRun({ workspaceId, runId: run_id }, 'its session was deleted')
    }
  }
}

function columns(sql: Sql) {
  return sql`session_id, agent_id, external_user_id, message_count, turn_run_id as active_run_id, created_at, updated_at`
}
