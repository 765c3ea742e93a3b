import type { RawJson } from '../base/raw-json.ts'
import type { Sql } from '../postgres/connect.ts'

export const ROWS_PER_ROUND = 1_000
const BYTES_PER_ROUND = 16 << 20
const DRAIN_POLL_MS = 20
/** Advisory lock of the relay; any number that nothing else uses. */
const RELAY_LOCK = 4_706_131

/** A change of a run or task, or an event of the service, that is not in the journal yet. */
export interface OutboxRow {
  /** Defines the order; the primary key. A restored database may assign the same value again. */
  readonly outbox_id: number
  /** Unique, even after a restore. */
  readonly entry_id: string
  readonly kind: 'run' | 'task' | 'event'
  readonly body: RawJson
  /** Rows found before the byte limit was applied. */
  readonly found: number
  readonly pid: number
}

/** The rows that one relay appends. */
export interface RelayedRows {
  /** Whether there are any. */
  some(): Promise<boolean>
  /** The oldest rows, which no other process appends until {@link done}; or why there are none to append now. */
  take(): Promise<readonly OutboxRow[] | 'elsewhere' | 'more'>
  remove(rows: readonly OutboxRow[]): Promise<void>
  done(): Promise<void>
}

/** All rows, under a lock: several processes may share the database, each with a log of its own. */
export class LockedRows implements RelayedRows {
  constructor(private readonly sql: Sql) {}

  async some(): Promise<boolean> {
    const [{ some }] = await this.sql<{ some: boolean }[]>`select exists (select from outbox) as some`
    return some
  }

  async take(): Promise<readonly OutboxRow[] | 'elsewhere' | 'more'> {
    const { sql } = this
    // Pipelined, but executed in order: the rows are read under the lock, so another process is not appending them.
    const [[lock], rows] = await Promise.all([takeLock(sql), readOldest(sql, sql`outbox`)])
    if (!lock.taken) return 'elsewhere'
    if (rows.length === 0 || rows[0].pid === lock.pid) return rows
    // The connection changed in between, so the rows were read without the lock.
    await this.done()
    return 'more'
  }

  remove(rows: readonly OutboxRow[]): Promise<void> {
    return remove(this.sql, rows)
  }

  async done(): Promise<void> {
    await this.sql`select pg_advisory_unlock(${RELAY_LOCK})`
  }
}

/** The rows of one partition. Its log refuses appends of everyone but its owner, so no lock is needed. */
export class PartitionRows implements RelayedRows {
  constructor(
    private readonly sql: Sql,
    private readonly partition: number,
  ) {}

  async some(): Promise<boolean> {
    const { sql } = this
    const [{ some }] = await sql<{ some: boolean }[]>`select exists (select from ${this.rows()}) as some`
    return some
  }

  take(): Promise<readonly OutboxRow[]> {
    return readOldest(this.sql, this.rows())
  }

  remove(rows: readonly OutboxRow[]): Promise<void> {
    return remove(this.sql, rows)
  }

  async done(): Promise<void> {}

  private rows(): Fragment {
    return ofPartition(this.sql, this.partition)
  }
}

/** Waits until the relay has appended what the outbox has of a partition now. False after `timeoutMs`. */
export async function isOutboxDrained(sql: Sql, partition: number, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  const [{ last }] = await sql<[{ last: number }]>`
    select coalesce(max(outbox_id), 0) as last from ${ofPartition(sql, partition)}`
  for (;;) {
    const [waiting] = await sql`select from ${ofPartition(sql, partition)} where outbox_id <= ${last} limit 1`
    if (waiting === undefined) return true
    if (performance.now() > deadline) return false
    await Bun.sleep(DRAIN_POLL_MS)
  }
}

function ofPartition(sql: Sql, partition: number): Fragment {
  return sql`outbox join (select workspace_id from workspaces where partition = ${partition}) as own using (workspace_id)`
}

/** Part of a statement. */
type Fragment = ReturnType<Sql>

async function remove(sql: Sql, rows: readonly OutboxRow[]): Promise<void> {
  await sql`
    delete from outbox where outbox_id = any(${rows.map((row) => row.outbox_id)}::bigint[])
      and entry_id = any(${rows.map((row) => row.entry_id)}::uuid[])`
}

function takeLock(sql: Sql) {
  return sql<[{ taken: boolean; pid: number }]>`
    select pg_try_advisory_lock(${RELAY_LOCK}) as taken, pg_backend_pid() as pid`
}

function readOldest(sql: Sql, from: Fragment) {
  return sql<OutboxRow[]>`
    select outbox_id, entry_id, kind, body, found, pg_backend_pid() as pid from (
      select outbox_id, entry_id, kind, body, count(*) over () as found,
        sum(octet_length(body::text)) over (order by outbox_id rows between unbounded preceding and 1 preceding)
          as bytes_before
      from (select outbox_id, entry_id, kind, body from ${from} order by outbox_id limit ${ROWS_PER_ROUND}) as oldest
    ) as o
    where coalesce(bytes_before, 0) < ${BYTES_PER_ROUND}
    order by outbox_id`
}
