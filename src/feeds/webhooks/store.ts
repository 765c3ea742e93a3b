import type { Clock } from '../../base/clock.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import type { PageOf } from '../../base/http/page.ts'
import type { PageQuery } from '../../base/http/schema.ts'
import type { Mint } from '../../base/ids.ts'
import { RawJson } from '../../base/raw-json.ts'
import { isoOrNull } from '../../base/timestamp.ts'
import { encodeCursor } from '../../stores/journal/cursor.ts'
import { inTransaction, type Sql, type TransactionSql } from '../../stores/postgres/connect.ts'
import { workspaceResource } from '../../stores/postgres/workspace-resource.ts'
import type { EditOptions } from '../../tenants/keys/resource-routes.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { Feeds } from '../../tenants/partitions/partition.ts'
import type { Vault } from '../../tenants/secrets/vault.ts'
import type { FeedSource } from '../live/feed-source.ts'
import { parseWebhookFilter } from './filter.ts'
import type { CreateWebhook, DeletedWebhook, EditWebhook, NewWebhook, StoredWebhook, WebhookRecord } from './schema.ts'
import { newSecret, openKeys, ROTATION_MS, sealKeys } from './signature.ts'

interface WebhookStoreDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly vault: Vault
  readonly feeds: Feeds<Pick<FeedSource, 'journal'>>
  /** @throws ApiError VALIDATION_ERROR for an address that messages are never sent to */
  readonly checkUrl: (url: string) => void
  /** Called after each change, so that the process that delivers notices it at once if it is this one. */
  readonly onChange: () => void
}

/** Maximum of endpoints per workspace. */
export const WEBHOOKS_MAX = 100
/** Replaced secrets that sign as well: each makes a header longer, and takes time. */
const PREVIOUS_MAX = 4
/** Maximum of characters of a filter as JSON: each list item has all of it. */
const FILTER_LENGTH_MAX = 20_000

const ROWS = workspaceResource({
  table: 'webhooks',
  id: 'webhook_id',
  one: 'a webhook',
  many: 'webhooks',
  max: WEBHOOKS_MAX,
})

/** A row of `webhooks` with the number of its rows in `webhook_retries`. */
type CountedWebhook = StoredWebhook & { readonly pending: number }

/** SQL text: the columns of {@link StoredWebhook} of a row of `webhooks`. */
export const STORED_WEBHOOK = `
  webhook_id, workspace_id, url, description, filter, format, signing, ordering, status, disabled_reason, secret, key_id,
  public_key, previous_secrets, previous_key_id, version, created_at, updated_at, created_cursor, epoch, position,
  is_behind, failing_since, failing_ms, succeeded_at, failed_at, retries_erased, recover_position, recover_until`

/** Endpoints that activity is sent to (docs/webhooks.md). */
export class WebhookStore {
  constructor(private readonly deps: WebhookStoreDeps) {}

  /** @throws ApiError VALIDATION_ERROR; CONFLICT when the workspace has reached its limit; UNAVAILABLE without the log */
  async create(caller: Caller, body: CreateWebhook, mint: Mint): Promise<NewWebhook> {
    const { sql, clock, vault, feeds, checkUrl } = this.deps
    const { workspaceId } = caller
    const { url, filter = null, description = null, format = 'standard', signing = 'v1', order = 'run' } = body
    checkUrl(url)
    const { journal } = await feeds.of(caller)
    const { epoch, endSeq } = journal
    const now = new Date(clock.now())
    const ids = { webhook_id: mint.uuid(), workspace_id: workspaceId }
    const row = {
      ...ids,
      url,
      description,
      filter: filterJson(filter),
      format,
      signing,
      ordering: order,
      status: body.status ?? 'active',
      ...sealKeys(vault, ids, newSecret(signing)),
      created_at: now,
      updated_at: now,
      created_cursor: encodeCursor(epoch, endSeq),
      epoch,
      position: endSeq,
    }
    await ROWS.insert(sql, row)
    this.deps.onChange()
    return this.withSecret(caller, await this.find(caller, row.webhook_id))
  }

