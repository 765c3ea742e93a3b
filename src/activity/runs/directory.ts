import { LRUCache } from 'lru-cache'
import { type RunIdentity, type RunRef, runKey } from '../../base/ids.ts'
import { type Batcher, createBatcher } from '../../stores/postgres/batcher.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { PartitionRef } from '../../tenants/partitions/partition.ts'
import { DELETED_SCORES, findRuns, isErased } from './rows.ts'

const RUNS_CACHED_MAX = 50_000
const IDENTITY_BYTES = 72

/**
 * Which agent owns a run, for the hot path: every reported event, task and end of a run needs it. The owner of a run never
 * changes, so entries do not expire; only deleted runs are forgotten, and those with deleted scores. Concurrent misses share
 * one lookup.
 */
export class RunDirectory {
  private readonly cached = new LRUCache<string, RunRef>({ max: RUNS_CACHED_MAX })
  private readonly pending = new Map<string, Promise<RunRef | null>>()
  private readonly lookups: Batcher<RunIdentity, RunRef | null>
  /** Increases with each deletion: what was read before must not be cached after it. */
  private forgotten = 0

  constructor(sql: Sql) {
    this.lookups = createBatcher<RunIdentity, RunRef | null>({
      run: (runs) => lookUp(sql, runs),
      keyOf: ({ workspaceId, runId }) => runKey(workspaceId, runId),
      ownerOf: ({ workspaceId }) => workspaceId,
      bytesOf: () => IDENTITY_BYTES,
    })
  }

  /** Called for each run that this process creates, before the response is sent. */
  onRunStarted: (caller: PartitionRef, ref: RunRef) => void = () => {}

  /**
   * The run's immutable facts, synchronously when they are cached; null when the workspace has no such run.
   * @param runId in lower case
   */
  find(workspaceId: string, runId: string): RunRef | Promise<RunRef | null> {
    const key = runKey(workspaceId, runId)
    const known = this.cached.get(key) ?? this.pending.get(key)
    if (known !== undefined) return known
    const lookup = this.lookUp(key, { workspaceId, runId })
    this.pending.set(key, lookup)
    return lookup
  }

  private async lookUp(key: string, run: RunIdentity): Promise<RunRef | null> {
    const { forgotten } = this
    try {
      const ref = await this.lookups.submit(run)
      if (ref !== null && forgotten === this.forgotten) this.cached.set(key, ref)
      return ref
    } finally {
      this.pending.delete(key)
    }
  }

  /**
   * Call this before a run is created. @returns the function to be called afterwards, which adds it: unless runs were deleted
   * meanwhile, perhaps this one, since the answer of Postgres may come late
   */
  starting(): (caller: PartitionRef, ref: RunRef) => void {
    const { forgotten } = this
    return (caller, ref) => {
      if (forgotten === this.forgotten) this.cached.set(runKey(ref.workspaceId, ref.runId), ref)
      this.onRunStarted(caller, ref)
    }
  }

  /** Removes a run that was deleted, or has lost a score, in this or another process. */
  forget({ workspaceId, runId }: RunIdentity): void {
    this.forgotten++
    this.cached.delete(runKey(workspaceId, runId))
  }
}

interface FoundRun extends Pick<RunRef, 'agentId' | 'runtimeType'> {
  readonly isErased: boolean
  readonly deletedScores: readonly string[] | null
}

/** A run whose deletion has begun does not exist any more: it must not be cached after all processes have forgotten it. */
async function lookUp(sql: Sql, runs: readonly RunIdentity[]): Promise<(RunRef | null)[]> {
  const columns = `r.agent_id as "agentId", r.runtime_type as "runtimeType", ${isErased('r')} as "isErased",
    ${DELETED_SCORES} as "deletedScores"`
  const found = await findRuns<FoundRun>(sql, runs, columns)
  return runs.map(({ workspaceId, runId }) => {
    const run = found.get(runKey(workspaceId, runId))
    if (run === undefined || run.isErased) return null
    const { agentId, runtimeType, deletedScores } = run
    const ref = { runId, workspaceId, agentId, runtimeType }
    return deletedScores === null ? ref : { ...ref, deletedScores: new Set(deletedScores) }
  })
}
