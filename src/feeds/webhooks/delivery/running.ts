import type { Clock } from '../../../base/clock.ts'
import type { SharedSlice } from '../../../base/http/shared-slice.ts'
import type { Log } from '../../../base/log.ts'
import type { Loop } from '../../../base/loops.ts'
import { type SetAside, Sieve } from '../../../base/set-aside.ts'
import type { Egress } from '../../../outbound/egress/egress.ts'
import { encodeCursor } from '../../../stores/journal/cursor.ts'
import { isPoison, type Sql } from '../../../stores/postgres/connect.ts'
import type { OwnedPartition } from '../../../tenants/partitions/partition.ts'
import type { Vault } from '../../../tenants/secrets/vault.ts'
import type { Activity } from '../../live/activity.ts'
import { type FeedSource, startOf } from '../../live/feed-source.ts'
import { filterOf } from '../filter.ts'
import { endedRuns, type Message, messagesOf } from '../message.ts'
import type { StoredWebhook } from '../schema.ts'
import { openKeys, SECRET_LOST } from '../signature.ts'
import { attempt, type Outcome } from './attempt.ts'
import { type Attempted, type AttemptResults, deliveryRow, type RetryRow, type RowKey } from './attempt-results.ts'
import type { DetailsReader } from './details.ts'
import { Endpoint, notSent } from './endpoint.ts'
import type { Intake } from './intake.ts'
import { type ActiveWebhook, beginEpoch, disableWebhook, type Progress } from './positions.ts'
import type { Retries } from './retries.ts'
import type { Schedule } from './schedule.ts'
import type { Slots } from './slots.ts'

/** What all endpoints of a process share. */
export interface Shared {
  readonly sql: Sql
  readonly egress: Pick<Egress, 'fetch'>
  readonly vault: Pick<Vault, 'open'>
  readonly retries: Retries
  readonly details: DetailsReader
  readonly slots: Slots
  readonly slice: SharedSlice
  readonly schedule: Schedule
  readonly rowsMax: number
  readonly timeoutMs: number | undefined
  /** Characters of activities that may wait for one endpoint. */
  readonly queueLengthMax: () => number
  readonly publicUrl: string | undefined
  readonly clock: Clock
  readonly log: Log
  /** Reports whether results can be stored. */
  readonly storing: Loop
  /** Counts the rows that cannot be stored. */
  readonly setAside?: SetAside | undefined
  readonly onAttempt: (outcome: Outcome) => void
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
  /** The loop has something to do. */
  readonly wake: () => void
}

/** Where an endpoint reads, and who may write. */
interface Place {
  readonly owned: OwnedPartition
  readonly source: FeedSource
}

/** As `GET /readyz` names what stores the results of attempts. */
const RESULTS = 'webhook_results'
const GATHER_MS = 5
const MESSAGES_PER_STEP = 10
const STOP_MS = 2_000
/** How often the position of an idle endpoint is stored. A restart reads the log again from there. */
const IDLE_SAVE_MS = 30_000

interface Recovery {
  readonly intake: Intake
  /** The position that is stored. */
  from: number
  readonly until: number
}

/** An endpoint that this process delivers to. */
export class Running {
  /** The log can no longer be read from here: it has to be started again. */
  isBroken = false
  /** On a monotonic clock. */
  readonly startedAtMs = performance.now()
  private readonly endpoint: Endpoint
  private readonly intake: Intake
  private recovery: Recovery | undefined
  private readonly release: () => void
  private saved: Progress | undefined
  private savedAtMs = 0

  private constructor(
    private readonly shared: Shared,
    readonly webhook: StoredWebhook,
    readonly place: Place,
    rows: readonly RowKey[],
    afterSeq: number,
  ) {
    this.endpoint = createEndpoint(shared, webhook, place, rows)
    this.intake = this.open(afterSeq)
    this.release = place.source.retain(() => this.breakOff())
  }

  /** Starts at the stored position, or as a feed would that resumes there. @throws ApiError as `Hub.subscribe` */
  static async start(shared: Shared, stored: StoredWebhook, place: Place): Promise<Running> {
    const { webhook_id, workspace_id, epoch, position } = stored
    const { source } = place
    const { afterSeq, isLost } = startOf(source, workspace_id, encodeCursor(epoch, position), 'position')
    if (isLost) shared.log.warn('webhooks: activity is no longer available', { webhook_id, epoch, position, afterSeq })
    let webhook = stored
    if (epoch !== source.journal.epoch) {
      const to = { epoch: source.journal.epoch, position: afterSeq }
      await beginEpoch(shared.sql, webhook, to)
      webhook = { ...stored, ...to, recover_position: null, recover_until: null }
    }
    const rows = await shared.retries.keys(webhook_id, shared.clock.now())
    return new Running(shared, webhook, place, rows, afterSeq)
  }

