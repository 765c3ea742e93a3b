import type { RunDirectory } from '../../activity/runs/directory.ts'
import type { Clock } from '../../base/clock.ts'
import { ApiError, notFound } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { Loops } from '../../base/loops.ts'
import { ColumnarUnavailable } from '../../stores/clickhouse/client.ts'
import type { TransactionSql } from '../../stores/postgres/connect.ts'
import type { KeyRing } from '../../tenants/keys/key-ring.ts'
import type { Partitions } from '../../tenants/partitions/partition.ts'
import { countRows, type EraseActivityDeps, eraseActivity } from './erase-activity.ts'
import { eraseState, tablesHolding } from './erase-state.ts'
import { isReleased, RunErasures } from './run-erasures.ts'
import type { ErasedWorkspace } from './schema.ts'

interface ErasureDeps extends Omit<EraseActivityDeps, 'runsErasedMs'> {
  readonly partitions: Pick<Partitions, 'of' | 'owned'>
  readonly directory: Pick<RunDirectory, 'find' | 'forget'>
  readonly ring: Pick<KeyRing, 'change' | 'gone' | 'lookAtOthers'>
  readonly clock: Clock
  readonly log: Log
  /** Supervises erasure together with other loops. */
  readonly loops?: Loops
}

export type Erasure = ReturnType<typeof startErasure>

/** How often a process checks whether another one is erasing a workspace, so that it erases its own journal, too. */
const CHECK_INTERVAL_MS = 1_000
const OTHERS_PATIENCE_MS = 30_000
const OTHERS_POLL_MS = 50

/**
 * Erases workspaces in idempotent steps; the row in `erasures` records the progress. The steps: suspend the workspace;
 * delete its rows from Postgres; delete its rows from every process's journal and from ClickHouse; verify all stores;
 * delete the workspace itself.
 */
export function startErasure(given: ErasureDeps) {
  const deps = { ...given, runsErasedMs: new Map<number, number>() }
  const { sql, log, loops = new Loops(log) } = deps
  const runs = new RunErasures(deps)
  const stopping = new AbortController()
  const underway = new Map<string, Promise<ErasedWorkspace>>()
  let previous: Promise<void> = Promise.resolve()

  function eraseActivitySerially(): Promise<void> {
    const current = previous.then(async () => {
      await eraseActivity(deps, stopping.signal)
      await runs.finish(stopping.signal)
    })
    previous = current.catch(() => {})
    return current
  }

  async function erase(workspaceId: string): Promise<ErasedWorkspace> {
    const before = await readErasure(deps, workspaceId)
    if (before?.erased_at) return toAnswer(before)
    await begin(deps, workspaceId)
    log.info('erasing a workspace', { workspace_id: workspaceId })
    await eraseState(sql, workspaceId)
    const now = new Date(deps.clock.now())
    await sql`
      update erasures set state_gone_at = coalesce(state_gone_at, ${now}) where workspace_id = ${workspaceId}`
    await eraseActivitySerially()
    await waitForOtherProcesses(deps, workspaceId, stopping.signal)
    await finish(deps, workspaceId)
    const erased = toAnswer((await readErasure(deps, workspaceId))!)
    log.info('erased a workspace', { workspace_id: workspaceId, ...erased.deleted })
    return erased
  }

  // A round may wait for ClickHouse for a minute; runs that others have deleted are refused in the meantime.
  const stopNoticing = loops.repeat('noticing deleted runs', CHECK_INTERVAL_MS, () => runs.notice())
  const stopChecking = loops.repeat('erasing', CHECK_INTERVAL_MS, eraseActivitySerially)
  return {
    runs,
    /**
     * Erases a workspace. Resolves once no store has any of its data. Its keys and feeds stop working first. An interrupted
     * call can be repeated in any process; repeating a completed call returns the same result.
     * @throws ApiError NOT_FOUND; UNAVAILABLE when a store is unavailable or another process still has data
     */
    erase(workspaceId: string): Promise<ErasedWorkspace> {
      let work = underway.get(workspaceId)
      if (work === undefined) {
        work = erase(workspaceId)
          .catch((error) => {
            throw refusalOf(error, stopping.signal)
          })
          .finally(() => underway.delete(workspaceId))
        underway.set(workspaceId, work)
      }
      return work
    },
    async stop(): Promise<void> {
      stopping.abort(
        new ApiError('UNAVAILABLE', 'the service is shutting down; try again', { reason: 'shutting_down' }),
      )
      await Promise.all([stopNoticing(), stopChecking()])
      await Promise.allSettled(underway.values())
    },
  }
}

