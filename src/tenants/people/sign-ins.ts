import { ApiError } from '../../base/errors.ts'
import { isUuid, type Mint } from '../../base/ids.ts'
import type { Caller, FeedCaller } from '../keys/schema.ts'
import { mintToken } from '../keys/token.ts'
import { type Claims, SignInError } from './provider.ts'
import type { SignedIn, WorkspaceName } from './schema.ts'
import { claimValues, type PeopleConfig, roleOf } from './settings.ts'
import { findPerson, type Identity, insertSignIn, otherRoles, type PeopleStoreDeps } from './store.ts'

type SignInSettings = Pick<
  PeopleConfig,
  'roleClaim' | 'roles' | 'workspace' | 'workspaceClaim' | 'sessionMs' | 'idleSeconds'
>

interface SignInsDeps extends PeopleStoreDeps {
  readonly settings: SignInSettings
  readonly mint: Mint
}

/** A new sign-in. The token is for the cookie only. */
interface BegunSignIn {
  readonly token: string
  /** Lifetime of the cookie. */
  readonly seconds: number
  readonly personId: string
  readonly workspaceId: string
}

interface SignInRow {
  readonly issuer: string
  readonly subject: string
  readonly workspace_ids: readonly string[]
  readonly expires_at: Date
}

const WORKSPACES_MAX = 100
const TEXT_LENGTH_MAX = 255

/** Begins and describes sign-ins (docs/people.md). */
export class SignIns {
  constructor(private readonly deps: SignInsDeps) {}

  /** Signs a person in by the claims of the provider. @throws SignInError */
  async begin(claims: Claims): Promise<BegunSignIn> {
    const { settings, clock } = this.deps
    const role = roleOf(claimValues(claims, settings.roleClaim), settings.roles)
    if (role === undefined) throw new SignInError('no_role', `the claim ${settings.roleClaim} gives no role`)
    const workspaces = await this.workspacesOf(claims)
    const [first] = workspaces
    if (first === undefined) throw new SignInError('no_workspace', 'the person may enter no active workspace')
    const identity = {
      issuer: claims.iss,
      subject: claims.sub,
      name: textOf(claims.name ?? claims.preferred_username),
      email: textOf(claims.email),
      role,
    }
    const expiresAt = new Date(clock.now() + settings.sessionMs)
    // First: if it fails, or the person may not enter this workspace, no earlier sign-in elsewhere keeps a role that is gone.
    await this.setOtherRoles(identity, first.workspace_id)
    return this.enter(identity, first.workspace_id, workspaces.map(idOf), expiresAt, true)
  }

  /** Applies the role that the provider gives now to the same person in workspaces other than this one. */
  private async setOtherRoles(identity: Identity, workspaceId: string): Promise<void> {
    const { sql, ring } = this.deps
    for (const { person_id: id, workspace_id } of await otherRoles(sql, workspaceId, identity))
      await ring.change({ scope: 'person', id, invalidates: false }, async (tx) => {
        await tx`
          update people set role = ${identity.role} where person_id = ${id} and workspace_id = ${workspace_id}`
      })
  }

  /**
   * Begins a sign-in in another workspace of the caller's sign-in, which stays: the route ends it.
   * @param caller a person who is signed in
   * @throws ApiError FORBIDDEN if the person may not enter the workspace; UNAUTHENTICATED if the sign-in has ended
   */
  async changeWorkspace(caller: Caller, workspaceId: string): Promise<BegunSignIn> {
    const person = caller.person!
    const row = await this.rowOf(caller)
    if (!row.workspace_ids.includes(workspaceId))
      throw new ApiError('FORBIDDEN', 'this is not one of the workspaces that you may enter', {
        reason: 'role_too_low',
      })
    const { name, email, role } = person
    const identity = { issuer: row.issuer, subject: row.subject, name, email, role }
    const { workspace_ids, expires_at } = row
    return this.enter(identity, workspaceId, workspace_ids, expires_at, false).catch((error: unknown) => {
      throw error instanceof SignInError ? new ApiError('FORBIDDEN', error.message) : error
    })
  }