  get endpointState(): Pick<Endpoint, 'isBehind' | 'isStoring' | 'unstored' | 'pending'> {
    return this.endpoint
  }

  /** Rows of the log that it has yet to process. */
  get lag(): number {
    return Math.max(0, this.place.source.journal.endSeq - this.intake.position)
  }

  /** Called every second. */
  tick(webhook: ActiveWebhook): void {
    this.alone(() => {
      this.followRecovery(webhook)
      this.endpoint.tick()
    })
  }

  private followRecovery({ recover_position: from, recover_until: until }: ActiveWebhook): void {
    if (from === null || until === null) this.endRecovery()
    else if (this.recovery?.from !== from || this.recovery.until !== until) {
      this.endRecovery()
      this.recovery = { intake: this.open(from, until), from, until }
    }
  }

  dueRequest() {
    return { webhookId: this.webhook.webhook_id, ...this.endpoint.beginLoading() }
  }

  addDue(...args: Parameters<Endpoint['addDue']>): void {
    this.alone(() => this.endpoint.addDue(...args))
  }

  forget(...args: Parameters<Endpoint['forget']>): void {
    this.endpoint.forget(...args)
  }

  /** How far it has got, if that is worth storing. */
  progressToStore(nowMs: number): Progress | undefined {
    const progress = this.progress()
    const { saved } = this
    const isDue = saved === undefined || nowMs - this.savedAtMs > IDLE_SAVE_MS || hasChanged(saved, progress)
    return isDue ? progress : undefined
  }

  progress(): Progress {
    const { webhook_id: webhookId, version, epoch } = this.webhook
    const recovery = this.recovery && {
      from: this.recovery.from,
      until: this.recovery.until,
      position: Math.max(this.recovery.from, this.recovery.intake.position),
    }
    return {
      webhookId,
      version,
      epoch,
      position: this.intake.position,
      isBehind: this.endpoint.isBehind,
      ...this.endpoint.health,
      recovery: recovery ?? null,
    }
  }

  /** Progress has been stored. */
  stored(progress: Progress, nowMs: number): void {
    this.saved = progress
    this.savedAtMs = nowMs
    if (this.recovery !== undefined && progress.recovery !== null && this.recovery.until === progress.recovery.until)
      this.recovery.from = progress.recovery.position
  }

  /** Sends nothing more. {@link progress} is then final. */
  async stop(): Promise<void> {
    await this.endpoint.stop(STOP_MS)
    this.release()
  }

  private endRecovery(): void {
    if (this.recovery !== undefined) this.endpoint.sources.close(this.recovery.intake)
    this.recovery = undefined
  }

  private open(afterSeq: number, untilSeq?: number): Intake {
    const { webhook_id, workspace_id: workspaceId } = this.webhook
    return this.endpoint.sources.open({
      hub: this.place.source.hub,
      workspaceId,
      filter: filterOf(this.webhook),
      afterSeq,
      ...(untilSeq !== undefined && { untilSeq }),
      isWanted: ({ isRecount }) => !isRecount,
      lengthMax: this.shared.queueLengthMax,
      onGap: (after, resumed) =>
        this.shared.log.warn('webhooks: activity is no longer available', { webhook_id, after, resumed }),
      onFailure: () => this.breakOff(),
    })
  }

  /** Does its part of a round: what goes wrong ends the round for no other endpoint. */
  private alone(work: () => void): void {
    try {
      work()
    } catch (error) {
      const { webhook_id } = this.webhook
      this.shared.log.warn('webhooks: an endpoint has broken; starting it again', { webhook_id, error })
      this.breakOff()
    }
  }

  private breakOff(): void {
    this.isBroken = true
    this.shared.wake()
  }
}

/** Whether something was delivered, or failed. Positions alone change with whatever anybody reports. */
function hasChanged(saved: Progress, now: Progress): boolean {
  return (
    saved.isBehind !== now.isBehind ||
    saved.failingSince !== now.failingSince ||
    saved.succeededAt !== now.succeededAt ||
    saved.failedAt !== now.failedAt ||
    now.recovery !== null
  )
}

