import { ApiError } from '../base/errors.ts'
import { type RunIdentity, type RunRef, runKey } from '../base/ids.ts'
import type { ColumnarClient } from '../clickhouse/client.ts'
import type { Append, Claim, Claimed, EventIds } from '../partitions/partition.ts'
import type { LoadProgress } from '../sink/sink.ts'

/** Looks up the event ids of runs that are not in memory. */
export interface EventIdSource {
  /**
   * All accepted event ids of the run, but at most `limit`.
   * @throws ApiError UNAVAILABLE
   */
  all(run: RunRef, limit: number): Promise<string[]>
  /**
   * The members of `ids` that have been accepted for the run.
   * @throws ApiError UNAVAILABLE
   */
  among(run: RunRef, ids: readonly string[]): Promise<string[]>
}

const BOUNDS = { ids: 500_000, idsPerRun: 100_000, runs: 50_000 }

/**
 * Detects duplicate events by the ids that callers gave them: exactly, for as long as the events are stored, and in
 * bounded memory. All ids of a run that this process saw start are known. The ids of other runs are fetched from
 * ClickHouse on first use, once it has everything acknowledged so far. The least recently used runs are evicted.
 */
export class EventIdIndex implements EventIds {
  /** In order of use, oldest first. All maps are keyed by {@link runKey}. */
  private readonly runs = new Map<string, KnownRun>()
  private readonly loading = new Map<string, Promise<void>>()
  /** The last call of each run that is too large for memory. Its calls run one after the other and query their own ids. */
  private readonly lastCalls = new Map<string, Promise<unknown>>()
  private size = 0

  constructor(
    private readonly source: EventIdSource,
    private readonly bounds = BOUNDS,
  ) {}

  runStarted({ workspaceId, runId }: RunIdentity): void {
    this.remember(runKey(workspaceId, runId), new Set())
  }

  claim<Result>(
    run: RunRef,
    ids: readonly (string | undefined)[],
    append: Append<Result>,
  ): Claimed<Result> | Promise<Claimed<Result>> {
    const key = runKey(run.workspaceId, run.runId)
    const known = this.runs.get(key)
    if (known === undefined) return this.claimUnknown(key, run, ids, append)
    this.runs.delete(key)
    this.runs.set(key, known)
    const before = known.ids.size
    const claim = claimOf(known.ids, ids)
    this.size += known.ids.size - before
    const earlier = known.inFlight
    const appended = append(claim)
    this.follow(key, known, claim, appended)
    this.makeRoom()
    if (claim.duplicates === 0 || earlier === undefined) return { ...claim, durable: appended }
    // The original of a duplicate must be durable before the duplicate is acknowledged.
    return { ...claim, durable: Promise.all([appended, earlier]).then(([result]) => result) }
  }

  private follow(key: string, known: KnownRun, { ids, fresh }: Claim, append: Promise<unknown>): void {
    const settled = append.then(
      () => {},
      (error) => {
        ids.forEach((id, row) => {
          if (fresh[row] && id !== undefined && known.ids.delete(id)) this.size--
        })
        throw error
      },
    )
    const all = known.inFlight === undefined ? settled : Promise.all([known.inFlight, settled])
    known.inFlight = all
    const done = () => {
      if (known.inFlight !== all) return
      known.inFlight = undefined
      if (known.ids.size > this.bounds.idsPerRun && this.runs.get(key) === known) this.forget(key, known)
    }
    all.then(done, done)
  }

  private async claimUnknown<Result>(
    key: string,
    run: RunRef,
    ids: readonly (string | undefined)[],
    append: Append<Result>,
  ): Promise<Claimed<Result>> {
    if (!this.lastCalls.has(key)) {
      let loading = this.loading.get(key)
      if (loading === undefined) {
        loading = this.load(key, run).finally(() => this.loading.delete(key))
        this.loading.set(key, loading)
      }
      await loading
      if (this.runs.has(key)) return this.claim(run, ids, append)
    }
    // Too large for memory.
    const before = this.lastCalls.get(key)
    const call = Promise.withResolvers<void>()
    this.lastCalls.set(key, call.promise)
    const end = () => {
      if (this.lastCalls.get(key) === call.promise) this.lastCalls.delete(key)
      call.resolve()
    }
    try {
      await before
      const given = ids.filter((id) => id !== undefined)
      const seen = new Set(await this.source.among(run, given))
      const claim = claimOf(seen, ids)
      const durable = append(claim)
      durable.then(end, end)
      return { ...claim, durable }
    } catch (error) {
      end()
      throw error
    }
  }

  private async load(key: string, run: RunRef): Promise<void> {
    const ids = await this.source.all(run, this.bounds.idsPerRun + 1)
    if (ids.length <= this.bounds.idsPerRun) this.remember(key, new Set(ids))
  }

  /** Evicts fetched ids after ClickHouse has lost rows: events with those ids may be reported again. */
  forgetFetched(): void {
    for (const [key, known] of this.runs) if (known.inFlight === undefined) this.forget(key, known)
  }

  private remember(key: string, ids: Set<string>): void {
    this.runs.set(key, { ids, inFlight: undefined })
    this.size += ids.size
    this.makeRoom()
  }

  /** Evicts the least recently used runs, except those with appends in flight, whose ids are in no store yet. */
  private makeRoom(): void {
    for (const [key, known] of this.runs) {
      if (this.size <= this.bounds.ids && this.runs.size <= this.bounds.runs) return
      if (known.inFlight === undefined) this.forget(key, known)
    }
  }

  private forget(key: string, known: KnownRun): void {
    this.runs.delete(key)
    this.size -= known.ids.size
  }
}

interface KnownRun {
  readonly ids: Set<string>
  inFlight: Promise<unknown> | undefined
}

/** Adds the new ones of a call to the ids that are known, and says which they are. */
function claimOf(known: Set<string>, ids: readonly (string | undefined)[]): Claim {
  let duplicates = 0
  const fresh = ids.map((id) => {
    if (id === undefined) return true
    if (known.has(id)) {
      duplicates++
      return false
    }
    known.add(id)
    return true
  })
  return { ids, fresh, duplicates }
}

const CATCH_UP_MS = 5_000

/** Identifies the newest progress that ClickHouse is known to have stored, see `store-marks/`. */
export interface KnownMark {
  readonly journal: string
  readonly beat: number
}

/** Fails when ClickHouse has been set back to an earlier state, where a missing id is not necessarily new. */
export const HAS_IT_ALL = `(
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

/** Refuses a call whose duplicates cannot be detected. */
export function behind(cause?: unknown): ApiError {
  return new ApiError(
    'UNAVAILABLE',
    'ClickHouse is behind, and it is needed to detect duplicates of earlier reports; try again',
    {
      cause,
      retryAfterSeconds: 2,
    },
  )
}
