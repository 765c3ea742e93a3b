import { isCallFailure } from '../../client/errors.ts'
import type { Client } from '../../client/index.ts'
import type { Counters } from './counters.ts'

/** One figure, as acknowledged and as in SQL. */
interface Comparison {
  readonly what: string
  readonly acknowledged: string
  readonly inSql: string
}

export interface Verification {
  /** Whether SQL has exactly what was acknowledged; with unconfirmed calls, whether it has at least that. */
  readonly holds: boolean
  readonly comparisons: readonly Comparison[]
  /** Why the queries failed. */
  readonly problem?: string
}

const POLL_MS = 100

/**
 * Compares what was acknowledged with SQL until they agree or `timeoutMs` has passed, because rows reach SQL shortly
 * after they are acknowledged.
 */
export async function verify(
  client: Client,
  { sessionTag, counters, timeoutMs }: { sessionTag: string; counters: Counters; timeoutMs: number },
): Promise<Verification> {
  const deadline = performance.now() + timeoutMs
  const expected = expectation(counters)
  try {
    for (;;) {
      const verification = compare(expected, await readSql(client, sessionTag), counters.unconfirmed > 0)
      if (verification.holds || performance.now() > deadline) return verification
      await Bun.sleep(POLL_MS)
    }
  } catch (error) {
    if (isCallFailure(error)) return { holds: false, comparisons: [], problem: error.message }
    throw error
  }
}

type Figures = ReadonlyMap<string, number>

const CHECKSUM = 'checksum'

function expectation({ runs, runsStarted, runIdSum, events, eventIdSum, tasks }: Counters): Figures {
  return new Map([
    ['runs', runsStarted],
    ...Object.entries(runs).map(([status, count]) => [`runs ${status}`, count] as const),
    [`runs ${CHECKSUM}`, runIdSum],
    ['events', events],
    ['events with different ids', events],
    [`events ${CHECKSUM}`, eventIdSum],
    ...[...tasks].map(([status, count]) => [`tasks ${status}`, count] as const),
  ])
}

const MINE = 'select run_id from runs where has(tags, {session:String})'

async function readSql(client: Client, session: string): Promise<Figures> {
  const query = async (sql: string) => (await client.query(sql, { session })).rows
  const [runs, [events], tasks] = await Promise.all([
    query(`select status, count() as n, sum(CRC32(toString(run_id))) as ids from runs
      where has(tags, {session:String}) group by status`),
    query(`select count() as n, uniqExact(event_id) as different, sum(CRC32(event_id)) as ids from events
      where run_id in (${MINE})`),
    query(`select status, count() as n from tasks where run_id in (${MINE}) group by status`),
  ])
  const figures = new Map<string, number>([
    ['runs', sum(runs, 'n')],
    [`runs ${CHECKSUM}`, sum(runs, 'ids')],
    ['events', Number(events?.n)],
    ['events with different ids', Number(events?.different)],
    [`events ${CHECKSUM}`, Number(events?.ids)],
  ])
  for (const { status, n } of runs) figures.set(`runs ${status}`, Number(n))
  for (const { status, n } of tasks) figures.set(`tasks ${status}`, Number(n))
  return figures
}

function sum(rows: readonly Record<string, unknown>[], column: string): number {
  return rows.reduce((total, row) => total + Number(row[column]), 0)
}

/** With unconfirmed calls, statuses and checksums may differ, but SQL must have what was acknowledged, and nothing twice. */
function compare(expected: Figures, found: Figures, hasUnconfirmed: boolean): Verification {
  const names = [...new Set([...expected.keys(), ...found.keys()])]
  const comparisons = names.map((what) => ({
    what,
    acknowledged: `${expected.get(what) ?? 0}`,
    inSql: `${found.get(what) ?? 0}`,
  }))
  if (!hasUnconfirmed)
    return { holds: comparisons.every(({ acknowledged, inSql }) => acknowledged === inSql), comparisons }
  const holds =
    found.get('runs')! >= expected.get('runs')! &&
    found.get('events')! >= expected.get('events')! &&
    found.get('events with different ids') === found.get('events')
  return { holds, comparisons }
}