function createEndpoint(shared: Shared, webhook: StoredWebhook, place: Place, rows: readonly RowKey[]): Endpoint {
  const { egress, vault, wake, timeoutMs } = shared
  const { webhook_id: webhookId, workspace_id: workspaceId, ordering, url } = webhook
  const keys = openKeys(vault, webhook)
  const slice = shared.slice.of(workspaceId)
  const post = async (message: Message, at: number, signal: AbortSignal) => {
    if (keys === null) return NOT_SIGNED
    // Hundreds of receivers may answer in the same moment.
    if (slice.isOver) await slice.yield()
    return attempt(egress, { url, keys, message, at, signal }, timeoutMs)
  }
  return new Endpoint(
    {
      ...shared,
      webhookId,
      workspaceId,
      isStrict: ordering === 'strict',
      attempt: post,
      messagesOf: createMessages(shared, webhook, place),
      store: createStore(shared, webhook, place.owned),
      gather: () => Bun.sleep(GATHER_MS),
      random: Math.random,
      onDue: wake,
    },
    {
      failingSince: webhook.failing_since?.getTime() ?? null,
      failingMs: webhook.failing_ms,
      succeededAt: webhook.succeeded_at?.getTime() ?? null,
      failedAt: webhook.failed_at?.getTime() ?? null,
      rows,
    },
  )
}

const NOT_SIGNED: Outcome = {
  isSuccess: false,
  httpStatus: null,
  durationMs: 0,
  response: SECRET_LOST,
  retryAfterMs: 0,
}

/** Makes messages, some at a time: a hundred endpoints may get the same activity at once. */
function createMessages({ details, slice, publicUrl, log }: Shared, webhook: StoredWebhook, { owned, source }: Place) {
  const { workspace_id: workspaceId } = webhook
  const { epoch } = source.journal
  const ownSlice = slice.of(workspaceId)
  const onBroken = (seq: number, error: unknown) =>
    log.error('webhooks: an activity becomes no message', { webhook_id: webhook.webhook_id, seq, error })
  return async (activities: readonly Activity[]): Promise<Message[]> => {
    const found = await details.read({ owned, workspaceId, runIds: endedRuns(activities) })
    const messages: Message[] = []
    for (let from = 0; from < activities.length; from += MESSAGES_PER_STEP) {
      if (ownSlice.isOver) await ownSlice.yield()
      const some = activities.slice(from, from + MESSAGES_PER_STEP)
      messages.push(...messagesOf(webhook, { epoch, activities: some, details: found, onBroken }, publicUrl))
    }
    return messages
  }
}

/**
 * Stores the results of attempts: in the journal, which refuses a process that no longer owns the partition, then rows.
 * A row that Postgres refuses again and again is skipped, because all results of the endpoint would wait for it: the
 * delivery is given up, and its record says so.
 */
function createStore(
  { sql, retries, storing, setAside, clock, log, onChange, wake }: Shared,
  webhook: StoredWebhook,
  owned: OwnedPartition,
) {
  const { webhook_id: webhookId, workspace_id: workspaceId } = webhook
  const appended = new WeakSet<AttemptResults>()
  const sieve = new Sieve<RetryRow>({
    consumer: RESULTS,
    log,
    counts: setAside,
    isPoison,
    probe: (rows) => retries.probe(webhookId, rows),
    describe: ({ deliveryId, seq, runId }) => ({
      webhook_id: webhookId,
      workspace_id: workspaceId,
      delivery_id: deliveryId,
      seq,
      run_id: runId,
    }),
  })

  /** Stores all rows but those that are given up or were deleted, which it returns. */
  async function write(results: AttemptResults, rows: readonly RetryRow[]): Promise<readonly RowKey[]> {
    const kept = new Set(rows)
    const givenUp = results.rows.filter((row) => !kept.has(row))
    if (givenUp.length > 0) {
      const at = clock.now()
      const records = givenUp.map((row) => deliveryRow({ workspaceId, webhookId }, attemptOf(row, at)))
      await owned.journal.appendDeliveries(records)
    }
    const erased = await retries.write({ ...results, rows, gone: [...results.gone, ...givenUp] })
    return [...givenUp, ...erased]
  }

  return async (results: AttemptResults): Promise<readonly RowKey[]> => {
    const { attempts, disabledBecause } = results
    try {
      if (attempts.length > 0 && !appended.has(results)) await owned.journal.appendDeliveries(attempts)
      appended.add(results)
      const notStored = await sieve.run(results.rows, (rows) => write(results, rows))
      if (disabledBecause !== null && (await disableWebhook(sql, webhook, disabledBecause, clock.now()))) {
        log.info('webhooks: disabled an endpoint', { webhook_id: webhookId, reason: disabledBecause })
        onChange()
        wake()
      }
      storing.succeeded()
      return notStored
    } catch (error) {
      storing.failed(error)
      throw error
    }
  }
}

/** The attempt that a delivery never gets, as its last record. */
function attemptOf(row: RetryRow, at: number): Attempted {
  const outcome = notSent('the service could not store this delivery')
  return { message: { ...row, timestamp: '' }, attempt: row.attempt + 1, outcome, at, nextAt: null }
}
