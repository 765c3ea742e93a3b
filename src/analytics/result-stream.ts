import { ApiError } from '../base/errors.ts'
import type { EngineTime } from './caps.ts'

interface ResultStreamOptions {
  /** Starts the query; aborting the signal ends it. */
  readonly open: (signal: AbortSignal) => Promise<AsyncGenerator<Uint8Array, void, void>>
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
  /** Measures how long the engine works on the query. */
  readonly engineTime: (onSpent: () => void) => EngineTime
  /** The error when the engine has used up its time. */
  readonly tooLong: ApiError
  /** How long the whole stream may take. */
  readonly seconds: number
  /** Turns a failure into the caller's error. */
  readonly explain: (error: unknown) => unknown
  /** Called once when the stream has ended for any reason. */
  readonly onEnd: () => void
}

const DONE = new Error('the answer has been taken')

/**
 * Streams a result, at most one chunk ahead of its reader. The stream errors when the query fails midway. The query
 * ends when the reader or the client disconnects, or takes too long.
 *
 * @returns once the engine has started the answer
 * @throws the result of `explain` for a failure before that
 */
export async function openResultStream(options: ResultStreamOptions): Promise<ReadableStream<Uint8Array>> {
  const { explain, onEnd } = options
  const stop = new AbortController()
  const time = options.engineTime(() => stop.abort(options.tooLong))
  const clientLeft = () => stop.abort(options.signal.reason)
  const timer = setTimeout(() => {
    end(new ApiError('VALIDATION_ERROR', `query: the answer was not read within ${options.seconds} s`))
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
            if (!done) {
              time.delivered(value.length)
              return controller.enqueue(value)
            }
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
