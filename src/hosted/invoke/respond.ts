import { orAborted } from '../../abort.ts'
import { ApiError } from '../../http/errors.ts'
import { eventStreamResponse } from '../../http/event-stream.ts'
import type { RunIdentity } from '../../ids.ts'
import type { KeyRing } from '../../keys/key-ring.ts'
import type { FeedCaller } from '../../keys/schema.ts'
import { type CloseReason, type FeedRoom, refusalOf } from '../../live/connections.ts'
import type { OutputPosition } from '../output/output-log.ts'
import { OutputStream, type OutputStreamDeps } from '../output/output-stream.ts'
import { answerOf, readOutcome } from '../store/outcome.ts'
import type { RunOutcome } from '../store/rows.ts'
import type { Invoked } from './invocations.ts'

export interface ResponderDeps extends OutputStreamDeps {
  readonly ring: Pick<KeyRing, 'authenticateFeed'>
  /** How long a caller is kept waiting; then its run goes on without it. */
  readonly waitMs: number
}

/** How a call wants to be answered that has set a run going. */
export interface ResponseMode {
  readonly stream?: boolean | undefined
  readonly background?: boolean | undefined
  /** The key that the call came with. */
  readonly key: string
  /** The connection may be silent for long. */
  readonly keepOpen: () => void
  readonly setStatus: (status: 200 | 202) => void
}

/** A run that a call has set going. */
export interface StartedRun extends Pick<Invoked, keyof RunIdentity | 'sessionId' | 'outcome'> {
  /** From where on its output is streamed. */
  readonly after?: OutputPosition | undefined
}

const IN_LINE: RunOutcome = { kind: 'left', status: 'queued' }
const LEFT: RunOutcome = { kind: 'left', status: 'running' }

export type Responder = ReturnType<typeof createResponder>

/**
 * Answers calls that have set a run going: when it is over or paused, as a stream, or at once
 * (docs/specification.md#outcomes).
 */
export function createResponder(deps: ResponderDeps) {
  const { sql, scheduler, ring, connections, waitMs } = deps
  const close = new AbortController()
  const closing = close.signal

  /**
   * Sets a run going and answers as its caller wants to be answered. Room for a stream is taken before: what cannot be
   * answered must not be done.
   * @throws ApiError what `start` throws; UNAVAILABLE, RATE_LIMITED when no stream can be opened; UNAUTHENTICATED,
   *   FORBIDDEN when the key dies while its caller waits
   */
  async function respond(workspaceId: string, mode: ResponseMode, start: () => Promise<StartedRun>) {
    const room = mode.stream === true ? connections.reserve(workspaceId) : undefined
    try {
      return await answer(await start(), mode, room)
    } finally {
      room?.release()
    }
  }

  async function answer(run: StartedRun, mode: ResponseMode, room: FeedRoom | undefined) {
    if (mode.stream === true) {
      mode.keepOpen()
      return afterEffect(async () => stream(await ring.authenticateFeed(mode.key), run, run.after, room))
    }
    if (mode.background === true) {
      const outcome = await standing(run)
      // It may be over by now; whoever wants it in the background is told the same every time.
      const { status, data } = answerOf(run, outcome.kind === 'paused' ? outcome : IN_LINE)
      mode.setStatus(status)
      return data
    }
    mode.keepOpen()
    const { status, data } = answerOf(run, await afterEffect(() => settled(run, mode)))
    mode.setStatus(status)
    return data
  }

  /** Waits, but not for ever: then the caller is told where the run stands. The death of its key ends the wait at once. */
  async function settled(run: StartedRun, mode: ResponseMode) {
    const patience = new AbortController()
    const giveUp = () => patience.abort()
    let ended: CloseReason | undefined
    const end = (reason: CloseReason) => {
      // A database that is away for a moment costs nobody an answer: the key is checked before it is given.
      if (reason === 'unavailable') return
      ended ??= reason
      giveUp()
    }
    const caller = await ring.authenticateFeed(mode.key)
    const letGo = await connections.hold({ caller, end })
    const timer = setTimeout(giveUp, waitMs)
    closing.addEventListener('abort', giveUp)
    if (closing.aborted) giveUp()
    try {
      const done = await untilSettled(run, patience.signal).catch((error: unknown) => {
        if (ended === undefined && patience.signal.aborted) return standing(run)
        throw error
      })
      await connections.checkAlive(caller)
      return done
    } catch (error) {
      throw ended === undefined ? error : refusalOf(ended)
    } finally {
      clearTimeout(timer)
      closing.removeEventListener('abort', giveUp)
      letGo()
    }
  }

  async function untilSettled(run: StartedRun, signal: AbortSignal) {
    const done = run.outcome === null ? LEFT : await orAborted(run.outcome, signal)
    return done.kind === 'left' ? scheduler.settled(run, signal) : done
  }

  async function standing(run: RunIdentity) {
    const outcome = await readOutcome(sql, run)
    if (outcome === null) throw new ApiError('NOT_FOUND', 'run does not exist')
    return outcome
  }

  /** The output of a run, to whoever may see it. @throws ApiError as {@link Connections.admit} */
  async function stream(
    caller: FeedCaller,
    { workspaceId, runId, sessionId }: Pick<Invoked, keyof RunIdentity | 'sessionId'>,
    after: OutputPosition | undefined,
    room?: FeedRoom,
  ): Promise<Response> {
    const open = () => new OutputStream(deps, { caller, run: { workspaceId, runId }, sessionId, after })
    const { body } = await connections.admit(caller, open, room)
    return eventStreamResponse(body)
  }

  /** Tells those who wait where their runs stand: the service is about to end, and goes on with them after its next start. */
  function release(): void {
    close.abort()
  }

  return { respond, stream, release }
}

/** A refusal after the run was set going: a repeat of the call must not set another one going. */
async function afterEffect<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { code, message, retryAfterSeconds } = error
    throw new ApiError(code, message, {
      cause: error,
      hasEffect: true,
      ...(retryAfterSeconds && { retryAfterSeconds }),
    })
  }
}
