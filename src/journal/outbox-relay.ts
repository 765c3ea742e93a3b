import { ApiError } from '../http/errors.ts'
import type { RawJson } from '../http/raw-json.ts'
import { runKey } from '../ids.ts'
import type { Log } from '../log.ts'
import { type Loop, Loops } from '../ops/supervise.ts'
import { type Sql, singleConnection } from '../postgres/connect.ts'
import type { Journal } from './journal.ts'
import type { RunRow, SystemEventRow, TaskRow } from './rows.ts'

/** The order of kinds in a commit. */
const KIND_ORDER = { run: 0, task: 1, event: 2 } as const

/** The run's further changes wait for the next round. */
const DEFERRED = Number.POSITIVE_INFINITY

/** Counting beyond this would cost more than it is worth. */
export const LAG_ROWS_MAX = 100_000
const ROWS_PER_ROUND = 1_000
const BYTES_PER_ROUND = 16 << 20
/** Delay after a poke, so that one round covers several commits of a busy service. */
const LINGER_MS = 10
/** Polling finds rows of other processes, and rows whose poke was lost in a failure. */
const POLL_MS = 250
const END_TIMEOUT_SECONDS = 1
/** Advisory lock of the relay; any number that nothing else uses. */
const RELAY_LOCK = 4_706_131

export interface OutboxRelayDeps {
  readonly sql: Sql
  readonly journal: Journal
  readonly log: Log
  /** Supervises the relay together with other loops. */
  readonly loops?: Loops
}

export interface OutboxRelay {
  /** Signals that this process has committed rows to the outbox. Cheap. */
  poke(): void
  /** Resolves once every row committed before the call is in the journal. Rejects if the relay stops first. */
  flush(): Promise<void>
  /** Stops after the current append. Remaining rows wait for the next start. */
  stop(): Promise<void>
}

/**
 * Appends committed state changes to the journal, in order, exactly once, and deletes them from the outbox.
 *
 * A round takes the lock (several processes may share the database), reads the oldest rows, appends them and deletes
 * them. A crash between append and delete leaves rows that are in the journal already. The journal remembers the ids of
 * its newest records, so the next round deletes those rows without appending them again. That is why a round writes at
 * most one frame of each kind.
 *
 * No transaction spans the append: the append cannot be rolled back, and on a slow disk the open transaction would hold
 * back vacuuming of the whole database.
 */
export function startOutboxRelay({ sql: pool, journal, log, loops = new Loops(log) }: OutboxRelayDeps): OutboxRelay {
  // Advisory locks belong to a connection.
  const sql = singleConnection(pool)
  let wake = Promise.withResolvers<void>()
  let poked = true
  const stopping = new AbortController()
  let flushes: PromiseWithResolvers<void>[] = []

  function poke(): void {
    if (poked) return
    poked = true
    wake.resolve()
  }

  async function run(loop: Loop): Promise<void> {
    let outcome: Outcome = 'more'
    while (!stopping.signal.aborted) {
      await rest(outcome)
      const served = flushes
      flushes = []
      const due = poked || served.length > 0 || outcome !== 'drained'
      poked = false
      wake = Promise.withResolvers()
      outcome = await attempt(due, loop)
      if (outcome === 'drained') for (const flush of served) flush.resolve()
      else flushes = [...served, ...flushes]
    }
  }

  async function rest(after: Outcome): Promise<void> {
    if (after === 'more') return
    if (after !== 'drained') return Bun.sleep(POLL_MS)
    if (!poked) await wakeOrPoll()
    if (poked && flushes.length === 0) await Bun.sleep(LINGER_MS)
  }

  async function wakeOrPoll(): Promise<void> {
    const timer = setTimeout(wake.resolve, POLL_MS)
    await wake.promise
    clearTimeout(timer)
  }

  /** @param due false for a poll, which first checks whether there are rows at all */
  async function attempt(due: boolean, loop: Loop): Promise<Outcome> {
    try {
      const outcome = due || (await hasRows(sql)) ? await relayRound(sql, journal) : 'drained'
      loop.succeeded()
      return outcome
    } catch (error) {
      loop.failed(error)
      return 'failed'
    }
  }

  const finished = loops.run('outbox relay', stopping.signal, run).then(() => {
    for (const flush of flushes) flush.reject(new ApiError('UNAVAILABLE', 'the service is shutting down'))
  })
  return {
    poke,
    flush() {
      const flush = Promise.withResolvers<void>()
      if (stopping.signal.aborted) flush.reject(new ApiError('UNAVAILABLE', 'the service is shutting down'))
      else flushes.push(flush)
      poke()
      return flush.promise
    },
    async stop() {
      stopping.abort()
      wake.resolve()
      await finished
      await sql.end({ timeout: END_TIMEOUT_SECONDS })
    },
  }
}

/** Rows waiting to be appended, of all partitions; at most {@link LAG_ROWS_MAX}. */
export async function outboxLag(sql: Sql): Promise<number> {
  const [{ rows }] = await sql<{ rows: number }[]>`
    select count(*) as rows from (select from outbox limit ${LAG_ROWS_MAX}) as waiting`
  return rows
}

/** `elsewhere`: another process holds the lock. */
type Outcome = 'drained' | 'more' | 'elsewhere' | 'failed'

