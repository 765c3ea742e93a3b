import { encodeJson, RawJson } from '../../base/raw-json.ts'
import { type Sql, singleConnection } from '../postgres/connect.ts'
import type { OutboxKind } from './kinds.ts'
import type { SystemEventRow } from './rows.ts'

export const ROWS_PER_ROUND = 1_000
const BYTES_PER_ROUND = 16 << 20
const DRAIN_POLL_MS = 20
const END_TIMEOUT_SECONDS = 1
/** Advisory lock of the relay; any number that nothing else uses. */
const RELAY_LOCK = 4_706_131

/** A change of a run or task, or an event of the service, that is not in the journal yet. */
export interface OutboxRow {
  /** Defines the order; the primary key. A restored database may assign the same value again. */
  readonly outbox_id: number
  /** Unique, even after a restore. */
  readonly entry_id: string
  readonly kind: OutboxKind
  readonly body: RawJson
  /** Rows found before the byte limit was applied. */
  readonly found: number
  readonly pid: number
}

/**
 * The rows that one relay appends: all of them, under a lock, since several processes may share the database, each with a
 * log of its own; or those of one partition, without a lock, since its log refuses appends of everyone but its owner.
 */
export class RelayedRows {
  private readonly sql: Sql

  /**
   * @param partition only the rows of workspaces of this partition, without a lock: the log accepts appends of its owner only.
   * Undefined: all rows
   */
  constructor(
    pool: Sql,
    readonly partition?: number,
  ) {
    // Advisory locks belong to a connection.
    this.sql = partition === undefined ? singleConnection(pool) : pool
  }

  /** Whether there are any rows. */
  async some(): Promise<boolean> {
    const { sql } = this
    const [{ some }] = await sql<{ some: boolean }[]>`select exists (select from ${this.rows()}) as some`
    return some
  }

  /**
   * Takes the oldest rows: no other process appends them until {@link done}. `elsewhere`: another process holds the lock;
   * `more`: nothing was taken, call again.
   */
  async take(): Promise<readonly OutboxRow[] | 'elsewhere' | 'more'> {
    if (this.partition !== undefined) return this.oldest()
    // Pipelined, but executed in order: the rows are read under the lock, so another process is not appending them.
    const [[lock], rows] = await Promise.all([this.lock(), this.oldest()])
    if (!lock.taken) return 'elsewhere'
    if (rows.length === 0 || rows[0].pid === lock.pid) return rows
    // The connection changed in between, so the rows were read without the lock.
    await this.done()
    return 'more'
  }

  async remove(rows: readonly OutboxRow[]): Promise<void> {
    await this.sql`
      delete from outbox where outbox_id = any(${rows.map((row) => row.outbox_id)}::bigint[])
        and entry_id = any(${rows.map((row) => row.entry_id)}::uuid[])`
  }

  /** Moves rows that cannot be appended to a table of their own, where they stop no others. */
  async setAside(entryIds: readonly string[]): Promise<void> {
    await this.sql`
      with removed as (
        delete from outbox where entry_id = any(${entryIds as string[]}::uuid[])
        returning outbox_id, entry_id, workspace_id, kind, body
      )
      insert into outbox_set_aside (outbox_id, entry_id, workspace_id, kind, body) select * from removed`
  }

  /** Releases what {@link take} took. */
  async done(): Promise<void> {
    if (this.partition === undefined) await this.sql`select pg_advisory_unlock(${RELAY_LOCK})`
  }

  async close(): Promise<void> {
    if (this.partition === undefined) await this.sql.end({ timeout: END_TIMEOUT_SECONDS })
  }

  private lock() {
    return this.sql<[{ taken: boolean; pid: number }]>`
      select pg_try_advisory_lock(${RELAY_LOCK}) as taken, pg_backend_pid() as pid`
  }

  private oldest() {
    return this.sql<OutboxRow[]>`
      select outbox_id, entry_id, kind, body, found, pg_backend_pid() as pid from (
        select outbox_id, entry_id, kind, body, count(*) over () as found,
          sum(octet_length(body::text)) over (order by outbox_id rows between unbounded preceding and 1 preceding)
            as bytes_before
        from (select outbox_id, entry_id, kind, body from ${this.rows()} order by outbox_id limit ${ROWS_PER_ROUND}) as oldest
      ) as o
      where coalesce(bytes_before, 0) < ${BYTES_PER_ROUND}
      order by outbox_id`
  }

  private rows() {
    return this.partition === undefined ? this.sql`outbox` : ofPartition(this.sql, this.partition)
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

function ofPartition(sql: Sql, partition: number) {
  return sql`outbox join (select workspace_id from workspaces where partition = ${partition}) as own using (workspace_id)`
}

/** Inserts system events of one workspace into the outbox, in their order, if the CTE `changed` has a row. */
export function insertEvents(sql: Sql, events: readonly SystemEventRow[]) {
  return sql`
    insert into outbox (workspace_id, kind, body)
    select ${events[0]?.workspace_id ?? null}::uuid, 'event', e.body
    from unnest(${events.map((event) => new RawJson(encodeJson(event)))}::json[]) with ordinality as e (body, n)
    where exists (select from changed) order by e.n`
}
