import { withTimeout } from '../../base/abort.ts'
import { type RunIdentity, runKey } from '../../base/ids.ts'
import type { Sql } from '../../stores/postgres/connect.ts'

/** The session and the external user of a run. Its events, tasks and scores name only the run. */
export interface RunSession {
  readonly session_id: string | null
  readonly external_user_id: string | null
}

/**
 * The sessions of runs, by `runKey`; those of runs that no longer exist are missing.
 * @throws SessionsUnavailable
 */
export type LookUpSessions = (runs: readonly RunIdentity[]) => Promise<ReadonlyMap<string, RunSession>>

/** The sessions of runs cannot be looked up at the moment. */
export class SessionsUnavailable extends Error {}

export const NO_SESSION: RunSession = { session_id: null, external_user_id: null }
const LOOK_UP_TIMEOUT_MS = 5_000
/** All live feeds wait for an answer, also those that need none. */
const LIVE_TIMEOUT_MS = 250

/**
 * Looks them up in Postgres, which has a run before its first event is accepted. The journal may have the event first, and
 * ClickHouse has what the journal had.
 */
export function createSessionLookUp(sql: Sql): LookUpSessions {
  return async (runs) => {
    const rows = sql<(RunSession & { readonly workspace_id: string; readonly run_id: string })[]>`
      select r.workspace_id, r.run_id, r.session_id, r.external_user_id
      from unnest(${runs.map(({ workspaceId }) => workspaceId)}::uuid[], ${runs.map(({ runId }) => runId)}::uuid[])
        as asked (workspace_id, run_id)
      join runs r on r.run_id = asked.run_id and r.workspace_id = asked.workspace_id`
    const found = await within(rows, LOOK_UP_TIMEOUT_MS)
    return new Map(found.map((row) => [runKey(row.workspace_id, row.run_id), row]))
  }
}

/** The same for live feeds: gives up sooner. */
export function forLiveFeeds(lookUp: LookUpSessions): LookUpSessions {
  return (runs) => within(lookUp(runs), LIVE_TIMEOUT_MS)
}

async function within<T>(found: Promise<T>, ms: number): Promise<T> {
  try {
    return await withTimeout(found, ms)
  } catch (cause) {
    throw new SessionsUnavailable('the sessions of runs cannot be looked up', { cause })
  }
}
