import { ApiError } from '../../base/errors.ts'
import { versionChanged } from '../../base/http/version.ts'
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

interface Refused {
  readonly workspaceId: string
  /** The value of {@link ResourceNames.id}. */
  readonly key: string
  /** The version that the call names. */
  readonly version: number | undefined
  /** Where it does so; the header by default. */
  readonly param?: string
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

  /** SQL: only a row at this version; undefined: at any. In the statement that changes it, so that of two edits one wins. */
  function at(sql: Sql, version: number | undefined) {
    return version === undefined ? sql`` : sql`and version = ${version}`
  }

  /** Why a statement with {@link at} has found no row: NOT_FOUND, or CONFLICT at another version. */
  async function refusal(sql: Sql, { workspaceId, key, version, param }: Refused): Promise<ApiError> {
    if (version === undefined) return missing()
    const [row] = await sql<{ version: number }[]>`
      select version from ${sql(table)} where workspace_id = ${workspaceId} and ${sql(id)} = ${key}`
    return row === undefined ? missing() : versionChanged(one, row.version, version, param)
  }

  return { reserve, insert, nameConflict, missing, at, refusal }
}