  /** @throws ApiError NOT_FOUND */
  async get(caller: Caller, webhookId: string): Promise<WebhookRecord> {
    const row = await this.find(caller, webhookId)
    return toRecord(caller, row, await this.endOf(caller))
  }

  /** A row as stored, for other parts of the feature. @throws ApiError NOT_FOUND */
  async find({ workspaceId }: Caller, webhookId: string): Promise<CountedWebhook> {
    const { sql } = this.deps
    return ROWS.find(sql, workspaceId, webhookId, counted(sql))
  }

  async list(caller: Caller, page: PageQuery): Promise<PageOf<WebhookRecord>> {
    const { sql } = this.deps
    const end = await this.endOf(caller)
    return ROWS.page(sql, caller.workspaceId, page, counted(sql), (row: CountedWebhook) => toRecord(caller, row, end))
  }

  /**
   * Changes the given members. For an endpoint that is enabled again or has another URL, the time until it is
   * disabled starts anew.
   * @throws ApiError NOT_FOUND, VALIDATION_ERROR; CONFLICT at another version; UNAVAILABLE for another filter without the log
   */
  async edit(caller: Caller, webhookId: string, body: EditWebhook, { version }: EditOptions): Promise<WebhookRecord> {
    const { sql, clock } = this.deps
    const { workspaceId } = caller
    const { url, filter, description, format, order, status } = body
    if (url !== undefined) this.deps.checkUrl(url)
    const changed = {
      ...(url !== undefined && { url, failing_since: null }),
      ...(filter !== undefined && { filter: filterJson(filter) }),
      ...(description !== undefined && { description }),
      ...(format !== undefined && { format }),
      ...(order !== undefined && { ordering: order }),
      ...(status !== undefined && { status }),
      ...(status === 'active' && { disabled_reason: null, failing_since: null }),
      updated_at: new Date(clock.now()),
    }
    // What is accepted from here on is delivered by the new filter, although a process may be past it by the earlier one. In
    // another epoch the endpoint has yet to begin.
    const from = filter === undefined ? null : (await this.deps.feeds.of(caller)).journal
    const one = { workspaceId, key: webhookId, version }
    const [row] = await sql<CountedWebhook[]>`
      update webhooks set version = version + 1, ${sql(changed as never)} ${
        from === null
          ? sql``
          : sql`, filter_version = version + 1,
              filter_from = case when epoch = ${from.epoch} then ${from.endSeq}::bigint else 0 end`
      }
      where ${ROWS.is(sql, one)} returning ${counted(sql)}`
    if (row === undefined) throw await ROWS.refusal(sql, one)
    this.deps.onChange()
    return toRecord(caller, row, await this.endOf(caller))
  }

  /** @throws ApiError NOT_FOUND; CONFLICT at another version */
  async delete({ workspaceId }: Caller, webhookId: string, version: number | undefined): Promise<DeletedWebhook> {
    await ROWS.remove(this.deps.sql, { workspaceId, key: webhookId, version })
    this.deps.onChange()
    return { webhook_id: webhookId.toLowerCase(), deleted: true }
  }

