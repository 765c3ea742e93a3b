import { orAborted } from '../../base/abort.ts'
import { ApiError, notFound } from '../../base/errors.ts'
import { eventStreamResponse } from '../../base/http/event-stream.ts'
import type { RunIdentity } from '../../base/ids.ts'
import { type CloseReason, type FeedReservation, refusalOf } from '../../feeds/live/connections.ts'
import type { FeedCaller } from '../../tenants/keys/schema.ts'
import type { OutputPosition } from '../output/output-log.ts'
import { type OutputSources, OutputStream } from '../output/output-stream.ts'
import type { HostedContext } from '../run/context.ts'
import { pausedStatus, publicPause, RELEASED, type RunOutcome } from '../run/run.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import { readOutcome } from '../store/load.ts'
import type { Invoked } from './invocations.ts'
import type { RunResponse } from './schema.ts'

/** How the caller of a run wants its response. */
export interface ResponseMode {
  readonly stream?: boolean | undefined
  readonly background?: boolean | undefined
  /** The key of the request. */
  readonly key: string
  /** Disables the idle timeout: the connection may be silent for long. */
  readonly keepOpen: () => void
  readonly setStatus: (status: 200 | 202) => void
}

/** A run that a request has started or resumed. */
interface StartedRun extends Pick<Invoked, keyof RunIdentity | 'sessionId' | 'outcome'> {
  /** Where its output stream begins. */
  readonly after?: OutputPosition | undefined
}

/** What a caller waits for: the end of a run, or also a pause. */
type WaitUntil = 'settled' | 'ended'

const QUEUED: RunOutcome = { kind: 'released', status: 'queued' }

/**
 * Responds to requests that start or resume a run: when it ends or pauses, as a stream, or at once
 * (docs/hosted-agents.md#outcomes).
 */
export class Responder {
  private readonly stopping = new AbortController()

  constructor(
    private readonly context: HostedContext,
    private readonly outputs: OutputSources & { readonly scheduler: Pick<Scheduler, 'settled' | 'change'> },
  ) {}

  /**
   * Starts a run and responds in the mode that the caller asked for. Capacity for a stream is reserved first: a run
   * whose response cannot be sent must not be started.
   * @throws ApiError what `start` throws; UNAVAILABLE, RATE_LIMITED when no stream can be opened; UNAUTHENTICATED,
   *   FORBIDDEN when the key is revoked or expires while its caller waits
   */
  async respond(workspaceId: string, mode: ResponseMode, start: () => Promise<StartedRun>) {
    const { connections } = this.context
    const room = mode.stream === true ? connections.reserve(workspaceId) : undefined
    try {
      return await this.answer(await start(), mode, room)
    } finally {
      room?.release()
    }
  }

  private async answer(run: StartedRun, mode: ResponseMode, room: FeedReservation | undefined) {
    const { ring } = this.context
    if (mode.stream === true) {
      mode.keepOpen()
      return afterEffect(async () => this.stream(await ring.authenticateFeed(mode.key), run, run.after, room))
    }
    if (mode.background === true) {
      // If it cannot be read now, the run has begun all the same.
      const outcome = await this.currentOutcome(run).catch((error) => {
        if (error instanceof ApiError) throw error
        this.context.log.warn('a hosted run could not be read; its caller is told that it is queued', { error })
        return QUEUED
      })
      // It may have ended by now, but a background call always gets the same response.
      const { status, data } = answerOf(run, outcome.kind === 'paused' ? outcome : QUEUED)
      mode.setStatus(status)
      return data
    }
    mode.keepOpen()
    const { status, data } = answerOf(run, await afterEffect(() => this.settled(run, mode)))
    mode.setStatus(status)
    return data
  }

  /**
   * Waits up to `config.waitMs`, then responds with the current state of the run. The wait ends at once when the key becomes
   * invalid.
   */
  private async settled(run: StartedRun, mode: ResponseMode) {
    const { ring, connections, config } = this.context
    const stopping = this.stopping.signal
    const wait = new AbortController()
    const stopWaiting = () => wait.abort()
    let ended: CloseReason | undefined
    const end = (reason: CloseReason) => {
      // A short database outage must not lose the response: the key is checked again before it is sent.
      if (reason === 'unavailable') return
      ended ??= reason
      stopWaiting()
    }
    const caller = await ring.authenticateFeed(mode.key)
    const unhold = await connections.hold({ caller, end })
    const timer = setTimeout(stopWaiting, config.waitMs)
    stopping.addEventListener('abort', stopWaiting)
    if (stopping.aborted) stopWaiting()
    try {
      const done = await this.untilSettled(run, wait.signal).catch((error: unknown) => {
        if (ended === undefined && wait.signal.aborted) return this.currentOutcome(run)
        throw error
      })
      await connections.checkAlive(caller)
      return done
    } catch (error) {
      throw ended === undefined ? error : refusalOf(ended)
    } finally {
      clearTimeout(timer)
      stopping.removeEventListener('abort', stopWaiting)
      unhold()
    }
  }

