import { t } from 'elysia'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf, pageOf } from '../../base/http/page.ts'
import { CursorMs, Uuid } from '../../base/http/schema.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import { agentToRead, type Caller } from '../../tenants/keys/schema.ts'
import { personName } from '../../tenants/people/names.ts'
import { userMessage } from '../run/plan.ts'
import { pauseIs } from '../store/fragments.ts'
import type { PauseContext, PauseRow } from './schema.ts'
import {
  type ListPauseSummaries,
  type PauseSummary,
  PREVIEW_LENGTH_MAX,
  type SummaryRow,
  toPauseSummary,
} from './summary-schema.ts'

/** Maximum characters of each message that is shown to the person who decides. */
const MESSAGE_LENGTH_MAX = 4_000

/** A filtered page ends early after this many pauses: none may match. */
const PAUSES_WALKED_MAX = 10_000

/** Position in the list: Unix milliseconds of the decision (0 if pending), and the id of the pause. */
const CURSOR = cursorCodec(t.Tuple([CursorMs, Uuid]))

type Position = Pick<SummaryRow, 'pause_id' | 'decided_at'>

/**
 * All pauses of the workspace on one line each; an agent key sees its own agent's.
 * @throws ApiError FORBIDDEN, VALIDATION_ERROR
 */
export async function listSummaries(
  sql: Sql,
  caller: Caller,
  query: ListPauseSummaries,
): Promise<PageOf<PauseSummary>> {
  const { state = 'pending', order = 'newest', limit = PAGE_LIMIT_DEFAULT, cursor } = query
  const { status, type, session_id, external_user_id, tool } = query
  const agentId = agentToRead(caller, query.agent_id, 'pauses')
  const isPending = state === 'pending'
  const [direction, isAfter, isUntil] = order === 'newest' ? ['desc', '<', '>='] : ['asc', '>', '<=']
  const after = cursor === undefined ? undefined : CURSOR.decode(cursor)
  const within = (compared: string, at: Date | null, id: string) =>
    isPending
      ? sql`and p.pause_id ${sql.unsafe(compared)} ${id}::uuid`
      : sql`and (p.decided_at, p.pause_id) ${sql.unsafe(compared)} (${at}::timestamptz, ${id}::uuid)`
  const ofState = sql`p.workspace_id = ${caller.workspaceId}
    and ${isPending ? sql`p.workspace_id::text = ${caller.workspaceId} and p.${pauseIs(sql, 'pending')}` : sql`p.decided_at is not null`}
    ${after === undefined ? sql`` : within(isAfter, new Date(after[0]), after[1])}`
  const ordered = sql`order by ${isPending ? sql`` : sql`p.decided_at ${sql.unsafe(direction)},`} p.pause_id ${sql.unsafe(direction)}`
  const isFiltered = [status, type, agentId ?? undefined, session_id, external_user_id, tool].some(
    (by) => by !== undefined,
  )
  const end = isFiltered
    ? (
        await sql<Position[]>`
          select p.pause_id, p.decided_at from pauses p where ${ofState} ${ordered} limit 1 offset ${PAUSES_WALKED_MAX - 1}`
      )[0]
    : undefined
  const rows = await sql<SummaryRow[]>`
    select p.pause_id, p.type, p.status, p.run_id, h.root_run_id, p.agent_id, asker.session_id, asker.external_user_id,
      p.tool, left(coalesce(p.input::text, p.question), ${PREVIEW_LENGTH_MAX}) as preview, p.created_at, p.expires_at,
      p.decided_at, p.decided_by, ${personName(sql, 'p.decided_by', 'p.workspace_id')} as decided_by_person,
      left(coalesce(p.comment, p.answer), ${PREVIEW_LENGTH_MAX}) as reply, p.edited_input is not null as is_edited
    from pauses p cross join lateral (
      select root_run_id from hosted_runs where run_id = p.run_id and workspace_id = p.workspace_id offset 0
    ) h left join lateral (${askerOf(sql, caller)}) asker on true
    where ${ofState} ${end === undefined ? sql`` : within(isUntil, end.decided_at, end.pause_id)}
      ${status === undefined ? sql`` : sql`and p.status in ${sql(status)}`}
      ${type === undefined ? sql`` : sql`and p.type = ${type}`}
      ${agentId === null ? sql`` : sql`and p.agent_id = ${agentId}`}
      ${tool === undefined ? sql`` : sql`and p.tool = ${tool}`}
      ${session_id === undefined ? sql`` : sql`and asker.session_id = ${session_id.toLowerCase()}`}
      ${external_user_id === undefined ? sql`` : sql`and asker.external_user_id = ${external_user_id}`}
    ${ordered} limit ${limit + 1}`
  const cursorOf = ({ decided_at, pause_id }: Position) => CURSOR.encode([decided_at?.getTime() ?? 0, pause_id])
  const page = pageOf(rows, limit, cursorOf, toPauseSummary)
  return { ...page, next_cursor: page.next_cursor ?? (end === undefined ? null : cursorOf(end)) }
}

/** Who asked, and what was said before the pause. An agent key learns who asked only if the invoked run is its own agent's. */
export async function readContext(sql: Sql, caller: Caller, pause: PauseRow): Promise<PauseContext> {
  const { workspaceId } = caller
  const [[asker], [run], [step]] = await Promise.all([
    sql<Pick<PauseContext, 'session_id' | 'external_user_id'>[]>`
      select asker.* from (select ${pause.root_run_id}::uuid as root_run_id) h, (
        select ${workspaceId}::uuid as workspace_id
      ) p, lateral (${askerOf(sql, caller)}) asker`,
    sql<Pick<PauseRow, 'input'>[]>`
      select input from runs where run_id = ${pause.run_id} and workspace_id = ${workspaceId}`,
    sql<{ readonly content: string }[]>`
      select left(content, ${MESSAGE_LENGTH_MAX}) as content from run_steps
      where run_id = ${pause.run_id} and workspace_id = ${workspaceId} and content <> ''
        and step <= (select step from tool_calls where call_id = ${pause.call_id})
      order by step desc limit 1`,
  ])
  const { session_id = null, external_user_id = null } = asker ?? {}
  const userText = run?.input ? userMessage(run.input).slice(0, MESSAGE_LENGTH_MAX) : null
  return { session_id, external_user_id, user_message: userText, assistant_message: step?.content ?? null }
}

/**
 * Selects session and user of the run `h.root_run_id` in the workspace `p.workspace_id`. For an agent key, no row if that
 * run belongs to another agent, which the key must not read.
 */
function askerOf(sql: Sql, { agentId }: Caller) {
  return sql`
    select root.session_id::text, coalesce(
      (select external_user_id from runs where run_id = h.root_run_id and workspace_id = p.workspace_id),
      (select external_user_id from sessions where session_id = root.session_id)
    ) as external_user_id
    from hosted_runs root where root.run_id = h.root_run_id and root.workspace_id = p.workspace_id
      ${agentId === null ? sql`` : sql`and root.agent_id = ${agentId}`} offset 0`
}
