import { ClickHouseFailure } from '../protocol.ts'
import type { EngineLocation } from './addon.ts'
import type { Job } from './session.ts'

/** A streamed result. One call at a time. */
export interface EngineStream {
  /** The next bytes of the result; undefined after the last. @throws ClickHouseFailure */
  next(): Promise<Uint8Array<ArrayBuffer> | undefined>
  /** Whether the query has ended: {@link next} has returned undefined, or thrown. */
  readonly isOver: boolean
  /** Releases the stream's resources. Before the first call of {@link next} it waits until the query ends or is killed. */
  close(): Promise<void>
}

export interface ThreadStart {
  readonly kind: 'start'
  readonly place: EngineLocation
  readonly nice: number
}

export type ThreadRequest =
  | { readonly kind: 'run'; readonly job: Job }
  | { readonly kind: 'open'; readonly job: Job }
  | { readonly kind: 'next' }
  | { readonly kind: 'close' }

export type ThreadReply =
  | { readonly kind: 'opened' | 'unstreamable' | 'end' | 'closed' }
  | { readonly kind: 'piece' | 'result'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'failed'; readonly code: number; readonly type: string; readonly message: string }

/**
 * Threads of one priority that run statements, created on demand and reused: see `worker.ts`. There is one thread per
 * concurrent statement, so callers must limit those.
 */
export class Threads {
  private readonly idle: Thread[] = []

  constructor(
    private readonly place: EngineLocation,
    private readonly nice: number,
  ) {}

  /** Starts a thread for the first statement. */
  prepare(): void {
    this.idle.push(this.take())
  }

  /**
   * Runs a statement of the service whose result is text.
   * @throws ClickHouseFailure
   */
  async run(job: Job): Promise<Uint8Array<ArrayBuffer>> {
    const thread = this.take()
    try {
      const reply = await thread.ask({ kind: 'run', job })
      return 'bytes' in reply ? reply.bytes : new Uint8Array(0)
    } finally {
      this.idle.push(thread)
    }
  }

  /**
   * Plans and starts a query.
   * @returns undefined, without having run anything, if the statement or format cannot be streamed
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
    let isOver = false
    return {
      async next() {
        const reply = await thread.ask({ kind: 'next' }).catch((error) => {
          isOver = true
          throw error
        })
        isOver = reply.kind !== 'piece'
        return reply.kind === 'piece' ? reply.bytes : undefined
      },
      get isOver() {
        return isOver
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

/** Handles one request at a time. */
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
