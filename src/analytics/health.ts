import type { ColumnarClient } from '../columnar/client.ts'
import { type Dependency, HealthProblem } from '../ops/health.ts'
import { sessionSettings } from './analytics.ts'
import { scopeDatabase, scopedStatement } from './views.ts'

export interface ColumnarHealthDeps {
  readonly client: ColumnarClient
  readonly journal: { readonly endSeq: number }
  readonly sink: { loadedSeq(): number }
  /** Milliseconds, monotonic. */
  readonly now?: () => number
}

/** Anybody may ask for the service's health, as often as he likes: ClickHouse is asked once in this time. */
const REMEMBERED_MS = 1_000
const QUERY_TIMEOUT_MS = 5_000
/** A load takes a moment, and one that failed is repeated within five seconds. */
const STANDSTILL_MAX_MS = 15_000
/** A workspace without rows. */
const NOBODY = '00000000-0000-0000-0000-000000000000'
const QUERY = { text: 'SELECT max(seq) FROM events', jsonPaths: [], typeParameters: [] }

/**
 * What there is to ask of ClickHouse: whether it answers the service, whether it answers queries of tenants, and whether
 * the journal is being loaded. Each goes the way of the real ones, so a ClickHouse that is there and does nothing is noticed.
 */
export function columnarHealth(deps: ColumnarHealthDeps): Dependency[] {
  const { client, now = () => performance.now() } = deps
  const { database } = client
  const refuseStandstill = watchStandstill(deps, now)
  const asked = (name: string, ask: () => Promise<unknown>): Dependency => {
    return { name, essential: false, check: remembered(ask, now) }
  }
  return [
    asked('clickhouse', () => client.query('select 1', { timeoutMs: QUERY_TIMEOUT_MS })),
    asked('sql', () =>
      client.queryText(scopedStatement(QUERY, database, NOBODY), 'JSON', {
        settings: { ...sessionSettings(database, NOBODY), max_execution_time: QUERY_TIMEOUT_MS / 1000 },
        database: scopeDatabase(database),
        timeoutMs: QUERY_TIMEOUT_MS,
      }),
    ),
    asked('loading', async () => {
      refuseStandstill()
      await client.probeLoading()
    }),
  ]
}

/** Shares one answer among all who ask within a while. */
function remembered(ask: () => Promise<unknown>, now: () => number): () => Promise<unknown> {
  let answer: Promise<unknown> | undefined
  let askedAt = 0
  return () => {
    if (answer === undefined || now() - askedAt > REMEMBERED_MS) {
      askedAt = now()
      answer = ask()
      answer.catch(() => {})
    }
    return answer
  }
}

/** @returns throws HealthProblem when what was there to load a while ago has not even been begun */
function watchStandstill({ journal, sink }: ColumnarHealthDeps, now: () => number): () => void {
  let seen = { loaded: -1, end: -1, at: now() }
  return () => {
    const loaded = sink.loadedSeq()
    if (loaded !== seen.loaded || loaded >= seen.end) seen = { loaded, end: journal.endSeq, at: now() }
    else if (now() - seen.at > STANDSTILL_MAX_MS) {
      throw new HealthProblem(`nothing has been loaded for ${Math.round((now() - seen.at) / 1000)} s`)
    }
  }
}
