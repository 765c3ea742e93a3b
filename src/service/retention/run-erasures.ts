import { readable } from '../../activity/runs/access.ts'
import type { RunDirectory } from '../../activity/runs/directory.ts'
import { queryLoaded } from '../../activity/runs/events.ts'
import { isTerminal, type RunStatus } from '../../activity/runs/state.ts'
import type { Clock } from '../../base/clock.ts'
import { ApiError, notFound } from '../../base/errors.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import { inTransaction, type Sql } from '../../stores/postgres/connect.ts'
import { isGone, type Sign } from '../../stores/postgres/liveness.ts'
import type { KeyRing } from '../../tenants/keys/key-ring.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { Partitions } from '../../tenants/partitions/partition.ts'
import { eraseRunsFromColumnar, readOpen, refuseErasedRun } from './erase-activity.ts'
import { type ErasedRun, eraseRetries, eraseRunState, isWhole } from './erase-state.ts'
import type { RunErasure } from './schema.ts'

interface RunErasuresDeps {
  readonly sql: Sql
  readonly columnar: ColumnarClient
  readonly directory: Pick<RunDirectory, 'find' | 'forget'>
  readonly partitions: Pick<Partitions, 'of' | 'owned'>
  readonly ring: Pick<KeyRing, 'gone' | 'lookAtOthers'>
  readonly clock: Clock
}

/** Advisory lock, so that the numbers of erasures are in the order of their commits. */
const ORDER_LOCK = 7_231_046_598_231
const NOTICED_PER_QUERY = 1_000
/** Their ids stay used, and are in memory with the run. */
const SCORES_PER_RUN_MAX = 1_000

/**
 * Deletes single runs that have ended (docs/runs.md#deleting-a-run), and single scores. The call stores the row in
 * `run_erasures` and deletes the run from Postgres; the owner of the workspace's log deletes it there and in ClickHouse
 * (`erase-activity.ts`), and any process then verifies that nothing is left. Each step can be repeated, by any process, after
 * a crash, too.
 */
export class RunErasures {
  /** The last erasure that this process has seen. */
  private seen: number | undefined

  constructor(private readonly deps: RunErasuresDeps) {}

  /**
   * Begins to delete a run, or one of its scores; a repeat returns the same erasure.
   * @throws ApiError NOT_FOUND, CONFLICT for a run that has not ended, is part of one that has not, or has lost too many scores, UNAVAILABLE
   */
  async begin(caller: Caller, runId: string, scoreId: string | null = null): Promise<RunErasure> {
    const { sql, directory, clock } = this.deps
    const { workspaceId, partition } = caller
    const run = { workspaceId, runId: runId.toLowerCase(), scoreId }
    if (scoreId !== null) await this.checkScore(caller, run.runId, scoreId)
    const erasure = await inTransaction(sql, async (tx) => {
      const [found] = await tx<FoundRun[]>`
        select status, (
          select root.status from hosted_runs h join runs root
            on root.run_id = h.root_run_id and root.workspace_id = h.workspace_id
          where h.run_id = runs.run_id and h.workspace_id = runs.workspace_id
        ) as root_status
        from runs where run_id = ${run.runId} and workspace_id = ${workspaceId} for update`
      if (found !== undefined && isWhole(run)) checkEnded(found)
      if (found !== undefined) {
        await tx`select pg_advisory_xact_lock(${ORDER_LOCK})`
        await tx`
          insert into run_erasures (erasure_id, run_id, workspace_id, partition, requested_at, score_id)
          values (gen_random_uuid(), ${run.runId}, ${workspaceId}, ${partition}, ${new Date(clock.now())}, ${scoreId})
          on conflict (run_id, workspace_id, score_id) do nothing`
      }
      const [row] = await tx<StoredErasure[]>`
        select erasure_id, score_id, requested_at, done_at from run_erasures
        where run_id = ${run.runId} and workspace_id = ${workspaceId} and score_id is not distinct from ${scoreId}`
      return row
    })
    if (erasure === undefined) throw notFound('run')
    await (isWhole(run) ? eraseRunState(sql, [run]) : eraseRetries(sql, [run]))
    directory.forget(run)
    return toAnswer(erasure)
  }

  /** @throws ApiError NOT_FOUND, UNAVAILABLE */
  async get({ workspaceId }: Caller, erasureId: string): Promise<RunErasure> {
    const [row] = await this.deps.sql<StoredErasure[]>`
      select erasure_id, score_id, requested_at, done_at from run_erasures
      where erasure_id = ${erasureId} and workspace_id = ${workspaceId}`
    if (row === undefined) throw notFound('erasure')
    return toAnswer(row)
  }

