import { ClickHouseFailure } from '../protocol.ts'
import type { EngineLocation } from './addon.ts'
import type { Job } from './session.ts'

/** A result on its way. One call at a time. */
export interface EngineStream {
  /** The next bytes of the answer; undefined after the last. @throws ClickHouseFailure */
  next(): Promise<Uint8Array<ArrayBuffer> | undefined>
  /** Frees what the stream holds. The query has been killed, or has nothing under way. */
  close(): Promise<void>
}

export interface ThreadStart {
  readonly kind: 'start'
  readonly place: EngineLocation
  readonly nice: number
}

export type ThreadRequest =
  | { readonly kind: 'run'; readonly job: Job }
  | { readonly kind: 'kill'; readonly queryId: string }
  | { readonly kind: 'open'; readonly job: Job }
  | { readonly kind: 'next' }
  | { readonly kind: 'close' }

export type ThreadReply =
  | { readonly kind: 'opened' | 'unstreamable' | 'end' | 'closed' }
  | { readonly kind: 'piece' | 'result'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'failed'; readonly code: number; readonly type: string; readonly message: string }

/**
 * Threads of one priority that run statements, made when they are first needed and kept: see `worker.ts`. There are as many
 * as there are statements at a time, so whoever calls limits those.
 */
export class Threads {
  private readonly idle: Thread[] = []

  constructor(
    private readonly place: EngineLocation,
    private readonly nice: number,
  ) {}

  /**
   * Runs a statement of the service's own, whose result is text.
   * @throws ClickHouseFailure
   */
  async run(request: Extract<ThreadRequest, { kind: 'run' | 'kill' }>): Promise<Uint8Array<ArrayBuffer>> {
    const thread = this.take()
    try {
      const reply = await thread.ask(request)
      return 'bytes' in reply ? reply.bytes : new Uint8Array(0)
    } finally {
      this.idle.push(thread)
    }
  }

  /**
   * Plans the query and starts it.
   * @returns undefined for a statement that has no result to stream, or not in this format: nothing has been run then
   * @throws ClickHouseFailure
   */
  async stream(job: Job): Promise<EngineStream | undefined> {
    const thread = this.take()
    try {
      const reply = await thread.ask({ kind: 'open', job })
      if (reply.kind === 'unstreamable') {
        this.idle.push(thread)
        return undefined
      }
    } catch (error) {
      this.idle.push(thread)
      throw error
    }
    return {
      async next() {
        const reply = await thread.ask({ kind: 'next' })
        return reply.kind === 'piece' ? reply.bytes : undefined
      },
      close: async () => {
        await thread.ask({ kind: 'close' })
        this.idle.push(thread)
      },
    }
  }

  private take(): Thread {
    return this.idle.pop() ?? new Thread(this.place, this.nice)
  }
}

/** Answers one request after the other. */
class Thread {
  private readonly worker = new Worker(new URL('worker.ts', import.meta.url))
  private waiting: PromiseWithResolvers<ThreadReply> | undefined

  constructor(place: EngineLocation, nice: number) {
    this.worker.onmessage = ({ data }: MessageEvent<ThreadReply>) => {
      if (data.kind === 'failed') this.waiting?.reject(new ClickHouseFailure(data.code, data.type, data.message))
      else this.waiting?.resolve(data)
    }
    this.worker.onerror = ({ message }) => this.waiting?.reject(new Error(message))
    this.worker.postMessage({ kind: 'start', place, nice } satisfies ThreadStart)
  }

  ask(request: ThreadRequest): Promise<ThreadReply> {
    this.waiting = Promise.withResolvers<ThreadReply>()
    this.worker.postMessage(request)
    return this.waiting.promise
  }
}
