import { ClickHouseFailure } from '../protocol.ts'
import type { EnginePlace } from './addon.ts'
import type { Job } from './session.ts'

/** A result on its way. One call at a time. */
export interface EngineStream {
  /** The next bytes of the answer; undefined after the last. @throws ClickHouseFailure */
  next(): Promise<Uint8Array<ArrayBuffer> | undefined>
  /** Frees what the stream holds. The query has been killed, or has nothing under way. */
  close(): Promise<void>
}

export type StreamRequest =
  | { readonly kind: 'open'; readonly place: EnginePlace; readonly job: Job }
  | { readonly kind: 'next' }
  | { readonly kind: 'close' }

export type StreamReply =
  | { readonly kind: 'opened' | 'unstreamable' | 'end' | 'closed' }
  | { readonly kind: 'piece'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'failed'; readonly code: number; readonly type: string; readonly message: string }

/** Threads that stream results, made when they are first needed and kept: see `stream-worker.ts`. */
export function createStreams(place: EnginePlace) {
  const idle: Thread[] = []
  return {
    /**
     * Plans the query and starts it.
     * @returns undefined for a statement that has no result to stream, or not in this format: nothing has been run then
     * @throws ClickHouseFailure
     */
    async open(job: Job): Promise<EngineStream | undefined> {
      const thread = idle.pop() ?? new Thread()
      try {
        const reply = await thread.ask({ kind: 'open', place, job })
        if (reply.kind === 'unstreamable') {
          idle.push(thread)
          return undefined
        }
      } catch (error) {
        idle.push(thread)
        throw error
      }
      return {
        async next() {
          const reply = await thread.ask({ kind: 'next' })
          return reply.kind === 'piece' ? reply.bytes : undefined
        },
        async close() {
          await thread.ask({ kind: 'close' })
          idle.push(thread)
        },
      }
    },
  }
}

/** Answers one request after the other. */
class Thread {
  private readonly worker = new Worker(new URL('stream-worker.ts', import.meta.url))
  private waiting: PromiseWithResolvers<StreamReply> | undefined

  constructor() {
    this.worker.onmessage = ({ data }: MessageEvent<StreamReply>) => {
      if (data.kind === 'failed') this.waiting?.reject(new ClickHouseFailure(data.code, data.type, data.message))
      else this.waiting?.resolve(data)
    }
    this.worker.onerror = ({ message }) => this.waiting?.reject(new Error(message))
  }

  ask(request: StreamRequest): Promise<StreamReply> {
    this.waiting = Promise.withResolvers<StreamReply>()
    this.worker.postMessage(request)
    return this.waiting.promise
  }
}
