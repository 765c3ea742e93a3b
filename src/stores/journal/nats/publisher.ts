import { JetStreamApiError } from '@nats-io/jetstream'
import type { ApiError } from '../../../base/errors.ts'
import { journalFull } from '../log/storage.ts'
import { FencedError, type Outgoing, type Stream } from './stream.ts'

/** After this long without an answer, a message is sent again. */
const ATTEMPT_MS = 1_000
const PAUSE_MS = 50
const WRONG_LAST_SEQUENCE = 10071
/** The stream is at its limit of bytes; the servers have no room. */
const FULL = [10077, 10023, 10047, 10002, 10028]

/** The stream has refused the messages; the outcome is certain. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'

  /** @param stored how many of the messages, from the first on, are stored nevertheless */
  constructor(
    readonly refusal: ApiError,
    readonly stored: number,
  ) {
    super(refusal.message)
  }
}

/**
 * Publishes consecutive messages, each with the sequence that it must get: the stream stores it there or not at all. A
 * message whose acknowledgement was lost is sent again with the same id and the same expectation, so it is stored once.
 *
 * The parts of a group are sent without waiting for each other, since each is refused unless the one before is stored.
 * @throws FencedError, RefusedError, and Error when it is unknown whether they are stored
 */
export async function publishAll(stream: Stream, messages: readonly Outgoing[], settleMs: number): Promise<void> {
  const deadlineMs = performance.now() + settleMs
  const outcomes = await Promise.all(messages.map((message) => attempt(stream, message)))
  for (const [index, message] of messages.entries()) {
    let outcome = outcomes[index]
    let isUnsettled = false
    while (outcome !== 'stored') {
      isUnsettled ||= outcome === 'unknown'
      if (outcome === 'full') {
        // Servers check their limits before ids, so an earlier attempt without an answer may be stored. A later part without
        // one might still be stored, in the place of another commit.
        isUnsettled ||= outcomes.slice(index + 1).includes('unknown')
        if (isUnsettled) throw new Error('a refused group is unsettled')
        throw new RefusedError(journalFull(), index)
      }
      const mayBeStored = outcome === 'duplicate' || outcome === 'wrong sequence'
      if (mayBeStored && (await isStored(stream, message))) break
      if (performance.now() > deadlineMs || stream.isConnectionClosed) {
        throw new Error(`NATS has not answered within ${settleMs} ms`)
      }
      if (outcome !== 'unknown') await Bun.sleep(PAUSE_MS)
      outcome = await attempt(stream, message)
    }
  }
}

/**
 * `duplicate`: an earlier attempt has arrived. `unreachable`: not sent, or no server can store it at the moment. `unknown`:
 * sent, no answer.
 */
type PublishResult = 'stored' | 'duplicate' | 'wrong sequence' | 'full' | 'unreachable' | 'unknown'

async function attempt(stream: Stream, message: Outgoing): Promise<PublishResult> {
  try {
    const { seq, duplicate } = await stream.publish(message, ATTEMPT_MS)
    // Servers remember the id of a message before it is stored. Only the stream tells whether it was.
    if (duplicate) return 'duplicate'
    if (seq === message.streamSeq) return 'stored'
    throw new FencedError(`message ${message.streamSeq} was stored as ${seq}`)
  } catch (error) {
    if (error instanceof FencedError) throw error
    if (!(error instanceof JetStreamApiError)) return isTimeout(error) ? 'unknown' : 'unreachable'
    if (error.code === WRONG_LAST_SEQUENCE) return 'wrong sequence'
    return FULL.includes(error.code) ? 'full' : 'unreachable'
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError'
}

/**
 * Whether a message is stored after the stream has refused to store it at its place.
 * @throws FencedError when another one is there
 */
async function isStored(stream: Stream, { streamSeq, id }: Outgoing): Promise<boolean> {
  const found = await stream.getFromLeader(streamSeq).catch(() => undefined)
  if (found === undefined) return false
  if (found?.id === id) return true
  throw new FencedError(
    found === null ? `the stream lacks message ${streamSeq}` : `another owner has published message ${streamSeq}`,
  )
}
