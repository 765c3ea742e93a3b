import type { Clock } from '../../base/clock.ts'
import { ApiError, invalid, notFound } from '../../base/errors.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf, pageOf } from '../../base/http/page.ts'
import { Uuid } from '../../base/http/schema.ts'
import type { Mint } from '../../base/ids.ts'
import { withIsoTimes } from '../../base/timestamp.ts'
import { type Sql, sweepRows, type TransactionSql } from '../../stores/postgres/connect.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import type { Caller, Role } from '../keys/schema.ts'
import type { EditPerson, ListPeople, PersonDetail, PersonRecord, SignInRecord } from './schema.ts'

export interface PeopleStoreDeps {
  readonly sql: Sql
  readonly ring: KeyRing
  readonly clock: Clock
}

interface PersonRow extends Omit<PersonRecord, 'created_at' | 'signed_in_at'> {
  readonly created_at: Date
  readonly signed_in_at: Date
}

type SignInTimes = 'created_at' | 'last_used_at' | 'expires_at'
type SignInRow = Omit<SignInRecord, SignInTimes> & Record<SignInTimes, Date>

const CURSOR = cursorCodec(Uuid)
/** Grace for uses that are not stored yet. */
const SWEEP_DELAY = '1 minute'

/** The workspace of the caller. */
type Tenant = Pick<Caller, 'workspaceId'>

/** The people of a workspace and their sign-ins, for its admins (docs/people.md). */
export class PeopleStore {
  constructor(private readonly deps: PeopleStoreDeps) {}

  /** Newest first. */
  async list({ workspaceId }: Tenant, query: ListPeople): Promise<PageOf<PersonRecord>> {
    const { sql } = this.deps
    const { status, limit = PAGE_LIMIT_DEFAULT, cursor } = query
    const rows = await sql<PersonRow[]>`
      select ${columns(sql)} from people where workspace_id = ${workspaceId}
        ${status === undefined ? sql`` : sql`and status = ${status}`}
        ${cursor === undefined ? sql`` : sql`and person_id < ${CURSOR.decode(cursor)}`}
      order by person_id desc limit ${limit + 1}`
    return pageOf(rows, limit, (row) => CURSOR.encode(row.person_id), withIsoTimes)
  }

  /** @throws ApiError NOT_FOUND */
  async get({ workspaceId }: Tenant, personId: string): Promise<PersonDetail> {
    const { sql, clock } = this.deps
    const [person] = await sql<PersonRow[]>`
      select ${columns(sql)} from people where workspace_id = ${workspaceId} and person_id = ${personId}`
    if (person === undefined) throw notFound('person')
    const signIns = await sql<SignInRow[]>`
      select sign_in_id, created_at, last_used_at, expires_at from sign_ins
      where workspace_id = ${workspaceId} and person_id = ${personId} and expires_at > ${new Date(clock.now())}
      order by sign_in_id desc`
    return { ...withIsoTimes(person), sign_ins: signIns.map(withIsoTimes) }
  }

  /**
   * Suspends or reactivates a person. Once a suspension has resolved, no process accepts a sign-in of the person, or a key
   * that the person made, unless the keys are kept.
   * @throws ApiError VALIDATION_ERROR, NOT_FOUND; UNAVAILABLE if another process has not confirmed in time
   */
  async edit(
    { workspaceId }: Tenant,
    personId: string,
    { status, keep_keys: keepsKeys }: EditPerson,
  ): Promise<PersonRecord> {
    const { ring, clock } = this.deps
    const isSuspended = status === 'suspended'
    if (keepsKeys !== undefined && !isSuspended) throw invalid('keep_keys', 'expected only with the status suspended')
    const revokesKeys = isSuspended && keepsKeys !== true
    const scope = revokesKeys ? 'maker' : 'person'
    return ring.change({ scope, id: personId, invalidates: isSuspended }, async (tx) => {
      const [row] = await tx<PersonRow[]>`
        update people set status = ${status} where workspace_id = ${workspaceId} and person_id = ${personId}
        returning ${columns(tx)}`
      if (row === undefined) throw notFound('person')
      if (isSuspended) await tx`delete from sign_ins where workspace_id = ${workspaceId} and person_id = ${personId}`
      if (revokesKeys)
        await tx`
          update api_keys set revoked_at = ${new Date(clock.now())}
          where workspace_id = ${workspaceId} and created_by = ${personId} and revoked_at is null`
      return withIsoTimes(row)
    })
  }

