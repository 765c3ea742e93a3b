import { ApiError } from '../base/errors.ts'
import type { RunRef } from '../base/ids.ts'
import type { ColumnarClient } from '../clickhouse/client.ts'
import type { LoadProgress } from '../sink/sink.ts'
import type { EventIdSource } from './id-index.ts'

const CATCH_UP_MS = 5_000

/** Identifies the newest progress that ClickHouse is known to have stored, see `store-marks/`. */
export interface KnownMark {
  readonly journal: string
  readonly beat: number
}

/** Fails when ClickHouse has been set back to an earlier state, where a missing id is not necessarily new. */
const HAS_IT_ALL = `(
  select throwIf(max(beat) < {beat:UInt64}, 'ClickHouse has gone back') from store_marks
  where journal_id = {journal:UUID}
) = 0`

/**
 * Reads event ids from ClickHouse, once it has everything acknowledged so far. While ClickHouse is unavailable, calls with
 * caller-chosen ids for runs that are not in memory are refused, because they might store an event twice.
 */
export function createEventIdSource(deps: {
  loading: LoadProgress
  client: ColumnarClient
  columnarMark: () => KnownMark
}): EventIdSource {
  async function select(run: RunRef, tail: string, params: Record<string, unknown>): Promise<string[]> {
    if (!(await deps.loading.waitForAll(CATCH_UP_MS))) throw behind()
    try {
      const rows = await deps.client.query<{ event_id: string }>(
        `select distinct event_id from events
         where workspace_id = {workspace:UUID} and agent_id = {agent:UUID} and run_id = {run:UUID} and ${HAS_IT_ALL} ${tail}`,
        {
          params: {
            workspace: run.workspaceId,
            agent: run.agentId,
            run: run.runId,
            ...deps.columnarMark(),
            ...params,
          },
        },
      )
      return rows.map((row) => row.event_id)
    } catch (error) {
      throw behind(error)
    }
  }
  return {
    all: (run, limit) => select(run, 'limit {limit:UInt32}', { limit }),
    among: (run, ids) => select(run, 'and event_id in {ids:Array(String)}', { ids }),
  }
}

function behind(cause?: unknown): ApiError {
  return new ApiError(
    'UNAVAILABLE',
    'ClickHouse is behind, and it is needed to detect duplicates of earlier events; try again',
    {
      cause,
      retryAfterSeconds: 2,
    },
  )
}
