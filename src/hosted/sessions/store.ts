import { ApiError, notFound } from '../../base/errors.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf } from '../../base/http/page.ts'
import { Int, type PageQuery } from '../../base/http/schema.ts'
import type { RunIdentity } from '../../base/ids.ts'
import { type RowOf, withIsoTimes } from '../../base/timestamp.ts'
import { inTransaction } from '../../stores/postgres/connect.ts'
import { pageOfLong } from '../../stores/postgres/long-rows.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { HostedContext } from '../run/context.ts'
import { phaseIs } from '../store/fragments.ts'
import type { DeletedSession, MessageRecord } from './schema.ts'

/** The maximum of the column's type. */
const POSITION_MAX = 2 ** 31 - 1
const MESSAGE_CURSOR = cursorCodec(Int({ minimum: 0, maximum: POSITION_MAX }))

type MessageRow = RowOf<MessageRecord>

/** Sessions: what hosted agents remember of conversations (docs/hosted-agents.md#sessions). */
export class Sessions {
  /** @param cancelRun ends a run that waits for its turn in a session that is deleted */
  constructor(
    private readonly context: HostedContext,
    private readonly cancelRun: (run: RunIdentity, reason: string) => Promise<unknown>,
  ) {}

  /** Checks that the session exists and that the caller may read it. @throws ApiError NOT_FOUND, FORBIDDEN */
  private async check(caller: Caller, sessionId: string): Promise<void> {
    const { sql } = this.context
    const [row] = await sql<{ agent_id: string }[]>`
      select agent_id from sessions where session_id = ${sessionId} and workspace_id = ${caller.workspaceId}`
    if (row === undefined) throw notFound('session')
    if (caller.agentId !== null && caller.agentId !== row.agent_id)
      throw new ApiError('FORBIDDEN', 'this session belongs to a different agent than this key', {
        reason: 'wrong_agent',
      })
  }

  /** Oldest first. @throws ApiError NOT_FOUND, FORBIDDEN, VALIDATION_ERROR */
  async messages(caller: Caller, sessionId: string, query: PageQuery): Promise<PageOf<MessageRecord>> {
    const { sql } = this.context
    const { limit = PAGE_LIMIT_DEFAULT, cursor } = query
    await this.check(caller, sessionId)
    const after = cursor === undefined ? 0 : MESSAGE_CURSOR.decode(cursor)
    return pageOfLong<number, MessageRow, MessageRecord>(sql, {
      keys: sql`
        select position from session_messages
        where session_id = ${sessionId} and position > ${after} order by position limit ${limit + 1}`,
      limit,
      long: ['content'],
      row: (key) => sql`from session_messages where session_id = ${sessionId} and position = ${key}`,
      read: (keys) => sql`
        select position, role, content, run_id, created_at from session_messages
        where session_id = ${sessionId} and position = any(${keys}::int[]) order by position`,
      cursorOf: MESSAGE_CURSOR.encode,
      toItem: withIsoTimes,
    })
  }

  /**
   * Deletes a session. Its active run continues, but is not remembered; runs that wait for the session are cancelled.
   * @throws ApiError NOT_FOUND, FORBIDDEN
   */
  async delete(caller: Caller, sessionId: string): Promise<DeletedSession> {
    const { sql } = this.context
    const { workspaceId } = caller
    await this.check(caller, sessionId)
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
