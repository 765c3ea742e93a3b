import { definedOf } from '../../base/defined.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import { RawJson } from '../../base/raw-json.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Caller, Scoring } from '../../tenants/keys/schema.ts'
import type { NewRunScore, NewScore } from './schema.ts'

/** The members that a feed token may send: the others would let it replace scores of others, or store much. */
const MEMBERS: ReadonlySet<string> = new Set(['name', 'value', 'label', 'text', 'comment', 'task_id', 'event_id'])
const HASH_LENGTH = 24

/**
 * The score that a feed token may write for a body (docs/feeds.md#feed-tokens). Its id derives from the subject of the
 * token, and from what is scored: so a second score of the same subject replaces the first, and none replaces another's.
 * @throws ApiError FORBIDDEN, VALIDATION_ERROR
 */
export function scoreOfToken({ runId, names, subject, isNamed }: Scoring, asked: string, body: NewRunScore): NewScore {
  if (asked !== runId)
    throw new ApiError('FORBIDDEN', 'this token may score another run only', { reason: 'feed_token' })
  if (!names.includes(body.name))
    throw new ApiError('FORBIDDEN', `this token may write only scores with the name ${names.join(', ')}`, {
      reason: 'feed_token',
      param: 'name',
    })
  for (const member of Object.keys(body))
    if (!MEMBERS.has(member))
      throw invalid(member, `a feed token cannot set it; expected only ${[...MEMBERS].join(', ')}`)
  const { name, value, label, text, comment, task_id: taskId, event_id } = body
  const task_id = taskId?.toLowerCase()
  const of = JSON.stringify([name, task_id ?? null, event_id ?? null])
  const id = `feed:${subject}:${Bun.SHA256.hash(of, 'hex').slice(0, HASH_LENGTH)}`
  return {
    ...definedOf({ value, label, text, comment, task_id, event_id }),
    id,
    run_id: runId,
    name,
    source: 'person',
    ...(isNamed && { metadata: RawJson.of({ subject }) }),
  }
}

/**
 * Deducts a score from those that a feed token may write.
 * @throws ApiError FORBIDDEN when none is left, UNAUTHENTICATED when the token is gone
 */
export async function takeScoreOfToken(sql: Sql, { workspaceId }: Caller, { credential }: Scoring): Promise<void> {
  const [row] = await sql<{ left: number }[]>`
    update feed_tokens set scores_left = scores_left - 1
    where workspace_id = ${workspaceId} and hash = decode(${credential}, 'base64')
    returning scores_left as left`
  if (row === undefined) throw new ApiError('UNAUTHENTICATED', 'the feed token has expired', { reason: 'key_expired' })
  if (row.left < 0)
    throw new ApiError('FORBIDDEN', 'this token has written as many scores as it may; create another one', {
      reason: 'limit_reached',
    })
}
