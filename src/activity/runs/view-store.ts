import type { Clock } from '../../base/clock.ts'
import { invalid } from '../../base/errors.ts'
import type { PageOf } from '../../base/http/page.ts'
import type { PageQuery } from '../../base/http/schema.ts'
import { withIsoTimes } from '../../base/timestamp.ts'
import { inTransaction, type Sql } from '../../stores/postgres/connect.ts'
import { workspaceResource } from '../../stores/postgres/workspace-resource.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { DeletedRunView, PutRunView, RenameRunView, RunView, RunViewRow } from './view-schema.ts'

/** Maximum of views per workspace. */
export const RUN_VIEWS_MAX = 100

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

  list({ workspaceId }: Caller, page: PageQuery): Promise<PageOf<RunView>> {
    const { sql } = this.deps
    return ROWS.page(sql, workspaceId, page, columns(sql), withIsoTimes<RunViewRow>)
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
