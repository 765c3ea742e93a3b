import { setImmediate as nextIteration } from 'node:timers/promises'
import { sleep } from '../../base/abort.ts'
import { ApiError } from '../../base/errors.ts'
import { runKey } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { type Loop, Loops } from '../../base/loops.ts'
import { type SetAside, Sieve } from '../../base/set-aside.ts'
import { Wakeup } from '../../base/wakeup.ts'
import { IDLE_SESSION_MS, type Sql } from '../postgres/connect.ts'
import { EventBlock } from './blocks/event-block.ts'
import { RecordBlock } from './blocks/record-block.ts'
import type { Journal } from './journal.ts'
import { KINDS, type OutboxKind } from './kinds.ts'
import { type OutboxRow, type RelayedRows, ROWS_PER_ROUND } from './outbox-rows.ts'
import type { RunRow, SystemEventRow, TaskRow } from './rows.ts'

/** Characters of rows that are parsed before others have a turn: about 5 ms. */
const PARSED_PER_SLICE = 1 << 20

/** The run's further changes wait for the next round. */
const DEFERRED = Number.POSITIVE_INFINITY

/** Counting beyond this would cost more than it is worth. */
const LAG_ROWS_MAX = 100_000
/** Delay after a wakeup, so that one round covers several commits of a busy service. */
const LINGER_MS = 10
/** Polling finds rows of other processes, and rows whose wakeup was lost in a failure. */
const POLL_MS = 250
/** Rows that were taken longer ago are taken again: the session that holds the lock may have ended. */
const LOCK_TRUSTED_MS = IDLE_SESSION_MS / 2

interface OutboxRelayDeps {
  /** Closed when the relay stops. */
  readonly rows: Pick<RelayedRows, keyof RelayedRows>
  readonly journal: Journal
  readonly log: Log
  /** Counts the rows that cannot be appended. */
  readonly setAside?: SetAside
  /** Supervises the relay together with other loops. */
  readonly loops?: Loops
}

