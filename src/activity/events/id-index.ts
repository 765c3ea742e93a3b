import { ApiError } from '../../base/errors.ts'
import { type RunIdentity, type RunRef, runKey } from '../../base/ids.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import type { JournalReader } from '../../stores/journal/journal.ts'
import type { LoadProgress } from '../../stores/sink/sink.ts'
import type { Append, Claim, Claimed, EventIds } from '../../tenants/partitions/partition.ts'
import { IdSet } from './id-set.ts'

/** Looks up the event ids of runs that are not in memory. */
export interface EventIdSource {
  /** Absent where accepted rows can be read at once. */
  readonly positions?: ReadPositions
  /**
   * All accepted event ids of each run, in order of the runs; null for one that has too many to be read with others. Absent
   * where runs are read one by one.
   * @throws ApiError UNAVAILABLE
   */
  few?(runs: readonly RunRef[]): Promise<readonly (readonly string[] | null)[]>
  /**
   * All accepted event ids of the run, but at most `limit`.
   * @throws ApiError UNAVAILABLE
   */
  all(run: RunRef, limit: number): Promise<readonly string[]>
  /**
   * The members of `ids` that have been accepted for the run.
   * @throws ApiError UNAVAILABLE
   */
  among(run: RunRef, ids: readonly string[]): Promise<readonly string[]>
}

/** How far accepted rows can be read. */
interface ReadPositions {
  /** The end of the journal. */
  endSeq(): number
  /** Waits until every row up to the position can be read. @throws ApiError UNAVAILABLE */
  ready(seq: number): Promise<void>
}

/** About 150 MB when full: an id takes 21 to 32 bytes, a run some 300. */
const BOUNDS = { ids: 4_000_000, idsPerRun: 100_000, runs: 150_000 }
const BOUNDS_MIN = { ids: 500_000, runs: 50_000 }

/** The bounds of one partition of so many, all of which one process may own. */
export function idBoundsOf(partitions: number): typeof BOUNDS {
  const share = (name: keyof typeof BOUNDS_MIN) => Math.max(BOUNDS_MIN[name], Math.floor(BOUNDS[name] / partitions))
  return { ...BOUNDS, ids: share('ids'), runs: share('runs') }
}

/** Runs that one query looks up. */
const RUNS_PER_QUERY = 256
const SEEN_SLOTS = 65_536

/**
 * Detects duplicate events by the ids that callers gave them: exactly, for as long as the events are stored, and in
 * bounded memory. All ids of a run that this process saw start are known. The ids of other runs are fetched from
 * ClickHouse on first use, those of many runs together, once it has what was acknowledged when the run was last in memory.
 * The least recently used runs are evicted.
 */
export class EventIdIndex implements EventIds {
  /** In order of use, oldest first. All maps are keyed by {@link runKey}. */
  private readonly runs = new Map<string, KnownRun>()
  private readonly loading = new Map<string, Promise<void>>()
  /** Runs whose ids the next queries fetch, by workspace, so that none waits for all runs of another one. */
  private readonly wanted = new Map<string, WantedRun[]>()
  private isFetching = false
  /** The last call of each run that is too large for memory. Its calls run one after the other and query their own ids. */
  private readonly lastCalls = new Map<string, Promise<unknown>>()
  /**
   * Up to where the journal may have events of runs that are not in memory, by a hash of the run's key, so that runs share an
   * entry: the latest position counts. In the beginning, that is everything that earlier processes have appended.
   */
  private readonly seen: Float64Array
  private size = 0

  constructor(
    private readonly source: EventIdSource,
    private readonly bounds = BOUNDS,
  ) {
    this.seen = new Float64Array(SEEN_SLOTS).fill(this.endSeq())
  }

