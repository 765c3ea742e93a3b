import type { Clock } from '../../base/clock.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import type { PageOf } from '../../base/http/page.ts'
import type { PageQuery } from '../../base/http/schema.ts'
import { checkVersion } from '../../base/http/version.ts'
import type { Mint } from '../../base/ids.ts'
import { RawJson } from '../../base/raw-json.ts'
import { withIsoTimes } from '../../base/timestamp.ts'
import { isForeignKeyViolation, type Sql } from '../../stores/postgres/connect.ts'
import { workspaceResource } from '../../stores/postgres/workspace-resource.ts'
import type { EditOptions } from '../../tenants/keys/resource-routes.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { Analytics } from './analytics.ts'
import type {
  CreateSavedQuery,
  DeletedQuery,
  EditSavedQuery,
  RunSavedQuery,
  SavedQuery,
  SavedQueryRow,
} from './saved-schema.ts'
import type { RunQuery } from './schema.ts'

interface SavedQueriesDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly analytics: Analytics
}

/** Maximum of saved queries per workspace. */
export const SAVED_QUERIES_MAX = 1_000
/** Characters of all default values of a query, as JSON. */
const PARAMS_LENGTH_MAX = 100_000

const ROWS = workspaceResource({
  table: 'saved_queries',
  id: 'query_id',
  one: 'a saved query',
  many: 'saved queries',
  max: SAVED_QUERIES_MAX,
  long: ['description', 'query', 'params', 'chart'],
})

type Params = NonNullable<RunQuery['params']>

/**
 * Queries saved by name (docs/sql.md#saved-queries). They are stored as text and checked again on every run.
 */
export class SavedQueries {
  constructor(private readonly deps: SavedQueriesDeps) {}

  /**
   * @throws ApiError VALIDATION_ERROR for a query that the guard refuses; CONFLICT when the name is taken or the workspace
   *   has reached its limit; UNAVAILABLE when ClickHouse, which parses the query, is unavailable
   */
  async create(caller: Caller, body: CreateSavedQuery, mint: Mint, signal: AbortSignal): Promise<SavedQuery> {
    const { sql, clock, analytics } = this.deps
    const { workspaceId } = caller
    const { name, description = null, query, params = {}, chart = null } = body
    const now = new Date(clock.now())
    const settings = { name, description, query, params: jsonOf(params), chart: chartOf(chart) }
    const ids = { query_id: mint.uuid(), workspace_id: workspaceId }
    const row = { ...ids, ...settings, created_at: now, updated_at: now }
    await analytics.parser.check(query, signal)
    await ROWS.insert(sql, row)
    return this.get(caller, row.query_id)
  }

  /** @throws ApiError NOT_FOUND */
  async get({ workspaceId }: Caller, queryId: string): Promise<SavedQuery> {
    const { sql } = this.deps
    return withIsoTimes(await ROWS.find<SavedQueryRow>(sql, workspaceId, queryId, columns(sql)))
  }

  async list({ workspaceId }: Caller, page: PageQuery): Promise<PageOf<SavedQuery>> {
    const { sql } = this.deps
    return ROWS.page(sql, workspaceId, page, columns(sql), withIsoTimes<SavedQueryRow>)
  }

  /**
   * Changes the given members.
   * @throws ApiError NOT_FOUND, VALIDATION_ERROR, CONFLICT, UNAVAILABLE; as {@link create}
   */
  async edit(
    caller: Caller,
    queryId: string,
    edit: EditSavedQuery,
    { version, signal }: EditOptions,
  ): Promise<SavedQuery> {
    const { sql, clock, analytics } = this.deps
    const { workspaceId } = caller
    const { params, chart, ...rest } = edit
    const changes = {
      ...rest,
      ...(params === undefined ? {} : { params: jsonOf(params) }),
      ...(chart === undefined ? {} : { chart: chartOf(chart) }),
    }
    if (Object.keys(changes).length === 0) {
      const unchanged = await this.get(caller, queryId)
      checkVersion('a saved query', unchanged, version)
      return unchanged
    }
    if (edit.query !== undefined) await analytics.parser.check(edit.query, signal)
    const changed = { ...changes, updated_at: new Date(clock.now()) }
    const one = { workspaceId, key: queryId, version }
    return withIsoTimes(await ROWS.update<SavedQueryRow>(sql, one, changed, columns(sql)))
  }

  /** @throws ApiError NOT_FOUND, CONFLICT while an alert uses it, or at another version */
  async delete({ workspaceId }: Caller, queryId: string, version: number | undefined): Promise<DeletedQuery> {
    await ROWS.remove(this.deps.sql, { workspaceId, key: queryId, version }).catch((error: unknown) => {
      if (!isForeignKeyViolation(error)) throw error
      throw new ApiError('CONFLICT', 'an alert uses this saved query: delete or edit it first', {
        reason: 'in_use',
        cause: error,
      })
    })
    return { query_id: queryId.toLowerCase(), deleted: true }
  }

  /**
   * The saved query with the values of this run.
   * @throws ApiError NOT_FOUND
   */
  async resolve(caller: Caller, queryId: string, request: RunSavedQuery): Promise<RunQuery> {
    const { query, params } = await this.get(caller, queryId)
    const defaults = params.parse() as Params
    return { ...request, query, params: { ...defaults, ...request.params } }
  }
}

function columns(sql: Sql) {
  return sql`query_id, name, description, query, params, chart, version, created_at, updated_at`
}

function jsonOf(params: Params): RawJson {
  const json = RawJson.of(params)
  if (json.text.length <= PARAMS_LENGTH_MAX) return json
  throw invalid('params', `expected values of at most ${PARAMS_LENGTH_MAX} characters of JSON together`)
}

function chartOf(chart: object | null): RawJson | null {
  return chart === null ? null : RawJson.of(chart)
}