  /**
   * Gives the endpoint a new secret. Those that it replaces sign as well, each for a day after its own rotation.
   * @throws ApiError NOT_FOUND; CONFLICT after too many rotations within a day
   */
  async rotate(caller: Caller, webhookId: string): Promise<NewWebhook> {
    const { sql, clock, vault } = this.deps
    const now = clock.now()
    const row = await inTransaction(sql, async (tx) => {
      const [stored] = await tx<StoredWebhook[]>`
        select ${tx.unsafe(STORED_WEBHOOK)} from webhooks
        where workspace_id = ${caller.workspaceId} and webhook_id = ${webhookId} for no key update`
      if (stored === undefined) throw ROWS.missing()
      const keys = openKeys(vault, stored)
      const previous = keys === null ? [] : [{ secret: keys.secret, until: now + ROTATION_MS }, ...keys.previous]
      const valid = previous.filter(({ until }) => until > now)
      if (valid.length > PREVIOUS_MAX)
        throw new ApiError('CONFLICT', `the secret was replaced ${PREVIOUS_MAX} times within a day; try again later`, {
          reason: 'limit_reached',
        })
      const changed = { ...sealKeys(vault, stored, newSecret(stored.signing), valid), updated_at: new Date(now) }
      const [changedRow] = await tx<[CountedWebhook]>`
        update webhooks set version = version + 1, ${tx(changed as never)}
        where workspace_id = ${caller.workspaceId} and webhook_id = ${webhookId}
        returning ${counted(tx)}`
      return changedRow
    })
    this.deps.onChange()
    return this.withSecret(caller, row)
  }

  private async withSecret(caller: Caller, row: CountedWebhook): Promise<NewWebhook> {
    const keys = openKeys(this.deps.vault, row)
    if (keys === null) throw new Error('a secret that was just sealed cannot be opened')
    return { ...toRecord(caller, row, await this.endOf(caller)), secret: row.signing === 'v1' ? keys.secret : null }
  }

  /** The end of the caller's log; null while it cannot be read. */
  private async endOf(caller: Caller): Promise<LogEnd | null> {
    try {
      const { journal } = await this.deps.feeds.of(caller)
      return { epoch: journal.epoch, endSeq: journal.endSeq }
    } catch (error) {
      if (error instanceof ApiError && error.code === 'UNAVAILABLE') return null
      throw error
    }
  }
}

interface LogEnd {
  readonly epoch: string
  readonly endSeq: number
}

function counted(sql: Sql | TransactionSql) {
  return sql`${sql.unsafe(STORED_WEBHOOK)},
    (select count(*)::int from webhook_retries r where r.webhook_id = webhooks.webhook_id) as pending`
}

function toRecord(caller: Caller, row: CountedWebhook, end: LogEnd | null): WebhookRecord {
  const { webhook_id, description, filter, format, signing, epoch, position, recover_until } = row
  const status = row.status === 'active' && row.is_behind ? 'behind' : row.status
  // Another epoch: the endpoint has yet to begin with the log.
  const lag = end && (end.epoch === epoch ? Math.max(0, end.endSeq - position) : end.endSeq)
  return {
    webhook_id,
    url: shownUrl(caller, row),
    description,
    filter,
    format,
    signing,
    order: row.ordering,
    status,
    disabled_reason: row.disabled_reason,
    public_key: row.public_key,
    version: row.version,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    health: {
      position: encodeCursor(epoch, position),
      lag,
      pending: row.pending,
      failing_since: isoOrNull(row.failing_since),
      last_succeeded_at: isoOrNull(row.succeeded_at),
      last_failed_at: isoOrNull(row.failed_at),
      recovering_until: recover_until === null ? null : encodeCursor(epoch, recover_until),
    },
  }
}

/**
 * As it is called, not as it was written: `http://2130706433` is `http://127.0.0.1/`. People who may not change it see only
 * the origin, because the rest may be a credential, as with Slack.
 */
function shownUrl({ person }: Caller, { url }: Pick<StoredWebhook, 'url'>): string {
  const { href, origin } = new URL(url)
  return person === undefined || person.role === 'admin' ? href : origin
}

/** @throws ApiError VALIDATION_ERROR */
function filterJson(filter: Readonly<Record<string, unknown>> | null): RawJson | null {
  if (filter === null) return null
  const json = RawJson.of(filter)
  // First, because an error names the unknown field.
  if (json.text.length > FILTER_LENGTH_MAX)
    throw invalid('filter', `expected at most ${FILTER_LENGTH_MAX} characters of JSON`)
  parseWebhookFilter(filter)
  return json
}
