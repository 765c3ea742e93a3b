import { isErasedOrScore } from '../../../activity/runs/rows.ts'
import type { Clock } from '../../../base/clock.ts'
import { isoOrNull } from '../../../base/timestamp.ts'
import { createBatcher } from '../../../stores/postgres/batcher.ts'
import { type Sql, type TransactionSql, withoutEffect } from '../../../stores/postgres/connect.ts'
import type { AttemptResults, RetryRow, RowKey } from './attempt-results.ts'
import { longestDelays, type Schedule } from './schedule.ts'

/** An endpoint and how many of its rows are wanted. */
interface DueRequest {
  readonly webhookId: string
  readonly room: number
  /** Only the first row is wanted. The others may be due earlier, if the endpoint had another order when they failed. */
  readonly isStrict: boolean
  /** Positions of the rows that it has already loaded. */
  readonly loaded: readonly number[]
}

type Rows = Pick<AttemptResults, 'webhookId' | 'rows' | 'gone'>

/** Bounds a statement. */
const BYTES_PER_BATCH = 2 << 20
const ROW_BYTES = 200
const NUL = /\0/g

/** The rows of `webhook_retries`. */
export class Retries {
  private readonly batcher

  constructor(
    private readonly sql: Sql,
    private readonly clock: Clock,
    private readonly schedule: Schedule,
  ) {
    this.batcher = createBatcher<Rows, readonly RowKey[]>({
      run: (items) => this.writeAll(items),
      keyOf: ({ webhookId }) => webhookId,
      bytesOf: ({ rows, gone }) =>
        rows.reduce((sum, { body }) => sum + body.length + ROW_BYTES, gone.length * ROW_BYTES),
      limits: { bytesPerBatch: BYTES_PER_BATCH },
    })
  }

  /**
   * Writes the rows of an endpoint; those of several endpoints together.
   * @returns those that are not written, because their run or score was deleted while an attempt was made
   */
  async write(results: Rows): Promise<readonly RowKey[]> {
    return results.rows.length + results.gone.length > 0 ? this.batcher.submit(results) : []
  }

  /** Does what {@link write} does with rows, without any effect. @throws what that would throw */
  probe(webhookId: string, rows: readonly RetryRow[]): Promise<void> {
    return withoutEffect(this.sql, async (tx) => void (await insert(tx, [{ webhookId, rows }])))
  }

  /**
   * The rows of an endpoint that starts. A run without a scheduled row, left by a process that ended in between, is made due
   * now.
   */
  async keys(webhookId: string): Promise<RowKey[]> {
    const { sql } = this
    await this.bringForward([webhookId])
    await sql`
      update webhook_retries set next_at = ${new Date(this.clock.now())} where webhook_id = ${webhookId} and seq in (
        select min(seq) from webhook_retries where webhook_id = ${webhookId} group by coalesce(run_id::text, seq::text)
        having count(next_at) = 0
      )`
    return sql<RowKey[]>`select seq, run_id as "runId" from webhook_retries where webhook_id = ${webhookId}`
  }

  /**
   * Makes rows due that are further ahead than any delay: the clock was ahead when their attempts failed, and has been set back
   * since.
   */
  async bringForward(webhookIds: readonly string[]): Promise<void> {
    const delays = longestDelays(this.schedule)
    const now = new Date(this.clock.now())
    await this.sql`
      update webhook_retries set next_at = ${now}
      where webhook_id = any(${webhookIds as string[]}::uuid[]) and next_at is not null and next_at > ${now}::timestamptz
        + interval '1 ms' * (${delays}::float8[])[least(greatest(attempt, 1), ${delays.length}::int)]`
  }

  /** The rows of each endpoint that are due, the longest due first; one more than `room` if there are more. */
  async due(requests: readonly DueRequest[], now: number): Promise<Map<string, RetryRow[]>> {
    const { sql } = this
    const loaded = requests.flatMap(({ webhookId, loaded }) => loaded.map((seq) => ({ webhookId, seq })))
    const rows = await sql<(RetryRow & { readonly webhookId: string })[]>`
      select r.webhook_id as "webhookId", r.delivery_id as "deliveryId", r.seq, r.run_id as "runId",
        r.score_id as "scoreId", r.type, r.body, r.attempt,
        null as "nextAt", r.http_status as "httpStatus", r.response
      from unnest(
        ${requests.map(({ webhookId }) => webhookId)}::uuid[], ${requests.map(({ room }) => room)}::int[],
        ${requests.map(({ isStrict }) => Number(isStrict))}::int[]
      ) as e (webhook_id, room, strict)
      cross join lateral (
        select * from webhook_retries r
        where r.webhook_id = e.webhook_id and r.next_at <= ${new Date(now)} and (
          e.strict = 0
          or r.seq = (select min(seq) from webhook_retries f where f.webhook_id = e.webhook_id and f.next_at is not null)
        ) and not exists (
          select from unnest(
            ${loaded.map(({ webhookId }) => webhookId)}::uuid[], ${loaded.map(({ seq }) => seq)}::bigint[]
          ) as l (webhook_id, seq)
          where l.webhook_id = r.webhook_id and l.seq = r.seq
        )
        order by r.next_at, r.seq limit e.room + 1
      ) r`
    return Map.groupBy(rows, ({ webhookId }) => webhookId)
  }