export interface OutboxRelay {
  /** Signals that this process has committed rows to the outbox. Cheap. */
  wake(): void
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
export function startOutboxRelay(deps: OutboxRelayDeps): OutboxRelay {
  const { rows: work, journal, log, loops = new Loops(log) } = deps
  const sieve = new Sieve<Change>({
    consumer: 'outbox',
    log,
    counts: deps.setAside,
    isPoison: isOfRows,
    probe: encode,
    describe: ({ id, kind, row: { workspace_id, run_id } }) => ({ id, kind, workspace_id, run_id }),
    remove: (changes) => work.setAside(changes.map(idOf)),
  })
  const wakeup = new Wakeup()
  const stopping = new AbortController()
  const { signal } = stopping
  let flushes: PromiseWithResolvers<void>[] = []

  async function run(loop: Loop): Promise<void> {
    let drain: Drain = 'more'
    while (!signal.aborted) {
      const isDue = await pauseAfter(drain)
      wakeup.clear()
      const served = flushes
      flushes = []
      drain = await attempt(isDue || served.length > 0, loop)
      if (drain === 'drained') for (const flush of served) flush.resolve()
      else flushes = [...served, ...flushes]
    }
  }

  /** @returns whether there is probably something to do */
  async function pauseAfter(drain: Drain): Promise<boolean> {
    if (drain === 'more') return true
    if (drain === 'drained') {
      const isWoken = await wakeup.next(POLL_MS, signal)
      if (isWoken && flushes.length === 0) await sleep(LINGER_MS, signal)
      return isWoken
    }
    await sleep(POLL_MS, signal)
    return true
  }

  /** @param isDue false for a poll, which first checks whether there are rows at all */
  async function attempt(isDue: boolean, loop: Loop): Promise<Drain> {
    try {
      const drain = isDue || (await work.some()) ? await relayRound(work, journal, sieve) : 'drained'
      loop.succeeded()
      return drain
    } catch (error) {
      loop.failed(error)
      return 'failed'
    }
  }

  const name = work.partition === undefined ? 'outbox relay' : `outbox relay ${work.partition}`
  const finished = loops.run(name, signal, run).then(() => {
    for (const flush of flushes) flush.reject(new ApiError('UNAVAILABLE', 'the service is shutting down'))
  })
  return {
    wake: () => wakeup.wake(),
    flush() {
      const flush = Promise.withResolvers<void>()
      if (signal.aborted) flush.reject(new ApiError('UNAVAILABLE', 'the service is shutting down'))
      else flushes.push(flush)
      wakeup.wake()
      return flush.promise
    },
    async stop() {
      stopping.abort()
      await finished
      await work.close()
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
type Drain = 'drained' | 'more' | 'elsewhere' | 'failed'

async function relayRound(work: OutboxRelayDeps['rows'], journal: Journal, sieve: Sieve<Change>): Promise<Drain> {
  const takenAt = performance.now()
  const rows = await work.take()
  if (typeof rows === 'string') return rows
  let removal: Promise<void> | undefined
  try {
    if (rows.length === 0) return 'drained'
    const appended = new Set(journal.lastOutboxIds())
    const done = rows.filter((row) => appended.has(row.entry_id))
    // Delete these before the next append: the journal remembers only the ids of its newest records.
    if (done.length > 0) await work.remove(done)
    const changes = await parseAll(rows.filter((row) => !appended.has(row.entry_id)))
    // After a pause of this process, another one may hold the lock, and have appended them.
    if (performance.now() - takenAt > LOCK_TRUSTED_MS) return 'more'
    const round = pickRound(changes)
    // After rows were set aside the next round appends the others, because it knows which of them the journal has.
    const append = async (some: readonly Change[]) => (some.length < round.length ? [] : appendAll(journal, some))
    const ids = new Set(await sieve.run(round, append))
    if (ids.size > 0) removal = work.remove(rows.filter((row) => ids.has(row.entry_id)))
    const deleted = done.length + ids.size
    return deleted === rows[0].found && deleted < ROWS_PER_ROUND ? 'drained' : 'more'
  } finally {
    // Pipelined, but executed in order.
    await Promise.all([removal, work.done()])
  }
}

/** Appends the changes of a round, in one commit. Returns their outbox ids. */
async function appendAll(journal: Journal, changes: readonly Change[]): Promise<readonly string[]> {
  const { run: runs, task: tasks, event: events } = byKind(changes)
  await allSettled([
    async () => runs.length > 0 && journal.appendRuns(runs.map(rowOf), runs.map(idOf)),
    async () => tasks.length > 0 && journal.appendTasks(tasks.map(rowOf), tasks.map(idOf)),
    async () => events.length > 0 && journal.appendSystemEvents(events.map(rowOf), events.map(idOf)),
  ])
  return changes.map(idOf)
}

/** Encodes changes as a commit does, for nobody. @throws Error if the journal could not store them */
function encode(changes: readonly Change[]): void {
  const { run, task, event } = byKind(changes)
  const [runs, tasks, events] = [RecordBlock.ofRuns(), RecordBlock.ofTasks(), new EventBlock()]
  runs.add(run.map(rowOf), [])
  tasks.add(task.map(rowOf), [])
  events.addSystemEvents(event.map(rowOf), [])
  for (const block of [runs, tasks, events]) {
    void block.runs
    block.build(1, 0, '')
  }
}

/** Whether an append may have failed because of its rows. Those of the operating system and of servers have a code. */
function isOfRows(error: unknown): boolean {
  const cause = error instanceof ApiError ? error.cause : error
  return cause instanceof Error && (!('code' in cause) || String(cause.code).startsWith('ERR_'))
}

/** Unlike Promise.all, waits for every append even if one fails: the next round must know the outcome of all. */
async function allSettled(appends: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const settled of await Promise.allSettled(appends.map((append) => append())))
    if (settled.status === 'rejected') throw settled.reason
}

interface ChangeOf<Kind, Row> {
  readonly id: string
  readonly kind: Kind
  readonly row: Row
}

interface RowOf {
  readonly run: RunRow
  readonly task: TaskRow
  readonly event: SystemEventRow
}

/** Changes by kind. */
type ByKind = { readonly [Kind in OutboxKind]: ChangeOf<Kind, RowOf[Kind]>[] }

type Change = ByKind[OutboxKind][number]

/** Yields to the event loop in between: a round may have many megabytes. */
async function parseAll(rows: readonly OutboxRow[]): Promise<Change[]> {
  const changes: Change[] = []
  let length = 0
  for (const { entry_id, kind, body } of rows) {
    changes.push({ id: entry_id, kind, row: JSON.parse(body.text) })
    length += body.text.length
    if (length < PARSED_PER_SLICE) continue
    await nextIteration()
    length = 0
  }
  return changes
}

/**
 * Picks the changes that one frame of each kind can carry without reordering the changes of any run. Once a change of a
 * run would precede an earlier one, it and all later changes of that run wait for the next round.
 */
function pickRound(changes: readonly Change[]): Change[] {
  const round: Change[] = []
  const lastKinds = new Map<string, number>()
  for (const change of changes) {
    const run = runKey(change.row.workspace_id, change.row.run_id)
    const order = KINDS[change.kind].commitOrder
    if (order < (lastKinds.get(run) ?? 0)) lastKinds.set(run, DEFERRED)
    else {
      lastKinds.set(run, order)
      round.push(change)
    }
  }
  return round
}

function byKind(changes: readonly Change[]): ByKind {
  const all: ByKind = { run: [], task: [], event: [] }
  for (const change of changes) (all[change.kind] as Change[]).push(change)
  return all
}

function rowOf<Row>(change: { readonly row: Row }): Row {
  return change.row
}

function idOf(change: { readonly id: string }): string {
  return change.id
}
