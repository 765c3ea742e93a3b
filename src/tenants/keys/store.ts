import type { Clock } from '../../base/clock.ts'
import { ApiError, invalid, notFound } from '../../base/errors.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf, pageOf } from '../../base/http/page.ts'
import { Uuid } from '../../base/http/schema.ts'
import type { Mint } from '../../base/ids.ts'
import { parseTimestamp } from '../../base/timestamp.ts'
import { inTransaction, type Sql, type TransactionSql } from '../../stores/postgres/connect.ts'
import type { KeyRing } from './key-ring.ts'
import {
  type Caller,
  type CreateAgentKey,
  type CreateKey,
  isExpired,
  type KeyRecord,
  type KeyRow,
  type ListKeys,
  makerOf,
  type NewKey,
  type RotateKey,
  toKeyRecord,
} from './schema.ts'
import { mintToken, type Token } from './token.ts'

interface KeyStoreDeps {
  readonly sql: Sql
  readonly ring: KeyRing
  readonly clock: Clock
}

const CURSOR = cursorCodec(Uuid)

/** The workspace of the caller. */
type Tenant = Pick<Caller, 'workspaceId'>
/** Who makes a key, in a workspace. */
type Maker = Pick<Caller, 'workspaceId'> & Partial<Pick<Caller, 'keyId' | 'person' | 'makerId'>>

/** Creates, lists, revokes and rotates the keys of a workspace (docs/keys.md#managing-keys). */
export class KeyStore {
  constructor(private readonly deps: KeyStoreDeps) {}

  /** @throws ApiError VALIDATION_ERROR for an `expires_at` that has passed */
  createForWorkspace(maker: Maker, body: CreateKey, mint: Mint): Promise<NewKey> {
    return this.create(maker, null, body, mint, async () => {})
  }

  /**
   * Creates a workspace key for an owner who lost theirs; for the operator.
   * @throws ApiError NOT_FOUND, CONFLICT while the workspace is being erased, VALIDATION_ERROR as above
   */
  createForOwner(workspaceId: string, body: CreateAgentKey, mint: Mint): Promise<NewKey> {
    return this.create({ workspaceId }, null, body, mint, async (tx) => {
      // Locked, so that the workspace cannot be erased in between.
      const [workspace] = await tx`select is_erasing from workspaces where workspace_id = ${workspaceId} for share`
      if (workspace === undefined) throw notFound('workspace')
      if (workspace.is_erasing === true)
        throw new ApiError('CONFLICT', 'the workspace is being erased', { reason: 'workspace_erasing' })
    })
  }

  /** @throws ApiError NOT_FOUND for no agent of the workspace or an archived one, VALIDATION_ERROR as above */
  createForAgent(maker: Maker, agentId: string, body: CreateAgentKey, mint: Mint): Promise<NewKey> {
    return this.create(maker, agentId, body, mint, async (tx) => {
      // Locked, so that archiving the agent either revokes this key or is seen here.
      const [agent] = await tx`
        select agent_id from agents
        where workspace_id = ${maker.workspaceId} and agent_id = ${agentId} and status <> 'archived' for share`
      if (agent === undefined) throw notFound('agent')
    })
  }

  private async create(
    maker: Maker,
    agentId: string | null,
    { name = null, expires_at }: CreateAgentKey,
    mint: Mint,
    check: (tx: TransactionSql) => Promise<void>,
  ): Promise<NewKey> {
    const { sql, clock } = this.deps
    const token = mintToken(agentId === null ? 'workspace' : 'agent', mint.secret())
    const expiresAt = this.futureDate(expires_at)
    const row = await inTransaction(sql, async (tx) => {
      await check(tx)
      await checkMaker(tx, maker)
      return insertKey(tx, token, {
        key_id: mint.uuid(),
        workspace_id: maker.workspaceId,
        agent_id: agentId,
        name,
        created_at: new Date(clock.now()),
        created_by: makerOf(maker),
        expires_at: expiresAt,
      })
    })
    return this.newKey(row, token)
  }

