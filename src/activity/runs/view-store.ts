import { t } from 'elysia'
import type { Clock } from '../../base/clock.ts'
import { invalid } from '../../base/errors.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf, pageOf } from '../../base/http/page.ts'
import { CursorMs, type PageQuery, Text } from '../../base/http/schema.ts'
import { withIsoTimes } from '../../base/timestamp.ts'
import { inTransaction, type Sql } from '../../stores/postgres/connect.ts'
import { workspaceResource } from '../../stores/postgres/workspace-resource.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import {
  type DeletedRunView,
  NAME_LENGTH_MAX,
  type PutRunView,
  type RenameRunView,
  type RunView,
  type RunViewRow,
} from './view-schema.ts'

/** Maximum of views per workspace. */
export const RUN_VIEWS_MAX = 100

const CURSOR = cursorCodec(t.Tuple([CursorMs, Text({ maxLength: NAME_LENGTH_MAX })]))

const ROWS = workspaceResource({
  table: 'run_views',
  id: 'name',
  one: 'a view',
  many: 'views',
  max: RUN_VIEWS_MAX,
})

/** Views of the list of runs, which the people of a workspace share (docs/runs.md#views). */
export class RunViews {
  constructor(private readonly deps: { readonly sql: Sql; readonly clock: Clock }) {}

  /**
   * Creates or replaces a view; at a given version only the latter.
   * @throws ApiError VALIDATION_ERROR; CONFLICT at another version, or when the workspace has reached its limit
   */
  async put(
    { workspaceId }: Caller,
    name: string,
    { query }: PutRunView,
    version: number | undefined,
  ): Promise<RunView> {
    const { sql, clock } = this.deps
    checkName('path.name', name)
    const now = new Date(clock.now())
    if (version !== undefined) {
      const changed = { query, updated_at: now }
      return withIsoTimes(
        await ROWS.update<RunViewRow>(sql, { workspaceId, key: name, version }, changed, columns(sql)),
      )
    }
    const row = { workspace_id: workspaceId, name, query, created_at: now, updated_at: now }
    return inTransaction(sql, async (tx) => {
      await ROWS.reserve(tx, workspaceId, name)
      const [kept] = await tx<[RunViewRow]>`
        insert into run_views ${tx(row)}
        on conflict (workspace_id, name) do update
          set query = excluded.query, version = run_views.version + 1, updated_at = excluded.updated_at
        returning ${columns(sql)}`
      return withIsoTimes(kept)
    })
  }

  async list({ workspaceId }: Caller, { limit = PAGE_LIMIT_DEFAULT, cursor }: PageQuery): Promise<PageOf<RunView>> {
    const { sql } = this.deps
    const after = cursor === undefined ? undefined : CURSOR.decode(cursor)
    const rows = await sql<RunViewRow[]>`
      select ${columns(sql)} from run_views where workspace_id = ${workspaceId}
        ${after === undefined ? sql`` : sql`and (created_at, name) < (${new Date(after[0])}, ${after[1]})`}
      order by created_at desc, name desc limit ${limit + 1}`
    return pageOf(rows, limit, (row) => CURSOR.encode([row.created_at.getTime(), row.name]), withIsoTimes)
  }

  /** @throws ApiError VALIDATION_ERROR, NOT_FOUND; CONFLICT at another version, or when the name is taken */
  async rename(
    { workspaceId }: Caller,
    name: string,
    { name: to }: RenameRunView,
    version: number | undefined,
  ): Promise<RunView> {
    const { sql, clock } = this.deps
    checkName('name', to)
    const changed = { name: to, updated_at: new Date(clock.now()) }
    return withIsoTimes(await ROWS.update<RunViewRow>(sql, { workspaceId, key: name, version }, changed, columns(sql)))
  }

  /** @throws ApiError NOT_FOUND; CONFLICT at another version */
  async delete({ workspaceId }: Caller, name: string, version: number | undefined): Promise<DeletedRunView> {
    await ROWS.remove(this.deps.sql, { workspaceId, key: name, version })
    return { name, deleted: true }
  }
}

function columns(sql: Sql) {
  return sql`name, query, version, created_at, updated_at`
}

/** Clients take `.` and `..` for parts of the path, in whichever way they are encoded. */
function checkName(path: string, name: string): void {
  if (name === '.' || name === '..') throw invalid(path, 'expected a name other than "." and ".."')
}
