import type { Log } from '../base/log.ts'
import { Loops } from '../base/loops.ts'
import type { Sql } from '../postgres/connect.ts'
import type { Caller } from './schema.ts'

interface Use {
  readonly workspaceId: string
  /** Unix milliseconds. */
  at: number
}

const FLUSH_INTERVAL_MS = 5_000
/** Precision of `last_used_at`. */
const PRECISION_MS = 1_000
/** Most keys tracked between two writes. The use of further keys is not recorded. */
const USES_MAX = 100_000

/**
 * Maintains `last_used_at` of keys: recorded in memory by each request, written in batches, at most once per key and
 * interval.
 */
export class UseLog {
  private uses = new Map<string, Use>()
  private end: () => Promise<void> = () => Promise.resolve()

  constructor(private readonly deps: { readonly sql: Sql; readonly log: Log; readonly loops?: Loops | undefined }) {}

  record(caller: Caller, now: number): void {
    const use = this.uses.get(caller.keyId)
    if (use !== undefined) {
      if (now - use.at >= PRECISION_MS) use.at = now
    } else if (this.uses.size < USES_MAX) this.uses.set(caller.keyId, { workspaceId: caller.workspaceId, at: now })
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
    const { sql } = this.deps
    const used = [...this.uses].map(([key_id, { workspaceId, at }]) => ({
      key_id,
      workspace_id: workspaceId,
      at: new Date(at).toISOString(),
    }))
    this.uses = new Map()
    // Locks the rows in a fixed order first, so that concurrent processes cannot deadlock.
    await sql`
      with used as (
        select * from json_to_recordset(${JSON.stringify(used)}::text::json)
          as (key_id uuid, workspace_id uuid, at timestamptz)
      ), locked as (
        select key_id, workspace_id, used.at from api_keys join used using (key_id, workspace_id)
        order by key_id for no key update of api_keys
      )
      update api_keys set last_used_at = greatest(last_used_at, locked.at) from locked
      where api_keys.workspace_id = locked.workspace_id and api_keys.key_id = locked.key_id`
  }
}
