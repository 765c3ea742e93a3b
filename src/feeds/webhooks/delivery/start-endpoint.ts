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
import { startOf } from '../../live/feed-source.ts'
import { endedRuns, type Message, messagesOf } from '../message.ts'
import type { StoredWebhook } from '../schema.ts'
import { openKeys, SECRET_LOST } from '../signature.ts'
import { attempt, type Outcome } from './attempt.ts'
import { type Attempted, type AttemptResults, deliveryRow, type RetryRow, type RowKey } from './attempt-results.ts'
import type { DetailsReader } from './details.ts'
import { Endpoint, notSent, type Place } from './endpoint.ts'
import { beginEpoch, disableWebhook } from './positions.ts'
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

/** As `GET /readyz` names what stores the results of attempts. */
const RESULTS = 'webhook_results'
const GATHER_MS = 5
const MESSAGES_PER_STEP = 10

/** Starts at the stored position, or as a feed would that resumes there. @throws ApiError as `Hub.subscribe` */
export async function startEndpoint(shared: Shared, stored: StoredWebhook, place: Place): Promise<Endpoint> {
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
  const rows = await shared.retries.keys(webhook_id)
  const deps = {
    ...shared,
    attempt: createAttempt(shared, webhook),
    messagesOf: createMessages(shared, webhook, place),
    store: createStore(shared, webhook, place.owned),
    gather: () => Bun.sleep(GATHER_MS),
    random: Math.random,
  }
  return new Endpoint(deps, webhook, place, { rows, afterSeq })
}

/** Signs and posts a message of the endpoint. */
function createAttempt({ egress, vault, slice, timeoutMs }: Shared, webhook: StoredWebhook) {
  const { url } = webhook
  const keys = openKeys(vault, webhook)
  const ownSlice = slice.of(webhook.workspace_id)
  return async (message: Message, at: number, signal: AbortSignal): Promise<Outcome> => {
    if (keys === null) return NOT_SIGNED
    // Hundreds of receivers may answer in the same moment.
    if (ownSlice.isOver) await ownSlice.yield()
    return attempt(egress, { url, keys, message, at, signal }, timeoutMs)
  }
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
