import { ApiError, invalid } from '../../base/errors.ts'
import { PAGE_LIMIT_DEFAULT } from '../../base/http/page.ts'
import type { RunRef } from '../../base/ids.ts'
import { RawJson } from '../../base/raw-json.ts'
import { type ColumnarClient, ColumnarUnavailable } from '../../stores/clickhouse/client.ts'
import { levelNumber } from '../../stores/journal/levels.ts'
import type { PartitionRef, Partitions } from '../../tenants/partitions/partition.ts'
import type { EventPage, EventRecord, ListEvents } from './schema.ts'

/** What reading reported rows from ClickHouse takes. */
export interface LoadedDeps {
  readonly columnar: Pick<ColumnarClient, 'query'>
  readonly partitions: Pick<Partitions, 'of'>
}

/** A page ends with the event whose payload exceeds this total: it is parsed at once, and 200 events may have 100 MiB. */
const PAGE_BYTES_MAX = 4 << 20
const LOADED_WAIT_MS = 5_000

/** The events of a run from ClickHouse, where one run is one range of the primary key. */
export class EventReader {
  constructor(private readonly deps: LoadedDeps) {}

  /**
   * Events of a run, oldest first, including all that were acknowledged before the request.
   * @throws ApiError VALIDATION_ERROR for an invalid cursor, UNAVAILABLE while ClickHouse is unavailable or far behind
   */
  async list(caller: PartitionRef, run: RunRef, query: ListEvents): Promise<EventPage> {
    const limit = query.limit ?? PAGE_LIMIT_DEFAULT
    const { conditions, params } = filter(query)
    const sql = `
      select * from (
        select *, count() over () as found,
          sum(length(payload)) over (order by seq rows between unbounded preceding and 1 preceding) as bytes_before
        from (
          select event_id, seq, task_id, type, level, payload, toUnixTimestamp64Milli(occurred_at) as occurred_ms,
            toUnixTimestamp64Milli(received_at) as received_ms
          from events
          where workspace_id = {workspace:UUID} and agent_id = {agent:UUID} and run_id = {run:UUID} ${conditions}
          order by seq limit {limit:UInt32}
        )
      )
      where bytes_before < {bytes:UInt64}
      order by seq limit {limit:UInt32} - 1`
    const { workspaceId: workspace, agentId: agent, runId } = run
    const all = { ...params, workspace, agent, run: runId, limit: limit + 1, bytes: PAGE_BYTES_MAX }
    const rows = await queryLoaded<EventRow>(this.deps, caller, 'events', sql, all)
    const last = rows.at(-1)
    return {
      items: rows.map(toRecord),
      next_cursor: last !== undefined && last.found > rows.length ? String(last.seq) : null,
    }
  }
}

/**
 * Rows of ClickHouse, once it has everything that was acknowledged before.
 * @param what is read, for the error
 * @throws ApiError UNAVAILABLE while ClickHouse is unavailable or far behind
 */
export async function queryLoaded<Row>(
  { columnar, partitions }: LoadedDeps,
  caller: PartitionRef,
  what: string,
  sql: string,
  params: Record<string, unknown>,
): Promise<Row[]> {
  const unavailable = (cause?: unknown) =>
    new ApiError('UNAVAILABLE', `${what} cannot be read right now; try again`, { cause })
  if (!(await partitions.of(caller).loading.waitForAll(LOADED_WAIT_MS))) throw unavailable()
  return columnar.query<Row>(sql, { params }).catch((error) => {
    throw error instanceof ColumnarUnavailable ? unavailable(error) : error
  })
}

interface EventRow {
  readonly event_id: string
  readonly seq: number
  readonly task_id: string | null
  readonly type: string
  readonly level: EventRecord['level']
  readonly payload: string
  readonly occurred_ms: number
  readonly received_ms: number
  readonly found: number
}

function toRecord(row: EventRow): EventRecord {
  return {
    id: row.event_id,
    seq: row.seq,
    ...(row.task_id !== null && { task_id: row.task_id }),
    type: row.type,
    level: row.level,
    payload: new RawJson(row.payload),
    occurred_at: new Date(row.occurred_ms).toISOString(),
    received_at: new Date(row.received_ms).toISOString(),
  }
}

function filter(query: ListEvents): { conditions: string; params: Record<string, unknown> } {
  const { type, level, after_seq: afterSeq = 0, cursor } = query
  const params: Record<string, unknown> = { after: Math.max(afterSeq, cursor === undefined ? 0 : seqOf(cursor)) }
  let conditions = 'and seq > {after:UInt64}'
  if (level !== undefined) {
    conditions += ' and toInt8(level) >= {level:Int8}'
    params.level = levelNumber(level)
  }
  if (type !== undefined) {
    const prefix = type.endsWith('*')
    conditions += prefix ? ' and startsWith(type, {type:String})' : ' and type = {type:String}'
    params.type = prefix ? type.slice(0, -1) : type
  }
  return { conditions, params }
}

function seqOf(cursor: string): number {
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor)
  throw invalid('query.cursor', 'expected the next_cursor of a page of this list')
}