  runStarted({ workspaceId, runId }: RunIdentity): void {
    const key = runKey(workspaceId, runId)
    // A caller that chose the id of the run may have reported events already, before this process has answered its start.
    if (this.runs.has(key) || this.loading.has(key) || this.lastCalls.has(key)) return
    this.remember(key, new IdSet())
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
        this.noteSeen(key, Number.POSITIVE_INFINITY)
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
      await this.source.positions?.ready(this.seenOf(key))
      const claim = claimOf(new IdSet(await this.source.among(run, given)), ids)
      const durable = append(claim)
      const ended = (seq: number) => {
        this.noteSeen(key, seq)
        end()
      }
      durable.then(
        () => ended(this.endSeq()),
        () => ended(Number.POSITIVE_INFINITY),
      )
      return { ...claim, durable }
    } catch (error) {
      end()
      throw error
    }
  }

  private async load(key: string, run: RunRef): Promise<void> {
    await this.source.positions?.ready(this.seenOf(key))
    const { promise, resolve, reject } = Promise.withResolvers<readonly string[] | null>()
    const own = this.wanted.get(run.workspaceId)
    if (own === undefined) this.wanted.set(run.workspaceId, [{ run, resolve, reject }])
    else own.push({ run, resolve, reject })
    if (!this.isFetching) void this.fetchWanted()
    const { idsPerRun } = this.bounds
    const ids = (await promise) ?? (await this.source.all(run, idsPerRun + 1))
    if (ids.length <= idsPerRun) this.remember(key, new IdSet(ids))
  }

  /** One query after the other: the runs that are asked for while one is under way are fetched by the next. */
  private async fetchWanted(): Promise<void> {
    this.isFetching = true
    while (this.wanted.size > 0) {
      const batch = this.takeWanted()
      try {
        const found = await this.source.few?.(batch.map(({ run }) => run))
        for (const [at, { resolve }] of batch.entries()) resolve(found?.[at] ?? null)
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    this.isFetching = false
  }

  /** As many runs as one query takes, of each workspace in turn. */
  private takeWanted(): WantedRun[] {
    const batch: WantedRun[] = []
    while (batch.length < RUNS_PER_QUERY && this.wanted.size > 0) {
      for (const [workspaceId, own] of this.wanted) {
        const next = own.shift()
        if (next !== undefined) batch.push(next)
        if (own.length === 0) this.wanted.delete(workspaceId)
        if (batch.length === RUNS_PER_QUERY) break
      }
    }
    return batch
  }

  private endSeq(): number {
    return this.source.positions?.endSeq() ?? 0
  }

  private seenOf(key: string): number {
    return Math.min(this.seen[slotOf(key)] as number, this.endSeq())
  }

  /** @param seq infinite after an append that failed: it is not known whether and where its rows are stored */
  private noteSeen(key: string, seq: number): void {
    const slot = slotOf(key)
    this.seen[slot] = Math.max(this.seen[slot] as number, seq)
  }

  /** Evicts fetched ids after ClickHouse has lost rows: events with those ids may be reported again. */
  forgetFetched(): void {
    this.seen.fill(Number.POSITIVE_INFINITY)
    for (const [key, known] of this.runs) if (known.inFlight === undefined) this.forget(key, known)
  }

  private remember(key: string, ids: IdSet): void {
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
    // Everything that was appended for it is durable.
    this.noteSeen(key, this.endSeq())
  }
}

interface KnownRun {
  readonly ids: IdSet
  inFlight: Promise<unknown> | undefined
}

interface WantedRun {
  readonly run: RunRef
  readonly resolve: (ids: readonly string[] | null) => void
  readonly reject: (error: unknown) => void
}

function slotOf(key: string): number {
  return Bun.hash.xxHash32(key) % SEEN_SLOTS
}

/** Adds the new ones of a call to the ids that are known, and says which they are. */
function claimOf(known: IdSet, ids: readonly (string | undefined)[]): Claim {
  let duplicates = 0
  const fresh = ids.map((id) => {
    if (id === undefined || known.add(id)) return true
    duplicates++
    return false
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

/** Ids of a run that are fetched together with those of others. */
const FEW_IDS = 200

interface RunIds {
  readonly workspace_id: string
  readonly run_id: string
  readonly ids: readonly string[]
}

/**
 * Reads event ids from ClickHouse. While it is unavailable, calls with caller-chosen ids for runs that are not in memory are
 * refused, because they might store an event twice.
 */
export function createEventIdSource(deps: {
  journal: Pick<JournalReader, 'endSeq'>
  loading: Pick<LoadProgress, 'waitFor'>
  client: ColumnarClient
  columnarMark: () => KnownMark
}): EventIdSource {
  async function select<Row>(sql: string, params: Record<string, unknown>): Promise<Row[]> {
    try {
      return await deps.client.query<Row>(sql, { params: { ...deps.columnarMark(), ...params } })
    } catch (error) {
      throw behind(error)
    }
  }
  async function ofOne(run: RunRef, tail: string, params: Record<string, unknown>): Promise<string[]> {
    const sql = `select distinct event_id from events
      where workspace_id = {workspace:UUID} and agent_id = {agent:UUID} and run_id = {run:UUID} and ${HAS_IT_ALL} ${tail}`
    const { workspaceId: workspace, agentId: agent, runId } = run
    const rows = await select<{ event_id: string }>(sql, { workspace, agent, run: runId, ...params })
    return rows.map((row) => row.event_id)
  }
  return {
    positions: {
      endSeq: () => deps.journal.endSeq,
      async ready(seq) {
        if (!(await deps.loading.waitFor(seq, CATCH_UP_MS))) throw behind()
      },
    },
    async few(runs) {
      // The conditions on single columns let ClickHouse find the rows by the order of the table.
      const sql = `select workspace_id, run_id, groupUniqArray(${FEW_IDS + 1})(event_id) as ids from events
        where workspace_id in {workspaces:Array(UUID)} and agent_id in {agents:Array(UUID)} and run_id in {runs:Array(UUID)}
          and (workspace_id, agent_id, run_id) in arrayZip({workspaces:Array(UUID)}, {agents:Array(UUID)}, {runs:Array(UUID)})
          and ${HAS_IT_ALL}
        group by workspace_id, run_id`
      const rows = await select<RunIds>(sql, {
        workspaces: runs.map(({ workspaceId }) => workspaceId),
        agents: runs.map(({ agentId }) => agentId),
        runs: runs.map(({ runId }) => runId),
      })
      const found = new Map(rows.map(({ workspace_id, run_id, ids }) => [runKey(workspace_id, run_id), ids]))
      return runs.map(({ workspaceId, runId }) => {
        const ids = found.get(runKey(workspaceId, runId)) ?? []
        return ids.length <= FEW_IDS ? ids : null
      })
    },
    all: (run, limit) => ofOne(run, 'limit {limit:UInt32}', { limit }),
    among: (run, ids) => ofOne(run, 'and event_id in {ids:Array(String)}', { ids }),
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
