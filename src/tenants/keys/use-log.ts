import type { Log } from '../../base/log.ts'
import { Loops } from '../../base/loops.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Caller } from './schema.ts'

interface Use {
  readonly workspaceId: string
  readonly table: 'api_keys' | 'sign_ins'
  /** Unix milliseconds. */
  at: number
}

const FLUSH_INTERVAL_MS = 5_000
/** Precision of `last_used_at`. */
const PRECISION_MS = 1_000
/** Most keys tracked between two writes. The use of further keys is not recorded. */
const USES_MAX = 100_000

/**
 * Maintains `last_used_at` of keys and sign-ins: recorded in memory by each request, written in batches, at most once per
 * key or sign-in and interval.
 */
export class UseLog {
  private uses = new Map<string, Use>()
  private end: () => Promise<void> = () => Promise.resolve()

  constructor(private readonly deps: { readonly sql: Sql; readonly log: Log; readonly loops?: Loops | undefined }) {}

  record(caller: Caller, now: number): void {
    const use = this.uses.get(caller.keyId)
    if (use !== undefined) {
      if (now - use.at >= PRECISION_MS) use.at = now
    } else if (this.uses.size < USES_MAX) {
      const table = caller.person === undefined ? 'api_keys' : 'sign_ins'
      this.uses.set(caller.keyId, { workspaceId: caller.workspaceId, table, at: now })
    }
  }

  start(): void {
    const { log, loops = new Loops(log) } = this.deps
    this.end = loops.repeat('last use of keys', FLUSH_INTERVAL_MS, () => this.write())
  }

  /** Stops the loop and writes pending values. */
  async stop(): Promise<void> {
    await this.end()
    await this.write().catch((error) => this.deps.log.warn('last_used_at of keys could not be written', { error }))
  }

  private async write(): Promise<void> {
    if (this.uses.size === 0) return
    const { api_keys: keys = [], sign_ins: signIns = [] } = Object.groupBy(this.uses, ([, { table }]) => table)
    this.uses = new Map()
    if (keys.length > 0) await this.writeTo('api_keys', 'key_id', keys)
    if (signIns.length > 0) await this.writeTo('sign_ins', 'sign_in_id', signIns)
  }

  /** Locks the rows in a fixed order first, so that concurrent processes cannot deadlock. */
  private async writeTo(
    tableName: Use['table'],
    idName: string,
    uses: readonly (readonly [string, Use])[],
  ): Promise<void> {
    const { sql } = this.deps
    const [table, id] = [sql(tableName), sql(idName)]
    const used = uses.map(([id, { workspaceId, at }]) => ({
      id,
      workspace_id: workspaceId,
      at: new Date(at).toISOString(),
    }))
    await sql`
      with used as (
        select * from json_to_recordset(${JSON.stringify(used)}::text::json)
          as (id uuid, workspace_id uuid, at timestamptz)
      ), locked as (
        select used.id, used.workspace_id, used.at
        from ${table} join used on ${table}.${id} = used.id and ${table}.workspace_id = used.workspace_id
        order by used.id for no key update of ${table}
      )
      update ${table} set last_used_at = greatest(${table}.last_used_at, locked.at) from locked
      where ${table}.workspace_id = locked.workspace_id and ${table}.${id} = locked.id`
  }
}
