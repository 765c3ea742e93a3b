import type { Clock } from '../../base/clock.ts'
import type { Mint } from '../../base/ids.ts'
import { inTransaction, type Sql } from '../../stores/postgres/connect.ts'
import { describeToken, mintToken } from '../keys/token.ts'
import { insertWorkspace } from './store.ts'

interface BootstrapDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly mint: Mint
  /** `BOOTSTRAP_WORKSPACE_KEY`. The configuration has checked that it is well-formed. */
  readonly key: string | undefined
}

interface Bootstrapped {
  /** The workspace just created; null if there already was one. */
  readonly workspaceId: string | null
  /** Shown to the operator once. Null if the operator provided the key, so that their secret is not printed. */
  readonly freshKey: string | null
  /** The provided key was ignored: there already is a workspace, and the key is not valid for any. */
  readonly keyIgnored: boolean
}

const WORKSPACE_NAME = 'default'

/**
 * On an empty database, creates the workspace `default` with one workspace key (docs/workspaces.md#first-start). If
 * several processes start together, one of them does it.
 */
export async function bootstrapWorkspace({ sql, clock, mint, key }: BootstrapDeps): Promise<Bootstrapped> {
  const token = key === undefined ? mintToken('workspace') : describeToken(key)
  return inTransaction(sql, async (tx): Promise<Bootstrapped> => {
    await tx`lock table workspaces in share row exclusive mode`
    const [{ exists }] = (await tx`select exists (select from workspaces)`) as unknown as [{ exists: boolean }]
    if (exists) {
      const [working] = await tx`
        select from api_keys where hash = ${token.hash} and type = 'workspace' and revoked_at is null
          and (expires_at is null or expires_at > ${new Date(clock.now())})`
      return { workspaceId: null, freshKey: null, keyIgnored: key !== undefined && working === undefined }
    }
    const workspace = await insertWorkspace(tx, WORKSPACE_NAME, token, mint, clock)
    const freshKey = key === undefined ? token.text : null
    return { workspaceId: workspace.workspace_id, freshKey, keyIgnored: false }
  })
}
