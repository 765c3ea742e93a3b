import type { Clock } from '../../base/clock.ts'
import type { RunIdentity } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { Loops } from '../../base/loops.ts'
import { RawJson } from '../../base/raw-json.ts'
import { inTransaction, type Sql } from '../../postgres/connect.ts'
import { endLocked, lockToEnd, type RunEnd, WITHOUT_ANSWER } from '../store/end.ts'
import { findRun } from '../store/load.ts'
import type { HostedRunRef } from '../store/rows.ts'
import { systemEvent } from '../store/system-event.ts'

export interface PauseExpiryDeps {
  readonly sql: Sql
  /** A connection of its own for the statements that run every second. */
  readonly patrol: Sql
  readonly clock: Clock
  readonly log: Log
  /** Supervises the polling loop. */
  readonly loops?: Loops | undefined
  readonly onChange: () => void
  /** Called for runs that have ended because nobody decided. */
  readonly onEnded: (run: RunIdentity) => void
}

const POLL_MS = 1_000
const AT_ONCE = 100

/**
 * Ends runs whose pause has expired: the pause is `expired`, which is not a rejection, and the run `timed_out`.
 * @returns stops the polling
 */
export function startPauseExpiry(deps: PauseExpiryDeps): () => Promise<void> {
  const { loops = new Loops(deps.log) } = deps
  return loops.repeat('expiry of pauses', POLL_MS, async () => {
    while ((await expireSome(deps)) === AT_ONCE);
  })
}

async function expireSome(deps: PauseExpiryDeps): Promise<number> {
  const { patrol, clock } = deps
  const due = await patrol<DuePause[]>`
    select pause_id as "pauseId", workspace_id as "workspaceId", run_id as "runId", type from pauses
    where status = 'pending' and expires_at <= ${new Date(clock.now())} order by expires_at limit ${AT_ONCE}`
  for (const pause of due) await expire(deps, pause)
  return due.length
}

interface DuePause extends RunIdentity {
  readonly pauseId: string
  readonly type: 'approval' | 'input'
}

/** In one transaction: if the pause expired but its run did not end, the run would wait forever. */
async function expire({ sql, clock, onChange, onEnded }: PauseExpiryDeps, pause: DuePause): Promise<void> {
  const run = await findRun(sql, pause)
  if (run === null) return
  const at = clock.now()
  const ended = await inTransaction(sql, async (tx) => {
    await lockToEnd(tx, run)
    const { count } = await tx`
      update pauses set status = 'expired', decided_at = ${new Date(at)}
      where pause_id = ${pause.pauseId} and status = 'pending'`
    return count === 0 ? null : endLocked(tx, run, null, endingOf(run, pause, at))
  })
  if (ended === null) return
  for (const each of [run, ...ended.descendants]) onEnded(each)
  onChange()
}

function endingOf(run: HostedRunRef, { pauseId, type }: DuePause, at: number): RunEnd {
  const errorMessage = type === 'approval' ? 'nobody approved in time' : 'nobody answered in time'
  const errorDetail = RawJson.of({
    reason: `${type}_expired`,
    [type === 'approval' ? 'approval_id' : 'request_id']: pauseId,
  })
  const payload = { error_message: errorMessage, error_detail: errorDetail }
  const events = [systemEvent(run, at, 'run.timed_out', payload, 'error')]
  return { ...WITHOUT_ANSWER, status: 'timed_out', errorMessage, errorDetail, at, events }
}