interface OutboxRow {
  /** Defines the order; the primary key. A restored database may assign the same value again. */
  readonly outbox_id: number
  /** Unique, even after a restore. */
  readonly entry_id: string
  readonly kind: Change['kind']
  readonly body: RawJson
  /** Rows found before the byte limit was applied. */
  readonly found: number
  readonly pid: number
}

async function hasRows(sql: Sql): Promise<boolean> {
  const [{ some }] = await sql<{ some: boolean }[]>`select exists (select from outbox) as some`
  return some
}

async function relayRound(sql: Sql, journal: Journal): Promise<Outcome> {
  // Pipelined, but executed in order: the rows are read under the lock, so another process is not appending them.
  const [[lock], rows] = await Promise.all([takeLock(sql), readOldest(sql)])
  if (!lock.taken) return 'elsewhere'
  try {
    if (rows.length === 0) return 'drained'
    // The connection changed in between, so the rows were read without the lock.
    if (rows[0].pid !== lock.pid) return 'more'
    const appended = new Set(journal.lastOutboxIds())
    const done = rows.filter((row) => appended.has(row.entry_id))
    // Delete these before the next append: the journal remembers only the ids of its newest records.
    if (done.length > 0) await remove(sql, done)
    const {
      run: runs,
      task: tasks,
      event: events,
    } = pickRound(rows.filter((row) => !appended.has(row.entry_id)).map(parse))
    await allSettled([
      runs.length > 0 && journal.appendRuns(runs.map(rowOf), runs.map(idOf)),
      tasks.length > 0 && journal.appendTasks(tasks.map(rowOf), tasks.map(idOf)),
      events.length > 0 && journal.appendSystemEvents(events.map(rowOf), events.map(idOf)),
    ])
    const ids = new Set([...runs, ...tasks, ...events].map(idOf))
    if (ids.size > 0)
      await remove(
        sql,
        rows.filter((row) => ids.has(row.entry_id)),
      )
    const deleted = done.length + ids.size
    return deleted === rows[0].found && deleted < ROWS_PER_ROUND ? 'drained' : 'more'
  } finally {
    await sql`select pg_advisory_unlock(${RELAY_LOCK})`
  }
}

async function remove(sql: Sql, rows: readonly OutboxRow[]): Promise<void> {
  await sql`
    delete from outbox where outbox_id = any(${rows.map((row) => row.outbox_id)}::bigint[])
      and entry_id = any(${rows.map((row) => row.entry_id)}::uuid[])`
}

function takeLock(sql: Sql) {
  return sql<[{ taken: boolean; pid: number }]>`
    select pg_try_advisory_lock(${RELAY_LOCK}) as taken, pg_backend_pid() as pid`
}

function readOldest(sql: Sql) {
  return sql<OutboxRow[]>`
    select outbox_id, entry_id, kind, body, found, pg_backend_pid() as pid from (
      select outbox_id, entry_id, kind, body, count(*) over () as found,
        sum(octet_length(body::text)) over (order by outbox_id rows between unbounded preceding and 1 preceding)
          as bytes_before
      from (select outbox_id, entry_id, kind, body from outbox order by outbox_id limit ${ROWS_PER_ROUND}) as oldest
    ) as o
    where coalesce(bytes_before, 0) < ${BYTES_PER_ROUND}
    order by outbox_id`
}

/** Unlike Promise.all, waits for every append even if one fails: the next round must know the outcome of all. */
async function allSettled(appends: readonly unknown[]): Promise<void> {
  for (const settled of await Promise.allSettled(appends)) if (settled.status === 'rejected') throw settled.reason
}

interface ChangeOf<Kind, Row> {
  readonly id: string
  readonly kind: Kind
  readonly row: Row
}

type Change = ChangeOf<'run', RunRow> | ChangeOf<'task', TaskRow> | ChangeOf<'event', SystemEventRow>

/** The changes that one round appends, by kind, in the journal's order of kinds. */
interface Round {
  readonly run: ChangeOf<'run', RunRow>[]
  readonly task: ChangeOf<'task', TaskRow>[]
  readonly event: ChangeOf<'event', SystemEventRow>[]
}

function parse({ entry_id, kind, body }: OutboxRow): Change {
  return { id: entry_id, kind, row: JSON.parse(body.text) }
}

/**
 * Picks the changes that one frame of each kind can carry without reordering the changes of any run. Once a change of a
 * run would precede an earlier one, it and all later changes of that run wait for the next round.
 */
function pickRound(changes: readonly Change[]): Round {
  const round: Round = { run: [], task: [], event: [] }
  const lastKinds = new Map<string, number>()
  for (const change of changes) {
    const run = runKey(change.row.workspace_id, change.row.run_id)
    const order = KIND_ORDER[change.kind]
    if (order < (lastKinds.get(run) ?? 0)) lastKinds.set(run, DEFERRED)
    else {
      lastKinds.set(run, order)
      ;(round[change.kind] as Change[]).push(change)
    }
  }
  return round
}

function rowOf<Row>(change: { readonly row: Row }): Row {
  return change.row
}

function idOf(change: { readonly id: string }): string {
  return change.id
}
