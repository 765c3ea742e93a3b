import { ApiError, invalid } from '../base/errors.ts'
import { dateOf } from '../base/timestamp.ts'
import { WorkspaceSlots } from '../base/workspace-slots.ts'
import type { Caller } from '../keys/schema.ts'
import { type FeedSource, startOf } from '../live/feed-source.ts'
import type { Feeds } from '../partitions/partition.ts'
import type { Sql } from '../postgres/connect.ts'
import { type LoadedDeps, queryLoaded } from '../runs/events.ts'
import type { RecoverWebhook, StoredWebhook } from './schema.ts'

interface RecoveryDeps extends LoadedDeps {
  readonly sql: Sql
  readonly feeds: Feeds<FeedSource>
  /** Called after each change. */
  readonly onChange: () => void
}

/**
 * A recovery goes up to this many positions beyond the stored one, which may be a second old: what has been delivered since
 * may be lost, too. What has not been delivered yet may then arrive twice.
 */
const RECENT_MAX = 10_000

/** Delivers an earlier part of the log again, with the same ids (docs/specification.md#recovery). */
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
    const source = await this.deps.feeds.of(caller)
    const { epoch, endSeq } = source.journal
    const from = startOf(source, caller.workspaceId, after ?? '0', 'after').afterSeq
    const position = since === undefined ? from : Math.max(from, await this.before(caller, source, since))
    const found = await this.deps.sql`
      update webhooks w set recover_position = ${position},
        recover_until = greatest(w.position, least(w.position + ${RECENT_MAX}::bigint, ${endSeq}::bigint))
      where workspace_id = ${caller.workspaceId} and webhook_id = ${webhook.webhook_id} and epoch = ${epoch}
        and recover_position is null and ${position}::bigint < ${endSeq}::bigint
      returning webhook_id`
    this.deps.onChange()
    if (found.length > 0 || position >= endSeq) return
    throw webhook.epoch === epoch
      ? new ApiError('CONFLICT', 'a recovery is already running; wait until health.recovering_until is null')
      : new ApiError('UNAVAILABLE', 'the endpoint has not started on the current log yet; try again')
  }

  /** The position before the first activity that was accepted at this time or later. */
  private async before(caller: Caller, { journal }: FeedSource, since: string): Promise<number> {
    const accepted = `workspace_id = {workspace:UUID} and epoch = {epoch:String} and received_at >= fromUnixTimestamp64Milli({since:Int64})`
    const tables = ['events', 'run_changes', 'task_changes', 'score_changes']
    const firsts = tables.map((table) => `select minOrNull(seq) as seq from ${table} where ${accepted}`)
    const params = { workspace: caller.workspaceId, epoch: journal.epoch, since: dateOf(since).getTime() }
    const sql = `select min(seq) as first from (${firsts.join(' union all ')})`
    const [row] = await queryLoaded<{ first: number | null }>(this.deps, caller, 'past activity', sql, params)
    return row?.first == null ? journal.endSeq : row.first - 1
  }
}
