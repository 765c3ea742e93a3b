import { RUN_ROW_COLUMNS, waitEnds } from '../../activity/runs/rows.ts'
import { NEXT as NEXT_STATUSES } from '../../activity/runs/state.ts'
import { assert } from '../../base/assert.ts'
import type { RunIdentity } from '../../base/ids.ts'
import { encodeJson, RawJson } from '../../base/raw-json.ts'
import type { SystemEventRow } from '../../stores/journal/rows.ts'
import { inTransaction, type Sql, type TransactionSql } from '../../stores/postgres/connect.ts'
import { type HostedRun, type PendingPause, parsePending, pausedStatus, pendingOf } from '../run/run.ts'
import {
  type CallStatus,
  type HostedPhase,
  nextPhase,
  OPEN_CALL_STATUSES,
  STATUSES_OF_PHASE,
  statesBefore,
} from '../run/state.ts'
import { executedBy, insertOutbox, phaseIs } from './fragments.ts'
import { loadPauses } from './load.ts'

/**
 * Pausing and waking runs. A run that waits for a person exists only as rows; so does one whose child waits. The rows
 * of an ancestor chain are locked from the top down, so that a run that is about to pause sees whether its child is
 * still paused.
 */

interface PauseDetails {
  readonly usedMs: number
  readonly at: number
  /** Stored once the run is paused. */
  readonly events: (pending: PendingPause) => readonly SystemEventRow[]
}

/**
 * Pauses a run whose open calls all wait for a person, or for a child run that does.
 *
 * @returns what it waits for; `decided` when a decision has arrived in the meantime, so that the run can continue; null
 *   when this process no longer owns the run
 */
export async function pauseRun(
  sql: Sql,
  run: HostedRun,
  owner: string,
  details: PauseDetails,
): Promise<PendingPause | 'decided' | null> {
  return inTransaction(sql, async (tx) => {
    const [owned] = await tx`select from hosted_runs where ${executedBy(tx, run, owner)} for update`
    if (owned === undefined) return null
    const pending = await pendingFor(tx, run)
    if (pending === null) return 'decided'
    const events = details.events(pending)
    await tx`
      with paused as (
        update hosted_runs set phase = ${nextPhase('executing', 'paused')}, owner = null, used_ms = ${details.usedMs}
        where ${executedBy(tx, run, owner)}
        returning run_id
      ), changed as (
        update runs r set status = ${pausedStatus(pending)}, pending = ${json(pending)}::json,
          waiting_since = ${new Date(details.at)}
        where r.workspace_id = ${run.workspaceId} and r.run_id = ${run.runId} 
          and r.status in ${tx(statesBefore(NEXT_STATUSES, pausedStatus(pending)))} and exists (select from paused)
        returning ${tx.unsafe(RUN_ROW_COLUMNS)}
      )
      ${insertOutbox(tx, events, 'last', 'changed')}`
    return pending
  })
}

/** What the run or one of its children waits for; null if any of its calls can continue. */
async function pendingFor(tx: TransactionSql, run: RunIdentity): Promise<PendingPause | null> {
  const { workspaceId, runId } = run
  const calls = await tx<{ status: CallStatus; child_run_id: string | null }[]>`
    select status, child_run_id from tool_calls
    where workspace_id = ${workspaceId} and run_id = ${runId} and status in ${tx(OPEN_CALL_STATUSES)}
    order by position`
  const children = calls.flatMap(({ child_run_id: child, status }) =>
    child !== null && status === 'started' ? child : [],
  )
  if (calls.some(({ status, child_run_id: child }) => status !== 'held' && (status !== 'started' || child === null)))
    return null
  const paused = await tx<{ run_id: string; pending: RawJson }[]>`
    select h.run_id,
      (select r.pending from runs r where r.run_id = h.run_id and r.workspace_id = h.workspace_id) as pending
    from hosted_runs h
    where h.workspace_id = ${workspaceId} and h.run_id = any(${children}::uuid[]) and ${phaseIs(tx, 'paused')}
    for share of h`
  if (paused.length < children.length) return null
  const [own] = await loadPauses(tx, run)
  if (own !== undefined) return pendingOf(runId, own)
  const first = paused.find(({ run_id }) => run_id === children[0])
  return first === undefined ? null : parsePending(first.pending)
}

