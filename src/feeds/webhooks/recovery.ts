import { type LoadedDeps, queryLoaded } from '../../activity/runs/events.ts'
import type { Clock } from '../../base/clock.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import { dateOf } from '../../base/timestamp.ts'
import { WorkspaceSlots } from '../../base/workspace-slots.ts'
import { ACTIVITY_TABLES, KINDS } from '../../stores/journal/kinds.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { Feeds } from '../../tenants/partitions/partition.ts'
import { type FeedSource, startOf } from '../live/feed-source.ts'
import type { RecoverWebhook, StoredWebhook } from './schema.ts'

interface RecoveryDeps extends LoadedDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly feeds: Feeds<FeedSource>
  /** Called after each change. */
  readonly onChange: () => void
}

/**
 * A recovery goes up to this many positions beyond the stored one, which may be a second old: what has been delivered since
 * may be lost, too. What has not been delivered yet may then arrive twice.
 */
const RECENT_MAX = 10_000

/** Delivers an earlier part of the log again, with the same ids (docs/webhooks.md#recovery). */
export class Recoveries {
  /** Finding the position of a time reads all activity since then. */
  private readonly slots = new WorkspaceSlots(1, { one: 'recovery', many: 'recoveries' })

  constructor(private readonly deps: RecoveryDeps) {}

  /** @throws ApiError VALIDATION_ERROR; CONFLICT while another recovery is running; RATE_LIMITED; UNAVAILABLE */
  async begin(caller: Caller, webhook: StoredWebhook, request: RecoverWebhook): Promise<void> {
    if ((request.since === undefined) === (request.after === undefined))
      throw invalid('body', 'expected either since or after')
    const release = this.slots.take(caller.workspaceId)
    await this.store(caller, webhook, request).finally(release)
  }

  private async store(caller: Caller, webhook: StoredWebhook, { since, after }: RecoverWebhook): Promise<void> {
    const source = await this.deps.feeds.of(caller, after)
    const { epoch, endSeq } = source.journal
    const from = startOf(source, caller.workspaceId, after ?? '0', 'after').afterSeq
    const position = since === undefined ? from : Math.max(from, await this.before(caller, source, since))
    // What waits for its retry, or behind one of its run that does, is due now.
    const found = await this.deps.sql`
      with recovered as (
        update webhooks w set recover_position = ${position},
          recover_until = greatest(w.position, least(w.position + ${RECENT_MAX}::bigint, ${endSeq}::bigint))
        where workspace_id = ${caller.workspaceId} and webhook_id = ${webhook.webhook_id} and epoch = ${epoch}
          and recover_position is null and ${position}::bigint < ${endSeq}::bigint
        returning webhook_id
      ), due as (
        update webhook_retries r set next_at = least(r.next_at, ${new Date(this.deps.clock.now())}) from recovered
        where r.webhook_id = recovered.webhook_id and r.next_at is not null and exists (
          select from webhook_retries o
          where o.webhook_id = r.webhook_id and o.seq > ${position} and (o.seq = r.seq or o.run_id = r.run_id)
        )
      )
      select webhook_id from recovered`
    this.deps.onChange()
    if (found.length > 0 || position >= endSeq) return
    throw webhook.epoch === epoch
      ? new ApiError('CONFLICT', 'a recovery is already running; wait until health.recovering_until is null', {
          reason: 'already_running',
        })
      : new ApiError('UNAVAILABLE', 'the endpoint has not started on the current log yet; try again')
  }

  /**
   * The position before the first activity that was accepted at this time or later. Times never fall within a log, so the
   * first change is found in order of positions; of the events, only those before it are looked through.
   */
  private async before(caller: Caller, { journal }: FeedSource, since: string): Promise<number> {
    const accepted = `workspace_id = {workspace:UUID} and epoch = {epoch:String} and received_at >= fromUnixTimestamp64Milli({since:Int64})`
    const params = { workspace: caller.workspaceId, epoch: journal.epoch, since: dateOf(since).getTime() }
    const read = <Row>(sql: string, more: object = {}) =>
      queryLoaded<Row>(this.deps, caller, 'past activity', sql, { ...params, ...more })
    const columns = 'seq, toUnixTimestamp64Milli(received_at) as ms'
    const changes = ACTIVITY_TABLES.filter((table) => table !== KINDS.event.rows).map(
      (table) => `select * from (select ${columns} from ${table} where ${accepted} order by seq limit 1)`,
    )
    const [change] = await read<{ readonly seq: number; readonly ms: number }>(
      `select seq, ms from (${changes.join(' union all ')}) order by seq limit 1`,
    )
    const isEarlier = change ? 'and seq < {seq:UInt64} and received_at <= fromUnixTimestamp64Milli({ms:Int64})' : ''
    const [event] = await read<{ readonly first: number }>(
      `select min(seq) as first from ${KINDS.event.rows} where ${accepted} ${isEarlier} having first > 0`,
      change,
    )
    const first = event?.first ?? change?.seq
    return first === undefined ? journal.endSeq : first - 1
  }
}
