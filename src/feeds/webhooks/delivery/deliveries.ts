import { SharedSlice } from '../../../base/http/shared-slice.ts'
import { Loops } from '../../../base/loops.ts'
import type { Metrics } from '../../../base/metrics.ts'
import type { SetAside } from '../../../base/set-aside.ts'
import { Wakeup } from '../../../base/wakeup.ts'
import { encodeCursor } from '../../../stores/journal/cursor.ts'
import type { Feeds, Partitions } from '../../../tenants/partitions/partition.ts'
import type { FeedSource } from '../../live/feed-source.ts'
import type { DeliveryRecord, StoredWebhook } from '../schema.ts'
import { DetailsReader } from './details.ts'
import type { Endpoint } from './endpoint.ts'
import { OnRequest } from './on-request.ts'
import { type ActiveWebhook, activeWebhooks, type Progress, readWebhooks, storeProgress } from './positions.ts'
import { Retries } from './retries.ts'
import { SCHEDULE, type Schedule } from './schedule.ts'
import { Slots } from './slots.ts'
import { type Shared, startEndpoint } from './start-endpoint.ts'

interface DeliveriesDeps extends Pick<Shared, 'sql' | 'egress' | 'vault' | 'publicUrl' | 'clock' | 'log' | 'onChange'> {
  readonly partitions: Pick<Partitions, 'of' | 'owned'>
  readonly feeds: Feeds<FeedSource>
  readonly loops?: Loops
  readonly metrics: Metrics
  /** Counts the rows that cannot be stored. */
  readonly setAside?: SetAside
  readonly options?: DeliveryOptions
}

/** What tests change. */
export interface DeliveryOptions {
  readonly schedule?: Schedule
  readonly timeoutMs?: number
  readonly rowsMax?: number
  readonly intervalMs?: number
  /** Attempts under way, of all endpoints. */
  readonly inFlightMax?: number
}

export interface Deliveries {
  /** An endpoint was changed; costs little. */
  wake(): void
  /** See {@link OnRequest.test}. */
  test(webhook: StoredWebhook): Promise<DeliveryRecord>
  /** See {@link OnRequest.resend}. */
  resend(webhook: StoredWebhook, seq: number): Promise<DeliveryRecord>
  /** Attempts whose results are not stored yet. */
  unstored(): number
  stop(): Promise<void>
}

const INTERVAL_MS = 1_000
/** Pause between two rounds, also when there is more to do. */
const PAUSE_MS = 20
const ROWS_MAX = 10_000
/** Smaller steps of the clock matter to no delay. */
const CLOCK_STEP_MS = 60_000
/** Endpoints whose due rows are read by one statement, and endpoints started at the same time. */
const DUE_ENDPOINTS_MAX = 16
const STARTS_MAX = 4
/** Characters of activities that wait for one endpoint, and for all of them. Each has room for one packet at least. */
const QUEUE_LENGTH_MAX = 512 * 1024
const QUEUES_LENGTH_MAX = 128 * 1024 * 1024

/**
 * Delivers activity to the webhooks of the workspaces whose partitions this process owns (docs/webhooks.md#deliveries).
 * An endpoint is a subscription of the hub with a stored position, so whoever owns the partition next continues there.
 */
export function startDeliveries(deps: DeliveriesDeps): Deliveries {
  const manager = new Manager(deps)
  return {
    wake: () => manager.wake(),
    test: (webhook) => manager.onRequest.test(webhook),
    resend: (webhook, seq) => manager.onRequest.resend(webhook, seq),
    unstored: () => manager.unstored(),
    stop: () => manager.stop(),
  }
}

class Manager {
  readonly onRequest: OnRequest
  private readonly shared: Shared
  private readonly running = new Map<string, Endpoint>()
  /** Endpoints that are being started or stopped. */
  private readonly changing = new Map<string, Promise<void>>()
  private readonly wakeup = new Wakeup()
  private readonly stopping = new AbortController()
  private readonly finished: Promise<void>
  private storedAtMs = 0
  /** By how much the clock was ahead of the monotonic one in the last round. */
  private clockAheadMs: number
  private readonly intervalMs: number
  /** Endpoints are being started. */
  private starting: Promise<void> | undefined

