import type { Clock } from '../../base/clock.ts'
import { invalid } from '../../base/errors.ts'
import type { PageOf } from '../../base/http/page.ts'
import type { PageQuery } from '../../base/http/schema.ts'
import type { Mint } from '../../base/ids.ts'
import { RawJson } from '../../base/raw-json.ts'
import { withIsoTimes } from '../../base/timestamp.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import { workspaceResource } from '../../stores/postgres/workspace-resource.ts'
import type { EditOptions } from '../../tenants/keys/resource-routes.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { Board, BoardRow, CreateBoard, DeletedBoard, EditBoard } from './board-schema.ts'

interface BoardsDeps {
  readonly sql: Sql
  readonly clock: Clock
}

/** Maximum of boards per workspace. */
export const BOARDS_MAX = 50

const ROWS = workspaceResource({
  table: 'boards',
  id: 'board_id',
  one: 'a board',
  many: 'boards',
  max: BOARDS_MAX,
})

/** Boards: pages of saved queries (docs/sql.md#boards). A board has only the ids of its queries; clients read them. */
export class Boards {
  constructor(private readonly deps: BoardsDeps) {}

  /** @throws ApiError CONFLICT when the name is taken or the workspace has reached its limit */
  async create(caller: Caller, { name, charts = [] }: CreateBoard, mint: Mint): Promise<Board> {
    const { sql, clock } = this.deps
    const { workspaceId } = caller
    const now = new Date(clock.now())
    const ids = { board_id: mint.uuid(), workspace_id: workspaceId }
    const row = { ...ids, name, charts: jsonOf(charts), version: 1, created_at: now, updated_at: now }
    await ROWS.insert(sql, row)
    return this.get(caller, row.board_id)
  }

  /** @throws ApiError NOT_FOUND */
  async get({ workspaceId }: Caller, boardId: string): Promise<Board> {
    const { sql } = this.deps
    return withIsoTimes(await ROWS.find<BoardRow>(sql, workspaceId, boardId, columns(sql)))
  }

  async list({ workspaceId }: Caller, page: PageQuery): Promise<PageOf<Board>> {
    const { sql } = this.deps
    return ROWS.page(sql, workspaceId, page, columns(sql), withIsoTimes<BoardRow>)
  }

  /**
   * Changes the given members, unless the board has changed since the caller read `version`.
   * @throws ApiError VALIDATION_ERROR without a version; NOT_FOUND; CONFLICT for another version or a name that is taken
   */
  async edit({ workspaceId }: Caller, boardId: string, edit: EditBoard, { version: tag }: EditOptions): Promise<Board> {
    const { sql, clock } = this.deps
    const { name, charts, version = tag } = edit
    if (version === undefined) throw invalid('version', 'required, unless the header If-Match names it')
    if (version !== (tag ?? version))
      throw invalid('version', `expected ${tag}, as in the header If-Match; got ${version}`)
    const changed = {
      ...(name !== undefined && { name }),
      ...(charts !== undefined && { charts: jsonOf(charts) }),
      updated_at: new Date(clock.now()),
    }
    const one = { workspaceId, key: boardId, version, ...(tag === undefined && { param: 'version' }) }
    return withIsoTimes(await ROWS.update<BoardRow>(sql, one, changed, columns(sql)))
  }

  /** @throws ApiError NOT_FOUND; CONFLICT at another version */
  async delete({ workspaceId }: Caller, boardId: string, version: number | undefined): Promise<DeletedBoard> {
    await ROWS.remove(this.deps.sql, { workspaceId, key: boardId, version })
    return { board_id: boardId.toLowerCase(), deleted: true }
  }
}

function columns(sql: Sql) {
  return sql`board_id, name, charts, version, created_at, updated_at`
}

function jsonOf(charts: NonNullable<CreateBoard['charts']>): RawJson {
  return RawJson.of(charts.map(({ query_id }) => ({ query_id: query_id.toLowerCase() })))
}
