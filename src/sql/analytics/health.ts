import { type Dependency, HealthProblem } from '../../base/health.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import { sessionSettings } from './session-settings.ts'
import { scopeDatabase, scopedStatement } from './views.ts'

/** A log and how far it has been loaded. */
interface LoadedLog {
  readonly id: number
  readonly journal: { readonly endSeq: number }
  readonly sink: { loadedSeq(): number }
}

interface ColumnarHealthDeps {
  readonly client: ColumnarClient
  readonly owned: () => readonly LoadedLog[]
  /** Milliseconds, monotonic. */
  readonly now?: () => number
}

/** Anyone may request the service's health at any rate: ClickHouse is queried at most once in this time. */
const CACHED_MS = 1_000
const QUERY_TIMEOUT_MS = 5_000
/** Loading takes a moment, and a failed load is repeated within five seconds. */
const STANDSTILL_MAX_MS = 15_000
/** A workspace without rows. */
const EMPTY_WORKSPACE = '00000000-0000-0000-0000-000000000000'
const QUERY = {
  text: 'SELECT max(seq) FROM events',
  jsonPaths: [],
  numberPaths: [],
  typeParameters: [],
  isInfallible: false,
  tables: [],
  usesWholeRows: false,
}

/**
 * Health checks of ClickHouse: does it respond to the service and to tenants' queries, and is the journal being loaded?
 * Each check takes the same path as real work, so that a ClickHouse that hangs is noticed.
 */
export function columnarHealth(deps: ColumnarHealthDeps): Dependency[] {
  const { client, now = () => performance.now() } = deps
  const { database } = client
  const refuseStandstill = watchStandstill(deps, now)
  const dependency = (name: string, ask: () => Promise<unknown>): Dependency => {
    return { name, essential: false, check: cached(ask, now) }
  }
  return [
    dependency('clickhouse', () => client.query('select 1', { timeoutMs: QUERY_TIMEOUT_MS })),
    dependency('sql', () =>
      client.queryText(scopedStatement(QUERY, database, EMPTY_WORKSPACE), 'JSON', {
        settings: { ...sessionSettings(database, EMPTY_WORKSPACE), max_execution_time: QUERY_TIMEOUT_MS / 1000 },
        database: scopeDatabase(database),
        timeoutMs: QUERY_TIMEOUT_MS,
      }),
    ),
    dependency('loading', async () => {
      refuseStandstill()
      await client.probeLoading()
    }),
  ]
}

/** Shares one answer among all calls within a short time. */
function cached(ask: () => Promise<unknown>, now: () => number): () => Promise<unknown> {
  let answer: Promise<unknown> | undefined
  let askedAt = 0
  return () => {
    if (answer === undefined || now() - askedAt > CACHED_MS) {
      askedAt = now()
      answer = ask()
      answer.catch(() => {})
    }
    return answer
  }
}

/** @returns a function that throws HealthProblem when rows have waited for too long and nothing was loaded */
function watchStandstill({ owned }: ColumnarHealthDeps, now: () => number): () => void {
  let seen = new Map<number, { loaded: number; end: number; at: number }>()
  return () => {
    const logs = owned()
    seen = new Map(
      logs.map(({ id, journal, sink }) => {
        const before = seen.get(id)
        const loaded = sink.loadedSeq()
        const isMoving = before === undefined || loaded !== before.loaded || loaded >= before.end
        return [id, isMoving ? { loaded, end: journal.endSeq, at: now() } : before]
      }),
    )
    const standingMs = Math.max(0, ...[...seen.values()].map(({ at }) => now() - at))
    if (standingMs > STANDSTILL_MAX_MS) {
      throw new HealthProblem(`nothing has been loaded for ${Math.round(standingMs / 1000)} s`)
    }
  }
}
