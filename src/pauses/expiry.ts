import type { Clock } from '../clock.ts'
import { RawJson } from '../http/raw-json.ts'
import { endRun } from '../invoke/ending.ts'
import { ownEvent } from '../invoke/events.ts'
import { loadProgress } from '../invoke/load.ts'
import { lockFamily } from '../invoke/waking.ts'
import type { Log } from '../log.ts'
import { repeat } from '../ops/repeat.ts'
import type { Sql, TransactionSql } from '../postgres/connect.ts'

export interface PauseExpiryDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly log: Log
  readonly onChange: () => void
  /** Told of runs that have ended because nobody decided. */
  readonly onEnded: (runId: string) => void
}

const POLL_MS = 1_000
const AT_ONCE = 100

/**
 * Ends runs that nobody has decided on in time: the pause is `expired`, which is no rejection, and its run `timed_out`.
 * @returns ends the watch
 */
export function startPauseExpiry(deps: PauseExpiryDeps): () => Promise<void> {
  return repeat(POLL_MS, async () => {
    try {
      while ((await expireSome(deps)) === AT_ONCE);
    } catch (error) {
      deps.log.warn('what has expired could not be ended; it is tried again', { error })
    }
  })
}

async function expireSome({ sql, clock, onChange, onEnded }: PauseExpiryDeps): Promise<number> {
  const at = clock.now()
  const due = await sql<{ pause_id: string; run_id: string; type: string }[]>`
    select pause_id, run_id, type from pauses
    where status = 'pending' and expires_at <= ${new Date(at)} order by expires_at limit ${AT_ONCE}`
  for (const { pause_id, run_id, type } of due) {
    const expired = (await sql.begin(async (transaction) => {
      const tx = transaction as unknown as TransactionSql
      await lockFamily(tx, run_id)
      const { count } = await tx`
        update pauses set status = 'expired', decided_at = ${new Date(at)}
        where pause_id = ${pause_id} and status = 'pending'`
      return count > 0
    })) as boolean
    if (!expired) continue
    const progress = await loadProgress(sql, run_id)
    if (progress === null) continue
    const message = type === 'approval' ? 'nobody approved in time' : 'nobody answered in time'
    const errorDetail = RawJson.of({
      reason: `${type}_expired`,
      [type === 'approval' ? 'approval_id' : 'request_id']: pause_id,
    })
    const event = ownEvent(
      progress.run,
      at,
      'run.timed_out',
      { error_message: message, error_detail: errorDetail },
      'error',
    )
    const end = { step: null, costUsd: 0, usedMs: 0, remember: null, output: null, at, events: [event] }
    await endRun(sql, progress.run, null, { status: 'timed_out', errorMessage: message, errorDetail, ...end })
    onEnded(run_id)
    onChange()
  }
  return due.length
}
