import type { IncomingMessage } from 'node:http'
import { pipeline, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { EgressFailed } from './errors.ts'

/** What {@link decode} undoes. */
export const ACCEPT_ENCODING = 'gzip, deflate, br, zstd'

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

export interface BodyOptions {
  /** For messages. */
  readonly host: string
  /** Of the body once it is inflated. */
  readonly maxBytes: number
  readonly signal: AbortSignal
  /** Called once, when nothing more will come. */
  readonly onEnd: () => void
}

/**
 * The body of an answer, read no faster than its reader takes it. It is inflated here, in small pieces that are counted one
 * by one, so that a few bytes cannot become more than `maxBytes` in memory.
 *
 * @throws EgressFailed, at once or to the reader, for more than `maxBytes` and for an encoding that is unknown
 */
export function bodyOf(answer: IncomingMessage, options: BodyOptions): ReadableStream<Uint8Array> {
  const { host, maxBytes, signal, onEnd } = options
  if (Number(answer.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(options)
  const chunks = decode(answer, host)[Symbol.asyncIterator]()
  let bytes = 0
  const end = () => {
    onEnd()
    answer.destroy()
  }
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await chunks.next()
        // A body without a length ends with its connection, whoever has closed it.
        signal.throwIfAborted()
        if (done) {
          onEnd()
          return controller.close()
        }
        bytes += value.byteLength
        if (bytes > maxBytes) throw tooLarge(options)
        controller.enqueue(value)
      } catch (error) {
        controller.error(readError(error, { host, signal }))
        end()
      }
    },
    cancel: end,
  })
}

function decode(answer: IncomingMessage, host: string): AsyncIterable<Uint8Array> {
  const encoding = answer.headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  if (encoding === 'identity' || encoding === '') return answer
  const decoder = DECODERS[encoding]?.()
  if (decoder === undefined) throw new EgressFailed(`${host} answers in an encoding that was not asked for`)
  // Whoever reads the decoder hears of any error; the callback keeps it from being thrown here as well.
  return pipeline(answer, decoder, () => {})
}

function readError(cause: unknown, { host, signal }: Pick<BodyOptions, 'host' | 'signal'>): unknown {
  if (signal.aborted) return signal.reason
  if (cause instanceof EgressFailed) return cause
  return new EgressFailed(`the answer of ${host} broke off`, { cause })
}

function tooLarge({ host, maxBytes }: BodyOptions): EgressFailed {
  return new EgressFailed(`the answer of ${host} is larger than ${maxBytes} bytes`)
}
