import type { ColumnarClient } from '../columnar/client.ts'
import type { SinkProgress } from '../columnar/sink.ts'
import { ApiError } from '../http/errors.ts'
import type { Journal } from '../journal/journal.ts'
import type { OutboxRelay } from '../journal/outbox-relay.ts'
import type { Sql } from '../postgres/connect.ts'
import type { RunStatistics } from '../runs/statistics.ts'
import { countRows, eraseRows } from './erase-rows.ts'

export interface EraseActivityDeps {
  readonly sql: Sql
  readonly journal: Journal
  readonly relay: Pick<OutboxRelay, 'flush'>
  readonly sink: Pick<SinkProgress, 'waitFor'>
  readonly statistics: Pick<RunStatistics, 'flush'>
  readonly columnar: ColumnarClient
  /** This process in the table `instances`. */
  readonly instanceId: string
}

const SINK_PATIENCE_MS = 30_000
/** How soon a process that stops is heard. */
const SINK_WAIT_MS = 500

/**
 * Has this process's journal, and ClickHouse, let go of workspaces that Postgres holds nothing of any more. Every process
 * that shares the database does so, each for what went through its own journal; one that was away does it when it is
 * back. Does nothing when there is nothing to let go of. May be interrupted and called again; one call at a time.
 *
 * @throws ApiError UNAVAILABLE when ClickHouse is behind; what the stores throw
 */
export async function eraseActivity(deps: EraseActivityDeps, signal: AbortSignal): Promise<void> {
  const { sql, journal, relay, columnar, instanceId } = deps
  const { epoch } = journal
  const due = await sql<{ workspace_id: string }[]>`
    with known as (
      update instances set epoch = ${epoch} where instance_id = ${instanceId} and epoch is distinct from ${epoch}
    )
    select workspace_id from erasures where state_gone_at is not null and not ${epoch} = any(let_go)`
  if (due.length === 0) return
  const workspaceIds = due.map((row) => row.workspace_id)
  for (const id of workspaceIds) journal.refuse(id)
  // What had left the outbox before its rows were deleted is in a journal after this.
  await relay.flush()
  const seq = await journal.cut()
  // And now no outbox row is left whose frame lies before the cut: after a crash the relay would append it again.
  await relay.flush()
  await allRead(deps, seq, signal)
  for (const id of workspaceIds) await eraseFromColumnar(deps, id, signal)
  if (!(await journal.drop(seq))) throw new ApiError('UNAVAILABLE', 'the journal is still being read; try again')
  const left = (await Promise.all(workspaceIds.map((id) => countRows(columnar, id)))).flatMap((counts) => [...counts])
  if (left.length > 0) throw new Error(`ClickHouse still has rows of an erased workspace: ${left.join(' ')}`)
  await sql`
    update erasures set let_go = array_append(let_go, ${epoch})
    where workspace_id = any(${workspaceIds}::uuid[]) and not ${epoch} = any(let_go)`
}

/** Waits until every consumer has done with everything up to `seq`. */
async function allRead({ sink, statistics }: EraseActivityDeps, seq: number, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + SINK_PATIENCE_MS
  while (!(await sink.waitFor(seq, SINK_WAIT_MS))) {
    signal.throwIfAborted()
    if (performance.now() > deadline)
      throw new ApiError('UNAVAILABLE', 'ClickHouse is behind; try again', { retryAfterSeconds: 10 })
  }
  await statistics.flush()
}

/** Counted before: when a crash comes between the two, the repeat finds fewer and the larger number stands. */
async function eraseFromColumnar(
  { sql, columnar }: EraseActivityDeps,
  workspaceId: string,
  signal: AbortSignal,
): Promise<void> {
  const counts = await countRows(columnar, workspaceId)
  const events = counts.get('events') ?? 0
  await sql`update erasures set events = greatest(events, ${events}) where workspace_id = ${workspaceId}`
  await eraseRows(columnar, workspaceId, counts.keys(), signal)
}