  constructor(private readonly deps: DeliveriesDeps) {
    const { sql, log, loops = new Loops(log), metrics, options = {} } = deps
    this.intervalMs = options.intervalMs ?? INTERVAL_MS
    const { egress, vault, publicUrl, clock, setAside, onChange, partitions, feeds } = deps
    const { schedule = SCHEDULE } = options
    this.clockAheadMs = clock.now() - performance.now()
    const attempts = metrics.counter('webhook_attempts_total', 'Attempts to deliver to webhooks.', ['outcome'])
    const [succeeded, failed] = [attempts.at('succeeded'), attempts.at('failed')]
    this.shared = {
      sql,
      egress,
      vault,
      publicUrl,
      clock,
      log,
      setAside,
      onChange,
      retries: new Retries(sql, clock, schedule),
      details: new DetailsReader(sql),
      slots: new Slots(options.inFlightMax),
      slice: new SharedSlice(),
      schedule,
      rowsMax: options.rowsMax ?? ROWS_MAX,
      timeoutMs: options.timeoutMs,
      queueLengthMax: () => Math.min(QUEUE_LENGTH_MAX, QUEUES_LENGTH_MAX / (this.running.size + 1)),
      storing: loops.add('results of webhooks'),
      onAttempt: ({ isSuccess }) => (isSuccess ? succeeded : failed).value++,
      wake: () => this.wake(),
    }
    this.addGauges(metrics)
    this.onRequest = new OnRequest({
      shared: this.shared,
      partitions,
      sourceOf: (partition) => feeds.of({ partition }),
      onSuccess: (webhookId, message) => this.running.get(webhookId)?.forget(message),
    })
    const { signal } = this.stopping
    this.finished = loops.run('webhooks', signal, async (loop) => {
      while (!signal.aborted) {
        await this.round()
        loop.succeeded()
        await this.wakeup.next(this.intervalMs, signal)
        if (!signal.aborted) await Bun.sleep(PAUSE_MS)
      }
    })
  }

  wake(): void {
    this.wakeup.wake()
  }

  unstored(): number {
    return this.running.values().reduce((sum, { unstored }) => sum + unstored, 0)
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    await this.finished
    await this.starting
    await Promise.all(this.changing.values())
    const running = [...this.running.values()]
    this.running.clear()
    await Promise.all(running.map((each) => each.stop()))
    await storeProgress(
      this.shared.sql,
      running.map((each) => each.progress()),
    )
  }

  private async round(): Promise<void> {
    const owned = new Map(this.deps.partitions.owned().map((partition) => [partition.id, partition]))
    const active = owned.size === 0 ? [] : await activeWebhooks(this.shared.sql, [...owned.keys()])
    const byId = new Map(active.map((webhook) => [webhook.webhook_id, webhook]))
    for (const each of this.running.values()) {
      const webhook = byId.get(each.webhook.webhook_id)
      if (
        webhook === undefined ||
        owned.get(webhook.partition) !== each.place.owned ||
        this.hasToRestart(each, webhook)
      )
        this.change(each.webhook.webhook_id, () => this.end(each))
      else each.tick(webhook)
    }
    const missing = active.filter(({ webhook_id }) => !this.running.has(webhook_id) && !this.changing.has(webhook_id))
    // No endpoint waits until another has started.
    if (missing.length > 0) this.starting ??= this.startAll(missing).finally(() => this.started())
    await this.followClock(active)
    await this.loadDue(active)
    await this.storeProgress()
    // What could not be stored may belong to endpoints that have ended since, so that no success would follow.
    if (!this.running.values().some(({ isStoring }) => isStoring)) this.shared.storing.succeeded()
  }

  /** An endpoint that is edited again and again, or whose rows are deleted, starts once an interval. */
  private hasToRestart({ state, startedAtMs, webhook }: Endpoint, { version, retries_erased }: ActiveWebhook): boolean {
    if (state === 'broken' || state === 'stopping') return true
    const isOld = version !== webhook.version || retries_erased !== webhook.retries_erased
    return isOld && performance.now() - startedAtMs >= this.intervalMs
  }

  private started(): void {
    this.starting = undefined
    this.wake()
  }

  private async startAll(missing: readonly ActiveWebhook[]): Promise<void> {
    for (let from = 0; from < missing.length && !this.stopping.signal.aborted; from += STARTS_MAX) {
      const some = missing.slice(from, from + STARTS_MAX)
      const stored = await this.stored(some)
      await Promise.all(
        stored.map((webhook) => {
          const { partition } = some.find(({ webhook_id }) => webhook_id === webhook.webhook_id)!
          return this.change(webhook.webhook_id, () => this.start(webhook, partition))
        }),
      )
    }
  }