  async list(caller: Caller, query: ListKeys): Promise<PageOf<KeyRecord>> {
    const { sql, clock } = this.deps
    const { type, agent_id, status, limit = PAGE_LIMIT_DEFAULT, cursor } = query
    const now = clock.now()
    const notRevoked = sql`revoked_at is null and`
    const conditions = {
      active: sql`and ${notRevoked} (expires_at is null or expires_at > ${new Date(now)})`,
      expired: sql`and ${notRevoked} expires_at <= ${new Date(now)}`,
      revoked: sql`and revoked_at is not null`,
    }
    const rows = await sql<KeyRow[]>`
      select ${columns(sql)} from api_keys where workspace_id = ${caller.workspaceId}
        ${cursor === undefined ? sql`` : sql`and key_id < ${CURSOR.decode(cursor)}`}
        ${type === undefined ? sql`` : sql`and type = ${type}`}
        ${agent_id === undefined ? sql`` : sql`and agent_id = ${agent_id}`}
        ${status === undefined ? sql`and revoked_at is null` : conditions[status]}
      order by key_id desc limit ${limit + 1}`
    return pageOf(
      rows,
      limit,
      (row) => CURSOR.encode(row.key_id),
      (row) => toKeyRecord(row, now),
    )
  }

  /**
   * Revokes a key. Once it has resolved, no process of the service accepts the key. Idempotent.
   * @throws ApiError NOT_FOUND; UNAVAILABLE if another process has not confirmed in time
   */
  async revoke(caller: Tenant, keyId: string): Promise<KeyRecord> {
    const { ring, clock } = this.deps
    const now = clock.now()
    return ring.change({ scope: 'key', id: keyId, invalidates: true }, async (tx) => {
      const [row] = await tx<KeyRow[]>`
        update api_keys set revoked_at = coalesce(revoked_at, ${new Date(now)})
        where workspace_id = ${caller.workspaceId} and key_id = ${keyId} returning ${columns(tx)}`
      if (row === undefined) throw notFound('key')
      return toKeyRecord(row, now)
    })
  }

  /**
   * Creates a replacement for a key, which becomes invalid after the grace period. The new key has the same expiry.
   * @throws ApiError NOT_FOUND; CONFLICT if the key is invalid or already rotated; UNAVAILABLE as in revoke
   */
  async rotate(caller: Maker, keyId: string, { grace_seconds = 0 }: RotateKey, mint: Mint): Promise<NewKey> {
    const { ring, clock } = this.deps
    const now = clock.now()
    const newId = mint.uuid()
    const secret = mint.secret()
    const graceEnd = new Date(now + grace_seconds * 1000)
    const { row, token } = await ring.change(
      { scope: 'key', id: keyId, invalidates: grace_seconds === 0 },
      async (tx) => {
        // First, as in a suspension, which locks the person and then their keys.
        await checkMaker(tx, caller)
        const [old] = await tx<KeyRow[]>`
        select ${columns(tx)} from api_keys
        where workspace_id = ${caller.workspaceId} and key_id = ${keyId} for update`
        if (old === undefined) throw notFound('key')
        // A retry after the response was lost mints the same id.
        if (old.replaced_by !== newId) refuseRotation(old, now)
        const token = mintToken(old.type, secret)
        const row = await insertKey(tx, token, {
          key_id: newId,
          workspace_id: caller.workspaceId,
          agent_id: old.agent_id,
          name: old.name,
          created_at: new Date(now),
          // Who rotates a key knows the new one.
          created_by: makerOf(caller),
          expires_at: old.expires_at,
        })
        await tx`
        update api_keys set replaced_by = ${newId},
          ${grace_seconds === 0 ? tx`revoked_at = ${graceEnd}` : tx`expires_at = least(expires_at, ${graceEnd})`}
        where workspace_id = ${caller.workspaceId} and key_id = ${keyId} and replaced_by is null`
        return { row, token }
      },
    )
    return this.newKey(row, token)
  }

