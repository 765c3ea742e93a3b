import { type RunIdentity, type RunRef, runKey } from '../../base/ids.ts'
import type { Claimed, ClaimedIds, ToClaim } from '../../tenants/partitions/partition.ts'
import { IdMap } from './id-map.ts'

/** An id that is stored, with the hash of the latest content under it, of 53 bits; of events, 1. */
export type StoredId = readonly [id: string, content: number]

interface WantedId {
  readonly run: RunRef
  readonly id: string
}

/** Looks up the ids of runs that are not in memory. */
export interface ClaimSource {
  /** Whether a report replaces an earlier one with its id and another content. Otherwise the first one with an id counts. */
  readonly hasContents: boolean
  /** The end of the journal. */
  endSeq(): number
  /** Waits until every row up to the position can be read. @throws ApiError UNAVAILABLE */
  ready(seq: number): Promise<void>
  /**
   * All accepted ids of each run, in order of the runs; their number for one that has too many to be read with others.
   * @throws ApiError UNAVAILABLE
   */
  few(runs: readonly RunRef[]): Promise<readonly (readonly StoredId[] | number)[]>
  /** All accepted ids of the run. @throws ApiError UNAVAILABLE */
  all(run: RunRef): Promise<readonly StoredId[]>
  /** Those of these ids, of runs of one workspace, that have been accepted. @throws ApiError UNAVAILABLE */
  among(wanted: readonly WantedId[], visit: (runId: string, id: string, content: number) => void): Promise<void>
}

/** What may be in memory. Runs with more ids than `idsPerRun` are not kept whole. */
interface Bounds {
  readonly ids: number
  readonly idsPerRun: number
  readonly runs: number
}

/** About 150 MB when full: an id takes 21 to 32 bytes, a run some 300. */
export const EVENT_BOUNDS: Bounds = { ids: 4_000_000, idsPerRun: 100_000, runs: 150_000 }
const EVENT_BOUNDS_MIN = { ids: 500_000, runs: 50_000 }
export const SCORE_BOUNDS: Bounds = { ids: 500_000, idsPerRun: 200_000, runs: 50_000 }

/** The bounds of one partition of so many, all of which one process may own. */
export function eventBoundsOf(partitions: number): Bounds {
  const share = (name: keyof typeof EVENT_BOUNDS_MIN) =>
    Math.max(EVENT_BOUNDS_MIN[name], Math.floor(EVENT_BOUNDS[name] / partitions))
  return { ...EVENT_BOUNDS, ids: share('ids'), runs: share('runs') }
}

/** Runs that one query looks up. */
const RUNS_PER_QUERY = 256
const SEEN_SLOTS = 65_536

/**
 * Detects repeats of events and scores by the ids that callers gave them: exactly, for as long as they are stored, and in
 * bounded memory. All ids of a run that this process saw start are known. The ids of other runs are fetched from ClickHouse
 * on first use, those of many runs together, once it has what was acknowledged when the run was last in memory; of a run with
 * too many, only the ids of each call. The least recently used runs are evicted.
 */
export class ClaimIndex implements ClaimedIds {
  /** In order of use, oldest first; keyed by {@link runKey}. */
  private readonly runs = new Map<string, KnownRun>()
  /** Runs whose ids the next queries fetch, by workspace, so that none waits for all runs of another one. */
  private readonly wanted = new Map<string, WantedRun[]>()
  private isFetching = false
  /**
   * Up to where the journal may have ids that are not in memory, by a hash of their run's key, so that runs share an entry:
   * the latest position counts. In the beginning, that is everything that earlier processes have appended.
   */
  private readonly seen: Float64Array
  private size = 0

  constructor(
    private readonly source: ClaimSource,
    private readonly bounds: Bounds,
  ) {
    this.seen = new Float64Array(SEEN_SLOTS).fill(source.endSeq())
  }

  runStarted({ workspaceId, runId }: RunIdentity): void {
    const key = runKey(workspaceId, runId)
    // A caller that chose the id of the run may have reported already, before this process has answered its start.
    if (!this.runs.has(key)) this.runs.set(key, newRun(key, 'complete'))
    this.makeRoom()
  }

  claim<Result>(
    call: ToClaim,
    append: (rows: readonly number[]) => Promise<Result>,
  ): Claimed<Result> | Promise<Claimed<Result>> {
    const known = call.runs.map((run) => this.use(run))
    const isReady = known.every((run) => run.state === 'complete' && !this.mustSettle(run))
    return isReady ? this.claimNow(known, call, append) : this.claimLater(known, call, append)
  }

  /** Evicts what was fetched after ClickHouse has lost rows: they may be reported again. */
  forgetFetched(): void {
    this.seen.fill(Number.POSITIVE_INFINITY)
    for (const run of this.runs.values()) if (isIdle(run)) this.forget(run)
  }

  /** The entry of a run, as the most recently used. */
  private use({ workspaceId, runId }: RunRef): KnownRun {
    const key = runKey(workspaceId, runId)
    const run = this.runs.get(key) ?? newRun(key, 'unknown')
    this.runs.delete(key)
    this.runs.set(key, run)
    return run
  }

