import type { RunIdentity } from '../../ids.ts'
import type { FeedCaller } from '../../keys/schema.ts'
import type { CloseReason, Connection, Connections } from '../../live/connections.ts'
import type { Sql } from '../../postgres/connect.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import { loadProgress } from '../store/load.ts'
import { readOutcome } from '../store/outcome.ts'
import { framesAfter, OUTPUT_START, OutputLog, type OutputPosition } from './output-log.ts'

export interface OutputStreamDeps {
  readonly sql: Sql
  readonly scheduler: Scheduler
  readonly connections: Connections
  /** A stream whose queue has been full for so long is closed. */
  readonly slowConsumerMs: number
}

export interface OutputStreamOptions {
  readonly caller: FeedCaller
  readonly run: RunIdentity
  readonly sessionId: string | null
  /** What the client has seen. */
  readonly after?: OutputPosition | undefined
}

const HEARTBEAT_MS = 8_000
const QUEUE_BYTES = 64 * 1024
const ENCODER = new TextEncoder()

/**
 * The output of a hosted run as an event stream (contract section 6): what it has put out after a position, then what
 * it puts out, until it is over or waits for a person. A client that goes away changes nothing about the run; one that
 * reads slowly is sent what has come together meanwhile, as one piece.
 */
export class OutputStream implements Connection {
  readonly caller: FeedCaller
  /** The body of the answer. */
  readonly body: ReadableStream<Uint8Array>
  private controller!: ReadableStreamDefaultController<Uint8Array>
  private position: OutputPosition
  private log: OutputLog | undefined
  private stopListening = () => {}
  private readonly gone = new AbortController()
  /** On the monotonic clock. */
  private lastSentMs = performance.now()
  /** 0 while there is room. */
  private fullSinceMs = 0

  constructor(
    private readonly deps: OutputStreamDeps,
    private readonly options: OutputStreamOptions,
  ) {
    this.caller = options.caller
    this.position = options.after ?? OUTPUT_START
    this.body = new ReadableStream(
      {
        start: (controller) => {
          this.controller = controller
        },
        pull: () => this.drained(),
        cancel: () => this.release(),
      },
      { highWaterMark: QUEUE_BYTES, size: (chunk) => chunk?.length ?? 0 },
    )
    // Sends the headers on their way.
    this.write(': connected\n\n')
    deps.connections.add(this)
    void this.follow()
  }

  end(reason: CloseReason): void {
    if (this.gone.signal.aborted) return
    if (reason !== 'slow_consumer') {
      this.finish()
      return
    }
    this.release()
    // What stands in its queue would be kept until somebody read it.
    this.controller.error(new Error('the client does not read'))
  }

  get queuedBytes(): number {
    return QUEUE_BYTES - (this.controller.desiredSize ?? QUEUE_BYTES)
  }

  tick(now: number): void {
    if (this.fullSinceMs !== 0 && now - this.fullSinceMs > this.deps.slowConsumerMs) this.end('slow_consumer')
    else if (now - this.lastSentMs > HEARTBEAT_MS && this.fullSinceMs === 0) this.write(': heartbeat\n\n')
  }

  private drained(): void {
    // Also called from within `write`, when nothing is waiting to be sent.
    if (this.fullSinceMs === 0 || (this.controller.desiredSize ?? 0) <= 0) return
    this.fullSinceMs = 0
    this.flush()
  }

  /** Sends what there is, as far as the client takes it. */
  private flush(): void {
    if (this.log === undefined || this.gone.signal.aborted || this.fullSinceMs !== 0) return
    const { text, position, isOver } = framesAfter(this.log, this.position)
    this.position = position
    if (text !== '') this.write(text)
    if (isOver) this.finish()
    else if (this.log.isClosed) this.leave()
  }

  /** Finds out where the run is: driven here, over or asleep, or on its way to a executor. */
  private async follow(): Promise<void> {
    const { scheduler } = this.deps
    const { run } = this.options
    const { signal } = this.gone
    try {
      while (!signal.aborted && this.log === undefined) {
        const driven = scheduler.outputOf(run)
        if (driven !== undefined) return this.take(driven)
        const change = scheduler.change(run, signal)
        const log = await this.stored()
        if (log !== undefined && !signal.aborted) this.take(log)
        else await change
      }
    } catch (error) {
      if (signal.aborted) return
      this.release()
      this.controller.error(error)
    }
  }

  /** The output of a run that nobody drives at the moment. */
  private async stored(): Promise<OutputLog | undefined> {
    const { sql } = this.deps
    const { run, sessionId } = this.options
    const outcome = await readOutcome(sql, run)
    if (outcome === null || outcome.kind === 'left') return undefined
    const progress = await loadProgress(sql, run)
    if (progress === null) return undefined
    const log = OutputLog.of(progress)
    log.close(outcome, sessionId)
    return log
  }

  private take(log: OutputLog): void {
    this.log = log
    this.stopListening = log.listen(() => this.flush())
    this.flush()
  }

  /** The executor has let go of the run: somebody else goes on. */
  private leave(): void {
    this.stopListening()
    this.log = undefined
    void this.follow()
  }

  private finish(): void {
    if (this.gone.signal.aborted) return
    this.release()
    this.controller.close()
  }

  private release(): void {
    if (this.gone.signal.aborted) return
    this.gone.abort()
    this.stopListening()
    this.deps.connections.remove(this)
  }

  private write(text: string): void {
    if (this.gone.signal.aborted) return
    this.controller.enqueue(ENCODER.encode(text))
    this.lastSentMs = performance.now()
    if ((this.controller.desiredSize ?? 0) <= 0) this.fullSinceMs = this.lastSentMs
  }
}