  /** The row of a delivery, if it has one. */
  async find(webhookId: string, seq: number): Promise<RetryRow | undefined> {
    const [row] = await this.sql<RetryRow[]>`
      select delivery_id as "deliveryId", seq, run_id as "runId", score_id as "scoreId", type, body, attempt, null as "nextAt",
        http_status as "httpStatus", response
      from webhook_retries where webhook_id = ${webhookId} and seq = ${seq}`
    return row
  }

  private async writeAll(items: readonly Rows[]): Promise<RowKey[][]> {
    const erased = await insert(this.sql, items)
    await this.delete(items)
    return items.map(({ webhookId }) => erased.filter((row) => row.webhookId === webhookId))
  }

  /** Deletes rows; then the next one of the run is due. */
  private async delete(items: readonly Rows[]): Promise<void> {
    const rows = items.flatMap(({ webhookId, gone }) => gone.map(({ seq }) => ({ webhookId, seq })))
    if (rows.length === 0) return
    await this.sql`
      with gone as (
        delete from webhook_retries r
        using unnest(${rows.map(({ webhookId }) => webhookId)}::uuid[], ${rows.map(({ seq }) => seq)}::bigint[])
          as g (webhook_id, seq)
        where r.webhook_id = g.webhook_id and r.seq = g.seq
        returning r.webhook_id, r.seq, r.run_id
      ), next as (
        select distinct on (n.webhook_id, n.run_id) n.webhook_id, n.seq
        from gone g join webhook_retries n on n.webhook_id = g.webhook_id and n.run_id = g.run_id
        where not exists (select from gone x where x.webhook_id = n.webhook_id and x.seq = n.seq)
        order by n.webhook_id, n.run_id, n.seq
      )
      update webhook_retries r set next_at = ${new Date(this.clock.now())} from next
      where r.webhook_id = next.webhook_id and r.seq = next.seq and r.next_at is null`
  }
}

interface ErasedRow extends RowKey {
  readonly webhookId: string
}

/** Rows of endpoints that no longer exist are left out. @returns those that are left out because they were deleted */
async function insert(
  sql: Sql | TransactionSql,
  items: readonly Pick<AttemptResults, 'webhookId' | 'rows'>[],
): Promise<readonly ErasedRow[]> {
  const rows = items.flatMap(({ webhookId, rows }) => unique(rows).map((row) => ({ webhookId, ...row })))
  if (rows.length === 0) return []
  return sql<ErasedRow[]>`
    with item as (
      select i.*, w.workspace_id, ${sql.unsafe(isErasedOrScore('i', 'w'))} as is_erased
      from unnest(
        ${rows.map(({ webhookId }) => webhookId)}::uuid[], ${rows.map(({ seq }) => seq)}::bigint[],
        ${rows.map(({ deliveryId }) => deliveryId)}::text[], ${rows.map(({ runId }) => runId)}::uuid[],
        ${rows.map(({ scoreId }) => scoreId?.replace(NUL, '\ufffd') ?? null)}::text[],
        ${rows.map(({ type }) => type.replace(NUL, '\ufffd'))}::text[], ${rows.map(({ body }) => body)}::text[],
        ${rows.map(({ attempt }) => attempt)}::int[],
        ${rows.map(({ nextAt }) => isoOrNull(nextAt))}::timestamptz[],
        ${rows.map(({ httpStatus }) => httpStatus)}::int[], ${rows.map(({ response }) => response)}::text[]
      ) as i (webhook_id, seq, delivery_id, run_id, score_id, type, body, attempt, next_at, http_status, response)
      join webhooks w on w.webhook_id = i.webhook_id
    ), stored as (
      insert into webhook_retries as r (
        webhook_id, workspace_id, seq, delivery_id, run_id, score_id, type, body, attempt, next_at, http_status, response,
        created_at)
      select webhook_id, workspace_id, seq, delivery_id, run_id, score_id, type, body, attempt, next_at, http_status, response,
        now()
      from item where not is_erased order by webhook_id, seq
      on conflict (webhook_id, seq) do update set
        attempt = excluded.attempt, next_at = excluded.next_at, http_status = excluded.http_status,
        response = excluded.response
        where excluded.attempt > 0
    )
    select webhook_id as "webhookId", seq, run_id as "runId" from item where is_erased`
}

/** A delivery may have come from the position and from a recovery; the later row counts. */
function unique<Row extends RowKey>(rows: readonly Row[]): Row[] {
  return [...new Map(rows.map((row) => [row.seq, row])).values()]
}
