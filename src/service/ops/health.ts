import { withTimeout } from '../../base/abort.ts'
import type { Clock } from '../../base/clock.ts'
import { ApiError } from '../../base/errors.ts'
import { type Dependency, HealthProblem } from '../../base/health.ts'
import { FAILING_MS, type LoopState, type Loops } from '../../base/loops.ts'
import type { SetAside } from '../../base/set-aside.ts'
import { ColumnarError } from '../../stores/clickhouse/client.ts'
import type { OwnedPartition } from '../../tenants/partitions/partition.ts'
import type { Incident } from '../store-marks/store-marks.ts'
import { clockHealth } from './clock-watch.ts'

const CHECK_TIMEOUT_MS = 2_000
/** Only the newest gaps are shown. */
const GAPS_SHOWN = 20

export interface HealthDeps {
  readonly dependencies: readonly Dependency[]
  /** The rows that each component has yet to read of the journal or the outbox. */
  readonly lags: Readonly<Record<string, () => number | Promise<number>>>
  /** How many rows each of them has skipped, by the same names. */
  readonly setAside: Pick<SetAside, 'of'>
  readonly owned: () => readonly OwnedPartition[]
  readonly loops: Pick<Loops, 'states'>
  /** Stores that have gone back to an earlier state, noticed since the service started. */
  readonly setBack: () => readonly Incident[]
  /** Jumps when the machine's clock does. */
  readonly clock: Clock
  /** Whether the service has begun to stop. */
  readonly isStopping: () => boolean
}

/**
 * Checks all dependencies at once; one that does not answer in time counts as failed. A background loop that has been
 * failing for some seconds makes the service `degraded`.
 */
export async function checkHealth(deps: HealthDeps) {
  const { dependencies, lags, setAside, owned, setBack, loops, isStopping } = deps
  const clock = clockHealth(deps.clock)
  const [checks, consumers] = await Promise.all([
    Promise.all(dependencies.map(async (each) => ({ ...each, result: await checkOne(each) }))),
    Promise.all(
      Object.entries(lags).map(
        async ([name, lag]) => [name, { lag: await lagOf(lag), set_aside: setAside.of(name) }] as const,
      ),
    ),
  ])
  const failed = checks.filter(({ result }) => !result.ok)
  const partitions = owned()
  const states = Object.fromEntries(loops.states().map((state) => [state.name, healthOf(state)]))
  const isFailing =
    failed.length > 0 ||
    Object.values(states).some(({ ok }) => !ok) ||
    consumers.some(([, { set_aside }]) => set_aside > 0) ||
    setBack().length > 0 ||
    !clock.ok
  const unavailable = isStopping() || failed.some(({ essential }) => essential)
  const status = unavailable ? 'unavailable' : isFailing ? 'degraded' : 'ready'
  return {
    status: status as 'ready' | 'degraded' | 'unavailable',
    dependencies: Object.fromEntries(checks.map(({ name, result }) => [name, result])),
    journal: partitions.length === 0 ? null : journalOf(partitions[0]),
    partitions: partitions.map(({ id, generation, journal, sink }) => ({
      partition: id,
      generation,
      epoch: journal.epoch,
      end_seq: journal.endSeq,
      loaded_seq: sink.loadedSeq(),
    })),
    loops: states,
    consumers: Object.fromEntries(consumers),
    clock,
    set_back: setBack().map(({ store, noticedAt, detail }) => ({
      store,
      noticed_at: new Date(noticedAt).toISOString(),
      detail,
    })),
  }
}

function journalOf({ journal }: OwnedPartition) {
  return {
    epoch: journal.epoch,
    end_seq: journal.endSeq,
    gaps: journal.gaps
      .slice(-GAPS_SHOWN)
      .map(({ afterSeq, throughSeq }) => ({ after_seq: afterSeq, through_seq: throughSeq })),
  }
}

async function checkOne(dependency: Dependency) {
  const startedAt = performance.now()
  const problem = await withTimeout(dependency.check(), CHECK_TIMEOUT_MS).then(() => null, shortReason)
  return { ok: problem === null, latency_ms: Math.round((performance.now() - startedAt) * 10) / 10, problem }
}

function healthOf({ failingMs, failures, lastError }: LoopState) {
  const problem = failingMs > 0 ? shortReason(lastError) : null
  return { ok: failingMs <= FAILING_MS, failing_ms: Math.round(failingMs), failures, problem }
}

/** Null while it is unknown. */
async function lagOf(lag: () => number | Promise<number>): Promise<number | null> {
  return withTimeout(Promise.resolve(lag()), CHECK_TIMEOUT_MS).catch(() => null)
}

/** A general description without addresses, names or paths, because `/readyz` is public. */
function shortReason(error: unknown): string {
  if (error instanceof HealthProblem || error instanceof ApiError) return error.message
  // Its message may have what was refused.
  if (error instanceof ColumnarError) return `ClickHouse refuses it (${error.type})`
  const { code } = (error ?? {}) as { code?: unknown }
  if (typeof code === 'string') return `not reachable (${code})`
  return error instanceof Error && error.message.startsWith('no answer') ? error.message : 'not working'
}