  private claimNow<Result>(
    known: readonly KnownRun[],
    call: ToClaim,
    append: (rows: readonly number[]) => Promise<Result>,
  ): Claimed<Result> {
    const rows: number[] = []
    const changed = new Set<KnownRun>()
    const repeated = new Set<KnownRun>()
    for (const row of call.rows) {
      const id = call.idOf(row)
      if (id !== undefined) {
        const run = known[call.runOf(row)] as KnownRun
        if (!this.put(run, id, call.contentOf(row))) {
          repeated.add(run)
          continue
        }
        changed.add(run)
      }
      rows.push(row)
    }
    // Before this append: the original of a duplicate must be durable before the duplicate is acknowledged.
    const originals = [...repeated].flatMap(({ appends }) => [...(appends ?? [])])
    const appended = append(rows)
    this.follow(changed, appended)
    this.makeRoom()
    const duplicates = call.rows.length - rows.length
    if (originals.length === 0) return { duplicates, durable: appended }
    return { duplicates, durable: Promise.all([appended, ...originals]).then(([result]) => result as Result) }
  }

  /** @returns whether the id is new to the run, or has another content than before */
  private put(run: KnownRun, id: string, content: number): boolean {
    run.ids ??= new IdMap(this.source.hasContents)
    const before = run.ids.size
    const isNew = run.ids.put(id, content)
    this.size += run.ids.size - before
    return isNew
  }

  /** Notes an append with the runs whose ids it has claimed; if it fails, they are fetched again. */
  private follow(changed: ReadonlySet<KnownRun>, appended: Promise<unknown>): void {
    for (const run of changed) {
      run.appends ??= new Set()
      run.appends.add(appended)
    }
    const end = (hasFailed: boolean) => {
      for (const run of changed) {
        run.appends?.delete(appended)
        run.hasFailed ||= hasFailed
        if (run.appends?.size !== 0) continue
        run.appends = undefined
        this.settle(run)
      }
    }
    appended.then(
      () => end(false),
      () => end(true),
    )
  }

  /** Once nothing is being appended for a run. */
  private settle(run: KnownRun): void {
    if (!run.hasFailed && sizeOf(run) <= this.bounds.idsPerRun) return
    run.state = run.hasFailed ? 'unknown' : 'too large'
    // After an append that failed it is not known whether and where its rows are stored.
    this.drop(run, run.hasFailed ? Number.POSITIVE_INFINITY : this.source.endSeq())
    run.hasFailed = false
    run.resets++
  }

  /**
   * Whether nothing more may be claimed of a run until its appends have ended: a failed one leaves ids that were never stored,
   * and without a pause a run with many ids would never get rid of those that ClickHouse has, too.
   */
  private mustSettle(run: KnownRun): boolean {
    return run.appends !== undefined && (run.hasFailed || sizeOf(run) > this.bounds.idsPerRun)
  }

  /** Claims once the ids that are needed have been fetched. Until then none of the runs is evicted. */
  private async claimLater<Result>(
    known: readonly KnownRun[],
    call: ToClaim,
    append: (rows: readonly number[]) => Promise<Result>,
  ): Promise<Claimed<Result>> {
    const absent: Absent = new Map()
    for (const run of known) run.uses++
    try {
      for (;;) {
        const settling = known.filter((run) => this.mustSettle(run)).flatMap(({ appends }) => [...appends!])
        if (settling.length > 0) await Promise.allSettled(settling)
        else if (known.some(({ state }) => state === 'unknown'))
          await Promise.all(known.map((run, index) => this.load(run, call.runs[index] as RunRef)))
        else {
          const missing = missingOf(known, call, absent)
          // In the same tick: what is known now may be gone after the next.
          if (missing.length === 0) return this.claimNow(known, call, append)
          await this.fetch(missing, absent)
        }
      }
    } finally {
      for (const run of known) run.uses--
      this.makeRoom()
    }
  }

  /** Calls that need the same run share its lookup. */
  private load(known: KnownRun, run: RunRef): Promise<void> | undefined {
    if (known.state !== 'unknown') return
    known.loading ??= this.lookUp(known, run).finally(() => {
      known.loading = undefined
      known.uses--
    })
    return known.loading
  }

  private async lookUp(known: KnownRun, run: RunRef): Promise<void> {
    known.uses++
    await this.source.ready(this.seenOf(known))
    const { promise, resolve, reject } = Promise.withResolvers<readonly StoredId[] | number>()
    const own = this.wanted.get(run.workspaceId)
    if (own === undefined) this.wanted.set(run.workspaceId, [{ run, resolve, reject }])
    else own.push({ run, resolve, reject })
    if (!this.isFetching) void this.fetchWanted()
    const few = await promise
    if (typeof few !== 'number') this.remember(known, few)
    else if (few > this.bounds.idsPerRun) known.state = 'too large'
    else this.remember(known, await this.source.all(run))
  }

