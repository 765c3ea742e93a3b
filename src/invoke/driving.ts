import { ApiError } from '../http/errors.ts'
import type { RunIdentity } from '../ids.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import type { FeedCaller } from '../keys/schema.ts'
import { orAborted } from './fleet.ts'
import type { Invoked } from './invocations.ts'
import { answerOf, readOutcome } from './outcome.ts'
import type { OutputPosition } from './output-log.ts'
import { OutputStream, type OutputStreamDeps } from './output-stream.ts'
import type { Outcome } from './rows.ts'

export interface DrivingDeps extends OutputStreamDeps {
  readonly ring: Pick<KeyRing, 'authenticateFeed'>
  /** How long a caller is kept waiting; then its run goes on without it. */
  readonly waitMs: number
}

/** How a call wants to be answered that has set a run going. */
export interface Wish {
  readonly stream?: boolean | undefined
  readonly background?: boolean | undefined
  /** The key that the call came with. */
  readonly key: string
  /** From where on the output is streamed. */
  readonly after?: OutputPosition | undefined
  /** The connection may be silent for long. */
  readonly keepOpen: () => void
  readonly setStatus: (status: 200 | 202) => void
}

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  // Proxies that gather answers would hold tokens back.
  'x-accel-buffering': 'no',
}

const IN_LINE: Outcome = { kind: 'left', status: 'queued' }
const LEFT: Outcome = { kind: 'left', status: 'running' }

export type Driving = ReturnType<typeof createDriving>

/** Answers calls that have set a run going: when it is over or paused, as a stream, or at once (contract section 6). */
export function createDriving(deps: DrivingDeps) {
  const { sql, fleet, ring, connections, waitMs } = deps
  const close = new AbortController()
  const closing = close.signal

  /** Said before anything is set going. @throws ApiError UNAVAILABLE, RATE_LIMITED when no stream can be opened */
  function checkRoom(workspaceId: string, wish: Pick<Wish, 'stream'>): void {
    if (wish.stream === true) connections.checkRoom(workspaceId)
  }

  async function answer(run: Pick<Invoked, keyof RunIdentity | 'sessionId' | 'outcome'>, wish: Wish) {
    if (wish.stream === true) {
      wish.keepOpen()
      return stream(await ring.authenticateFeed(wish.key), run, wish.after)
    }
    if (wish.background === true) {
      const outcome = await standing(run)
      // It may be over by now; whoever wants it in the background is told the same every time.
      const { status, data } = answerOf(run, outcome.kind === 'paused' ? outcome : IN_LINE)
      wish.setStatus(status)
      return data
    }
    wish.keepOpen()
    const { status, data } = answerOf(run, await settled(run))
    wish.setStatus(status)
    return data
  }

  /** Waits, but not for ever: then the caller is told where the run stands. */
  async function settled(run: Pick<Invoked, keyof RunIdentity | 'outcome'>) {
    const { outcome } = run
    const patience = new AbortController()
    const giveUp = () => patience.abort()
    const timer = setTimeout(giveUp, waitMs)
    closing.addEventListener('abort', giveUp)
    if (closing.aborted) giveUp()
    try {
      const done = outcome === null ? LEFT : await orAborted(outcome, patience.signal)
      if (done.kind !== 'left') return done
      return await fleet.settled(run, patience.signal)
    } catch (error) {
      if (patience.signal.aborted) return standing(run)
      throw error
    } finally {
      clearTimeout(timer)
      closing.removeEventListener('abort', giveUp)
    }
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
  ): Promise<Response> {
    const open = () => new OutputStream(deps, { caller, run: { workspaceId, runId }, sessionId, after })
    const { body } = await connections.admit(caller, open)
    return new Response(body, { headers: STREAM_HEADERS })
  }

  /** Tells those who wait where their runs stand: the service is about to end, and goes on with them after its next start. */
  function release(): void {
    close.abort()
  }

  return { checkRoom, answer, stream, release }
}
