import { countedSeq } from '../../activity/runs/counts.ts'
import { orAborted, sleep } from '../../base/abort.ts'
import { RawJson } from '../../base/raw-json.ts'
import { WorkspaceSlots } from '../../base/workspace-slots.ts'
import { encodeCursor } from '../../stores/journal/cursor.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { Feeds, Partitions } from '../../tenants/partitions/partition.ts'
import { type FeedSource, startOf } from '../live/feed-source.ts'
import { type Collected, collect } from './collect.ts'
import { detailsOf } from './details.ts'
import { filterOf } from './filter.ts'
import { endedRuns, isEnd, type Message, messagesOf } from './message.ts'
import { POLL_LIMIT_DEFAULT, type PollQuery, type StoredWebhook, type WebhookMessages } from './schema.ts'

interface PollsDeps {
  readonly sql: Sql
  readonly partitions: Pick<Partitions, 'of'>
  readonly feeds: Feeds<FeedSource>
  /** The origin of the service in links. */
  readonly publicUrl: string | undefined
  /** How long a poll reads, milliseconds, and then how long it waits for counts. */
  readonly patienceMs?: number
}

const PATIENCE_MS = 5_000
const COUNTED_CHECK_MS = 50
/** Polls of a workspace at the same time. */
const AT_ONCE = 4
/** Characters of an answer, unless its first message alone is longer. */
const ANSWER_LENGTH_MAX = 4 * 1024 * 1024

/**
 * Messages for receivers that cannot be reached from outside: the same as those that are sent, read from any position
 * (docs/webhooks.md#polling). Needs no owner of the partition, and stores nothing.
 */
export class Polls {
  private readonly slots = new WorkspaceSlots(AT_ONCE, { one: 'poll', many: 'polls' })

  constructor(private readonly deps: PollsDeps) {}

  /**
   * Answers at once when there is nothing more, and early when reading takes long.
   * @throws ApiError VALIDATION_ERROR for an iterator that is no cursor; RATE_LIMITED; UNAVAILABLE
   */
  async poll(caller: Caller, webhook: StoredWebhook, query: PollQuery, signal: AbortSignal): Promise<WebhookMessages> {
    const release = this.slots.take(caller.workspaceId)
    try {
      const { iterator = webhook.created_cursor, limit = POLL_LIMIT_DEFAULT } = query
      const source = await this.deps.feeds.of(caller, iterator)
      const { epoch } = source.journal
      const { workspaceId } = caller
      const start = startOf(source, workspaceId, iterator, 'query.iterator')
      const found = await collect(source, {
        workspaceId,
        filter: filterOf(webhook),
        afterSeq: start.afterSeq,
        signal,
        itemsMax: limit,
        lengthMax: ANSWER_LENGTH_MAX,
        timeoutMs: this.deps.patienceMs ?? PATIENCE_MS,
      })
      const counted = await this.untilCounted(caller, epoch, found, signal)
      const details = await detailsOf(this.deps.sql, workspaceId, endedRuns(counted.items))
      const all = messagesOf(webhook, { epoch, activities: counted.items, details }, this.deps.publicUrl)
      const messages = all.filter(({ problem }) => problem === undefined)
      const { fitting, throughSeq, isDone } = fit(messages, counted)
      return {
        data: fitting.map(({ body }) => new RawJson(body)),
        iterator: encodeCursor(epoch, throughSeq),
        done: isDone,
        gap: start.isLost || found.hasGap,
      }
    } finally {
      release()
    }
  }

  /** The part whose ended runs have their final counts; waits for them for a while. */
  private async untilCounted(caller: Caller, epoch: string, found: Collected, signal: AbortSignal): Promise<Collected> {
    const lastEnd = found.items.findLast(isEnd)
    if (lastEnd === undefined) return found
    const { sql, partitions, patienceMs = PATIENCE_MS } = this.deps
    const late = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)])
    let seq = 0
    try {
      await orAborted(partitions.of(caller).owned?.statistics.flush() ?? Promise.resolve(), late)
      for (;;) {
        seq = await countedSeq(sql, epoch)
        if (seq >= lastEnd.seq) return found
        late.throwIfAborted()
        await sleep(COUNTED_CHECK_MS, late)
      }
    } catch (error) {
      if (!late.aborted || signal.aborted) throw error
    }
    const at = found.items.findIndex((item) => isEnd(item) && item.seq > seq)
    return { ...found, items: found.items.slice(0, at), throughSeq: found.items[at].seq - 1, isDone: false }
  }
}

/** As many messages as fit into an answer. */
function fit(messages: readonly Message[], { throughSeq, isDone }: Collected) {
  let length = 0
  for (const [index, { seq, body }] of messages.entries()) {
    length += body.length
    if (index > 0 && length > ANSWER_LENGTH_MAX)
      return { fitting: messages.slice(0, index), throughSeq: seq - 1, isDone: false }
  }
  return { fitting: messages, throughSeq, isDone }
}
