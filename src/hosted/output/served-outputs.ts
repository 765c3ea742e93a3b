import type { RunIdentity } from '../../base/ids.ts'
import type { Loops } from '../../base/loops.ts'
import { BoundedEventStream } from '../../http/event-stream.ts'
import type { Connections } from '../../live/connections.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import { COPY_START, type CopyPosition, HEARTBEAT, nextChange } from './output-copy.ts'
import type { OutputLog } from './output-log.ts'

export interface ServedOutputsDeps {
  readonly scheduler: Pick<Scheduler, 'outputOf' | 'change'>
  /** Responses count as feeds do: without a free file descriptor the process could accept no call. */
  readonly connections: Pick<Connections, 'reserveForPeer'>
  /** How long a process may read nothing before it is cut off. */
  readonly slowConsumerMs: number
  readonly loops: Pick<Loops, 'repeat'>
}

const TICK_MS = 1_000
/** Well below the time after which the other side gives up (`followed-outputs.ts`). */
const HEARTBEAT_MS = 2_000

/**
 * The outputs of runs that this process executes, for other processes whose clients follow them. Each has one response
 * per run, with the bounds of an event stream.
 */
export class ServedOutputs {
  private readonly served = new Set<ServedOutput>()
  private readonly endTicking: () => Promise<void>
  private isStopped = false

  constructor(private readonly deps: ServedOutputsDeps) {
    this.endTicking = deps.loops.repeat('outputs for other processes', TICK_MS, async () => this.tick())
  }

  /** The output of a run until its executor stops; null when it is not executed here, or there is no room. */
  async open(run: RunIdentity, signal: AbortSignal): Promise<Response | null> {
    const { slowConsumerMs, connections } = this.deps
    const output = await this.outputOf(run, signal)
    if (output === undefined || this.isStopped || signal.aborted) return null
    const room = connections.reserveForPeer()
    if (room === null) return null
    const limits = { slowConsumerMs, heartbeatMs: HEARTBEAT_MS }
    const served: ServedOutput = new ServedOutput(output, limits, () => {
      room.release()
      this.served.delete(served)
    })
    this.served.add(served)
    served.start()
    const headers = { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store, no-transform' }
    return new Response(served.body, { headers })
  }

  /** Ends all responses: the process is stopping. */
  async stop(): Promise<void> {
    this.isStopped = true
    for (const each of [...this.served]) each.close()
    await this.endTicking()
  }

  /** The row of a run names its executor a moment before the executor starts. */
  private async outputOf(run: RunIdentity, signal: AbortSignal): Promise<OutputLog | undefined> {
    const { scheduler } = this.deps
    const output = scheduler.outputOf(run)
    if (output !== undefined) return output
    await scheduler.change(run, signal)
    return scheduler.outputOf(run)
  }

  private tick(): void {
    const now = performance.now()
    for (const each of [...this.served]) each.tick(now)
  }
}

class ServedOutput {
  private readonly stream: BoundedEventStream
  private stopListening = () => {}
  private position: CopyPosition = COPY_START

  constructor(
    private readonly output: OutputLog,
    limits: { readonly slowConsumerMs: number; readonly heartbeatMs: number },
    private readonly onEnd: () => void,
  ) {
    const owner = { drained: () => this.flush(), ended: () => this.release(), heartbeat: () => HEARTBEAT }
    this.stream = new BoundedEventStream(owner, limits)
  }

  start(): void {
    this.stopListening = this.output.listen(() => this.flush())
    // Sends the headers.
    this.stream.write(HEARTBEAT)
    this.flush()
  }

  get body(): ReadableStream<Uint8Array> {
    return this.stream.body
  }

  tick(now: number): void {
    this.stream.tick(now)
  }

  close(): void {
    this.stream.close()
  }

  private flush(): void {
    while (!this.stream.isEnded && !this.stream.isFull) {
      const change = nextChange(this.output, this.position)
      if (change !== null) {
        this.position = change.position
        this.stream.write(change.line)
      } else if (this.output.isClosed) this.stream.close()
      else return
    }
  }

  private release(): void {
    this.stopListening()
    this.onEnd()
  }
}