  private stored(some: readonly ActiveWebhook[]): Promise<StoredWebhook[]> {
    const ids = some.map(({ webhook_id }) => webhook_id)
    return readWebhooks(this.shared.sql, ids).catch((error) => {
      this.deps.log.info('webhooks: trying again', { error })
      return []
    })
  }

  /** Starts or ends an endpoint. What goes wrong is tried again by the next round. */
  private change(webhookId: string, work: () => Promise<void>): Promise<void> {
    const current = this.changing.get(webhookId)
    if (current !== undefined) return current
    const change = work()
      .catch((error) => this.deps.log.info('webhooks: trying again', { webhook_id: webhookId, error }))
      .finally(() => this.changing.delete(webhookId))
    this.changing.set(webhookId, change)
    return change
  }

  private async start(webhook: StoredWebhook, partition: number): Promise<void> {
    const { owned } = this.deps.partitions.of({ partition })
    if (owned === undefined) return
    const source = await this.deps.feeds.of({ partition }, encodeCursor(webhook.epoch, webhook.position))
    this.running.set(webhook.webhook_id, await startEndpoint(this.shared, webhook, { owned, source }))
  }

  private async end(endpoint: Endpoint): Promise<void> {
    await endpoint.stop()
    this.running.delete(endpoint.webhook.webhook_id)
    await storeProgress(this.shared.sql, [endpoint.progress()])
    this.wake()
  }

  /** Rows that were stored by a clock that has been set back would wait for as long as it was ahead. */
  private async followClock(active: readonly ActiveWebhook[]): Promise<void> {
    const { clock, retries } = this.shared
    const aheadMs = clock.now() - performance.now()
    if (aheadMs < this.clockAheadMs - CLOCK_STEP_MS)
      await retries.bringForward(active.map(({ webhook_id }) => webhook_id))
    this.clockAheadMs = aheadMs
  }

  /** Reads rows that are due, for the endpoints that have waited longest. */
  private async loadDue(active: readonly ActiveWebhook[]): Promise<void> {
    const now = this.shared.clock.now()
    const due = active.flatMap(({ webhook_id, next_at }) => {
      const running = this.running.get(webhook_id)
      return running === undefined || next_at === null || next_at.getTime() > now ? [] : [{ running, next_at }]
    })
    due.sort((a, b) => a.next_at.getTime() - b.next_at.getTime())
    for (let from = 0; from < due.length; from += DUE_ENDPOINTS_MAX) {
      const some = due.slice(from, from + DUE_ENDPOINTS_MAX).map(({ running }) => running)
      const requests = some.map((running) => running.dueRequest()).filter(({ room }) => room > 0)
      if (requests.length === 0) continue
      const rows = await this.shared.retries.due(requests, now)
      for (const { webhookId, room } of requests) {
        const found = rows.get(webhookId) ?? []
        this.running.get(webhookId)?.addDue(found.slice(0, room), found.length > room)
      }
    }
  }

  private async storeProgress(): Promise<void> {
    const now = performance.now()
    if (now - this.storedAtMs < INTERVAL_MS) return
    this.storedAtMs = now
    const changed: [Endpoint, Progress][] = []
    for (const running of this.running.values()) {
      const progress = running.progressToStore(now)
      if (progress !== undefined) changed.push([running, progress])
    }
    await storeProgress(
      this.shared.sql,
      changed.map(([, progress]) => progress),
    )
    for (const [running, progress] of changed) running.stored(progress, now)
  }

  private addGauges(metrics: Metrics): void {
    const all = () => [...this.running.values()]
    metrics.gauge('webhook_endpoints', 'Webhooks that this process delivers to.', () => this.running.size)
    metrics.gauge(
      'webhook_endpoints_behind',
      'Webhooks that have stopped because too many deliveries are pending.',
      () => all().filter(({ isBehind }) => isBehind).length,
    )
    metrics.gauge('webhook_pending', 'Deliveries that wait for another attempt.', () =>
      all().reduce((sum, { pending }) => sum + pending, 0),
    )
    metrics.gauge('webhook_lag_rows', 'Journal rows that the slowest webhook has yet to process.', () =>
      all().reduce((most, { lag }) => Math.max(most, lag), 0),
    )
    metrics.gauge('webhook_in_flight', 'Attempts under way.', () => this.shared.slots.inFlight)
  }
}