  private newKey(row: KeyRow, token: Token): NewKey {
    this.deps.ring.issued(token.hash)
    return { ...toKeyRecord(row, this.deps.clock.now()), key: token.text }
  }

  private futureDate(text: string | null | undefined): Date | null {
    if (text === null || text === undefined) return null
    const at = parseTimestamp(text)
    if (at === null || at <= this.deps.clock.now())
      throw invalid('expires_at', `expected a time in the future; got ${JSON.stringify(text)}`)
    return new Date(at)
  }
}

interface KeyToInsert extends Pick<KeyRow, 'key_id' | 'agent_id' | 'name' | 'created_at' | 'expires_at'> {
  readonly workspace_id: string
  readonly created_by?: string | null
}

/**
 * Suspending a person revokes their keys. The row is locked, so that a suspension either revokes the new key or is seen here.
 * @throws ApiError FORBIDDEN, UNAUTHENTICATED
 */
async function checkMaker(tx: TransactionSql, maker: Maker): Promise<void> {
  const personId = makerOf(maker)
  if (personId === null) return
  const [person] = await tx<{ status: string }[]>`
    select status from people where workspace_id = ${maker.workspaceId} and person_id = ${personId} for share`
  if (person?.status === 'active') return
  if (maker.person !== undefined)
    throw new ApiError('FORBIDDEN', 'a suspended person cannot make keys', { reason: 'person_suspended' })
  // Read after the lock: the key was revoked with the person, unless it was kept.
  const [key] = await tx`
    select revoked_at from api_keys where workspace_id = ${maker.workspaceId} and key_id = ${maker.keyId ?? null}`
  if (key?.revoked_at !== null)
    throw new ApiError('UNAUTHENTICATED', 'the key has been revoked', { reason: 'key_revoked' })
}

/**
 * Stores a new key. If the request is a repeat, `key_id` exists already, with the same text: some client may have been answered.
 */
export async function insertKey(sql: Sql | TransactionSql, token: Token, key: KeyToInsert): Promise<KeyRow> {
  const { key_id, workspace_id, agent_id, name, created_at, created_by = null, expires_at } = key
  const type: Caller['type'] = agent_id === null ? 'workspace' : 'agent'
  const [row] = await sql<KeyRow[]>`
    insert into api_keys (key_id, workspace_id, agent_id, type, name, hash, prefix, last4, created_at, created_by, expires_at)
    values (${key_id}, ${workspace_id}, ${agent_id}, ${type}, ${name}, ${token.hash}, ${token.prefix}, ${token.last4},
      ${created_at}, ${created_by}, ${expires_at})
    on conflict (key_id) do update set hash = excluded.hash, prefix = excluded.prefix, last4 = excluded.last4
      where api_keys.workspace_id = excluded.workspace_id
    returning ${columns(sql)}`
  return row!
}

function columns(sql: Sql | TransactionSql) {
  return sql`key_id, type, name, agent_id, prefix, last4, created_at, last_used_at, expires_at, revoked_at, replaced_by, created_by,
    (select coalesce(people.name, email, subject) from people
      where people.workspace_id = api_keys.workspace_id and person_id = created_by) as created_by_name`
}

function refuseRotation(key: KeyRow, now: number): void {
  if (key.replaced_by !== null)
    throw new ApiError('CONFLICT', `the key has already been rotated; rotate its replacement: ${key.replaced_by}`, {
      reason: 'key_rotated',
    })
  if (key.revoked_at !== null)
    throw new ApiError('CONFLICT', 'the key has been revoked; create a new one', { reason: 'key_revoked' })
  if (isExpired(key, now))
    throw new ApiError('CONFLICT', 'the key has expired; create a new one', { reason: 'key_expired' })
}