  /**
   * Ends a sign-in. Once it has resolved, no process accepts it.
   * @throws ApiError NOT_FOUND; UNAVAILABLE if another process has not confirmed in time
   */
  async end({ workspaceId }: Tenant, signInId: string): Promise<{ sign_in_id: string }> {
    return this.deps.ring.change({ scope: 'key', id: signInId, invalidates: true }, async (tx) => {
      const { count } = await tx`delete from sign_ins where workspace_id = ${workspaceId} and sign_in_id = ${signInId}`
      if (count === 0) throw new ApiError('NOT_FOUND', 'sign-in does not exist, or has ended')
      return { sign_in_id: signInId }
    })
  }
}

/** A sign-in to store. */
interface NewSignIn {
  readonly personId: string
  readonly workspaceId: string
  readonly hash: Buffer
  readonly workspaceIds: readonly string[]
  readonly idleSeconds: number
  readonly expiresAt: Date
}

/** A person as the provider's claims describe them. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
  readonly name: string | null
  readonly email: string | null
  readonly role: Role
}

/**
 * Finds a person in a workspace, or adds them. {@link insertSignIn} updates their name, e-mail address and role.
 * @returns null if the workspace is not active
 */
export async function findPerson(
  sql: Sql,
  workspaceId: string,
  { issuer, subject, name, email, role }: Identity,
  { mint, at }: { readonly mint: Mint; readonly at: Date },
): Promise<{ readonly person_id: string; readonly status: PersonRecord['status'] } | null> {
  const [row] = await sql<{ person_id: string; status: PersonRecord['status'] }[]>`
    insert into people (person_id, workspace_id, issuer, subject, name, email, role, created_at, signed_in_at)
    select ${mint.uuid()}::uuid, workspace_id, ${issuer}, ${subject}, ${name}, ${email}, ${role}, ${at}, ${at}
    from workspaces where workspace_id = ${workspaceId} and status = 'active' for share
    on conflict (workspace_id, issuer, subject) do update set subject = excluded.subject
    returning person_id, status`
  return row ?? null
}

/** Sign-ins per person. Beyond this, the oldest end. */
const SIGN_INS_MAX = 20

/**
 * Stores a sign-in, and updates the person from the provider's claims.
 * @param identity null without new claims: the person's name, e-mail address and role stay
 * @returns false if the person is suspended
 */
export async function insertSignIn(
  tx: TransactionSql,
  signInId: string,
  { personId, workspaceId, hash, workspaceIds, idleSeconds, expiresAt }: NewSignIn,
  identity: Identity | null,
  at: Date,
): Promise<boolean> {
  const changes =
    identity === null ? tx`` : tx`name = ${identity.name}, email = ${identity.email}, role = ${identity.role},`
  const { count } = await tx`
    update people set ${changes} signed_in_at = ${at}
    where workspace_id = ${workspaceId} and person_id = ${personId} and status = 'active'`
  if (count === 0) return false
  await tx`
    insert into sign_ins (sign_in_id, person_id, workspace_id, hash, workspace_ids, idle_seconds, created_at, last_used_at, expires_at)
    values (${signInId}, ${personId}, ${workspaceId}, ${hash}, ${tx.array([...workspaceIds])}::uuid[], ${idleSeconds}, ${at}, ${at},
      ${expiresAt})`
  await tx`
    delete from sign_ins where workspace_id = ${workspaceId} and sign_in_id in (
      select sign_in_id from sign_ins where person_id = ${personId} order by sign_in_id desc offset ${SIGN_INS_MAX}
    )`
  return true
}

/** The same person in other workspaces where their stored role differs from the one that the provider gives now. */
export function otherRoles(sql: Sql, workspaceId: string, { issuer, subject, role }: Identity) {
  return sql<{ person_id: string; workspace_id: string }[]>`
    select person_id, workspace_id from people
    where issuer = ${issuer} and subject = ${subject} and role <> ${role} and workspace_id <> ${workspaceId}`
}

/** Deletes sign-ins that have ended; called by a periodic job. @returns how many */
export function sweepSignIns(sql: Sql, clock: Clock): Promise<number> {
  const now = new Date(clock.now())
  return sweepRows(
    (limit) => sql`
      delete from sign_ins where sign_in_id in (
        select sign_in_id from sign_ins
        where least(expires_at, last_used_at + idle_seconds * interval '1 second') + ${SWEEP_DELAY}::interval <= ${now}
        limit ${limit}
      )`,
  )
}

function columns(sql: Sql | TransactionSql) {
  return sql`person_id, subject, name, email, role, status, created_at, signed_in_at`
}
