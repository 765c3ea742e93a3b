import type { Clock } from '../clock.ts'
import type { Mint } from '../ids.ts'
import { describeToken, mintToken } from '../keys/token.ts'
import type { Sql, TransactionSql } from '../postgres/connect.ts'
import { insertWorkspace } from './store.ts'

export interface BootstrapDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly mint: Mint
  /** `BOOTSTRAP_WORKSPACE_KEY`, a well-formed workspace key: the configuration has checked that. */
  readonly key: string | undefined
}

export interface Bootstrapped {
  readonly workspaceId: string
  /** To be shown to the operator once. Null if it was given, so that a secret of theirs is not printed. */
  readonly freshKey: string | null
}

const WORKSPACE_NAME = 'default'

/**
 * On an empty database, makes workspace `default` with one workspace key (contract section 2, "first start"). Of several
 * processes that start together one does it.
 *
 * @returns null if there is a workspace already: the given key is not looked at then
 */
export async function bootstrapWorkspace({ sql, clock, mint, key }: BootstrapDeps): Promise<Bootstrapped | null> {
  const token = key === undefined ? mintToken('workspace') : describeToken(key)
  return sql.begin(async (tx) => {
    await tx`lock table workspaces in share row exclusive mode`
    const [{ exists }] = (await tx`select exists (select from workspaces)`) as unknown as [{ exists: boolean }]
    if (exists) return null
    const workspace = await insertWorkspace(tx as unknown as TransactionSql, WORKSPACE_NAME, token, mint, clock)
    return { workspaceId: workspace.workspace_id, freshKey: key === undefined ? token.text : null }
  }) as Promise<Bootstrapped | null>
}