  /**
   * Waits until a run ends or pauses, for up to `ms`; for callers whose keys are checked elsewhere.
   * @param until `ended`: waits on while the run is paused
   * @returns what happened; null if nothing did in that time, or when the process is stopping
   */
  async within(
    run: StartedRun,
    {
      ms,
      signal,
      until = 'settled',
    }: { readonly ms: number; readonly signal: AbortSignal; readonly until?: WaitUntil },
  ): Promise<RunOutcome | null> {
    const wait = new AbortController()
    const stopWaiting = () => wait.abort()
    const timer = setTimeout(stopWaiting, ms)
    const signals = [signal, this.stopping.signal]
    for (const each of signals) each.addEventListener('abort', stopWaiting)
    if (signals.some(({ aborted }) => aborted)) stopWaiting()
    try {
      return await this.untilSettled(run, wait.signal, until)
    } catch (error) {
      if (wait.signal.aborted) return null
      throw error
    } finally {
      clearTimeout(timer)
      for (const each of signals) each.removeEventListener('abort', stopWaiting)
    }
  }

  /** Whether the process is stopping: callers that wait are to be answered now. */
  get isStopping(): boolean {
    return this.stopping.signal.aborted
  }

  private async untilSettled(run: StartedRun, signal: AbortSignal, until: WaitUntil = 'settled') {
    let outcome = run.outcome === null ? RELEASED : await orAborted(run.outcome, signal)
    for (;;) {
      if (outcome.kind === 'released') outcome = await this.outputs.scheduler.settled(run, signal)
      if (outcome.kind !== 'paused') return outcome
      const change = until === 'ended' ? this.outputs.scheduler.change(run, signal) : undefined
      // A decision made while the run was pausing has already resumed it.
      outcome = await this.currentOutcome(run)
      if (outcome.kind === 'released') continue
      if (outcome.kind === 'ended' || change === undefined) return outcome
      await change
      signal.throwIfAborted()
    }
  }

  private async currentOutcome(run: RunIdentity) {
    const outcome = await readOutcome(this.context.sql, run)
    if (outcome === null) throw notFound('run')
    return outcome
  }

  /** Streams the output of a run to a caller who may see it. @throws ApiError as {@link Connections.admit} */
  async stream(
    caller: FeedCaller,
    { workspaceId, runId, sessionId }: Pick<Invoked, keyof RunIdentity | 'sessionId'>,
    after: OutputPosition | undefined,
    room?: FeedReservation,
  ): Promise<Response> {
    const open = () =>
      new OutputStream(this.context, this.outputs, { caller, run: { workspaceId, runId }, sessionId, after })
    const { body } = await this.context.connections.admit(caller, open, room)
    return eventStreamResponse(body)
  }

  /**
   * Responds to all waiting callers with the current state of their runs: the process is stopping, and the runs
   * continue after its next start.
   */
  release(): void {
    this.stopping.abort()
  }
}

/** Marks an error after the run was started: a repeat of the request must not start another run. */
async function afterEffect<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw error.with({ hasEffect: true })
  }
}

/** The response for a caller (docs/hosted-agents.md#outcomes), and its HTTP status. */
function answerOf(
  { runId, sessionId }: { readonly runId: string; readonly sessionId: string | null },
  outcome: RunOutcome,
): { readonly status: 200 | 202; readonly data: RunResponse } {
  const base = { run_id: runId, session_id: sessionId }
  if (outcome.kind === 'released') return { status: 202, data: { ...base, status: outcome.status, output: null } }
  if (outcome.kind === 'paused') {
    const status = pausedStatus(outcome.pending)
    return {
      status: 202,
      data: { ...base, status, [status]: publicPause(outcome.pending), output: null } as RunResponse,
    }
  }
  const { status, output, usage } = outcome
  if (status === 'completed') return { status: 200, data: { ...base, status, output: output!, usage } }
  const { errorMessage: error_message, errorDetail: error_detail } = outcome
  return { status: 200, data: { ...base, status, output: null, error_message, error_detail, usage } }
}
