import { type RunIdentity, runKey } from '../ids.ts'
import type { RunRef } from './schema.ts'

/** Where the event ids of runs can be looked up that this process does not remember. */
export interface EventIdSource {
  /**
   * All event ids of the run that have been accepted so far, but at most `limit`.
   * @throws ApiError UNAVAILABLE
   */
  all(run: RunRef, limit: number): Promise<string[]>
  /**
   * Those of `ids` that have been accepted for the run.
   * @throws ApiError UNAVAILABLE
   */
  among(run: RunRef, ids: readonly string[]): Promise<string[]>
}

/** Which events of a call are new. */
export interface Claim {
  /** The ids as they were given. */
  readonly ids: readonly (string | undefined)[]
  /** For each event, whether it is to be stored. */
  readonly fresh: readonly boolean[]
  readonly duplicates: number
  /** Earlier appends of this run that are still on their way: a duplicate must not be acknowledged before they are. */
  readonly settled: Promise<unknown> | undefined
  /** To be called once, with the append of the fresh events (or a resolved promise): a failed one gives its ids back. */
  readonly appended: (append: Promise<unknown>) => void
}

/**
 * Tells events that were accepted before by the ids their callers gave them: exactly, for as long as the data lives, in
 * bounded memory. A run that this process saw start is known completely; the ids of any other are fetched on first
 * use from ClickHouse, once it holds everything acknowledged so far. The least recently used runs are forgotten.
 */
export class EventIdIndex {
  /** Keyed like the other maps by {@link runKey}; in order of use, oldest first. */
  private readonly runs = new Map<string, KnownRun>()
  private readonly loading = new Map<string, Promise<void>>()
  /** Calls to runs too large to be known go one after the other, each asking for its own ids. */
  private readonly turns = new Map<string, Promise<unknown>>()
  private size = 0

  constructor(
    private readonly source: EventIdSource,
    private readonly bounds: { ids: number; idsPerRun: number; runs: number } = BOUNDS,
  ) {}

  /** This process created the run: it has no events yet. */
  runStarted({ workspaceId, runId }: RunIdentity): void {
    this.remember(runKey(workspaceId, runId), new Set())
  }

  /**
   * Claims the ids of one call; an id that occurs twice in it counts once. Events without an id are always fresh.
   * Answers at once when the run is known.
   */
  claim(run: RunRef, ids: readonly (string | undefined)[]): Claim | Promise<Claim> {
    const key = runKey(run.workspaceId, run.runId)
    const known = this.runs.get(key)
    if (known === undefined) return this.claimUnknown(key, run, ids)
    this.runs.delete(key)
    this.runs.set(key, known)
    const before = known.ids.size
    const claimed: string[] = []
    const fresh = ids.map((id) => {
      if (id === undefined) return true
      if (known.ids.has(id)) return false
      known.ids.add(id)
      claimed.push(id)
      return true
    })
    this.size += known.ids.size - before
    this.makeRoom()
    return {
      ids,
      fresh,
      duplicates: duplicatesOf(fresh),
      settled: known.onTheWay,
      appended: (append) => this.follow(key, known, claimed, append),
    }
  }

  private follow(key: string, known: KnownRun, claimed: readonly string[], append: Promise<unknown>): void {
    const settled = append.then(
      () => {},
      (error) => {
        for (const id of claimed) if (known.ids.delete(id)) this.size--
        throw error
      },
    )
    const all = known.onTheWay === undefined ? settled : Promise.all([known.onTheWay, settled])
    known.onTheWay = all
    const done = () => {
      if (known.onTheWay !== all) return
      known.onTheWay = undefined
      if (known.ids.size > this.bounds.idsPerRun && this.runs.get(key) === known) this.forget(key, known)
    }
    all.then(done, done)
  }

  private async claimUnknown(key: string, run: RunRef, ids: readonly (string | undefined)[]): Promise<Claim> {
    if (!this.turns.has(key)) {
      let loading = this.loading.get(key)
      if (loading === undefined) {
        loading = this.load(key, run).finally(() => this.loading.delete(key))
        this.loading.set(key, loading)
      }
      await loading
      if (this.runs.has(key)) return this.claim(run, ids)
    }
    return this.claimByAsking(key, run, ids)
  }

  private async load(key: string, run: RunRef): Promise<void> {
    const ids = await this.source.all(run, this.bounds.idsPerRun + 1)
    if (ids.length <= this.bounds.idsPerRun) this.remember(key, new Set(ids))
  }

  private async claimByAsking(key: string, run: RunRef, ids: readonly (string | undefined)[]): Promise<Claim> {
    const before = this.turns.get(key)
    const turn = Promise.withResolvers<void>()
    this.turns.set(key, turn.promise)
    const end = () => {
      if (this.turns.get(key) === turn.promise) this.turns.delete(key)
      turn.resolve()
    }
    try {
      await before
      const seen = new Set(
        await this.source.among(
          run,
          ids.filter((id) => id !== undefined),
        ),
      )
      const fresh = ids.map((id) => {
        if (id === undefined) return true
        if (seen.has(id)) return false
        seen.add(id)
        return true
      })
      return {
        ids,
        fresh,
        duplicates: duplicatesOf(fresh),
        settled: undefined,
        appended: (append) => void append.then(end, end),
      }
    } catch (error) {
      end()
      throw error
    }
  }

  /** Forgets what was fetched: ClickHouse has lost something since, and its ids may come again. */
  forgetFetched(): void {
    for (const [key, known] of this.runs) if (known.onTheWay === undefined) this.forget(key, known)
  }

  private remember(key: string, ids: Set<string>): void {
    this.runs.set(key, { ids, onTheWay: undefined })
    this.size += ids.size
    this.makeRoom()
  }

  /** Forgets the longest unused runs, but none with appends on their way: those are in no store yet. */
  private makeRoom(): void {
    for (const [key, known] of this.runs) {
      if (this.size <= this.bounds.ids && this.runs.size <= this.bounds.runs) return
      if (known.onTheWay === undefined) this.forget(key, known)
    }
  }

  private forget(key: string, known: KnownRun): void {
    this.runs.delete(key)
    this.size -= known.ids.size
  }
}

interface KnownRun {
  readonly ids: Set<string>
  onTheWay: Promise<unknown> | undefined
}

const BOUNDS = { ids: 500_000, idsPerRun: 100_000, runs: 50_000 }

function duplicatesOf(fresh: readonly boolean[]): number {
  return fresh.reduce((sum, isFresh) => (isFresh ? sum : sum + 1), 0)
}
