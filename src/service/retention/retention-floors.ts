import type { History } from '../../feeds/live/history.ts'
import { type Sql, unavailableOf } from '../../stores/postgres/connect.ts'

/** Activity of an epoch up to `seq` may have been deleted. */
export interface RetentionFloor {
  readonly epoch: string
  /** Null: all workspaces. */
  readonly workspaceId: string | null
  readonly seq: number
}

/**
 * The positions up to which retention has deleted activity (table `retention_floors`), so that feeds can report a gap
 * (docs/feeds.md#cursors). A floor is stored before the activity up to it is deleted.
 */
export class RetentionFloors {
  private ofAll = 0
  private readonly ofWorkspaces = new Map<string, number>()

  /** @param epoch of this process's journal; feeds resume only in this epoch */
  constructor(
    private readonly sql: Sql,
    private readonly epoch: string,
  ) {}

  /** Reads the stored floors. */
  async load(): Promise<void> {
    const rows = await this.sql<RetentionFloor[]>`
      select epoch, workspace_id as "workspaceId", seq from retention_floors where epoch = ${this.epoch}`
    for (const row of rows) this.note(row)
  }

  /** The workspace's floor as far as this process knows; 0 when nothing was deleted. */
  known(workspaceId: string): number {
    return Math.max(this.ofAll, this.ofWorkspaces.get(workspaceId) ?? 0)
  }

  /** The workspace's current floor, which covers every deletion that has begun in any process. */
  async read(workspaceId: string): Promise<number> {
    const rows = await this.sql<RetentionFloor[]>`
      select epoch, workspace_id as "workspaceId", seq from retention_floors
      where epoch = ${this.epoch} and (workspace_id is null or workspace_id = ${workspaceId})`
    for (const row of rows) this.note(row)
    return this.known(workspaceId)
  }

  /** Stores floors of any epoch. Activity up to them may be deleted once this has resolved. */
  async raise(retentionFloors: readonly RetentionFloor[]): Promise<void> {
    if (retentionFloors.length === 0) return
    await this.sql`
      insert into retention_floors as h (epoch, workspace_id, seq)
      select epoch, workspace_id, max(seq) from unnest(
        ${retentionFloors.map(({ epoch }) => epoch)}::text[], ${retentionFloors.map(({ workspaceId }) => workspaceId)}::uuid[],
        ${retentionFloors.map(({ seq }) => seq)}::bigint[]
      ) as i (epoch, workspace_id, seq)
      group by epoch, workspace_id
      on conflict (epoch, workspace_id) do update set seq = greatest(h.seq, excluded.seq)`
    for (const floor of retentionFloors) if (floor.epoch === this.epoch) this.note(floor)
  }

  private note({ workspaceId, seq }: RetentionFloor): void {
    if (workspaceId === null) this.ofAll = Math.max(this.ofAll, seq)
    else this.ofWorkspaces.set(workspaceId, Math.max(this.ofWorkspaces.get(workspaceId) ?? 0, seq))
  }
}

/**
 * Wraps a history so that it reports where retention has deleted activity. The floor is read after the page: if a
 * row is missing in the page, it was deleted before, and its floor was stored even earlier.
 */
export function withinRetention(history: History, retentionFloors: Pick<RetentionFloors, 'read'>): History {
  return {
    async read(query) {
      const page = await history.read(query)
      const floor = await retentionFloors.read(query.workspaceId).catch((error: unknown) => {
        throw unavailableOf(error) ?? error
      })
      if (floor <= query.afterSeq) return page
      return {
        items: page.items.filter(({ seq }) => seq > floor),
        throughSeq: Math.max(page.throughSeq, floor),
        resumedSeq: floor,
      }
    },
  }
}
