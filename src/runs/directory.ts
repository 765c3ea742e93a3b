import { LRUCache } from 'lru-cache'
import type { RunRef } from '../base/ids.ts'
import { type RunIdentity, runKey } from '../base/ids.ts'
import type { PartitionRef } from '../partitions/partition.ts'
import { createBatcher } from '../postgres/batcher.ts'
import type { Sql } from '../postgres/connect.ts'
import { findRuns } from './rows.ts'

export interface RunDirectory {
  /**
   * The run's immutable facts, synchronously when they are cached; null when the workspace has no such run.
   * @param runId in lower case
   */
  find(workspaceId: string, runId: string): RunRef | Promise<RunRef | null>
  /** Adds a run that this process has just created, and calls the listeners. */
  started(caller: PartitionRef, ref: RunRef): void
  /** Calls `listener` for each run that this process creates, before the response is sent. */
  onRunStarted(listener: (caller: PartitionRef, ref: RunRef) => void): void
}

const RUNS_CACHED_MAX = 50_000
const IDENTITY_BYTES = 72

/**
 * Which agent owns a run, for the hot path: every reported event, task and end of a run needs it. The owner of a run never
 * changes, so entries do not expire. Concurrent misses share one lookup.
 */
export function createRunDirectory({
  sql,
  runsCachedMax = RUNS_CACHED_MAX,
}: {
  sql: Sql
  runsCachedMax?: number
}): RunDirectory {
  const cached = new LRUCache<string, RunRef>({ max: runsCachedMax })
  const pending = new Map<string, Promise<RunRef | null>>()
  const listeners: ((caller: PartitionRef, ref: RunRef) => void)[] = []
  const lookups = createBatcher<RunIdentity, RunRef | null>({
    run: (runs) => lookUp(sql, runs),
    keyOf: ({ workspaceId, runId }) => runKey(workspaceId, runId),
    bytesOf: () => IDENTITY_BYTES,
  })

  async function lookUpOnce(key: string, run: RunIdentity): Promise<RunRef | null> {
    try {
      const ref = await lookups.submit(run)
      if (ref !== null) cached.set(key, ref)
      return ref
    } finally {
      pending.delete(key)
    }
  }

  function miss(key: string, run: RunIdentity): Promise<RunRef | null> {
    const known = pending.get(key)
    if (known !== undefined) return known
    const lookup = lookUpOnce(key, run)
    pending.set(key, lookup)
    return lookup
  }

  return {
    find(workspaceId, runId) {
      const key = runKey(workspaceId, runId)
      return cached.get(key) ?? miss(key, { workspaceId, runId })
    },
    started(caller, ref) {
      cached.set(runKey(ref.workspaceId, ref.runId), ref)
      for (const listener of listeners) listener(caller, ref)
    },
    onRunStarted: (listener) => void listeners.push(listener),
  }
}

async function lookUp(sql: Sql, runs: readonly RunIdentity[]): Promise<(RunRef | null)[]> {
  const found = await findRuns<Pick<RunRef, 'agentId' | 'runtimeType'>>(
    sql,
    runs,
    'r.agent_id as "agentId", r.runtime_type as "runtimeType"',
  )
  return runs.map(({ workspaceId, runId }) => {
    const run = found.get(runKey(workspaceId, runId))
    return run === undefined ? null : { runId, workspaceId, agentId: run.agentId, runtimeType: run.runtimeType }
  })
}
