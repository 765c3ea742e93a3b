import type { ApiError } from '../../base/errors.ts'
import type { SharedSlice } from '../../base/http/shared-slice.ts'
import type { Mint, RunRef } from '../../base/ids.ts'
import type { Limits } from '../../base/limits.ts'
import type { Appended } from '../../stores/journal/journal.ts'
import { SCORE_CELLS as CELLS, scoreIdOf } from '../../stores/journal/rows.ts'
import { SCORE_SOURCES, type ScoreSource, scoreErased } from '../../stores/journal/scores.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { type Partitions, writerOf } from '../../tenants/partitions/partition.ts'
import type { Rejected } from '../events/scan.ts'
import { readable } from '../runs/access.ts'
import type { RunDirectory } from '../runs/directory.ts'
import { type ColumnsOfRuns, columnsOf } from './columns.ts'
import { contentHash } from './content-hash.ts'
import { ScoreScan } from './scan.ts'
import { ScanMemoryPool } from './scan-memory.ts'
import type { NewScore, ScoresAccepted } from './schema.ts'

interface ScoresDeps {
  readonly runs: RunDirectory
  readonly partitions: Partitions
  readonly limits: Limits
  readonly slice: SharedSlice
  /** Deducts the scores from the key's budget of events. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller, scores: number) => void
  /** Called with the result of each call, for the metrics. */
  readonly onAccepted: (accepted: number, duplicates: number) => void
}

/** How the scores of a call are treated. */
interface AddOptions {
  /** Store the valid scores, and list those that are not, or whose run the caller may not score. */
  readonly partial: boolean
  /** Mints the same ids when the call is repeated; undefined: scores without an id are stored again. */
  readonly mint: Mint | undefined
}

/** Lookups that one call makes concurrently: the queues of the stores are bounded. */
const LOOKUPS_MAX = 1_000

/**
 * Stores scores: judgements of runs by people, models and programs (docs/scores.md). A score is a row of the
 * journal, like an event; the latest row of an id within a run is the score.
 *
 * For routes that translate the scores of others: build {@link NewScore}s, check each with `scoreProblem` of `problem.ts`, and call
 * {@link Scores.add} once per batch, in the process that owns the workspace's partition (as `otlp/` does, by
 * `forwarder.carryOut`). Give each score an id, derived from the sender's if need be, so that a repeated batch stores nothing.
 */
export class Scores {
  private readonly memory = new ScanMemoryPool()

  constructor(private readonly deps: ScoresDeps) {}

  /**
   * Stores checked scores. Resolves once every accepted one is on stable storage.
   * @param caller a workspace key may score any run of its workspace, an agent key its own agent's
   * @throws ApiError RATE_LIMITED, NOT_FOUND, FORBIDDEN (a run; not if `partial`), UNAVAILABLE
   */
  async add(caller: Caller, scores: readonly NewScore[], options: AddOptions): Promise<ScoresAccepted> {
    this.deps.takeBudget(caller, scores.length)
    return this.conclude(this.store(caller, columnsOf(scores), [], options), options)
  }

  /**
   * Stores the scores of a body of `POST /api/ingest/v1/scores`.
   * @throws ApiError VALIDATION_ERROR; as {@link add}
   */
  async append(caller: Caller, body: Uint8Array, options: AddOptions): Promise<ScoresAccepted> {
    const { limits, slice, takeBudget } = this.deps
    const memory = this.memory.take(body.length)
    try {
      const scan = new ScoreScan(body, memory, limits, options.partial)
      const steps = scan.steps()
      const own = slice.of(caller.workspaceId)
      while (!steps.next().done) if (own.isOver) await own.yield()
      takeBudget(caller, scan.count)
      // Once this has returned, or resolved, the rows have been copied.
      const stored = this.store(caller, scan, scan.rejected, options)
      return this.conclude(stored instanceof Promise ? await stored : stored, options)
    } finally {
      this.memory.give(memory)
    }
  }

  private async conclude(
    stored: Stored | Promise<Stored>,
    { partial }: Pick<AddOptions, 'partial'>,
  ): Promise<ScoresAccepted> {
    const { count, duplicates, durable, rejected } = await stored
    const positions = await durable
    const accepted = count - duplicates
    this.deps.onAccepted(accepted, duplicates)
    return {
      accepted,
      duplicates,
      first_seq: positions?.firstSeq ?? null,
      last_seq: positions?.lastSeq ?? null,
      ...(partial && { rejected: [...rejected] }),
    }
  }

  /** Appends scores, in this tick if their runs and ids are in memory. */
  private store(
    caller: Caller,
    scores: ColumnsOfRuns,
    rejected: readonly Rejected[],
    options: AddOptions,
  ): Stored | Promise<Stored> {
    const found = this.find(caller, scores.runIds)
    return found instanceof Promise
      ? found.then((runs) => this.storeOf(caller, runs, scores, rejected, options))
      : this.storeOf(caller, found, scores, rejected, options)
  }

