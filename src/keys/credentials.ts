import type { Sql } from '../postgres/connect.ts'
import type { Caller } from './schema.ts'

/** The cached state of a key or feed token, valid or not. */
export interface Credential {
  /** For a feed token: the caller of its key, with the agent that the token is limited to. */
  readonly caller: Caller
  /** A feed token can only open feeds. */
  readonly isFeedToken: boolean
  /** The one run that a feed token is limited to; null for none, and for keys. */
  readonly runId: string | null
  readonly revoked: boolean
  readonly suspended: boolean
  /** Unix milliseconds; infinite for a key that does not expire. A feed token expires with its key at the latest. */
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
  readonly is_feed_token: boolean
  readonly revoked: boolean
  readonly suspended: boolean
  readonly expires_at: Date | null
}

/**
 * Looks up credentials by their SHA-256. This is the only lookup without a workspace in its predicate, because the
 * credential determines the workspace. A feed token that is limited to an agent becomes invalid when the agent is archived,
 * like the keys of the agent.
 *
 * @param hashes in base64
 * @returns in the same order; null if the hash belongs to neither a key nor a feed token
 */
export async function readCredentials(sql: Sql, hashes: readonly string[]): Promise<(Credential | null)[]> {
  const rows = await sql<CredentialRow[]>`
    with wanted as (
      select decode(text, 'base64') as hash from unnest(string_to_array(${hashes.join(' ')}, ' ')) as text
    )
    select encode(hash, 'base64') as hash, key_id, type, workspace_id, partition, agent_id, null::uuid as run_id,
      false as is_feed_token, revoked_at is not null as revoked, workspaces.status = 'suspended' as suspended, expires_at
    from api_keys join workspaces using (workspace_id)
    where hash in (select hash from wanted)
    union all
    select encode(token.hash, 'base64'), key_id, key.type, token.workspace_id, partition, token.agent_id, token.run_id,
      true, key.revoked_at is not null or agents.status is not distinct from 'archived',
      workspaces.status = 'suspended', least(token.expires_at, key.expires_at)
    from feed_tokens token
      join api_keys key using (key_id, workspace_id)
      join workspaces using (workspace_id)
      left join agents on agents.workspace_id = token.workspace_id and agents.agent_id = token.agent_id
    where token.hash in (select hash from wanted)`
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
    caller: Object.freeze({
      keyId: row.key_id,
      type: row.type,
      workspaceId: row.workspace_id,
      partition: row.partition,
      agentId: row.agent_id,
    }),
    isFeedToken: row.is_feed_token,
    runId: row.run_id,
    revoked: row.revoked,
    suspended: row.suspended,
    expiresAt: row.expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
  }
}
