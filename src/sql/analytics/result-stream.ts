import { invalid } from '../../base/errors.ts'
import { EngineTime } from './caps.ts'
import { tooLong } from './problems.ts'

interface ResultStreamOptions {
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
  /** How long the engine may work on the query. */
  readonly engineSeconds: number
  /** How long the whole stream may take. */
  readonly totalSeconds: number
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
 * @param start starts the query; aborting the signal ends it
 * @returns once the engine has started the answer
 * @throws the result of `explain` for a failure before that
 */
export async function openResultStream(
  start: (signal: AbortSignal) => Promise<AsyncGenerator<Uint8Array, void, void>>,
  { signal, engineSeconds, totalSeconds, explain, onEnd }: ResultStreamOptions,
): Promise<ReadableStream<Uint8Array>> {
  const stop = new AbortController()
  const time = new EngineTime(engineSeconds * 1000, () => stop.abort(tooLong(engineSeconds)))
  const clientLeft = () => stop.abort(signal.reason)
  const timer = setTimeout(() => {
    end(invalid('query', `the answer was not read within ${totalSeconds} s`, { reason: 'query_too_slow' }))
  }, totalSeconds * 1000)

  let hasEnded = false
  const end = (reason: unknown) => {
    if (hasEnded) return
    hasEnded = true
    clearTimeout(timer)
    signal.removeEventListener('abort', clientLeft)
    stop.abort(reason)
    onEnd()
  }
  stop.signal.addEventListener('abort', () => end(stop.signal.reason), { once: true })
  signal.addEventListener('abort', clientLeft, { once: true })
  if (signal.aborted) clientLeft()

  try {
    const pieces = await time.during(start(stop.signal))
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
