import { ApiError, notFound } from '../../../base/errors.ts'
import { mint } from '../../../base/ids.ts'
import { WorkspaceSlots } from '../../../base/workspace-slots.ts'
import { type OwnedPartition, type Partitions, writerOf } from '../../../tenants/partitions/partition.ts'
import type { Activity } from '../../live/activity.ts'
import type { FeedSource } from '../../live/feed-source.ts'
import { collect } from '../collect.ts'
import { filterOf } from '../filter.ts'
import { endedRuns, type Message, messagesOf, testMessage } from '../message.ts'
import type { DeliveryRecord, StoredWebhook } from '../schema.ts'
import { openKeys, SECRET_LOST } from '../signature.ts'
import { attempt } from './attempt.ts'
import { type Attempted, deliveryRow } from './attempt-results.ts'
import type { Shared } from './start-endpoint.ts'

interface OnRequestDeps {
  readonly shared: Shared
  readonly partitions: Pick<Partitions, 'of'>
  /** The feed source of a partition. @throws ApiError UNAVAILABLE */
  readonly sourceOf: (partition: number) => Promise<FeedSource>
  /** A delivery has succeeded: the endpoint no longer needs its row. */
  readonly onSuccess: (webhookId: string, message: Message) => void
}

const NEVER = new AbortController().signal
/** How long the log is searched for an activity. */
const FIND_MS = 10_000
/** Attempts of a workspace at the same time: each may take as long as the receiver likes. */
const AT_ONCE = 8

/** Attempts on request: made at once, and outside the order of the endpoint's deliveries. */
export class OnRequest {
  private readonly slots = new WorkspaceSlots(AT_ONCE, { one: 'attempt', many: 'attempts' })

  constructor(private readonly deps: OnRequestDeps) {}

  /**
   * Sends a message that only tests the endpoint.
   * @throws ApiError UNAVAILABLE when this process does not own the partition; RATE_LIMITED
   */
  test(webhook: StoredWebhook): Promise<DeliveryRecord> {
    return this.limited(webhook, async () => {
      const { owned } = await this.ownerOf(webhook)
      const at = new Date(this.deps.shared.clock.now())
      return this.send(webhook, owned, { message: testMessage(webhook, mint.ulid().toLowerCase(), at), attempt: 1 })
    })
  }

  /**
   * Delivers an activity again.
   * @throws ApiError NOT_FOUND when the endpoint's filter does not match it or it is no longer available; CONFLICT when no message
   *   can be made of it; UNAVAILABLE when this process does not own the partition; RATE_LIMITED
   */
  resend(webhook: StoredWebhook, seq: number): Promise<DeliveryRecord> {
    return this.limited(webhook, async () => {
      const { owned, partition } = await this.ownerOf(webhook)
      const row = await this.deps.shared.retries.find(webhook.webhook_id, seq)
      const message =
        row === undefined ? await this.messageAt(webhook, owned, partition, seq) : { ...row, timestamp: '' }
      const record = await this.send(webhook, owned, { message, attempt: (row?.attempt ?? 0) + 1 })
      if (record.status === 'succeeded') this.deps.onSuccess(webhook.webhook_id, message)
      return record
    })
  }

  private async limited<Result>({ workspace_id }: StoredWebhook, work: () => Promise<Result>): Promise<Result> {
    const release = this.slots.take(workspace_id)
    try {
      return await work()
    } finally {
      release()
    }
  }

  private async ownerOf({ workspace_id }: StoredWebhook) {
    const [workspace] = await this.deps.shared.sql<{ partition: number }[]>`
      select partition from workspaces where workspace_id = ${workspace_id} and status = 'active'`
    if (workspace === undefined) throw notFound('workspace')
    writerOf(this.deps.partitions, workspace)
    return { owned: this.deps.partitions.of(workspace).owned as OwnedPartition, partition: workspace.partition }
  }

  private async send(
    webhook: StoredWebhook,
    owned: OwnedPartition,
    { message, attempt: number }: Pick<Attempted, 'message' | 'attempt'>,
  ): Promise<DeliveryRecord> {
    const { egress, vault, clock, timeoutMs, onAttempt } = this.deps.shared
    const keys = openKeys(vault, webhook)
    if (keys === null) throw new ApiError('CONFLICT', SECRET_LOST, { reason: 'secret_lost' })
    const at = clock.now()
    const outcome = await attempt(egress, { url: webhook.url, keys, message, at, signal: NEVER }, timeoutMs)
    onAttempt(outcome)
    const ids = { workspaceId: webhook.workspace_id, webhookId: webhook.webhook_id }
    const row = deliveryRow(ids, { message, attempt: number, outcome, at, nextAt: null })
    await owned.journal.appendDeliveries([row])
    const { workspace_id: _, activity_seq: seq, ...same } = row
    return { ...same, seq, at: new Date(at).toISOString(), next_at: null }
  }

  private async messageAt(
    webhook: StoredWebhook,
    owned: OwnedPartition,
    partition: number,
    seq: number,
  ): Promise<Message> {
    const { details, publicUrl } = this.deps.shared
    const source = await this.deps.sourceOf(partition)
    const activity = await activityAt(source, webhook, seq)
    const activities = activity === undefined ? [] : [activity]
    const workspaceId = webhook.workspace_id
    const found = await details.read({ owned, workspaceId, runIds: endedRuns(activities) })
    const [message] = messagesOf(webhook, { epoch: source.journal.epoch, activities, details: found }, publicUrl)
    if (message === undefined) throw notFound('delivery')
    if (message.problem !== undefined) throw new ApiError('CONFLICT', message.problem, { reason: 'not_deliverable' })
    return message
  }
}

/** The activity at a position, if the endpoint's filter matches it. @throws ApiError UNAVAILABLE when it cannot be read in time */
async function activityAt(source: FeedSource, webhook: StoredWebhook, seq: number): Promise<Activity | undefined> {
  if (seq < 1 || seq > source.journal.endSeq) return undefined
  const { items, throughSeq } = await collect(source, {
    workspaceId: webhook.workspace_id,
    filter: filterOf(webhook),
    afterSeq: seq - 1,
    untilSeq: seq,
    itemsMax: 1,
    lengthMax: 0,
    timeoutMs: FIND_MS,
    signal: NEVER,
  })
  if (throughSeq < seq) throw new ApiError('UNAVAILABLE', 'the log takes too long to read; try again')
  return items[0]
}
