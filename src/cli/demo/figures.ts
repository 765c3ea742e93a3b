import { isCallFailure } from '../../client/errors.ts'
import type { Client } from '../../client/index.ts'

/** What a session has reported. Only totals are kept, so that a demo can run for days. */
export type Figures = ReturnType<typeof createFigures>

export function createFigures() {
  return {
    runs: 0,
    'runs completed': 0,
    'runs failed': 0,
    'runs cancelled': 0,
    'runs checksum': 0,
    tasks: 0,
    'tasks completed': 0,
    'tasks failed': 0,
    'tasks skipped': 0,
    events: 0,
    'events checksum': 0,
  }
}

/** Adds the id of a run or event to a sum that SQL can compute, too. */
export function addChecksum(figures: Figures, name: 'runs checksum' | 'events checksum', id: string): void {
  figures[name] += Bun.hash.crc32(id)
}

const POLL_MS = 100
const VERIFY_TIMEOUT_MS = 15_000

/**
 * Compares what was reported with SQL until they agree or some seconds have passed, because rows reach SQL shortly after they
 * are acknowledged.
 *
 * @returns the differences; none if SQL has exactly what was reported
 */
export async function verify(client: Client, reported: Figures, sessionTag: string): Promise<readonly string[]> {
  const deadline = performance.now() + VERIFY_TIMEOUT_MS
  const expected = { ...reported, 'events with different ids': reported.events }
  try {
    for (;;) {
      const answers = await Promise.all(QUERIES.map((query) => client.query(query, { session: sessionTag })))
      const inSql = Object.assign({}, ...answers.map(({ rows: [row] }) => row)) as Record<string, unknown>
      const differences = Object.entries(expected).flatMap(([name, value]) =>
        Number(inSql[name]) === value ? [] : [`${name}: ${value} reported, ${inSql[name]} in SQL`],
      )
      if (differences.length === 0 || performance.now() > deadline) return differences
      await Bun.sleep(POLL_MS)
    }
  } catch (error) {
    if (isCallFailure(error)) return [`SQL cannot be read: ${error.message}`]
    throw error
  }
}

const OF_SESSION = 'has(tags, {session:String})'
const IN_SESSION = `run_id in (select run_id from runs where ${OF_SESSION})`

/** One row each, with the names of {@link Figures}. */
const QUERIES = [
  `select count() as "runs", ${countsBy('runs', ['completed', 'failed', 'cancelled'])}, sum(CRC32(toString(run_id))) as "runs checksum"
    from runs where ${OF_SESSION}`,
  `select count() as "tasks", ${countsBy('tasks', ['completed', 'failed', 'skipped'])} from tasks where ${IN_SESSION}`,
  `select count() as "events", uniqExact(event_id) as "events with different ids",
    sum(CRC32(event_id)) as "events checksum" from events where ${IN_SESSION}`,
]

function countsBy(what: string, statuses: readonly string[]): string {
  return statuses.map((status) => `countIf(status = '${status}') as "${what} ${status}"`).join(', ')
}
