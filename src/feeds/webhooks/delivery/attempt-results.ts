import type { DeliveryRow } from '../../../stores/journal/rows.ts'
import type { Message } from '../message.ts'
import type { Outcome } from './attempt.ts'

/** A row of `webhook_retries`: a delivery whose last attempt failed, or one of the same run that waits for it. */
export interface RetryRow extends Pick<Message, 'deliveryId' | 'seq' | 'runId' | 'scoreId' | 'type' | 'body'> {
  /** Attempts made. */
  readonly attempt: number
  /** Unix milliseconds; null while it waits for an earlier one. */
  readonly nextAt: number | null
  readonly httpStatus: number | null
  readonly response: string | null
}

/** Identifies a row of an endpoint. */
export type RowKey = Pick<RetryRow, 'seq' | 'runId'>

/** What is to be stored of an endpoint before its position passes it. */
export interface AttemptResults {
  readonly workspaceId: string
  readonly webhookId: string
  /** For the journal. */
  readonly attempts: readonly DeliveryRow[]
  /** Rows to insert or, if they have attempts, to update. Storing them again changes nothing. */
  readonly rows: readonly RetryRow[]
  /** Rows to delete; then the next one of the run is due. */
  readonly gone: readonly RowKey[]
  /** Why the endpoint is disabled; null if it is not. */
  readonly disabledBecause: string | null
}

/** An attempt that has ended. */
export interface Attempted {
  readonly message: Message
  /** From 1. */
  readonly attempt: number
  readonly outcome: Outcome
  /** When it began, Unix milliseconds. */
  readonly at: number
  /** When the next one is due; null for none. */
  readonly nextAt: number | null
}

/** The attempt as the journal and SQL have it. */
export function deliveryRow(
  { workspaceId, webhookId }: Pick<AttemptResults, 'workspaceId' | 'webhookId'>,
  { message, attempt, outcome, at, nextAt }: Attempted,
): DeliveryRow {
  return {
    workspace_id: workspaceId,
    webhook_id: webhookId,
    delivery_id: message.deliveryId,
    type: message.type,
    run_id: message.runId,
    activity_seq: message.seq,
    attempt,
    status: outcome.isSuccess ? 'succeeded' : nextAt === null ? 'failed' : 'pending',
    http_status: outcome.httpStatus,
    duration_ms: outcome.durationMs,
    response: outcome.response,
    at,
  }
}

/** The row of a delivery whose attempt has failed. */
export function failedRow({ message, attempt, outcome, nextAt }: Attempted): RetryRow {
  const { deliveryId, seq, runId, scoreId, type, body } = message
  const { httpStatus, response } = outcome
  return { deliveryId, seq, runId, scoreId, type, body, attempt, nextAt, httpStatus, response }
}

/** The row of a delivery that waits behind one of its run. */
export function waitingRow({ deliveryId, seq, runId, scoreId, type, body }: Message): RetryRow {
  return { deliveryId, seq, runId, scoreId, type, body, attempt: 0, nextAt: null, httpStatus: null, response: null }
}
