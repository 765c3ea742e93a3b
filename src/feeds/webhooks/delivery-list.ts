import { type LoadedDeps, queryLoaded } from '../../activity/runs/events.ts'
import { cursorCodec, PAGE_LIMIT_DEFAULT, type PageOf, pageOf } from '../../base/http/page.ts'
import { Int } from '../../base/http/schema.ts'
import { SEQ_MAX } from '../../stores/journal/cursor.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { DeliveryRecord, ListDeliveries, StoredWebhook } from './schema.ts'

interface DeliveryListDeps extends LoadedDeps {
  readonly sql: Sql
}

/** A position in either list: of the activity, or of an attempt. */
const CURSOR = cursorCodec(Int({ minimum: 0, maximum: SEQ_MAX }))

/** A row of `webhook_retries`. */
interface PendingRow {
  readonly seq: number
  readonly delivery_id: string
  readonly run_id: string | null
  readonly type: string
  readonly attempt: number
  readonly next_at: Date | null
  readonly http_status: number | null
  readonly response: string | null
}

/** The latest attempt of a delivery in ClickHouse. */
interface AttemptRow extends Omit<DeliveryRecord, 'webhook_id' | 'seq' | 'at' | 'next_at'> {
  readonly activity_seq: number
  readonly at_ms: number
  readonly position: number
}

interface AttemptRange {
  readonly before: number
  readonly limit: number
  readonly status?: string | undefined
}

const OF_WEBHOOK = 'workspace_id = {workspace:UUID} and webhook_id = {webhook:UUID}'
/** Attempts that are read at once, and how often for one page. */
const ATTEMPTS_MIN = 200
const STEPS_MAX = 10

/** Deliveries to an endpoint as of their latest attempts (docs/webhooks.md#list-of-deliveries). */
export class DeliveryList {
  constructor(private readonly deps: DeliveryListDeps) {}

  /** @throws ApiError VALIDATION_ERROR for an invalid cursor; UNAVAILABLE while ClickHouse is unavailable or far behind */
  async list(caller: Caller, webhook: StoredWebhook, query: ListDeliveries): Promise<PageOf<DeliveryRecord>> {
    const { status, limit = PAGE_LIMIT_DEFAULT, cursor } = query
    const before = cursor === undefined ? SEQ_MAX : CURSOR.decode(cursor)
    return status === 'pending'
      ? this.pending(webhook, before, limit)
      : this.attempted(caller, webhook, { before, limit, status })
  }

  /** Pending deliveries, newest activity first. */
  private async pending(webhook: StoredWebhook, before: number, limit: number): Promise<PageOf<DeliveryRecord>> {
    const { sql } = this.deps
    const rows = await sql<PendingRow[]>`
      select seq, delivery_id, run_id, type, attempt, next_at, http_status, response from webhook_retries
      where webhook_id = ${webhook.webhook_id} and seq < ${before}
      order by seq desc limit ${limit + 1}`
    return pageOf(
      rows,
      limit,
      ({ seq }) => CURSOR.encode(seq),
      (row) => toPending(webhook, row),
    )
  }

  /**
   * Deliveries that were attempted, the latest attempt first. An endpoint may have millions of attempts, so only as many are
   * read as a page needs; the page may be shorter where most of them have later ones. The database knows which deliveries
   * wait for another attempt.
   */
  private async attempted(
    caller: Caller,
    webhook: StoredWebhook,
    range: AttemptRange,
  ): Promise<PageOf<DeliveryRecord>> {
    const { limit } = range
    const latest: AttemptRow[] = []
    let { before } = range
    let isEnd = false
    for (let step = 0; step < STEPS_MAX && latest.length <= limit && !isEnd; step++) {
      const attempts = await this.attemptsOf(caller, webhook, { ...range, before })
      latest.push(...(await this.latestOf(caller, webhook, attempts)))
      isEnd = attempts.length < attemptsFor(limit)
      before = attempts.at(-1)?.position ?? before
    }
    const page = latest.slice(0, limit)
    const last = latest.length > limit ? page.at(-1)?.position : isEnd ? undefined : before
    const nextOf = await this.nextOf(webhook, page)
    return {
      items: page.map(({ at_ms, position: _, activity_seq: seq, ...row }) => ({
        ...row,
        seq,
        webhook_id: webhook.webhook_id,
        at: new Date(at_ms).toISOString(),
        next_at: nextOf.get(seq)?.toISOString() ?? null,
      })),
      next_cursor: last === undefined ? null : CURSOR.encode(last),
    }
  }

  /** The attempts before a position, the latest first. `limit 1 by` would read all of them. */
  private attemptsOf(
    caller: Caller,
    { webhook_id, workspace_id }: StoredWebhook,
    { before, limit, status }: AttemptRange,
  ): Promise<AttemptRow[]> {
    return queryLoaded<AttemptRow>(
      this.deps,
      caller,
      'deliveries',
      `select delivery_id, type, run_id, activity_seq, attempt, status, http_status, duration_ms, response,
        toUnixTimestamp64Milli(at) as at_ms, seq as position
      from deliveries
      where ${OF_WEBHOOK} and seq < {before:UInt64} ${status === undefined ? '' : 'and status = {status:String}'}
      order by seq desc limit {limit:UInt32}`,
      { workspace: workspace_id, webhook: webhook_id, before, limit: attemptsFor(limit), ...(status && { status }) },
    )
  }

  /** Those that no later attempt of the same delivery follows. */
  private async latestOf(
    caller: Caller,
    { webhook_id, workspace_id }: StoredWebhook,
    attempts: readonly AttemptRow[],
  ): Promise<readonly AttemptRow[]> {
    const first = attempts.at(-1)
    if (first === undefined) return []
    const rows = await queryLoaded<{ readonly latest: number }>(
      this.deps,
      caller,
      'deliveries',
      `select max(seq) as latest from deliveries
      where ${OF_WEBHOOK} and seq >= {first:UInt64} and activity_seq in {seqs:Array(UInt64)} group by delivery_id`,
      {
        workspace: workspace_id,
        webhook: webhook_id,
        first: first.position,
        seqs: [...new Set(attempts.map(({ activity_seq }) => activity_seq))],
      },
    )
    // A part of the log may have been loaded twice.
    const byPosition = new Map(attempts.map((attempt) => [attempt.position, attempt]))
    const latest = new Set(rows.map((row) => row.latest))
    return byPosition
      .values()
      .filter(({ position }) => latest.has(position))
      .toArray()
  }

  /** When those of these deliveries that wait are attempted next. */
  private async nextOf({ webhook_id }: StoredWebhook, page: readonly AttemptRow[]) {
    const waiting = await this.deps.sql<Pick<PendingRow, 'seq' | 'next_at'>[]>`
      select seq, next_at from webhook_retries
      where webhook_id = ${webhook_id} and seq = any(${page.map(({ activity_seq }) => activity_seq)}::bigint[])`
    return new Map(waiting.map(({ seq, next_at }) => [seq, next_at]))
  }
}

/** Attempts that are read at once for a page. */
function attemptsFor(limit: number): number {
  return Math.max(ATTEMPTS_MIN, limit + 1)
}

function toPending({ webhook_id }: StoredWebhook, row: PendingRow): DeliveryRecord {
  const next_at = row.next_at?.toISOString() ?? null
  return { ...row, webhook_id, status: 'pending', duration_ms: null, at: null, next_at }
}
