import { withTimeout } from './abort.ts'
import { ApiError } from './errors.ts'
import { FAILING_MS, type LoopState, type Loops } from './loops.ts'

const CHECK_TIMEOUT_MS = 2_000
/** Only the newest gaps are shown. */
const GAPS_SHOWN = 20

/** A component that requests depend on. */
export interface Dependency {
  readonly name: string
  /** Whether requests cannot be served without it. When another dependency fails, the service is only `degraded`. */
  readonly essential: boolean
  /** Resolves when it works; rejects with the reason when it does not. */
  check(): Promise<unknown>
}

/** The reason why a dependency does not work. The message is public. */
export class HealthProblem extends Error {}

/** A component that reads the journal or the outbox asynchronously. */
interface Consumer {
  readonly name: string
  /** Rows not yet read. */
  lag(): number | Promise<number>
}

/** A store that went back to an earlier state. */
interface SetBack {
  readonly store: string
  readonly noticedAt: number
  readonly detail: string
}

export interface Health {
  readonly status: 'ready' | 'degraded' | 'unavailable'
  readonly dependencies: Record<string, { ok: boolean; latency_ms: number; problem: string | null }>
  /** The log of the first partition that this process owns; null when it owns none. */
  readonly journal: { epoch: string; end_seq: number; gaps: { after_seq: number; through_seq: number }[] } | null
  /** The partitions that this process owns. */
  readonly partitions: { partition: number; generation: number; epoch: string; end_seq: number; loaded_seq: number }[]
  /** Background loops. One that has been failing for some seconds makes the service `degraded`. */
  readonly loops: Record<string, { ok: boolean; failing_ms: number; failures: number; problem: string | null }>
  /** `lag` is null while it is unknown. */
  readonly consumers: Record<string, { lag: number | null }>
  /** Stores that have gone back to an earlier state, noticed since the service started. */
  readonly set_back: { store: string; noticed_at: string; detail: string }[]
}

/** A log that this process writes, and how far it is loaded into ClickHouse. */
interface OwnedLog {
  readonly id: number
  readonly generation: number
  readonly journal: {
    readonly epoch: string
    readonly endSeq: number
    readonly gaps: readonly { readonly afterSeq: number; readonly throughSeq: number }[]
  }
  readonly sink: { loadedSeq(): number }
}

export interface HealthDeps {
  readonly dependencies: readonly Dependency[]
  readonly consumers: readonly Consumer[]
  readonly owned: () => readonly OwnedLog[]
  readonly loops: Pick<Loops, 'states'>
  readonly setBack: () => readonly SetBack[]
  /** Whether the service has begun to stop. */
  readonly isStopping: () => boolean
}

/** Checks all dependencies at once; one that does not answer in time counts as failed. */
export async function checkHealth({
  dependencies,
  consumers,
  owned,
  setBack,
  loops,
  isStopping,
}: HealthDeps): Promise<Health> {
  const [checks, lags] = await Promise.all([
    Promise.all(dependencies.map(async (each) => ({ ...each, result: await checkOne(each) }))),
    Promise.all(consumers.map(async (each) => [each.name, { lag: await lagOf(each) }] as const)),
  ])
  const failed = checks.filter(({ result }) => !result.ok)
  const partitions = owned()
  const states = Object.fromEntries(loops.states().map((state) => [state.name, healthOf(state)]))
  const isFailing = failed.length > 0 || Object.values(states).some(({ ok }) => !ok)
  const unavailable = isStopping() || failed.some(({ essential }) => essential)
  return {
    status: unavailable ? 'unavailable' : isFailing || setBack().length > 0 ? 'degraded' : 'ready',
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
    consumers: Object.fromEntries(lags),
    set_back: setBack().map(({ store, noticedAt, detail }) => ({
      store,
      noticed_at: new Date(noticedAt).toISOString(),
      detail,
    })),
  }
}

function journalOf({ journal }: OwnedLog) {
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

async function lagOf(consumer: Consumer): Promise<number | null> {
  return withTimeout(Promise.resolve(consumer.lag()), CHECK_TIMEOUT_MS).catch(() => null)
}

/** A general description without addresses, names or paths, because `/readyz` is public. */
function shortReason(error: unknown): string {
  if (error instanceof HealthProblem || error instanceof ApiError) return error.message
  const { code } = (error ?? {}) as { code?: unknown }
  if (typeof code === 'string') return `not reachable (${code})`
  return error instanceof Error && error.message.startsWith('no answer') ? error.message : 'not working'
}
