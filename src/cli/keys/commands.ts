import type { Clock } from '../../base/clock.ts'
import { isUuid, type Mint } from '../../base/ids.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import { type KeyRecord, type KeyRow, type NewKey, toKeyRecord } from '../../tenants/keys/schema.ts'
import type { KeyStore } from '../../tenants/keys/store.ts'
import { CliError } from '../shared/error.ts'
import type { KeysCommand } from './args.ts'

interface KeyCommandDeps {
  readonly sql: Sql
  readonly keys: KeyStore
  readonly clock: Clock
  readonly mint: Mint
}

interface ListedWorkspace {
  readonly workspace_id: string
  readonly name: string
  readonly status: string
  readonly keys: readonly KeyRecord[]
}

export interface KeyList {
  readonly workspaces: readonly ListedWorkspace[]
  /** Whether the list is incomplete. */
  readonly truncated: boolean
}

export type KeysAnswer =
  | { readonly list: KeyList }
  | { readonly made: NewKey & { readonly workspace_id: string } }
  | { readonly revoked: KeyRecord & { readonly workspace_id: string } }

/** The maximum number of workspaces in a list, and of keys. */
const LISTED_MAX = 1_000

/** @throws CliError, ApiError */
export async function runCommand(deps: KeyCommandDeps, command: KeysCommand): Promise<KeysAnswer> {
  const { keys, mint } = deps
  if (command.name === 'list') return { list: await list(deps, command.workspace, command.all) }
  if (command.name === 'create') {
    const { agentId, keyName, expiresAt } = command
    const workspaceId =
      agentId === undefined ? await selectWorkspace(deps, command.workspace) : await ownerOfAgent(deps, agentId)
    const body = {
      ...(keyName !== undefined && { name: keyName }),
      ...(expiresAt !== undefined && { expires_at: expiresAt }),
    }
    const made =
      agentId === undefined
        ? await keys.createForOwner(workspaceId, body, mint)
        : await keys.createForAgent({ workspaceId }, agentId, body, mint)
    return { made: { ...made, workspace_id: workspaceId } }
  }
  const workspaceId = await ownerOfKey(deps, command.keyId)
  if (command.name === 'revoke')
    return { revoked: { ...(await keys.revoke({ workspaceId }, command.keyId)), workspace_id: workspaceId } }
  const made = await keys.rotate({ workspaceId }, command.keyId, { grace_seconds: command.graceSeconds }, mint)
  return { made: { ...made, workspace_id: workspaceId } }
}

async function list({ sql, clock }: KeyCommandDeps, wanted: string | undefined, all: boolean): Promise<KeyList> {
  const workspaces = await find(sql, wanted)
  const ids = workspaces.slice(0, LISTED_MAX).map(({ workspace_id }) => workspace_id)
  const now = clock.now()
  const working = sql`and revoked_at is null and (expires_at is null or expires_at > ${new Date(now)})`
  const rows = await sql<(KeyRow & { workspace_id: string })[]>`
    select workspace_id, key_id, type, name, agent_id, prefix, last4, created_at, last_used_at, expires_at, revoked_at,
      replaced_by
    from api_keys where workspace_id = any(${ids}::uuid[]) ${all ? sql`` : working}
    order by key_id desc limit ${LISTED_MAX + 1}`
  const keysOf = Map.groupBy(rows.slice(0, LISTED_MAX), ({ workspace_id }) => workspace_id)
  return {
    workspaces: workspaces.slice(0, LISTED_MAX).map((workspace) => ({
      ...workspace,
      keys: (keysOf.get(workspace.workspace_id) ?? []).map(({ workspace_id: _, ...row }) => toKeyRecord(row, now)),
    })),
    truncated: workspaces.length > LISTED_MAX || rows.length > LISTED_MAX,
  }
}

/** The newest workspaces, or those with the given id or name. @throws CliError if there is none */
async function find(sql: Sql, wanted: string | undefined): Promise<Omit<ListedWorkspace, 'keys'>[]> {
  const condition =
    wanted === undefined
      ? sql`true`
      : isUuid(wanted)
        ? sql`workspace_id = ${wanted.toLowerCase()} or name = ${wanted}`
        : sql`name = ${wanted}`
  const found = await sql<Omit<ListedWorkspace, 'keys'>[]>`
    select workspace_id, name, status from workspaces where ${condition}
    order by workspace_id desc limit ${LISTED_MAX + 1}`
  if (found.length === 0 && wanted !== undefined) throw new CliError(`workspace "${wanted}" does not exist`)
  return found
}

async function selectWorkspace({ sql }: KeyCommandDeps, wanted: string | undefined): Promise<string> {
  const found = await find(sql, wanted)
  if (found.length === 1) return found[0]!.workspace_id
  if (found.length === 0) throw new CliError('there is no workspace yet: the first start of the service creates one')
  const names = found.slice(0, 10).map(({ workspace_id, name }) => `  ${workspace_id}  ${name}`)
  throw new CliError(`there are several workspaces; select one with --workspace <id>:\n${names.join('\n')}`)
}

async function ownerOfKey({ sql }: KeyCommandDeps, keyId: string): Promise<string> {
  const [row] = await sql<{ workspace_id: string }[]>`select workspace_id from api_keys where key_id = ${keyId}`
  if (row === undefined) throw new CliError(`key ${keyId} does not exist`)
  return row.workspace_id
}

async function ownerOfAgent({ sql }: KeyCommandDeps, agentId: string): Promise<string> {
  const [row] = await sql<{ workspace_id: string }[]>`select workspace_id from agents where agent_id = ${agentId}`
  if (row === undefined) throw new CliError(`agent ${agentId} does not exist`)
  return row.workspace_id
}
