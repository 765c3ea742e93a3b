import { ApiError } from '../http/errors.ts'
import type { RawJson } from '../http/raw-json.ts'
import { runKey } from '../ids.ts'
import type { Log } from '../log.ts'
import { type Loop, Loops } from '../ops/supervise.ts'
import { type Sql, singleConnection } from '../postgres/connect.ts'
import type { Journal } from './journal.ts'
import type { RunRow, SystemEventRow, TaskRow } from './rows.ts'

export interface OutboxRelayDeps {
  readonly sql: Sql
  readonly journal: Journal
  readonly log: Log
  /** Where the relay is supervised together with others. */
  readonly loops?: Loops
}

export interface OutboxRelay {
  /** Says that something has been committed to the outbox by this process. Costs nothing. */
  poke(): void
  /** Resolves once every row that is committed by now is in the journal. Rejects when the relay stops before. */
  flush(): Promise<void>
  /** Ends after the append under way. What is left waits for the next start. */
  stop(): Promise<void>
  /** Rows that wait to be appended; at most {@link LAG_ROWS_MAX}. */
  lag(): Promise<number>
}

/** Counting further would cost more than it tells. */
export const LAG_ROWS_MAX = 100_000

const ROWS_PER_ROUND = 1_000
const BYTES_PER_ROUND = 16 << 20
/** After a poke: lets the next commits come along, so that a busy service makes few rounds. */
const LINGER_MS = 10
/** Rows of other processes, and of pokes lost with a failure, are found after this. */
const POLL_MS = 250
const END_TIMEOUT_SECONDS = 1
/** Identifies the relay among advisory locks; any number that nothing else uses. */
const RELAY_LOCK = 4_706_131

/**
 * Appends committed state changes to the journal, in order, exactly once, and deletes them from the outbox.
 *
 * A round: take the lock (several processes may share the database), read the oldest rows, append them, delete them. A
 * round that dies between append and delete leaves rows that are in the journal already; the journal remembers the ids
 * of its newest records, so the next round deletes those without appending them again. Hence one frame of each kind a
 * round at most.
 *
 * No transaction spans the append: it would protect nothing (the append cannot be rolled back), and a disk that is slow
 * would hold back the vacuuming of the whole database.
 */
export function startOutboxRelay({ sql: pool, journal, log, loops = new Loops(log) }: OutboxRelayDeps): OutboxRelay {
  // The relay's lock belongs to a connection.
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

  /** `due` is false for a poll, which looks first: a transaction for nothing, four times a second, would be waste. */
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
    async lag() {
      const [{ rows }] = await sql<{ rows: number }[]>`
        select count(*) as rows from (select from outbox limit ${LAG_ROWS_MAX}) as waiting`
      return rows
    },
  }
}

/** `elsewhere`: another process is relaying at this moment. */
type Outcome = 'drained' | 'more' | 'elsewhere' | 'failed'

interface OutboxRow {
  /** The order, and the primary key; given again by a database that was set back. */
  readonly outbox_id: number
  /** Never given again. */
  readonly entry_id: string
  readonly kind: Change['kind']
  readonly body: RawJson
  /** Rows that the round would have read, had they all been small. */
  readonly found: number
  readonly pid: number
}

async function hasRows(sql: Sql): Promise<boolean> {
  const [{ some }] = await sql<{ some: boolean }[]>`select exists (select from outbox) as some`
  return some
}

async function relayRound(sql: Sql, journal: Journal): Promise<Outcome> {
  // Sent together, carried out one after the other: no row is seen that another process has appended and then deleted.
  const [[lock], rows] = await Promise.all([takeLock(sql), readOldest(sql)])
  if (!lock.taken) return 'elsewhere'
  try {
    if (rows.length === 0) return 'drained'
    // Reconnected in between: the rows were read without the lock.
    if (rows[0].pid !== lock.pid) return 'more'
    const appended = new Set(journal.lastOutboxIds())
    const done = rows.filter((row) => appended.has(row.entry_id))
    // Before anything else is appended: the journal remembers the ids of its newest records only.
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
    const gone = done.length + ids.size
    return gone === rows[0].found && gone < ROWS_PER_ROUND ? 'drained' : 'more'
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

/** Unlike Promise.all, leaves no append under way when another fails: the next round must know what became of all. */
async function allSettled(appends: readonly unknown[]): Promise<void> {
  for (const settled of await Promise.allSettled(appends)) if (settled.status === 'rejected') throw settled.reason
}

interface ChangeOf<Kind, Row> {
  readonly id: string
  readonly kind: Kind
  readonly row: Row
}

type Change = ChangeOf<'run', RunRow> | ChangeOf<'task', TaskRow> | ChangeOf<'event', SystemEventRow>

/** What one round appends, by kind, in the order in which the journal puts kinds. */
interface Round {
  readonly run: ChangeOf<'run', RunRow>[]
  readonly task: ChangeOf<'task', TaskRow>[]
  readonly event: ChangeOf<'event', SystemEventRow>[]
}

function parse({ entry_id, kind, body }: OutboxRow): Change {
  return { id: entry_id, kind, row: JSON.parse(body.text) }
}

/** The places of the kinds in a commit. */
const PLACES = { run: 0, task: 1, event: 2 } as const

/**
 * The changes that one frame of each kind can carry without turning round the changes of any run: all, but what
 * follows in a run once one of its changes would have to go before an earlier one.
 */
function pickRound(changes: readonly Change[]): Round {
  const round: Round = { run: [], task: [], event: [] }
  const lastPlaces = new Map<string, number>()
  for (const change of changes) {
    const run = runKey(change.row.workspace_id, change.row.run_id)
    const place = PLACES[change.kind]
    if (place < (lastPlaces.get(run) ?? 0)) lastPlaces.set(run, HELD)
    else {
      lastPlaces.set(run, place)
      ;(round[change.kind] as Change[]).push(change)
    }
  }
  return round
}

/** Nothing more of this run goes along. */
const HELD = Number.POSITIVE_INFINITY

function rowOf<Row>(change: { readonly row: Row }): Row {
  return change.row
}

function idOf(change: { readonly id: string }): string {
  return change.id
}
