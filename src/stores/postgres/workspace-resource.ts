import { ApiError } from '../../base/errors.ts'
import { inTransaction, isUniqueViolation, type Sql, type TransactionSql } from './connect.ts'

interface ResourceNames {
  readonly table: string
  /** Column that identifies a row within its workspace. */
  readonly id: string
  /** As messages name one of them, with its article, and several. */
  readonly one: string
  readonly many: string
  /** Maximum per workspace. */
  readonly max: number
}

/** What the stores have in common whose rows callers create within a limit of their workspace. */
export function workspaceResource({ table, id, one, many, max }: ResourceNames) {
  /** @throws ApiError CONFLICT when the workspace has reached its limit without the row `self` */
  async function reserve(tx: TransactionSql, workspaceId: string, self: string): Promise<void> {
    // Serializes creations of a workspace, so that the count is still valid when the row is written.
    await tx`select from workspaces where workspace_id = ${workspaceId} for no key update`
    const [{ others }] = await tx<[{ others: number }]>`
      select count(*)::int as others from ${tx(table)} where workspace_id = ${workspaceId} and ${tx(id)} <> ${self}`
    if (others >= max)
      throw new ApiError('CONFLICT', `a workspace has at most ${max} ${many}: delete one first`, {
        reason: 'limit_reached',
      })
  }

  /** Only the database's unique index detects duplicate names: a check before the write could race. */
  function nameConflict(error: unknown, name: string | undefined): unknown {
    if (!isUniqueViolation(error)) return error
    return new ApiError('CONFLICT', `${one} named ${JSON.stringify(name)} already exists`, {
      reason: 'name_taken',
      param: 'name',
      cause: error,
    })
  }

  /** @throws ApiError CONFLICT when the name is taken or the workspace has reached its limit */
  async function insert(sql: Sql, row: { readonly workspace_id: string; readonly name?: string }): Promise<void> {
    await inTransaction(sql, async (tx) => {
      await reserve(tx, row.workspace_id, (row as unknown as Record<string, string>)[id]!)
      // The id already exists if the request is a retry after the response was lost.
      await tx`insert into ${tx(table)} ${tx(row as never)} on conflict (${tx(id)}) do nothing`
    }).catch((error: unknown) => {
      throw row.name === undefined ? error : nameConflict(error, row.name)
    })
  }

  const missing = () => new ApiError('NOT_FOUND', `${one.slice(one.indexOf(' ') + 1)} does not exist`)

  return { reserve, insert, nameConflict, missing }
}
