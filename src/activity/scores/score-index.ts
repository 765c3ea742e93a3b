import { type RunIdentity, type RunRef, runKey } from '../../base/ids.ts'
import type { ScoreIds, ScoresClaimed, ScoresToClaim } from '../../tenants/partitions/partition.ts'

/** Looks up the scores of runs that are not in memory. */
export interface ScoreSource {
  /** How many scores each of these runs has; runs without any may be absent. @throws ApiError UNAVAILABLE */
  counts(runs: readonly RunRef[]): Promise<ReadonlyMap<string, number>>
  /** All scores of these runs: run id, score id and hash. @throws ApiError UNAVAILABLE */
  all(runs: readonly RunRef[], visit: (runId: string, id: string, hash: number) => void): Promise<void>
  /** Those that have one of these ids of their run. @throws ApiError UNAVAILABLE */
  among(wanted: readonly WantedScore[], visit: (runId: string, id: string, hash: number) => void): Promise<void>
}

interface WantedScore {
  readonly run: RunRef
  readonly id: string
}

const BOUNDS = { ids: 500_000, idsPerRun: 200_000, runs: 50_000 }

/**
 * Detects repeated scores by the hash of the latest one with their id: exactly, for as long as the scores are stored, and in
 * bounded memory. All scores of a run that this process saw start are known. Those of other runs are fetched from ClickHouse on
 * first use, once it has everything acknowledged so far; of a run with too many, only those with the ids of each call. The
 * least recently used runs are evicted.
 */
export class ScoreIndex implements ScoreIds {
  /** In order of use, oldest first; keyed by {@link runKey}. */
  private readonly runs = new Map<string, KnownRun>()
  private size = 0

  constructor(
    private readonly source: ScoreSource,
    private readonly bounds = BOUNDS,
  ) {}

  runStarted({ workspaceId, runId }: RunIdentity): void {
    const key = runKey(workspaceId, runId)
    // A caller that chose the id of the run may have scored it already, before this process has answered its start.
    if (!this.runs.has(key)) this.runs.set(key, newRun('complete'))
    this.makeRoom()
  }

  claim<Result>(
    scores: ScoresToClaim,
    append: (rows: readonly number[]) => Promise<Result>,
  ): ScoresClaimed<Result> | Promise<ScoresClaimed<Result>> {
    const known = scores.runs.map((run) => this.use(run))
    const isReady = known.every((run) => run.state === 'complete' && !this.mustSettle(run))
    return isReady ? this.claimNow(known, scores, append) : this.claimLater(known, scores, append)
  }

  /** Evicts what was fetched after ClickHouse has lost rows: those scores may be sent again. */
  forgetFetched(): void {
    for (const [key, run] of this.runs) if (isIdle(run)) this.forget(key, run)
  }

  /** The entry of a run, as the most recently used. */
  private use({ workspaceId, runId }: RunRef): KnownRun {
    const key = runKey(workspaceId, runId)
    const run = this.runs.get(key) ?? newRun('unknown')
    this.runs.delete(key)
    this.runs.set(key, run)
    return run
  }

  private claimNow<Result>(
    known: readonly KnownRun[],
    scores: ScoresToClaim,
    append: (rows: readonly number[]) => Promise<Result>,
  ): ScoresClaimed<Result> {
    const rows: number[] = []
    const changed = new Set<KnownRun>()
    const repeated = new Set<KnownRun>()
    for (const row of scores.rows) {
      const id = scores.idOf(row)
      const run = known[scores.runOf(row)]
      if (id !== undefined) {
        const hash = scores.hashOf(row)
        run.hashes ??= new Map()
        const { hashes } = run
        if (hashes.get(id) === hash) {
          repeated.add(run)
          continue
        }
        const before = hashes.size
        hashes.set(id, hash)
        this.size += hashes.size - before
        changed.add(run)
      }
      rows.push(row)
    }
    // Before this append: the original of a duplicate must be durable before the duplicate is acknowledged.
    const originals = [...repeated].flatMap(({ appends }) => [...appends])
    const appended = append(rows)
    this.follow(changed, appended)
    this.makeRoom()
    const duplicates = scores.rows.length - rows.length
    if (originals.length === 0) return { duplicates, durable: appended }
    return { duplicates, durable: Promise.all([appended, ...originals]).then(([result]) => result as Result) }
  }

  /** Notes an append with the runs whose hashes it changed; if it fails, they are fetched again. */
  private follow(changed: ReadonlySet<KnownRun>, appended: Promise<unknown>): void {
    for (const run of changed) run.appends.add(appended)
    const end = (hasFailed: boolean) => {
      for (const run of changed) {
        run.appends.delete(appended)
        run.hasFailed ||= hasFailed
        if (run.appends.size === 0) this.settle(run)
      }
    }
    appended.then(
      () => end(false),
      () => end(true),
    )
  }

  /** Once nothing is being appended for a run. */
  private settle(run: KnownRun): void {
    const size = run.hashes?.size ?? 0
    if (!run.hasFailed && size <= this.bounds.idsPerRun) return
    run.state = run.hasFailed ? 'unknown' : 'too large'
    run.hasFailed = false
    run.hashes = undefined
    run.resets++
    this.size -= size
  }

  /**
   * Whether nothing more may be claimed of a run until its appends have ended: a failed one leaves hashes of scores that were
   * never stored, and without a pause a run with many scores would never get rid of those that ClickHouse has, too.
   */
  private mustSettle({ appends, hashes, hasFailed }: KnownRun): boolean {
    return appends.size > 0 && (hasFailed || (hashes?.size ?? 0) > this.bounds.idsPerRun)
  }

