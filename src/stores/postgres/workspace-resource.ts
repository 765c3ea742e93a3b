import { t } from 'elysia'
import { ApiError, notFound } from '../../base/errors.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf, pageOf } from '../../base/http/page.ts'
import { CursorMs, type PageQuery, Text, Uuid } from '../../base/http/schema.ts'
import { versionChanged } from '../../base/http/version.ts'
import { type Fragment, inTransaction, isUniqueViolation, type Sql, type TransactionSql } from './connect.ts'
import { pageOfLong } from './long-rows.ts'

interface ResourceNames {
  readonly table: string
  /** Column that identifies a row within its workspace. */
  readonly id: string
  /** As messages name one of them, with its article, and several. */
  readonly one: string
  readonly many: string
  /** Maximum per workspace. */
  readonly max: number
  /** Columns that may be long, so that a page ends early. */
  readonly long?: readonly string[]
}

/** A row, at one version. */
interface OneRow {
  readonly workspaceId: string
  /** The value of {@link ResourceNames.id}. */
  readonly key: string
  /** The version that the call names; undefined: any. */
  readonly version: number | undefined
  /** Where it does so; the header by default. */
  readonly param?: string
}

/** A hundred long queries would hold the event loop. */
const PAGE_BYTES_MAX = 1 << 20

const UUIDS = cursorCodec(Uuid)
const NAMES = cursorCodec(t.Tuple([CursorMs, Text({ maxLength: 256 })]))

/** What the stores have in common whose rows callers create within a limit of their workspace. */
export function workspaceResource(names: ResourceNames) {
  return { ...errorsOf(names.one), ...creation(names), ...existing(names) }
}

function creation({ table, id, one, many, max }: ResourceNames) {
  const { nameConflict } = errorsOf(one)

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

  return { reserve, insert }
}

/** Reads and changes rows. */
function existing({ table, id, one, long = [] }: ResourceNames) {
  const { missing, nameConflict } = errorsOf(one)

  /** SQL: the condition of a statement that changes a row. It has the version, so that of two edits one wins. */
  function is(sql: Sql, { workspaceId, key, version }: OneRow): Fragment {
    const at = version === undefined ? sql`` : sql`and version = ${version}`
    return sql`workspace_id = ${workspaceId} and ${sql(id)} = ${key} ${at}`
  }

  /** Why a statement with {@link is} has found no row: NOT_FOUND, or CONFLICT at another version. */
  async function refusal(sql: Sql, { workspaceId, key, version, param }: OneRow): Promise<ApiError> {
    if (version === undefined) return missing()
    const [row] = await sql<{ version: number }[]>`
      select version from ${sql(table)} where workspace_id = ${workspaceId} and ${sql(id)} = ${key}`
    return row === undefined ? missing() : versionChanged(one, row.version, version, param)
  }

  /** @param columns SQL: those to read @throws ApiError NOT_FOUND */
  async function find<Row extends object>(sql: Sql, workspaceId: string, key: string, columns: Fragment): Promise<Row> {
    const [row] = await sql<Row[]>`
      select ${columns} from ${sql(table)} where ${is(sql, { workspaceId, key, version: undefined })}`
    if (row === undefined) throw missing()
    return row
  }

  /**
   * A page, newest first.
   * @param columns SQL: those to read, with `created_at` if the id is a name: names, unlike ids, are in no order of time
   * @param toItem the row as clients see it
   */
  async function page<Row extends object, Item>(
    sql: Sql,
    workspaceId: string,
    { limit = PAGE_LIMIT_DEFAULT, cursor }: PageQuery,
    columns: Fragment,
    toItem: (row: Row) => Item,
  ): Promise<PageOf<Item>> {
    if (id === 'name') return pageByName(sql, workspaceId, { limit, cursor }, columns, toItem)
    return pageOfLong<string, Row, Item>(sql, {
      keys: sql`
        select ${sql(id)} from ${sql(table)} where workspace_id = ${workspaceId}
          ${cursor === undefined ? sql`` : sql`and ${sql(id)} < ${UUIDS.decode(cursor)}`}
        order by ${sql(id)} desc limit ${limit + 1}`,
      limit,
      bytesMax: PAGE_BYTES_MAX,
      long,
      row: (key) => sql`from ${sql(table)} where ${sql(id)} = ${key}`,
      read: (keys) => sql`
        select ${columns} from ${sql(table)} where workspace_id = ${workspaceId} and ${sql(id)} = any(${keys}::uuid[])
        order by ${sql(id)} desc`,
      cursorOf: UUIDS.encode,
      toItem,
    })
  }

  async function pageByName<Row extends object, Item>(
    sql: Sql,
    workspaceId: string,
    { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
    columns: Fragment,
    toItem: (row: Row) => Item,
  ): Promise<PageOf<Item>> {
    const [createdMs = 0, before = ''] = cursor === undefined ? [] : NAMES.decode(cursor)
    const rows = await sql<Row[]>`
      select ${columns} from ${sql(table)} where workspace_id = ${workspaceId}
        ${cursor === undefined ? sql`` : sql`and (created_at, name) < (${new Date(createdMs)}, ${before})`}
      order by created_at desc, name desc limit ${limit + 1}`
    const cursorOf = (row: object) => {
      const { created_at, name } = row as { readonly created_at: Date; readonly name: string }
      return NAMES.encode([created_at.getTime(), name])
    }
    return pageOf(rows, limit, cursorOf, toItem)
  }

  /**
   * Changes a row. @param columns SQL: those to return
   * @throws ApiError NOT_FOUND; CONFLICT at another version, or when the name is taken
   */
  async function update<Row extends object>(
    sql: Sql,
    target: OneRow,
    changed: { readonly name?: string; readonly updated_at: Date },
    columns: Fragment,
  ): Promise<Row> {
    const [row] = await sql<Row[]>`
      update ${sql(table)} set version = version + 1, ${sql(changed as never)} where ${is(sql, target)}
      returning ${columns}`.catch((error: unknown) => {
      throw nameConflict(error, changed.name)
    })
    if (row === undefined) throw await refusal(sql, target)
    return row
  }

  /** @throws ApiError NOT_FOUND; CONFLICT at another version */
  async function remove(sql: Sql, target: OneRow): Promise<void> {
    const { count } = await sql`delete from ${sql(table)} where ${is(sql, target)}`
    if (count === 0) throw await refusal(sql, target)
  }

  return { is, refusal, find, page, update, remove }
}

function errorsOf(one: string) {
  const missing = () => notFound(one.slice(one.indexOf(' ') + 1))

  /** Only the database's unique index detects duplicate names: a check before the write could race. */
  function nameConflict(error: unknown, name: string | undefined): unknown {
    if (!isUniqueViolation(error)) return error
    return new ApiError('CONFLICT', `${one} named ${JSON.stringify(name)} already exists`, {
      reason: 'name_taken',
      param: 'name',
      cause: error,
    })
  }

  return { missing, nameConflict }
}
