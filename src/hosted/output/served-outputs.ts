import { Elysia, NotFoundError } from 'elysia'
import { BoundedEventStream } from '../../base/http/event-stream.ts'
import type { RunIdentity } from '../../base/ids.ts'
import type { Forwarder } from '../../tenants/keys/forward.ts'
import type { HostedContext } from '../run/context.ts'
import { COPY_ROUTE, COPY_START, HEARTBEAT, nextChange } from './output-copy.ts'
import type { LiveOutputs, OutputLog } from './output-log.ts'

const TICK_MS = 1_000
/** Well below the time after which the other side gives up (`followed-outputs.ts`). */
const HEARTBEAT_MS = 2_000

/**
 * The outputs of runs that this process executes, for other processes whose clients follow them. Each has one response
 * per run, with the bounds of an event stream.
 */
export class ServedOutputs {
  private readonly served = new Set<BoundedEventStream>()
  private readonly endTicking: () => Promise<void>
  private isStopped = false

  constructor(
    private readonly context: Pick<HostedContext, 'connections' | 'slowConsumerMs' | 'loops'>,
    private readonly scheduler: LiveOutputs,
  ) {
    this.endTicking = context.loops.repeat('outputs for other processes', TICK_MS, async () => {
      const now = performance.now()
      for (const stream of [...this.served]) stream.tick(now)
    })
  }

  /** The output of a run until its executor stops; null when it is not executed here, or there is no room. */
  async open(run: RunIdentity, signal: AbortSignal): Promise<Response | null> {
    const output = await this.outputOf(run, signal)
    if (output === undefined || this.isStopped || signal.aborted) return null
    // Responses count as feeds do: without a free file descriptor the process could accept no call.
    const room = this.context.connections.reserveForPeer()
    if (room === null) return null
    const stream = this.serve(output, () => room.release())
    const headers = { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store, no-transform' }
    return new Response(stream.body, { headers })
  }

  /** Ends all responses: the process is stopping. */
  async stop(): Promise<void> {
    this.isStopped = true
    for (const stream of [...this.served]) stream.close()
    await this.endTicking()
  }

  /** The row of a run names its executor a moment before the executor starts. */
  private async outputOf(run: RunIdentity, signal: AbortSignal): Promise<OutputLog | undefined> {
    const output = this.scheduler.outputOf(run)
    if (output !== undefined) return output
    await this.scheduler.change(run, signal)
    return this.scheduler.outputOf(run)
  }

  private serve(output: OutputLog, onEnd: () => void): BoundedEventStream {
    let position = COPY_START
    const flush = () => {
      while (!stream.isEnded && !stream.isFull) {
        const change = nextChange(output, position)
        if (change !== null) {
          position = change.position
          stream.write(change.line)
        } else if (output.isClosed) stream.close()
        else return
      }
    }
    const ended = () => {
      stopListening()
      this.served.delete(stream)
      onEnd()
    }
    const { slowConsumerMs } = this.context
    const owner = { drained: flush, ended, heartbeat: () => HEARTBEAT }
    const stream = new BoundedEventStream(owner, { slowConsumerMs, heartbeatMs: HEARTBEAT_MS })
    const stopListening = output.listen(flush)
    this.served.add(stream)
    // Sends the headers.
    stream.write(HEARTBEAT)
    flush()
    return stream
  }
}

interface OutputRoutesDeps {
  readonly forwarder: Pick<Forwarder, 'receive'>
  /** Undefined in a process that works alone. */
  readonly servedOutputs: Pick<ServedOutputs, 'open'> | undefined
}

/** Serves the outputs of runs to other processes. Other callers get NOT_FOUND. */
export function outputRoutes({ forwarder, servedOutputs }: OutputRoutesDeps) {
  return new Elysia({ detail: { hide: true } }).get(COPY_ROUTE, async ({ request, params: { runId } }) => {
    const call = forwarder.receive(request)
    if (call === null || servedOutputs === undefined) throw new NotFoundError()
    const { workspaceId } = call.caller
    const response = await servedOutputs.open({ workspaceId, runId }, request.signal)
    if (response === null) throw new NotFoundError()
    return response
  })
}
