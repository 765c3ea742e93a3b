import type { IncomingMessage } from 'node:http'
import { pipeline, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { lookup } from '../../base/lookup.ts'
import { EgressFailed } from './errors.ts'

/** The encodings that {@link decode} supports. */
export const ACCEPT_ENCODING = 'gzip, deflate, br, zstd'

const DECODERS = lookup<() => Transform>({
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
})

export interface BodyOptions {
  /** For error messages. */
  readonly host: string
  /** Limit of the decompressed body. */
  readonly maxBytes: number
  readonly signal: AbortSignal
  /** Called once, when the body has ended. */
  readonly onEnd: () => void
}

/**
 * The body of a response, with backpressure. It is decompressed here in small chunks that are counted one by one, so
 * that a decompression bomb cannot use more than `maxBytes` of memory.
 *
 * @throws EgressFailed, at once or to the reader, for more than `maxBytes` or an unknown encoding
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
        // A body without a length ends when either side closes the connection.
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
  const decoder = DECODERS.get(encoding)?.()
  if (decoder === undefined) throw new EgressFailed(`${host} answers in an encoding that was not asked for`)
  // The reader of the decoder gets any error; the callback keeps it from being thrown here as well.
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