/** A run and its ancestors, from the top down. */
interface AncestorChain {
  readonly workspaceId: string
  readonly runs: readonly ChainRun[]
}

interface ChainRun {
  readonly run_id: string
  readonly phase: HostedPhase
}

/** The run and its ancestors, locked from the top down. */
export async function lockAncestors(tx: TransactionSql, { workspaceId, runId }: RunIdentity): Promise<AncestorChain> {
  const chain = await tx<{ run_id: string; height: number }[]>`
    with recursive chain (workspace_id, run_id, height) as (
      select ${workspaceId}::uuid, ${runId}::uuid, 0
      union all
      select c.workspace_id, c.run_id, chain.height + 1
      from chain
      join hosted_runs h on h.workspace_id = chain.workspace_id and h.run_id = chain.run_id
      join tool_calls c on c.workspace_id = h.workspace_id and c.call_id = h.parent_call_id
    )
    select run_id, height from chain order by height desc`
  const runs: ChainRun[] = []
  for (const { run_id } of chain) runs.push(...(await lockRun(tx, { workspaceId, runId: run_id })).runs)
  return { workspaceId, runs }
}

/** Locks the row of one run: the chain of a run without ancestors. */
export async function lockRun(tx: TransactionSql, { workspaceId, runId }: RunIdentity): Promise<AncestorChain> {
  const runs = await tx<ChainRun[]>`
    select run_id, phase from hosted_runs where workspace_id = ${workspaceId} and run_id = ${runId} for update`
  return { workspaceId, runs }
}

/**
 * Queues the paused runs of a chain again, which ends their wait for people. Call with the rows locked.
 * @param at Unix milliseconds
 * @param owner if given, the run goes straight to this process; the chain must be of one run
 */
export async function wake(
  tx: TransactionSql,
  { workspaceId, runs }: AncestorChain,
  at: number,
  owner: string | null = null,
): Promise<void> {
  assert(owner === null || runs.length <= 1, 'a run with ancestors is queued with them')
  const next = owner === null ? nextPhase('paused', 'queued') : nextPhase('paused', 'executing')
  const paused = runs.filter(({ phase }) => phase === 'paused').map(({ run_id }) => run_id)
  await tx`
    with awake as (
      update hosted_runs set phase = ${next}, owner = ${owner}
      where workspace_id = ${workspaceId} and run_id = any(${paused}::uuid[])
    ), changed as (
      update runs r set status = 'running', pending = null, ${waitEnds(tx, at)}
      where r.workspace_id = ${workspaceId} and r.run_id = any(${paused}::uuid[])
        and r.status in ${tx(STATUSES_OF_PHASE.paused)}
      returning ${tx.unsafe(RUN_ROW_COLUMNS)}
    )
    ${insertOutbox(tx, [], 'first', 'changed')}`
}

/**
 * Replaces `decidedId` by the next pause wherever a run shows it as `pending`. Call with the rows locked. (Postgres cannot
 * query JSON that contains `\u0000`, so this matches the text: the id is near its start.)
 */
export async function showNext(
  tx: TransactionSql,
  { workspaceId, runs }: AncestorChain,
  decidedId: string,
  next: PendingPause,
): Promise<void> {
  await tx`
    with changed as (
      update runs r set status = ${pausedStatus(next)}, pending = ${json(next)}::json
      where r.workspace_id = ${workspaceId} and r.run_id = any(${runs.map(({ run_id }) => run_id)}::uuid[])
        and r.status in ${tx(STATUSES_OF_PHASE.paused)} and left(r.pending::text, 80) like ${`%"id":"${decidedId}"%`}
      returning ${tx.unsafe(RUN_ROW_COLUMNS)}
    )
    ${insertOutbox(tx, [], 'first', 'changed')}`
}

/** The stored form of `pending`; free-form members keep their text. */
function json(pending: PendingPause): RawJson {
  return new RawJson(encodeJson(pending))
}