  /**
   * Who is signed in.
   * @param caller a person
   * @throws ApiError FORBIDDEN if the workspace is suspended; UNAUTHENTICATED if the sign-in has ended
   */
  async describe({ caller }: FeedCaller): Promise<SignedIn> {
    const row = await this.rowOf(caller)
    const workspaces = await this.activeWorkspaces(row.workspace_ids)
    const workspace = workspaces.find((each) => each.workspace_id === caller.workspaceId)
    if (workspace === undefined)
      throw new ApiError('FORBIDDEN', 'the workspace is suspended', { reason: 'no_workspace' })
    const { personId: person_id, name, email, role } = caller.person!
    return {
      person_id,
      sign_in_id: caller.keyId,
      name,
      email,
      role,
      workspace,
      workspaces,
      expires_at: row.expires_at.toISOString(),
    }
  }

  private async enter(
    identity: Identity,
    workspaceId: string,
    workspaceIds: readonly string[],
    expiresAt: Date,
    isFromProvider: boolean,
  ): Promise<BegunSignIn> {
    const { sql, ring, clock, mint, settings } = this.deps
    const at = new Date(clock.now())
    const person = await findPerson(sql, workspaceId, identity, { mint, at })
    if (person === null) throw new SignInError('no_workspace', 'the workspace is not active')
    if (person.status === 'suspended') throw suspended()
    const personId = person.person_id
    const { text: token, hash } = mintToken('person')
    const { idleSeconds } = settings
    const signIn = { personId, workspaceId, hash, workspaceIds, idleSeconds, expiresAt }
    // Caches must read the person's other sign-ins again: the role may have changed.
    const isStored = await ring.change({ scope: 'person', id: personId, invalidates: false }, (tx) =>
      insertSignIn(tx, mint.uuid(), signIn, isFromProvider ? identity : null, at),
    )
    if (!isStored) throw suspended()
    ring.issued(hash)
    const seconds = Math.max(1, Math.floor((expiresAt.getTime() - clock.now()) / 1000))
    return { token, seconds, personId, workspaceId }
  }

  /** The active workspaces that the claims allow, in the order of the claim. */
  private async workspacesOf(claims: Claims): Promise<WorkspaceName[]> {
    const { sql, settings } = this.deps
    const { workspace, workspaceClaim } = settings
    if (workspaceClaim !== undefined) {
      const ids = claimValues(claims, workspaceClaim).filter(isUuid)
      return this.activeWorkspaces(ids.map((id) => id.toLowerCase()))
    }
    if (workspace !== undefined) return this.activeWorkspaces([workspace])
    return sql<WorkspaceName[]>`
      select workspace_id, name from workspaces where status = 'active' order by created_at, workspace_id limit 1`
  }

  private async activeWorkspaces(given: readonly string[]): Promise<WorkspaceName[]> {
    const { sql } = this.deps
    const ids = given.slice(0, WORKSPACES_MAX)
    const rows = await sql<WorkspaceName[]>`
      select workspace_id, name from workspaces
      where workspace_id = any(${sql.array([...ids])}::uuid[]) and status = 'active'`
    return [...rows].sort((a, b) => ids.indexOf(a.workspace_id) - ids.indexOf(b.workspace_id))
  }

  private async rowOf({ workspaceId, keyId }: Caller): Promise<SignInRow> {
    const [row] = await this.deps.sql<SignInRow[]>`
      select issuer, subject, workspace_ids, expires_at from sign_ins join people using (person_id, workspace_id)
      where workspace_id = ${workspaceId} and sign_in_id = ${keyId}`
    if (row === undefined) throw new ApiError('UNAUTHENTICATED', 'the sign-in has ended', { reason: 'key_invalid' })
    return row
  }
}

function idOf({ workspace_id }: WorkspaceName): string {
  return workspace_id
}

/** A claim as text that Postgres can store, of bounded length; null if it is empty or not a string. */
function textOf(claim: unknown): string | null {
  if (typeof claim !== 'string') return null
  const text = claim.toWellFormed().replaceAll('\0', '').trim().slice(0, TEXT_LENGTH_MAX)
  return text === '' ? null : text.toWellFormed()
}

function suspended(): SignInError {
  return new SignInError('suspended', 'the person is suspended')
}