  private storeOf(
    caller: Caller,
    found: readonly (RunRef | null)[],
    scores: ColumnsOfRuns,
    invalid: readonly Rejected[],
    { partial, mint }: AddOptions,
  ): Stored | Promise<Stored> {
    const problems = found.map((run) => problemOf(caller, run))
    const ids = mint && Array.from({ length: scores.count }, () => mint.ulid())
    const idOf = (row: number) => scoreIdOf({ scores, ids }, row)
    const hasDeleted = found.some((run) => run?.deletedScores !== undefined)
    const isDeleted = (row: number) =>
      hasDeleted && found[scores.cells[row * CELLS.count + CELLS.run]]?.deletedScores?.has(idOf(row) ?? '') === true
    const { rows, rejected } = allowed(scores, problems, isDeleted, invalid, partial)
    const count = rows.length
    const { journal, scoreIds } = writerOf(this.deps.partitions, caller)
    const defaultSource = numberOf(caller.person === undefined ? 'api' : 'person')
    if (count === 0) return { count, rejected, duplicates: 0, durable: null }
    // No row refers to the runs of rejected scores: any other takes their places.
    const [fine] = found.filter((_, index) => problems[index] === undefined)
    const runs = found.map((run, index) => (problems[index] === undefined ? run! : fine!))
    const batch = { runs, scores, ids, defaultSource }
    if (!scores.hasIds && mint === undefined) {
      const durable = journal.appendScores({ ...batch, rows, hashes: undefined })
      return { count, rejected, duplicates: 0, durable }
    }
    const { cells } = scores
    const hashes = new Float64Array(scores.count)
    const contentOf = (row: number) => {
      const source = cells[row * CELLS.count + CELLS.source] || defaultSource
      hashes[row] = contentHash(scores, row, source)
      return hashes[row]
    }
    const runOf = (row: number) => cells[row * CELLS.count + CELLS.run]
    const claimed = scoreIds.claim({ runs, rows, runOf, idOf, contentOf }, async (fresh) =>
      fresh.length === 0 ? null : journal.appendScores({ ...batch, rows: fresh, hashes }),
    )
    return claimed instanceof Promise
      ? claimed.then((later) => ({ count, rejected, ...later }))
      : { count, rejected, ...claimed }
  }

  /** The runs, in order; null for those that the workspace does not have. */
  private find(caller: Caller, runIds: readonly string[]): (RunRef | null)[] | Promise<(RunRef | null)[]> {
    const { runs } = this.deps
    const found: (RunRef | null)[] = []
    for (const runId of runIds) {
      const run = found.length < LOOKUPS_MAX ? runs.find(caller.workspaceId, runId) : null
      if (run === null || run instanceof Promise) return this.findLater(caller, runIds)
      found.push(run)
    }
    return found
  }

  private async findLater(caller: Caller, runIds: readonly string[]): Promise<(RunRef | null)[]> {
    const found: (RunRef | null)[] = []
    for (let from = 0; from < runIds.length; from += LOOKUPS_MAX) {
      const some = runIds.slice(from, from + LOOKUPS_MAX)
      found.push(...(await Promise.all(some.map((runId) => this.deps.runs.find(caller.workspaceId, runId)))))
    }
    return found
  }
}

/** What remains of a call when its scores have been appended. */
interface Stored {
  readonly count: number
  readonly rejected: readonly Rejected[]
  readonly duplicates: number
  /** Resolves once the scores are on stable storage; null if there are none. */
  readonly durable: Promise<Appended | null> | null
}

/**
 * The rows whose runs the caller may score, and whose ids are not those of deleted scores.
 * @throws ApiError for the first of the others, unless `partial`
 */
function allowed(
  scores: ColumnsOfRuns,
  problems: readonly (ApiError | undefined)[],
  isDeleted: (row: number) => boolean,
  invalid: readonly Rejected[],
  partial: boolean,
): { readonly rows: readonly number[]; readonly rejected: readonly Rejected[] } {
  const isFine = problems.every((problem) => problem === undefined)
  const rows: number[] = []
  const refused: Rejected[] = []
  for (let row = 0; row < scores.count; row++) {
    const ofRun = isFine ? undefined : problems[scores.cells[row * CELLS.count + CELLS.run]]
    const problem = ofRun ?? (isDeleted(row) ? scoreErased() : undefined)
    if (problem === undefined) rows.push(row)
    else {
      const index = scores.indexOf(row)
      const error = problem.at(`scores[${index}].${ofRun === undefined ? 'id' : 'run_id'}`, problem.message)
      if (!partial) throw error
      refused.push({ index, message: error.message })
    }
  }
  if (refused.length === 0) return { rows, rejected: invalid }
  return { rows, rejected: [...invalid, ...refused].sort((a, b) => a.index - b.index) }
}

/** Why the caller may not score a run; undefined if it may. */
function problemOf(caller: Caller, run: RunRef | null): ApiError | undefined {
  try {
    readable(caller, run)
    return undefined
  } catch (error) {
    return error as ApiError
  }
}

/** As in the cells of scores. */
function numberOf(source: ScoreSource): number {
  return SCORE_SOURCES.indexOf(source) + 1
}
