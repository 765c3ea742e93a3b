import { mint, NIL_UUID } from '../../../base/ids.ts'
import { isoOrNull } from '../../../base/timestamp.ts'
import { insertEvents } from '../../../stores/journal/outbox-rows.ts'
import type { Sql } from '../../../stores/postgres/connect.ts'
import type { StoredWebhook } from '../schema.ts'
import { STORED_WEBHOOK } from '../store.ts'
import type { StoredHealth } from './health.ts'

/** An active endpoint, as the loop sees it every second. */
export interface ActiveWebhook {
  readonly webhook_id: string
  readonly partition: number
  readonly version: number
  /** Rises when rows of its are deleted with their run or score. */
  readonly retries_erased: number
  /** When its next row is due; in strict order, its first row. */
  readonly next_at: Date | null
  readonly recover_position: number | null
  readonly recover_until: number | null
}

/** How far an endpoint has got. */
export interface Progress extends StoredHealth {
  readonly webhookId: string
  /** As read when it started: an edit may have reset what is known of its health. */
  readonly version: number
  readonly epoch: string
  readonly position: number
  readonly isBehind: boolean
  /** Of the part that is delivered again; null if there is none. `from` is its stored position. */
  readonly recovery: { readonly from: number; readonly until: number; readonly position: number } | null
}

/** The active endpoints of active workspaces of these partitions. */
export function activeWebhooks(sql: Sql, partitions: readonly number[]): Promise<ActiveWebhook[]> {
  return sql<ActiveWebhook[]>`
    select w.webhook_id, s.partition, w.version, w.retries_erased, w.recover_position, w.recover_until,
      case when w.ordering = 'strict' then (
        select r.next_at from webhook_retries r where r.webhook_id = w.webhook_id and r.next_at is not null
        order by r.seq limit 1
      ) else (
        select min(r.next_at) from webhook_retries r where r.webhook_id = w.webhook_id and r.next_at is not null
      ) end as next_at
    from webhooks w join workspaces s on s.workspace_id = w.workspace_id
    where w.status = 'active' and s.status = 'active' and s.partition = any(${partitions as number[]}::int[])
    order by w.webhook_id`
}

/** These endpoints with everything that is needed to start them. */
export function readWebhooks(sql: Sql, webhookIds: readonly string[]): Promise<StoredWebhook[]> {
  return sql<StoredWebhook[]>`
    select ${sql.unsafe(STORED_WEBHOOK)} from webhooks where webhook_id = any(${webhookIds as string[]}::uuid[])`
}

/** The endpoint starts in another epoch of the journal, whose positions cannot be compared with those before. */
export async function beginEpoch(
  sql: Sql,
  webhook: Pick<StoredWebhook, 'webhook_id' | 'epoch'>,
  to: { readonly epoch: string; readonly position: number },
): Promise<void> {
  await sql`
    update webhooks set epoch = ${to.epoch}, position = ${to.position}, recover_position = null, recover_until = null
    where webhook_id = ${webhook.webhook_id} and epoch = ${webhook.epoch}`
}

/**
 * Stores how far endpoints have got. A position never decreases, whoever delivered before; by an earlier filter it goes up to
 * where the current one begins. A part that is delivered again continues where it was, unless somebody has asked for
 * another one meanwhile.
 */
export async function storeProgress(sql: Sql, all: readonly Progress[]): Promise<void> {
  if (all.length === 0) return
  const times = (member: 'failingSince' | 'succeededAt' | 'failedAt') => all.map((each) => isoOrNull(each[member]))
  await sql`
    update webhooks w set
      position = greatest(
        w.position, case when p.version < w.filter_version then least(p.position, w.filter_from) else p.position end),
      is_behind = p.is_behind > 0,
      failing_since = case when w.version = p.version then p.failing_since else w.failing_since end,
      failing_ms = case when w.version = p.version then p.failing_ms else w.failing_ms end,
      succeeded_at = greatest(w.succeeded_at, p.succeeded_at), failed_at = greatest(w.failed_at, p.failed_at),
      recover_position = case
        when w.recover_position = p.recover_from and w.recover_until = p.recover_until
        then nullif(p.recover_position, p.recover_until) else w.recover_position end,
      recover_until = case
        when w.recover_position = p.recover_from and w.recover_until = p.recover_until
          and p.recover_position = p.recover_until
        then null else w.recover_until end
    from unnest(
      ${all.map(({ webhookId }) => webhookId)}::uuid[], ${all.map(({ version }) => version)}::int[],
      ${all.map(({ epoch }) => epoch)}::text[],
      ${all.map(({ position }) => position)}::bigint[], ${all.map(({ isBehind }) => Number(isBehind))}::int[],
      ${all.map(({ failingMs }) => failingMs)}::bigint[], ${times('failingSince')}::timestamptz[], ${times('succeededAt')}::timestamptz[], ${times('failedAt')}::timestamptz[],
      ${all.map(({ recovery }) => recovery?.from ?? null)}::bigint[],
      ${all.map(({ recovery }) => recovery?.until ?? null)}::bigint[],
      ${all.map(({ recovery }) => recovery && Math.min(recovery.position, recovery.until))}::bigint[]
    ) as p (
      webhook_id, version, epoch, position, is_behind, failing_ms, failing_since, succeeded_at, failed_at, recover_from,
      recover_until, recover_position)
    where w.webhook_id = p.webhook_id and w.epoch = p.epoch`
}

/**
 * Disables an endpoint unless somebody has edited it meanwhile, and reports that as a workspace event. The event has only the
 * origin of the URL, because the rest may be a credential, as with Slack.
 * @param at Unix milliseconds
 * @returns whether it was disabled
 */
export async function disableWebhook(
  sql: Sql,
  webhook: Pick<StoredWebhook, 'webhook_id' | 'workspace_id' | 'version' | 'url'>,
  reason: string,
  at: number,
): Promise<boolean> {
  const { webhook_id, workspace_id, version, url } = webhook
  const event = {
    workspace_id,
    agent_id: NIL_UUID,
    run_id: NIL_UUID,
    event_id: mint.ulid(),
    type: 'webhook.disabled',
    level: 4,
    occurred_at: at,
    payload: JSON.stringify({ webhook_id, url: new URL(url).origin, reason }),
  }
  const found = await sql`
    with changed as (
      update webhooks w set status = 'disabled', disabled_reason = ${reason}, version = version + 1,
        updated_at = ${new Date(at)}
      where webhook_id = ${webhook_id} and version = ${version} and status = 'active'
      returning w.webhook_id
    ), logged as (${insertEvents(sql, [event])})
    select from changed`
  return found.length > 0
}
