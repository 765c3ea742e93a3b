import { BoundedEventStream } from '../../base/http/event-stream.ts'
import type { RunIdentity } from '../../base/ids.ts'
import type { CloseReason, Connection } from '../../feeds/live/connections.ts'
import type { FeedCaller } from '../../tenants/keys/schema.ts'
import type { HostedContext } from '../run/context.ts'
import type { RunOutcome } from '../run/run.ts'
import { loadProgress, readOutcome } from '../store/load.ts'
import type { FollowedOutputs } from './followed-outputs.ts'
import { framesAfter, type LiveOutputs, OUTPUT_START, OutputLog, type OutputPosition } from './output-log.ts'

/** Where the output of a run that is being executed can be read. */
export interface OutputSources {
  readonly scheduler: LiveOutputs
  /** Runs that other processes execute; undefined in a process that works alone. */
  readonly followed: FollowedOutputs | undefined
}

interface OutputStreamOptions {
  readonly caller: FeedCaller
  readonly run: RunIdentity
  readonly sessionId: string | null
  /** The position that the client has already seen. */
  readonly after?: OutputPosition | undefined
}

/**
 * The output of a hosted run as an event stream (docs/hosted-agents.md#output-streams): first the stored output after a
 * position, then new output, until the run ends or waits for a person. A client that leaves does not affect the run. A
 * slow client gets everything that has accumulated in one write.
 */
export class OutputStream extends BoundedEventStream implements Connection {
  readonly caller: FeedCaller
  private position: OutputPosition
  private log: OutputLog | undefined
  private stopListening = () => {}
  private readonly gone = new AbortController()

  constructor(
    private readonly context: Pick<HostedContext, 'sql' | 'connections' | 'slowConsumerMs' | 'heartbeatMs'>,
    private readonly sources: OutputSources,
    private readonly options: OutputStreamOptions,
  ) {
    const owner = { drained: () => this.flush(), ended: () => this.ended(), heartbeat: () => ': heartbeat\n\n' }
    super(owner, context)
    this.caller = options.caller
    this.position = options.after ?? OUTPUT_START
    // Sends the headers.
    this.write(': connected\n\n')
    context.connections.add(this)
    void this.follow()
  }

  end(reason: CloseReason): void {
    if (reason === 'slow_consumer') this.cut()
    else this.close()
  }

  /** Sends all new output, unless the queue is full: then it is called again once there is room. */
  private flush(): void {
    if (this.log === undefined || this.isEnded || this.isFull) return
    const { text, position, isOver } = framesAfter(this.log, this.position)
    this.position = position
    if (text !== '') this.write(text)
    if (isOver) this.close()
    else if (this.log.isClosed) this.leave()
  }

  /** Finds the run: executed here or in another process, ended or paused, or waiting for an executor. */
  private async follow(): Promise<void> {
    const { sql } = this.context
    const { scheduler, followed } = this.sources
    const { run } = this.options
    const { signal } = this.gone
    try {
      while (!signal.aborted && this.log === undefined) {
        const output = scheduler.outputOf(run) ?? followed?.outputOf(run)
        if (output !== undefined) return this.take(output)
        const change = scheduler.change(run, signal)
        const outcome = await readOutcome(sql, run)
        if (outcome === null) return this.cut(new Error('the run was deleted'))
        const log = await this.stored(outcome)
        if (signal.aborted) return
        if (log !== undefined) return this.take(log)
        // Notifies of a change once the output is available.
        if (outcome.kind === 'released' && outcome.executor) followed?.follow(run, outcome.executor, this.caller.caller)
        await change
      }
    } catch (error) {
      this.cut(error)
    }
  }

  /** The output of a run that is not being executed. */
  private async stored(outcome: RunOutcome): Promise<OutputLog | undefined> {
    const { sql } = this.context
    const { run, sessionId } = this.options
    if (outcome.kind === 'released') return undefined
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

  /** The executor has stopped: the run continues elsewhere. */
  private leave(): void {
    this.stopListening()
    this.log = undefined
    void this.follow()
  }

  private ended(): void {
    this.gone.abort()
    this.stopListening()
    this.context.connections.remove(this)
  }
}
