import type { Clock } from '../clock.ts'
import type { Mint } from '../ids.ts'
import { describeToken, mintToken } from '../keys/token.ts'
import { inTransaction, type Sql } from '../postgres/connect.ts'
import { insertWorkspace } from './store.ts'

export interface BootstrapDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly mint: Mint
  /** `BOOTSTRAP_WORKSPACE_KEY`, a well-formed workspace key: the configuration has checked that. */
  readonly key: string | undefined
}

export interface Bootstrapped {
  /** The workspace just made; null if there was one already. */
  readonly workspaceId: string | null
  /** To be shown to the operator once. Null if it was given, so that a secret of theirs is not printed. */
  readonly freshKey: string | null
  /** The given key is not used, because there is a workspace already, and it opens none. */
  readonly keyIgnored: boolean
}

const WORKSPACE_NAME = 'default'

/**
 * On an empty database, makes workspace `default` with one workspace key (docs/specification.md#first-start). Of several
 * processes that start together one does it.
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