interface ErasureRow {
  readonly workspace_id: string
  readonly erased_at: Date | null
  readonly events: number
  readonly runs: number
  readonly tasks: number
  readonly agents: number
  readonly keys: number
}

async function readErasure({ sql }: ErasureDeps, workspaceId: string): Promise<ErasureRow | undefined> {
  const [row] = await sql<ErasureRow[]>`
    select workspace_id, erased_at, events, runs, tasks, agents, keys from erasures where workspace_id = ${workspaceId}`
  return row
}

function toAnswer({ workspace_id, events, runs, tasks, agents, keys }: ErasureRow): ErasedWorkspace {
  return { workspace_id, status: 'erased', deleted: { events, runs, tasks, agents, keys } }
}

/** After this no process accepts the workspace's keys, and it cannot be reactivated. */
async function begin({ ring, clock }: ErasureDeps, workspaceId: string): Promise<void> {
  const now = new Date(clock.now())
  await ring.change({ scope: 'workspace', id: workspaceId, invalidates: true }, async (tx) => {
    const [workspace] = await tx`
      update workspaces set status = 'suspended', is_erasing = true, updated_at = ${now}
      where workspace_id = ${workspaceId} returning workspace_id`
    if (workspace === undefined) throw notFound('workspace')
    await tx`
      insert into erasures (workspace_id, requested_at, partition)
      select workspace_id, ${now}, partition from workspaces where workspace_id = ${workspaceId}
      on conflict (workspace_id) do nothing`
  })
}

/** Waits until the other live processes have erased their journals; in a cluster, the owner of the workspace's partition. */
async function waitForOtherProcesses(
  { sql, ring }: ErasureDeps,
  workspaceId: string,
  signal: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + OTHERS_PATIENCE_MS
  for (;;) {
    await ring.lookAtOthers()
    const [waiting] = await sql`
      select from erasures e where e.workspace_id = ${workspaceId} and not ${isReleased(sql, ring.gone())}`
    if (waiting === undefined) return
    signal.throwIfAborted()
    if (performance.now() > deadline)
      throw new ApiError('UNAVAILABLE', 'another process of the service has not erased its data yet; try again', {
        retryAfterSeconds: 10,
      })
    await Bun.sleep(OTHERS_POLL_MS)
  }
}

/**
 * Verifies that no store has data of the workspace. Until every process has erased its own journal, the sink of another
 * one may still load such rows, so this comes after all of them. @throws Error when a store has some
 */
async function finish({ sql, ring, clock, columnar }: ErasureDeps, workspaceId: string): Promise<void> {
  const left = [...(await countRows(columnar, { workspaceId })).keys(), ...(await tablesHolding(sql, workspaceId))]
  if (left.length > 0) throw new Error(`rows of an erased workspace are left in ${left.join(', ')}`)
  const now = new Date(clock.now())
  const end = async (tx: TransactionSql) => {
    await tx`delete from workspaces where workspace_id = ${workspaceId}`
    await tx`update erasures set erased_at = coalesce(erased_at, ${now}) where workspace_id = ${workspaceId}`
  }
  // Removes its keys, which are cached as suspended, from the caches.
  await ring.change({ scope: 'workspace', id: workspaceId, invalidates: true }, end)
}

function refusalOf(error: unknown, stopping: AbortSignal): unknown {
  if (stopping.aborted) return stopping.reason
  if (!(error instanceof ColumnarUnavailable)) return error
  return new ApiError('UNAVAILABLE', 'ClickHouse is not available at the moment; try again', { cause: error })
}
