import { ApiError, invalidAll, type Problem } from '../../../base/errors.ts'
import { createKeyedMutex } from '../../../base/keyed-mutex.ts'
import { type JsonShape, toProtobuf } from './json.ts'

/** A JSON body is parsed whole, and takes up to thirty times its size in memory while that lasts. */
export const JSON_BYTES_MAX = 8 * 1024 * 1024
/** Longer bodies are parsed in a thread: the worst one of this length stops the event loop for about 50 ms. */
const INLINE_BYTES_MAX = 256 * 1024

/** A body to be parsed in the thread. */
export interface ThreadRequest {
  readonly call: number
  readonly body: Uint8Array<ArrayBuffer>
  readonly shape: JsonShape
}

export type ThreadReply = { readonly call: number } & (
  | { readonly bytes: Uint8Array<ArrayBuffer> }
  /** What is wrong with the body. */
  | { readonly problems: readonly Problem[] }
  /** A defect. */
  | { readonly error: string }
)

/** Turns JSON bodies into protobuf, the longer ones in a thread, which starts with the first of them. */
export class JsonConverter {
  private thread: Worker | undefined
  private readonly waiting = new Map<number, PromiseWithResolvers<Uint8Array>>()
  private calls = 0
  /** A workspace has one body in the thread at a time, so that workspaces take turns. */
  private readonly inTurn = createKeyedMutex()

  /** @throws ApiError VALIDATION_ERROR, PAYLOAD_TOO_LARGE, UNAVAILABLE */
  async convert(workspaceId: string, body: Uint8Array, shape: JsonShape): Promise<Uint8Array> {
    if (body.length > JSON_BYTES_MAX) {
      const instead = shape === 'values' ? 'several smaller bodies' : 'protobuf, or several smaller exports'
      throw new ApiError('PAYLOAD_TOO_LARGE', `body: JSON may have ${JSON_BYTES_MAX} bytes; send ${instead}`, {
        param: 'body',
      })
    }
    if (body.length <= INLINE_BYTES_MAX) return toProtobuf(body, shape)
    return this.inTurn(workspaceId, () => this.ask(body, shape))
  }

  private ask(body: Uint8Array, shape: JsonShape): Promise<Uint8Array> {
    this.thread ??= this.start()
    const answer = Promise.withResolvers<Uint8Array>()
    const call = ++this.calls
    this.waiting.set(call, answer)
    // Copied, because the request still has the body.
    const request: ThreadRequest = { call, body: new Uint8Array(body), shape }
    this.thread.postMessage(request, [request.body.buffer])
    return answer.promise
  }

  private start(): Worker {
    const thread = new Worker(new URL('json-worker.ts', import.meta.url), { ref: false })
    thread.onmessage = ({ data }: MessageEvent<ThreadReply>) => {
      const answer = this.waiting.get(data.call)
      this.waiting.delete(data.call)
      if ('bytes' in data) answer?.resolve(data.bytes)
      else answer?.reject('problems' in data ? invalidAll(data.problems) : new Error(data.error))
    }
    thread.onerror = ({ message }) => {
      this.thread = undefined
      const failed = new ApiError('UNAVAILABLE', 'the body could not be parsed; try again', {
        cause: new Error(message),
      })
      for (const { reject } of this.waiting.values()) reject(failed)
      this.waiting.clear()
    }
    return thread
  }
}
