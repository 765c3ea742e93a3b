import type { Log } from '../../../base/log.ts'
import type { Loops } from '../../../base/loops.ts'
import { partitionOf } from '../../../base/timestamp.ts'
import type { ColumnarClient } from '../../../stores/clickhouse/client.ts'
import { TABLES_INDEXED_LATER } from '../../../stores/journal/kinds.ts'
import type { Partitions } from '../../../tenants/partitions/partition.ts'

interface IndexingDeps {
  readonly columnar: Pick<ColumnarClient, 'query' | 'command' | 'database'>
  readonly partitions: Pick<Partitions, 'owned'>
  readonly log: Log
  readonly loops: Loops
}

const INTERVAL_MS = 60_000
/** Fewer unindexed rows of today are searched quickly without the index, and will be merged soon. */
const TODAY_ROWS_MIN = 100_000
/** Parts of today are still merged, which drops their index, so today is indexed at most this often. */
const TODAY_INTERVAL_MS = 120_000
/** A part whose indexes take less than this has no word index. If the guess is wrong, the statement changes nothing. */
const INDEX_BYTES = 4_096
const INDEX_BYTES_PER_ROW = 4

/**
 * Builds the word index (`said`, see the migrations) of events and tasks in the background: one day of one table at a time,
 * on one thread of the lowest priority. Parts that have the index are skipped.
 *
 * @returns a function that stops it
 */
export function startIndexing({ columnar, partitions, log, loops }: IndexingDeps): () => Promise<void> {
  const indexing = new Indexing(columnar)
  return loops.repeat('search index', INTERVAL_MS, async (signal) => {
    // One process of several is enough.
    if (!partitions.owned().some(({ id }) => id === 0)) return
    const day = await indexing.indexNext(Date.now(), signal)
    if (day !== null) log.debug('search: indexing a day', { ...day })
  })
}

/** A day of a table that has parts without the index. */
interface Day {
  readonly table: string
  /** As `20260131`. */
  readonly id: string
  /** Identifies the parts. */
  readonly parts: string
}

/** Remembers the parts whose index it has requested, so that none is requested twice. */
export class Indexing {
  /** The parts of each day that the index was requested for. */
  private readonly requested = new Map<string, string>()
  /** Unix milliseconds. */
  private todayRequestedAt = 0

  constructor(private readonly columnar: IndexingDeps['columnar']) {}

  /**
   * Begins to index the newest day that lacks it, unless one is being indexed.
   * @param signal ends the statements: a busy ClickHouse must not hold up the end of the service
   * @returns the day; null for none
   */
  async indexNext(nowMs: number, signal: AbortSignal): Promise<Day | null> {
    if (await this.isIndexing(signal)) return null
    const isDue = nowMs - this.todayRequestedAt >= TODAY_INTERVAL_MS
    const days = await this.daysWithout(isDue ? TODAY_ROWS_MIN : Number.MAX_SAFE_INTEGER, signal)
    const next = days.find(({ table, id, parts }) => this.requested.get(`${table} ${id}`) !== parts)
    if (next === undefined) return null
    if (next.id === partitionOf(nowMs)) this.todayRequestedAt = nowMs
    this.requested.set(`${next.table} ${next.id}`, next.parts)
    this.forgetDeleted(days)
    await this.columnar.command(`alter table ${next.table} materialize index said in partition id '${next.id}'`, {
      signal,
    })
    return next
  }

  private async isIndexing(signal: AbortSignal): Promise<boolean> {
    const running = await this.columnar.query(
      `select 1 from system.mutations
       where database = {database:String} and not is_done and command like '%MATERIALIZE INDEX said%' limit 1`,
      { params: { database: this.columnar.database }, signal },
    )
    return running.length > 0
  }

  /** Days that lack the index, newest first. @param todayRowsMin today counts only with this many unindexed rows */
  private daysWithout(todayRowsMin: number, signal: AbortSignal): Promise<Day[]> {
    return this.columnar.query<Day>(
      `select table, partition_id as id, toString(groupBitXor(cityHash64(min_block_number, max_block_number, level))) as parts
       from system.parts
       where database = {database:String} and table in {tables:Array(String)} and active
         and secondary_indices_compressed_bytes < ${INDEX_BYTES} + rows * ${INDEX_BYTES_PER_ROW}
       group by table, id
       having id < toString(toYYYYMMDD(now('UTC'))) or sum(rows) >= {rows:UInt64}
       order by id desc, table`,
      { params: { database: this.columnar.database, tables: TABLES_INDEXED_LATER, rows: todayRowsMin }, signal },
    )
  }

  /** Retention deletes days. */
  private forgetDeleted(days: readonly Day[]): void {
    const present = new Set(days.map(({ table, id }) => `${table} ${id}`))
    for (const key of this.requested.keys()) if (!present.has(key)) this.requested.delete(key)
  }
}
