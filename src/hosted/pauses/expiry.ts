import { type RunIdentity, runKey } from '../../base/ids.ts'
import { RawJson } from '../../base/raw-json.ts'
import { inTransaction } from '../../stores/postgres/connect.ts'
import type { HostedContext } from '../run/context.ts'
import type { HostedRunRef, StoredPause } from '../run/run.ts'
import { NEXT_PAUSE_STATUSES, type PauseStatus, statesBefore } from '../run/state.ts'
import { endLocked, lockToEnd, type RunEnd } from '../store/end.ts'
import { systemEvent, undecidedEvent } from '../store/events.ts'
import { pauseIs } from '../store/fragments.ts'
import { findRun, loadPauses } from '../store/load.ts'

const POLL_MS = 1_000
/** Due pauses that are read together. */
const READ_MAX = 100
/** Few, because each takes a connection. */
const AT_ONCE = 4

/**
 * Ends runs whose pause has expired: the pause is `expired`, which is not a rejection, and the run `timed_out`. None waits for
 * another, whose rows may be locked, and one that cannot be stored is tried again beside the others.
 * @param onEnded called for runs that have ended because no decision came in time
 * @returns stops the polling
 */
export function startPauseExpiry(context: HostedContext, onEnded: (run: RunIdentity) => void): () => Promise<void> {
  const underWay = new Map<string, { readonly run: RunIdentity; readonly work: Promise<void> }>()
  let failures: unknown[] = []

  async function end(pause: DuePause, key: string): Promise<void> {
    try {
      for (const run of await expire(context, pause)) onEnded(run)
    } catch (error) {
      failures.push(error)
    }
    underWay.delete(key)
  }

  return context.loops.repeat('expiry of pauses', POLL_MS, async (signal) => {
    let due: readonly DuePause[]
    do {
      due = await duePauses(
        context,
        Array.from(underWay.values(), ({ run }) => run),
      )
      for (const pause of due) {
        if (underWay.size >= AT_ONCE) await Promise.race(Array.from(underWay.values(), ({ work }) => work))
        if (signal.aborted) return
        const key = runKey(pause.workspaceId, pause.runId)
        // Of several pauses of a run the first one counts.
        if (!underWay.has(key)) underWay.set(key, { run: pause, work: end(pause, key) })
      }
    } while (due.length === READ_MAX && failures.length === 0)
    const [failure] = failures
    failures = []
    if (failure !== undefined) throw failure
  })
}

/** Those that have waited longest, of other runs. */
async function duePauses({ patrol, clock }: HostedContext, except: readonly RunIdentity[]): Promise<DuePause[]> {
  return patrol<DuePause[]>`
    select pause_id as "pauseId", workspace_id as "workspaceId", run_id as "runId" from pauses
    where ${pauseIs(patrol, 'pending')} and expires_at <= ${new Date(clock.now())}
      and (run_id, workspace_id) not in (select * from unnest(
        ${except.map(({ runId }) => runId)}::uuid[], ${except.map(({ workspaceId }) => workspaceId)}::uuid[]
      ))
    order by expires_at limit ${READ_MAX}`
}

interface DuePause extends RunIdentity {
  readonly pauseId: string
}

/**
 * In one transaction: if the pause expired but its run did not end, the run would wait forever.
 * @returns the runs that have ended
 */
async function expire({ sql, clock, onChange }: HostedContext, due: DuePause): Promise<RunIdentity[]> {
  const run = await findRun(sql, due)
  if (run === null) return []
  const at = clock.now()
  const ended = await inTransaction(sql, async (tx) => {
    await lockToEnd(tx, run)
    const pause = (await loadPauses(tx, run)).find(({ pauseId }) => pauseId === due.pauseId)
    if (pause === undefined) return null
    const { count } = await tx`
      update pauses set status = ${'expired' satisfies PauseStatus}, decided_at = ${new Date(at)}
      where pause_id = ${pause.pauseId} and status in ${tx(statesBefore(NEXT_PAUSE_STATUSES, 'expired'))}`
    return count === 0 ? null : endLocked(tx, run, null, endingOf(run, pause, at))
  })
  if (ended === null) return []
  onChange()
  return [run, ...ended.descendants]
}

function endingOf(run: HostedRunRef, pause: StoredPause, at: number): RunEnd {
  const { type, pauseId } = pause
  const errorMessage = type === 'approval' ? 'not approved in time' : 'not answered in time'
  const errorDetail = RawJson.of({
    reason: `${type}_expired`,
    [type === 'approval' ? 'approval_id' : 'request_id']: pauseId,
  })
  const payload = { error_message: errorMessage, error_detail: errorDetail }
  const events = [undecidedEvent(run, at, pause, 'expired'), systemEvent(run, at, 'run.timed_out', payload, 'error')]
  const descendantsReason = 'its parent has ended'
  return { status: 'timed_out', errorMessage, errorDetail, at, events, descendantsReason, mayHavePauses: true }
}
