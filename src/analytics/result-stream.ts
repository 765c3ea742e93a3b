import { ApiError } from '../http/errors.ts'
import type { EngineTime } from './caps.ts'

export interface ResultStreamOptions {
  /** Asks for the answer; the signal ends it. */
  readonly open: (signal: AbortSignal) => Promise<AsyncGenerator<Uint8Array, void, void>>
  /** Of the client. */
  readonly signal: AbortSignal
  /** How long the engine may work on it in all. */
  readonly engineTime: (onSpent: () => void) => EngineTime
  readonly tooLong: ApiError
  /** How long it may take in all. */
  readonly seconds: number
  /** The caller's error for what went wrong. */
  readonly explain: (error: unknown) => unknown
  /** Called once, when nothing is running any more, however it ended. */
  readonly onEnd: () => void
}

/**
 * An answer as a stream that is never ahead of its reader by more than one piece. It errors when the answer breaks off,
 * and ends the query when its reader or the client goes away, or has taken too long.
 *
 * @returns once the engine has the first piece
 * @throws what `explain` makes of what went wrong before that
 */
export async function openResultStream(options: ResultStreamOptions): Promise<ReadableStream<Uint8Array>> {
  const { explain, onEnd } = options
  const stop = new AbortController()
  const time = options.engineTime(() => stop.abort(options.tooLong))
  const clientLeft = () => stop.abort(options.signal.reason)
  const timer = setTimeout(() => {
    end(new ApiError('VALIDATION_ERROR', `query: its answer was not read within ${options.seconds} s`))
  }, options.seconds * 1000)

  let hasEnded = false
  const end = (reason: unknown) => {
    if (hasEnded) return
    hasEnded = true
    clearTimeout(timer)
    options.signal.removeEventListener('abort', clientLeft)
    stop.abort(reason)
    onEnd()
  }
  stop.signal.addEventListener('abort', () => end(stop.signal.reason), { once: true })
  options.signal.addEventListener('abort', clientLeft, { once: true })
  if (options.signal.aborted) clientLeft()

  try {
    const pieces = await time.during(options.open(stop.signal))
    return new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          try {
            const { done, value } = await time.during(pieces.next())
            if (!done) return controller.enqueue(value)
            end(DONE)
            controller.close()
          } catch (error) {
            end(error)
            throw explain(error)
          }
        },
        cancel: (reason) => end(reason ?? DONE),
      },
      { highWaterMark: 0 },
    )
  } catch (error) {
    end(error)
    throw explain(error)
  }
}

const DONE = new Error('the answer has been taken')
