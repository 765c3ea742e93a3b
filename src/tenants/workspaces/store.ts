import type { Clock } from '../../base/clock.ts'
import { ApiError, notFound } from '../../base/errors.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf, pageOf } from '../../base/http/page.ts'
import { type PageQuery, Uuid } from '../../base/http/schema.ts'
import type { Mint } from '../../base/ids.ts'
import { type RowOf, withIsoTimes } from '../../base/timestamp.ts'
import { inTransaction, type Sql, type TransactionSql } from '../../stores/postgres/connect.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import type { Caller } from '../keys/schema.ts'
import { insertKey } from '../keys/store.ts'
import { mintToken, type Token } from '../keys/token.ts'
import type {
  CreateWorkspace,
  EditWorkspace,
  NewWorkspace,
  OwnWorkspace,
  WorkspaceRecord,
  WorkspaceRow,
} from './schema.ts'

const FIRST_KEY_NAME = 'first key'
const CURSOR = cursorCodec(Uuid)

/** Workspaces, for the operator (docs/workspaces.md). */
export class WorkspaceStore {
  constructor(private readonly deps: { readonly sql: Sql; readonly ring: KeyRing; readonly clock: Clock }) {}

  /** Creates a workspace and its first workspace key. */
  async create({ name }: CreateWorkspace, mint: Mint): Promise<NewWorkspace> {
    const { sql, ring, clock } = this.deps
    const token = mintToken('workspace', mint.secret())
    const made = await inTransaction(sql, (tx) => insertWorkspace(tx, name, token, mint, clock))
    ring.issued(token.hash)
    return made as NewWorkspace
  }

  async list({ limit = PAGE_LIMIT_DEFAULT, cursor }: PageQuery): Promise<PageOf<WorkspaceRecord>> {
    const { sql } = this.deps
    const rows = await sql<WorkspaceRow[]>`
      select ${columns(sql)} from workspaces
        ${cursor === undefined ? sql`` : sql`where workspace_id < ${CURSOR.decode(cursor)}`}
      order by workspace_id desc limit ${limit + 1}`
    return pageOf(rows, limit, (row) => CURSOR.encode(row.workspace_id), withIsoTimes)
  }

  /**
   * The caller's workspace.
   * @param serviceDays days that the service keeps events of any workspace; undefined: without end
   * @throws ApiError NOT_FOUND
   */
  async own({ workspaceId }: Caller, serviceDays: number | undefined): Promise<OwnWorkspace> {
    const { sql } = this.deps
    const [row] = await sql<RowOf<OwnWorkspace>[]>`
      select workspace_id, name, least(retention_days, ${serviceDays ?? null}::int) as events_kept_days, created_at
      from workspaces where workspace_id = ${workspaceId}`
    if (row === undefined) throw notFound('workspace')
    return withIsoTimes(row)
  }

  /**
   * Renames, suspends or reactivates a workspace, or sets how long its events are kept. Once a suspension has resolved, no
   * process accepts a key of the workspace.
   * @throws ApiError NOT_FOUND; CONFLICT while it is being erased; UNAVAILABLE if another process has not confirmed in time
   */
  async edit(workspaceId: string, edit: EditWorkspace): Promise<WorkspaceRecord> {
    const { sql, ring } = this.deps
    const { status } = edit
    if (status === undefined) return this.update(sql, workspaceId, edit)
    return ring.change({ scope: 'workspace', id: workspaceId, invalidates: status === 'suspended' }, (tx) =>
      this.update(tx, workspaceId, edit),
    )
  }

  private async update(sql: Sql | TransactionSql, workspaceId: string, edit: EditWorkspace): Promise<WorkspaceRecord> {
    const { name = null, status = null, retention_days: days } = edit
    const now = new Date(this.deps.clock.now())
    const [row] = await sql<WorkspaceRow[]>`
      update workspaces set name = coalesce(${name}, name), status = coalesce(${status}, status),
        ${days === undefined ? sql`` : sql`retention_days = ${days},`}
        updated_at = case when name <> ${name} or status <> ${status}
          or ${days === undefined ? sql`false` : sql`retention_days is distinct from ${days}`}
          then ${now} else updated_at end
      where workspace_id = ${workspaceId} and not is_erasing returning ${columns(sql)}`
    if (row === undefined) throw await this.refusal(sql, workspaceId)
    return withIsoTimes(row)
  }

  private async refusal(sql: Sql | TransactionSql, workspaceId: string): Promise<ApiError> {
    const [row] = await sql`select from workspaces where workspace_id = ${workspaceId}`
    return row === undefined
      ? notFound('workspace')
      : new ApiError('CONFLICT', 'the workspace is being erased', { reason: 'workspace_erasing' })
  }
}

/** Stores a workspace with its first key. May be retried with the same ids, like {@link insertKey}. */
export async function insertWorkspace(
  sql: TransactionSql,
  name: string,
  token: Token,
  mint: Mint,
  clock: Clock,
): Promise<NewWorkspace> {
  const now = new Date(clock.now())
  const workspaceId = mint.uuid()
  const [row] = await sql<WorkspaceRow[]>`
    insert into workspaces (workspace_id, name, created_at, updated_at, partition)
    values (${workspaceId}, ${name}, ${now}, ${now}, coalesce((
      select p.partition from journal_partitions p left join workspaces w on w.partition = p.partition
      group by p.partition
      order by count(w.workspace_id), sum(count(w.workspace_id)) over (partition by p.owner), p.partition limit 1
    ), 0))
    on conflict (workspace_id) do update set name = excluded.name
    returning ${columns(sql)}`
  const key = await insertKey(sql, token, {
    key_id: mint.uuid(),
    workspace_id: workspaceId,
    agent_id: null,
    name: FIRST_KEY_NAME,
    created_at: now,
    expires_at: null,
  })
  return { ...withIsoTimes(row!), key_id: key.key_id, key: token.text }
}

function columns(sql: Sql | TransactionSql) {
  return sql`workspace_id, name, status, retention_days, created_at, updated_at`
}
