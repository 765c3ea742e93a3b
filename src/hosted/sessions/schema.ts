import { t } from 'elysia'
import { Nullable, Page, PageQuery, Text, Timestamp, Uuid } from '../../http/schema.ts'

/** What of sessions goes over the wire (docs/specification.md#sessions). */

export const SessionRecord = t.Object({
  session_id: Uuid,
  agent_id: Uuid,
  external_user_id: Nullable(t.String()),
  message_count: t.Integer(),
  active_run_id: Nullable(t.String({ ...Uuid, description: 'The run whose turn it is; others wait.' })),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type SessionRecord = typeof SessionRecord.static

export const MessageRecord = t.Object({
  position: t.Integer({ description: 'From 1.' }),
  role: t.UnionEnum(['user', 'assistant'], { default: undefined }),
  content: t.String(),
  run_id: Uuid,
  created_at: Timestamp,
})
export type MessageRecord = typeof MessageRecord.static

/** Query of `GET /api/v1/sessions`. */
export const ListSessions = t.Object(
  { agent_id: t.Optional(Uuid), external_user_id: t.Optional(Text({ maxLength: 2_000 })), ...PageQuery },
  { additionalProperties: false },
)
export type ListSessions = typeof ListSessions.static

/** Query of `GET /api/v1/sessions/:sessionId/messages`. */
export const ListMessages = t.Object(PageQuery, { additionalProperties: false })
export type ListMessages = typeof ListMessages.static

export const SessionPage = Page(SessionRecord)
export type SessionPage = typeof SessionPage.static

/** Oldest first, unlike other lists: a conversation is read forwards. */
export const MessagePage = Page(MessageRecord)
export type MessagePage = typeof MessagePage.static

export const SessionParams = t.Object({ sessionId: Uuid })

/** Answer of `DELETE /api/v1/sessions/:sessionId`. */
export const DeletedSession = t.Object({ session_id: Uuid, deleted: t.Literal(true) })
export type DeletedSession = typeof DeletedSession.static

/** A row of `sessions`. */
export interface SessionRow {
  readonly session_id: string
  readonly agent_id: string
  readonly external_user_id: string | null
  readonly message_count: number
  readonly turn_run_id: string | null
  readonly created_at: Date
  readonly updated_at: Date
}

export function toSessionRecord({ turn_run_id: active_run_id, ...row }: SessionRow): SessionRecord {
  return {
    ...row,
    active_run_id,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}
