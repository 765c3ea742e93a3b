import type { Sql } from '../../stores/postgres/connect.ts'
import type { Caller, Role, Scoring } from './schema.ts'

/** The cached state of a key, feed token or sign-in, valid or not. */
export interface Credential {
  /** For a feed token: the caller of its key, with the agent that the token is limited to. */
  readonly caller: Caller
  /** A feed token can only open feeds; a sign-in is valid only in a cookie. */
  readonly kind: 'key' | 'feed token' | 'sign-in'
  /** The one run that a feed token is limited to; null for none, and for keys. */
  readonly runId: string | null
  /** The scores that a feed token may write; null for none, and for others. */
  readonly scoring: Scoring | null
  readonly revoked: boolean
  readonly suspended: boolean
  /**
   * Unix milliseconds; infinite for a key that does not expire. A feed token expires with its key at the latest. Each use
   * of a sign-in extends it, so its cached time may be too early.
   */
  readonly expiresAt: number
}

interface CredentialRow {
  readonly hash: string
  readonly key_id: string
  readonly type: Caller['type']
  readonly workspace_id: string
  readonly partition: number
  readonly agent_id: string | null
  readonly run_id: string | null
  readonly score_names: readonly string[] | null
  readonly score_subject: string | null
  readonly kind: Credential['kind']
  /** Of a sign-in; of a key, its maker. */
  readonly person_id: string | null
  readonly name: string | null
  readonly email: string | null
  readonly role: Role | null
  readonly revoked: boolean
  readonly suspended: boolean
  readonly expires_at: Date | null
}

/** Of a subject that is derived from its token. */
const SUBJECT_LENGTH = 32

/** Grace for uses of a sign-in that `UseLog` has not stored yet. */
const USE_DELAY = '10 seconds'

/**
 * Looks up credentials by their SHA-256. This is the only lookup without a workspace in its predicate, because the
 * credential determines the workspace. A feed token that is limited to an agent becomes invalid when the agent is archived,
 * like the keys of the agent. A sign-in that has ended counts as unknown.
 *
 * @param hashes in base64
 * @param now Unix milliseconds
 * @returns in the same order; null if the hash belongs to none
 */
export async function readCredentials(
  sql: Sql,
  hashes: readonly string[],
  now: number,
): Promise<(Credential | null)[]> {
  const rows = await sql<CredentialRow[]>`
    with wanted as (
      select decode(text, 'base64') as hash from unnest(string_to_array(${hashes.join(' ')}, ' ')) as text
    )
    select encode(hash, 'base64') as hash, key_id, type, workspace_id, partition, agent_id, null::uuid as run_id,
      null::text[] as score_names, null as score_subject, 'key' as kind, created_by as person_id, null as name, null as email, null as role,
      revoked_at is not null as revoked, workspaces.status = 'suspended' as suspended, expires_at
    from api_keys join workspaces using (workspace_id)
    where hash in (select hash from wanted)
    union all
    select encode(token.hash, 'base64'), key_id, key.type, token.workspace_id, partition, token.agent_id, token.run_id,
      token.score_names, token.score_subject, 'feed token', key.created_by, null, null, null, key.revoked_at is not null or agents.status is not distinct from 'archived',
      workspaces.status = 'suspended', least(token.expires_at, key.expires_at)
    from feed_tokens token
      join api_keys key using (key_id, workspace_id)
      join workspaces using (workspace_id)
      left join agents on agents.workspace_id = token.workspace_id and agents.agent_id = token.agent_id
    where token.hash in (select hash from wanted)
    union all
    select encode(hash, 'base64'), sign_in_id, 'workspace', workspace_id, partition, null, null,
      null, null, 'sign-in', person_id, people.name, email, role,
      people.status = 'suspended', workspaces.status = 'suspended', least(expires_at, unused_until)
    from sign_ins
      cross join lateral (
        select last_used_at + idle_seconds * interval '1 second' + ${USE_DELAY}::interval as unused_until
      ) as idle
      join people using (person_id, workspace_id)
      join workspaces using (workspace_id)
    where hash in (select hash from wanted) and least(expires_at, unused_until) > ${new Date(now)}`
  const found = new Map(rows.map((row) => [row.hash, toCredential(row)]))
  return hashes.map((hash) => found.get(hash) ?? null)
}

/** Hashes of the newest keys that are not revoked, in base64, of all workspaces. They only show that the keys exist. */
export async function readNewestHashes(sql: Sql, count: number): Promise<string[]> {
  const rows = await sql<{ hash: string }[]>`
    select encode(hash, 'base64') as hash from api_keys where revoked_at is null order by key_id desc limit ${count}`
  return rows.map(({ hash }) => hash)
}

function toCredential(row: CredentialRow): Credential {
  return {
    caller: callerOf(row),
    kind: row.kind,
    runId: row.run_id,
    scoring: scoringOf(row),
    revoked: row.revoked,
    suspended: row.suspended,
    expiresAt: row.expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
  }
}

/** The hash of the token stands for a subject that its caller has not named. */
function scoringOf({ hash, run_id: runId, score_names: names, score_subject: named }: CredentialRow): Scoring | null {
  if (runId === null || names === null) return null
  const subject = named ?? Bun.SHA256.hash(hash, 'hex').slice(0, SUBJECT_LENGTH)
  return Object.freeze({ runId, names, subject, isNamed: named !== null, credential: hash })
}

function callerOf(row: CredentialRow): Caller {
  const { key_id: keyId, type, workspace_id: workspaceId, partition, agent_id: agentId } = row
  const caller = { keyId, type, workspaceId, partition, agentId }
  const { person_id: personId, name, email, role } = row
  if (personId === null) return Object.freeze(caller)
  if (role === null) return Object.freeze({ ...caller, makerId: personId })
  return Object.freeze({ ...caller, person: Object.freeze({ personId, name, email, role }) })
}
