import type { RunRef } from '../events/schema.ts'
import { createBatcher } from '../postgres/batcher.ts'
import type { Sql } from '../postgres/connect.ts'

export interface RunDirectory {
  /** The run's immutable facts, at once when they are cached; null when there is no such run. `runId` in lower case. */
  find(runId: string): RunRef | Promise<RunRef | null>
  /** Notes a run that this process has just created, and tells the listeners. */
  started(ref: RunRef): void
  /** `listener` hears of every run this process creates, before its caller does. */
  onRunStarted(listener: (ref: RunRef) => void): void
}

const RUNS_CACHED_MAX = 50_000

/**
 * Who owns a run, for the hot path: every reported event, task and ending asks. A run's owner never changes, so the
 * answer is cached without expiry, least recently used runs go first, and concurrent misses share one lookup.
 */
export function createRunDirectory({
  sql,
  runsCachedMax = RUNS_CACHED_MAX,
}: {
  sql: Sql
  runsCachedMax?: number
}): RunDirectory {
  /** In order of use, oldest first. */
  const entries = new Map<string, RunRef>()
  const pending = new Map<string, Promise<RunRef | null>>()
  const listeners: ((ref: RunRef) => void)[] = []
  const lookups = createBatcher<string, RunRef | null>({
    run: (runIds) => lookUp(sql, runIds),
    keyOf: (runId) => runId,
    bytesOf: (runId) => runId.length,
  })

  function remember(ref: RunRef): void {
    entries.delete(ref.runId)
    entries.set(ref.runId, ref)
    if (entries.size > runsCachedMax) entries.delete(entries.keys().next().value as string)
  }

  async function lookUpOnce(runId: string): Promise<RunRef | null> {
    try {
      const ref = await lookups.submit(runId)
      if (ref !== null) remember(ref)
      return ref
    } finally {
      pending.delete(runId)
    }
  }

  function miss(runId: string): Promise<RunRef | null> {
    const known = pending.get(runId)
    if (known !== undefined) return known
    const lookup = lookUpOnce(runId)
    pending.set(runId, lookup)
    return lookup
  }

  return {
    find(runId) {
      const ref = entries.get(runId)
      if (ref === undefined) return miss(runId)
      remember(ref)
      return ref
    },
    started(ref) {
      remember(ref)
      for (const listener of listeners) listener(ref)
    },
    onRunStarted: (listener) => void listeners.push(listener),
  }
}

async function lookUp(sql: Sql, runIds: readonly string[]): Promise<(RunRef | null)[]> {
  const rows = await sql<RunRef[]>`
    select run_id as "runId", workspace_id as "workspaceId", agent_id as "agentId", runtime_type as "runtimeType"
    from runs where run_id = any(${runIds as string[]}::uuid[])`
  const found = new Map(rows.map((row) => [row.runId, row]))
  return runIds.map((runId) => found.get(runId) ?? null)
}
