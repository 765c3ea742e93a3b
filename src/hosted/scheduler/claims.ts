import { RUN_ROW_COLUMNS } from '../../activity/runs/rows.ts'
import { NEXT as NEXT_STATUSES } from '../../activity/runs/state.ts'
import type { RunIdentity } from '../../base/ids.ts'
import { inTransaction, type Sql } from '../../stores/postgres/connect.ts'
import { isGone, type Sign } from '../../stores/postgres/liveness.ts'
import { nextPhase, statesBefore } from '../run/state.ts'
import { systemEvent } from '../store/events.ts'
import { insertOutbox, phaseIs } from '../store/fragments.ts'

/**
 * How runs get to the process that executes them. A claim is a row that names its owner; only one process can hold it.
 */

export interface Claimed extends RunIdentity {
  readonly agentId: string
  /** It has not been executed before. */
  readonly isFirst: boolean
  /** It uses the slot of its root run. */
  readonly isChild: boolean
}

const CHILDREN_MAX = 1_000

/** Active workspaces with queued runs. Skips from one workspace to the next in the index. */
export async function workspacesWithQueuedRuns(sql: Sql): Promise<string[]> {
  const rows = await sql<{ workspace_id: string }[]>`
    with recursive line (workspace_id) as (
      (select workspace_id from hosted_runs where ${phaseIs(sql, 'queued')} order by workspace_id limit 1)
      union all
      select (
        select h.workspace_id from hosted_runs h
        where ${phaseIs(sql, 'queued')} and h.workspace_id > line.workspace_id order by h.workspace_id limit 1
      ) from line where line.workspace_id is not null
    )
    select line.workspace_id from line join workspaces w on w.workspace_id = line.workspace_id
    where w.status = 'active'`
  return rows.map((row) => row.workspace_id)
}

/**
 * Claims queued runs: the oldest of each workspace, and every child of an active workspace.
 * @param slots how many runs of each workspace
 */
export async function claimQueued(
  sql: Sql,
  owner: string,
  slots: ReadonlyMap<string, number>,
  at: number,
): Promise<Claimed[]> {
  const workspaces = [...slots.keys()]
  return inTransaction(sql, async (tx) => {
    const queued = await tx<Claimed[]>`
      select h.run_id as "runId", h.workspace_id as "workspaceId", h.agent_id as "agentId",
        r.started_at is null as "isFirst", h.parent_call_id is not null as "isChild"
      from hosted_runs h join runs r on r.workspace_id = h.workspace_id and r.run_id = h.run_id
      where (h.workspace_id, h.run_id) in (
        select p.workspace_id, q.run_id
        from unnest(${workspaces}::uuid[], ${[...slots.values()]}::int[]) as p (workspace_id, slots),
          lateral (
            select run_id from hosted_runs
            where ${phaseIs(tx, 'queued')} and workspace_id = p.workspace_id and parent_call_id is null
            order by queued_at, run_id limit p.slots
          ) q
        union all
        (select c.workspace_id, c.run_id from hosted_runs c join workspaces w on w.workspace_id = c.workspace_id
         where ${phaseIs(tx, 'queued')} and c.parent_call_id is not null and w.status = 'active'
         order by c.queued_at limit ${CHILDREN_MAX})
      )
      for update of h skip locked`
    if (queued.length === 0) return []
    await tx`
      with ours as (
        update hosted_runs h set phase = ${nextPhase('queued', 'executing')}, owner = ${owner}
        from unnest(
          ${queued.map((run) => run.workspaceId)}::uuid[], ${queued.map((run) => run.runId)}::uuid[]
        ) as i (workspace_id, run_id)
        where h.workspace_id = i.workspace_id and h.run_id = i.run_id
          and h.${phaseIs(tx, 'queued')}
        returning h.workspace_id, h.run_id
      ), changed as (
        update runs r set status = 'running', started_at = coalesce(r.started_at, ${new Date(at)}), pending = null
        from ours
        where r.workspace_id = ours.workspace_id and r.run_id = ours.run_id
          and r.status in ${tx(statesBefore(NEXT_STATUSES, 'running'))}
        returning ${tx.unsafe(RUN_ROW_COLUMNS)}
      )
      ${insertOutbox(tx, [], 'first', 'changed')}`
    for (const run of queued)
      if (run.isFirst) await tx`${insertOutbox(tx, [systemEvent(run, at, 'run.started', {})], 'none', null)}`
    return [...queued]
  })
}

/**
 * Claims runs whose process is gone; those of suspended workspaces wait until the workspace is active again.
 * @param gone processes in `instances` that are
 */
export async function claimOrphans(sql: Sql, owner: string, gone: readonly Sign[], limit: number): Promise<Claimed[]> {
  return sql<Claimed[]>`
    update hosted_runs h set owner = ${owner}
    where (h.workspace_id, h.run_id) in (
      select o.workspace_id, o.run_id from hosted_runs o join workspaces w on w.workspace_id = o.workspace_id
      where ${phaseIs(sql, 'executing')} and o.owner <> ${owner} and w.status = 'active'
        and not exists (select from instances i where i.instance_id = o.owner and not ${isGone(sql, 'i', gone)})
      limit ${limit} for update of o skip locked
    )
    returning h.run_id as "runId", h.workspace_id as "workspaceId", h.agent_id as "agentId", false as "isFirst",
      h.parent_call_id is not null as "isChild"`
}

/** Queues the runs of this process again, for another process or for its own next start. */
export async function releaseAll(sql: Sql, owner: string): Promise<void> {
  await sql`
    update hosted_runs set phase = ${nextPhase('executing', 'queued')}, owner = null
    where owner = ${owner} and ${phaseIs(sql, 'executing')}`
}

/** The runs that this process owns; those of suspended workspaces are left alone. */
export async function ownedRuns(sql: Sql, owner: string): Promise<Claimed[]> {
  return sql<Claimed[]>`
    select h.run_id as "runId", h.workspace_id as "workspaceId", h.agent_id as "agentId", false as "isFirst",
      h.parent_call_id is not null as "isChild"
    from hosted_runs h join workspaces w on w.workspace_id = h.workspace_id
    where h.owner = ${owner} and ${phaseIs(sql, 'executing')} and w.status = 'active'`
}