  /** @throws ApiError NOT_FOUND for a score that neither exists nor was deleted, CONFLICT, UNAVAILABLE */
  private async checkScore(caller: Caller, runId: string, scoreId: string): Promise<void> {
    const { deletedScores } = readable(caller, await this.deps.directory.find(caller.workspaceId, runId))
    if (deletedScores?.has(scoreId)) return
    const params = { workspace: caller.workspaceId, run: runId, score: scoreId }
    const sql = `
      select 1 from scores
      where workspace_id = {workspace:UUID} and run_id = {run:UUID} and score_id = {score:String} limit 1`
    const found = await queryLoaded(this.deps, caller, 'scores', sql, params)
    if (found.length === 0) throw notFound('score')
    if ((deletedScores?.size ?? 0) < SCORES_PER_RUN_MAX) return
    throw new ApiError('CONFLICT', `at most ${SCORES_PER_RUN_MAX} scores of a run can be deleted`, {
      reason: 'limit_reached',
    })
  }

  /** Makes this process refuse what is reported for runs that any process has deleted. Called about once a second. */
  async notice(): Promise<void> {
    const { sql, directory, partitions } = this.deps
    this.seen ??= await this.firstToNotice()
    for (;;) {
      const rows: NoticedRun[] = await sql<NoticedRun[]>`
        select run_id as "runId", workspace_id as "workspaceId", score_id as "scoreId", partition, number
        from run_erasures
        where number > ${this.seen} order by number limit ${NOTICED_PER_QUERY}`
      for (const run of rows) {
        directory.forget(run)
        for (const { id, journal } of partitions.owned()) if (id === run.partition) refuseErasedRun(journal, run)
      }
      this.seen = rows.at(-1)?.number ?? this.seen
      if (rows.length < NOTICED_PER_QUERY) return
    }
  }

  /** Calls that came before the first query may have cached a run that was deleted a moment later. */
  private async firstToNotice(): Promise<number> {
    const [{ last }] = await this.deps.sql<[{ last: number }]>`
      select coalesce(max(number), 0) as last from run_erasures`
    return last - NOTICED_PER_QUERY
  }

  /** Verifies that nothing is left of the runs that every log has released. @throws what the stores throw */
  async finish(signal: AbortSignal): Promise<void> {
    const { sql, columnar, ring, clock } = this.deps
    const [open] = await sql`select from run_erasures where done_at is null limit 1`
    if (open === undefined) return
    await ring.lookAtOthers()
    const runs = await readOpen(sql, isReleased(sql, ring.gone()))
    if (runs.length === 0) return
    const ids = runs.map(({ erasureId }) => erasureId)
    // A start that had begun before the run was deleted may have stored it again.
    const isBack = (await eraseRunState(sql, runs.filter(isWhole))) > 0
    // So may an attempt to send a score; those of whole runs are gone with their runs.
    await eraseRetries(
      sql,
      runs.filter((run) => !isWhole(run)),
    )
    const left = isBack ? [] : await eraseRunsFromColumnar(columnar, runs, signal)
    if (isBack || left.length > 0) {
      await sql`update run_erasures set released_epochs = '{}' where erasure_id = any(${ids}::uuid[])`
      return
    }
    const now = new Date(clock.now())
    // A store that was set back meanwhile has reopened them.
    await sql`
      update run_erasures e set done_at = ${now}
      where erasure_id = any(${ids}::uuid[]) and done_at is null and ${isReleased(sql, ring.gone())}`
  }
}

/** SQL: whether every log that can have rows of an erasure `e` has deleted them: in a cluster, that of its partition. */
export function isReleased(sql: Sql, gone: readonly Sign[]) {
  return sql`not exists (
    select from (
      select epoch from instances i
      where not ${isGone(sql, 'i', gone)} and not exists (select from journal_partitions)
      union all
      select epoch from journal_partitions p where p.partition = e.partition
    ) as logs
    where logs.epoch is null or not logs.epoch = any(e.released_epochs)
  )`
}

interface NoticedRun extends ErasedRun {
  readonly partition: number
  readonly number: number
}

interface StoredErasure {
  readonly erasure_id: string
  readonly score_id: string | null
  readonly requested_at: Date
  readonly done_at: Date | null
}

function toAnswer({ erasure_id, score_id, requested_at, done_at }: StoredErasure): RunErasure {
  return {
    erasure_id,
    status: done_at === null ? 'running' : 'done',
    requested_at: requested_at.toISOString(),
    done_at: done_at?.toISOString() ?? null,
    runs: score_id === null ? 1 : 0,
    scores: score_id === null ? 0 : 1,
  }
}

interface FoundRun {
  readonly status: RunStatus
  /** Of the run that was invoked, if the run is hosted: this one or its topmost ancestor; null once that is deleted. */
  readonly root_status: RunStatus | null
}

/**
 * A live run may yet read the result of a child, and its budget counts what its descendants have spent.
 * @throws ApiError CONFLICT
 */
function checkEnded({ status, root_status: root }: FoundRun): void {
  const live = (what: string) => new ApiError('CONFLICT', what, { reason: 'run_live' })
  if (!isTerminal(status)) throw live(`the run is ${status}; cancel it, or wait until it has ended`)
  if (root !== null && !isTerminal(root))
    throw live(`the run is part of another one, which is ${root}; cancel that one, or wait until it has ended`)
}
