import type { Egress } from '../../../outbound/egress/egress.ts'
import { EgressFailed, EgressRefused } from '../../../outbound/egress/errors.ts'
import type { Message } from '../message.ts'
import { headersFor, type SigningKeys } from '../signature.ts'
import { retryAfterMs } from './schedule.ts'

/** The result of one attempt. */
export interface Outcome {
  readonly isSuccess: boolean
  /** Null if there was no answer. */
  readonly httpStatus: number | null
  readonly durationMs: number
  /** The beginning of the answer, or why there was none. */
  readonly response: string | null
  /** The wait that the receiver asked for; 0 for none. */
  readonly retryAfterMs: number
  /** Nothing was sent, for a reason that says nothing about the receiver. */
  readonly isOurs?: boolean
}

interface Post {
  readonly url: string
  /** Sign the message. */
  readonly keys: SigningKeys
  readonly message: Pick<Message, 'deliveryId' | 'body'>
  /** When the attempt begins, Unix milliseconds. */
  readonly at: number
  /** Interrupts the attempt. */
  readonly signal: AbortSignal
}

const TIMEOUT_MS = 15_000
/** Up to this length, an answer is read to its end, so that its connection can be used again. */
const READ_BYTES_MAX = 16 * 1024
/** How much of an answer is kept. */
const KEPT_BYTES = 1024
const HEADERS = { 'content-type': 'application/json', 'user-agent': 'agent-run-service (webhooks)' }
const NUL = /\0/g

/**
 * Signs and posts a message once. Whatever goes wrong is an outcome that says why.
 * @throws the signal's reason when it aborts: then it is unknown whether the message has arrived
 */
export async function attempt(egress: Pick<Egress, 'fetch'>, post: Post, timeoutMs = TIMEOUT_MS): Promise<Outcome> {
  const { url, keys, message, at, signal } = post
  const { body } = message
  const headers = headersFor(keys, message, at)
  const startedMs = performance.now()
  const ended = (outcome: Omit<Outcome, 'durationMs'>): Outcome => ({
    ...outcome,
    durationMs: Math.round(performance.now() - startedMs),
  })
  try {
    const init = { method: 'POST', headers: { ...headers, ...HEADERS }, body, signal, timeoutMs, maxBytes: Infinity }
    // Receivers deduplicate messages by id, so one may arrive twice.
    const answer = await egress.fetch(url, { ...init, isRepeatable: true })
    const response = await beginning(answer)
    signal.throwIfAborted()
    const { ok: isSuccess, status: httpStatus } = answer
    const wait = isSuccess ? 0 : retryAfterMs(answer.headers.get('retry-after'), at)
    return ended({ isSuccess, httpStatus, response, retryAfterMs: wait })
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof EgressRefused || error instanceof EgressFailed)) throw error
    const httpStatus = error instanceof EgressRefused ? error.status : null
    return ended({ isSuccess: false, httpStatus, response: error.message, retryAfterMs: 0 })
  }
}

/** The beginning of the body as text. The status counts even if the body breaks off. */
async function beginning({ body }: Response): Promise<string | null> {
  if (body === null) return null
  const kept: Uint8Array[] = []
  let bytes = 0
  const reader = body.getReader()
  try {
    while (bytes < READ_BYTES_MAX) {
      const { done, value } = await reader.read()
      if (done) break
      if (bytes < KEPT_BYTES) kept.push(value)
      bytes += value.byteLength
    }
  } catch {
    // What has arrived is kept.
  }
  if (bytes >= READ_BYTES_MAX) void reader.cancel().catch(() => {})
  if (bytes === 0) return null
  // Postgres stores no NUL.
  return textOf(Buffer.concat(kept).subarray(0, KEPT_BYTES)).replace(NUL, '\ufffd')
}

/** Well-formed text: without the beginning of a character that was cut off. */
function textOf(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes)
  return bytes.byteLength === KEPT_BYTES ? text.replace(/\ufffd$/, '') : text
}
