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

/** Views of the list of runs, which the people of a workspace share (docs/specification.md#views). */
export class RunViews {
  constructor(private readonly deps: { readonly sql: Sql; readonly clock: Clock }) {}

  /** Creates or replaces a view. @throws ApiError VALIDATION_ERROR; CONFLICT when the workspace has reached its limit */
  async put({ workspaceId }: Caller, name: string, { query }: PutRunView): Promise<RunView> {
    const { sql, clock } = this.deps
    checkName('path.name', name)
    const now = new Date(clock.now())
    const row = { workspace_id: workspaceId, name, query, created_at: now, updated_at: now }
    return inTransaction(sql, async (tx) => {
      await ROWS.reserve(tx, workspaceId, name)
      const [kept] = await tx<[RunViewRow]>`
        insert into run_views ${tx(row)}
        on conflict (workspace_id, name) do update set query = excluded.query, updated_at = excluded.updated_at
        returning name, query, created_at, updated_at`
      return withIsoTimes(kept)
    })
  }

  async list({ workspaceId }: Caller, { limit = PAGE_LIMIT_DEFAULT, cursor }: PageQuery): Promise<PageOf<RunView>> {
    const { sql } = this.deps
    const after = cursor === undefined ? undefined : CURSOR.decode(cursor)
    const rows = await sql<RunViewRow[]>`
      select name, query, created_at, updated_at from run_views where workspace_id = ${workspaceId}
        ${after === undefined ? sql`` : sql`and (created_at, name) < (${new Date(after[0])}, ${after[1]})`}
      order by created_at desc, name desc limit ${limit + 1}`
    return pageOf(rows, limit, (row) => CURSOR.encode([row.created_at.getTime(), row.name]), withIsoTimes)
  }

  /** @throws ApiError VALIDATION_ERROR, NOT_FOUND; CONFLICT when the name is taken */
  async rename({ workspaceId }: Caller, name: string, { name: to }: RenameRunView): Promise<RunView> {
    const { sql, clock } = this.deps
    checkName('name', to)
    const [row] = await sql<RunViewRow[]>`
      update run_views set name = ${to}, updated_at = ${new Date(clock.now())}
      where workspace_id = ${workspaceId} and name = ${name}
      returning name, query, created_at, updated_at`.catch((error: unknown) => {
      throw ROWS.nameConflict(error, to)
    })
    if (row === undefined) throw ROWS.missing()
    return withIsoTimes(row)
  }

  /** @throws ApiError NOT_FOUND */
  async delete({ workspaceId }: Caller, name: string): Promise<DeletedRunView> {
    const { count } = await this.deps.sql`
      delete from run_views where workspace_id = ${workspaceId} and name = ${name}`
    if (count === 0) throw ROWS.missing()
    return { name, deleted: true }
  }
}

/** Clients take `.` and `..` for parts of the path, in whichever way they are encoded. */
function checkName(path: string, name: string): void {
  if (name === '.' || name === '..') throw invalid(path, 'expected a name other than "." and ".."')
}