  /** Claims once the hashes that are needed have been fetched. Until then none of the runs is evicted. */
  private async claimLater<Result>(
    known: readonly KnownRun[],
    scores: ScoresToClaim,
    append: (rows: readonly number[]) => Promise<Result>,
  ): Promise<ScoresClaimed<Result>> {
    for (const run of known) run.uses++
    try {
      for (;;) {
        const settling = known.filter((run) => this.mustSettle(run)).flatMap(({ appends }) => [...appends])
        if (settling.length > 0) await Promise.allSettled(settling)
        else if (known.some(({ state }) => state === 'unknown')) await this.load(known, scores.runs)
        else {
          const missing = missingOf(known, scores)
          // In the same tick: what is known now may be gone after the next.
          if (missing.length === 0) return this.claimNow(known, scores, append)
          await this.fetch(missing)
        }
      }
    } finally {
      for (const run of known) run.uses--
      this.makeRoom()
    }
  }

  /** Loads the runs that are not known yet; calls that need the same runs share it. */
  private async load(known: readonly KnownRun[], refs: readonly RunRef[]): Promise<void> {
    const waiting = known.flatMap(({ loading }) => loading ?? [])
    const mine = refs.filter((_, index) => known[index].state === 'unknown' && known[index].loading === undefined)
    if (mine.length > 0) {
      const states = known.filter(({ state, loading }) => state === 'unknown' && loading === undefined)
      const loading = this.loadAll(states, mine).finally(() => {
        for (const run of states) run.loading = undefined
      })
      for (const run of states) run.loading = loading
      waiting.push(loading)
    }
    await Promise.all(new Set(waiting))
  }

  private async loadAll(known: readonly KnownRun[], refs: readonly RunRef[]): Promise<void> {
    const counts = await this.source.counts(refs)
    const small = new Map<string, KnownRun>()
    let total = 0
    const wanted = refs.filter(({ runId }, index) => {
      const count = counts.get(runId) ?? 0
      const isTooLarge = count > this.bounds.idsPerRun || total + count > this.bounds.idsPerRun
      if (isTooLarge) known[index].state = 'too large'
      else if (count === 0) known[index].state = 'complete'
      else {
        total += count
        small.set(runId, known[index])
        return true
      }
      return false
    })
    if (wanted.length === 0) return
    const loaded = new Map([...small.keys()].map((runId) => [runId, new Map<string, number>()]))
    await this.source.all(wanted, (runId, id, hash) => void loaded.get(runId)!.set(id, hash))
    for (const [runId, run] of small) {
      run.state = 'complete'
      this.size -= run.hashes?.size ?? 0
      run.hashes = loaded.get(runId)!
      this.size += run.hashes.size
    }
  }

  /** Fetches the hashes of some ids of large runs. */
  private async fetch(missing: readonly MissingScore[]): Promise<void> {
    const runs = new Set(missing.map(({ known }) => known))
    // With nothing in flight, all that a run has can be fetched again.
    for (const known of runs) if (known.uses === 1 && known.appends.size === 0) this.settle(known)
    const resets = new Map([...runs].map((known) => [known, known.resets]))
    const found = new Map<string, number>()
    await this.source.among(missing, (runId, id, hash) => void found.set(runId + id, hash))
    for (const { known, run, id } of missing) {
      // What was claimed in the meantime is newer, also if it has been appended and dropped again.
      if (known.resets !== resets.get(known)) continue
      known.hashes ??= new Map()
      if (known.hashes.has(id)) continue
      known.hashes.set(id, found.get(run.runId + id) ?? 0)
      this.size++
    }
  }

  private makeRoom(): void {
    for (const [key, run] of this.runs) {
      if (this.size <= this.bounds.ids && this.runs.size <= this.bounds.runs) return
      if (isIdle(run)) this.forget(key, run)
    }
  }

  private forget(key: string, run: KnownRun): void {
    this.runs.delete(key)
    this.size -= run.hashes?.size ?? 0
  }
}

interface KnownRun {
  /** `complete`: all scores are in `hashes`; `too large`: those that calls asked for. */
  state: 'unknown' | 'complete' | 'too large'
  /** By id, of the latest score; 0 for one that is not stored, or whose hash is not known. */
  hashes: Map<string, number> | undefined
  /** Appends of scores in `hashes` that are not durable yet. */
  readonly appends: Set<Promise<unknown>>
  /** One of them has failed. */
  hasFailed: boolean
  loading: Promise<void> | undefined
  /** Calls that wait for hashes. */
  uses: number
  /** How often its hashes were dropped. */
  resets: number
}

function newRun(state: KnownRun['state']): KnownRun {
  return { state, hashes: undefined, appends: new Set(), hasFailed: false, loading: undefined, uses: 0, resets: 0 }
}

interface MissingScore extends WantedScore {
  readonly known: KnownRun
}

/** The scores of large runs whose hashes a call needs; none if all that it needs are known. */
function missingOf(known: readonly KnownRun[], scores: ScoresToClaim): MissingScore[] {
  const missing = new Map<string, MissingScore>()
  for (const row of scores.rows) {
    const index = scores.runOf(row)
    if (known[index].state !== 'too large') continue
    const id = scores.idOf(row)
    if (id === undefined || known[index].hashes?.has(id)) continue
    missing.set(scores.runs[index].runId + id, { known: known[index], run: scores.runs[index], id })
  }
  return [...missing.values()]
}

/** Nobody needs the run right now; appends in flight are in no store yet. */
function isIdle({ appends, uses }: KnownRun): boolean {
  return appends.size === 0 && uses === 0
}