  private remember(known: KnownRun, ids: readonly StoredId[]): void {
    this.makeRoom(ids.length)
    // There is none if all runs are in use: one call may refer to thousands.
    const hasRoom = ids.length <= this.bounds.idsPerRun && this.size + ids.length <= this.bounds.ids
    known.state = hasRoom ? 'complete' : 'too large'
    if (hasRoom) for (const [id, content] of ids) this.put(known, id, content)
  }

  /** One query after the other: the runs that are asked for while one is under way are fetched by the next. */
  private async fetchWanted(): Promise<void> {
    this.isFetching = true
    while (this.wanted.size > 0) {
      const batch = this.takeWanted()
      try {
        const found = await this.source.few(batch.map(({ run }) => run))
        for (const [at, { resolve }] of batch.entries()) resolve(found[at] ?? [])
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

  /** Fetches some ids of large runs. */
  private async fetch(missing: readonly MissingId[], absent: Absent): Promise<void> {
    const runs = new Set(missing.map(({ known }) => known))
    // All that a large run has can be fetched again: nothing of it is in flight, or this call would wait.
    for (const known of runs) if (known.uses === 1) this.settle(known)
    const resets = new Map([...runs].map((known) => [known, known.resets]))
    await this.source.ready(Math.max(...[...runs].map((known) => this.seenOf(known))))
    const found = new Map<string, number>()
    await this.source.among(missing, (runId, id, content) => void found.set(runId + id, content))
    for (const { known, run, id } of missing) {
      // What was claimed in the meantime is newer, also if it has been appended and dropped again.
      if (known.resets !== resets.get(known) || known.ids?.has(id)) continue
      const content = found.get(run.runId + id)
      if (content !== undefined) this.put(known, id, content)
      else if (absent.get(known)?.resets === known.resets) absent.get(known)!.ids.add(id)
      else absent.set(known, { resets: known.resets, ids: new Set([id]) })
    }
  }

  private seenOf({ key }: KnownRun): number {
    return Math.min(this.seen[slotOf(key)] as number, this.source.endSeq())
  }

  /** Evicts the least recently used runs, except those with appends in flight, whose ids are in no store yet. */
  private makeRoom(ids = 0): void {
    for (const run of this.runs.values()) {
      if (this.size + ids <= this.bounds.ids && this.runs.size <= this.bounds.runs) return
      if (isIdle(run)) this.forget(run)
    }
  }

  private forget(run: KnownRun): void {
    this.runs.delete(run.key)
    // Everything that was appended for it is durable.
    this.drop(run, this.source.endSeq())
  }

  /** @param seq where the journal may have its ids */
  private drop(run: KnownRun, seq: number): void {
    this.size -= sizeOf(run)
    run.ids = undefined
    const slot = slotOf(run.key)
    this.seen[slot] = Math.max(this.seen[slot] as number, seq)
  }
}

interface KnownRun {
  /** Its {@link runKey}. */
  readonly key: string
  /** `complete`: all ids are known; `too large`: those that calls asked for. */
  state: 'unknown' | 'complete' | 'too large'
  ids: IdMap | undefined
  /** Appends of some of the ids that are not durable yet. */
  appends: Set<Promise<unknown>> | undefined
  /** One of them has failed. */
  hasFailed: boolean
  loading: Promise<void> | undefined
  /** Calls and lookups that need it. */
  uses: number
  /** How often its ids were dropped. */
  resets: number
}

function newRun(key: string, state: KnownRun['state']): KnownRun {
  return { key, state, ids: undefined, appends: undefined, hasFailed: false, loading: undefined, uses: 0, resets: 0 }
}

function sizeOf({ ids }: KnownRun): number {
  return ids?.size ?? 0
}

interface WantedRun {
  readonly run: RunRef
  readonly resolve: (ids: readonly StoredId[] | number) => void
  readonly reject: (error: unknown) => void
}

interface MissingId extends WantedId {
  readonly known: KnownRun
}

/** Ids of large runs that a call has found not to be stored; valid while no ids of the run have been dropped since. */
type Absent = Map<KnownRun, { readonly resets: number; readonly ids: Set<string> }>

/** The ids of large runs that a call needs; none if all that it needs are known. */
function missingOf(known: readonly KnownRun[], call: ToClaim, absent: Absent): MissingId[] {
  const missing = new Map<string, MissingId>()
  for (const row of call.rows) {
    const index = call.runOf(row)
    const run = known[index] as KnownRun
    if (run.state !== 'too large') continue
    const id = call.idOf(row)
    if (id === undefined || run.ids?.has(id)) continue
    const looked = absent.get(run)
    if (looked?.resets === run.resets && looked.ids.has(id)) continue
    missing.set(run.key + id, { known: run, run: call.runs[index] as RunRef, id })
  }
  return [...missing.values()]
}

/** Nobody needs the run right now; appends in flight are in no store yet. */
function isIdle({ appends, uses }: KnownRun): boolean {
  return appends === undefined && uses === 0
}

function slotOf(key: string): number {
  return Bun.hash.xxHash32(key) % SEEN_SLOTS
}
