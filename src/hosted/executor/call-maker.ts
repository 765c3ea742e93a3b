import { RawJson } from '../../base/raw-json.ts'
import type { HostedContext } from '../run/context.ts'
import type { Call, Children } from '../run/run.ts'
import type { CallStatus } from '../run/state.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import type { Toolbox, ToolboxEntry } from '../tools/toolbox.ts'
import type { RunWriter } from './run-writer.ts'
import { failure } from './tool-calls.ts'

/** How many calls of one step are made concurrently. */
const CONCURRENT_CALLS_MAX = 16
/** The statuses of calls that can be made, or finished with what a person decided. */
const CAN_CONTINUE: readonly CallStatus[] = ['rejected', 'answered', 'ready', 'started']

const UNKNOWN_OUTCOME =
  'the service was interrupted during this call; it is unknown whether the call took effect, and it was not repeated'

/** Makes the calls of a step that wait for no person. Each is made at most once, unless its tool is repeatable. */
export class CallMaker {
  constructor(
    private readonly context: Pick<HostedContext, 'schemas'> & { readonly children: Children },
    private readonly writer: RunWriter,
    private readonly toolbox: Toolbox,
    private readonly signal: AbortSignal,
  ) {}

  /** Resolves once each call is done, held for a person, or carried out by a paused run. */
  async makeAll(): Promise<void> {
    const { calls } = this.writer.progress
    const remaining = calls.filter(({ status }) => CAN_CONTINUE.includes(status)).values()
    const work = async () => {
      for (const call of remaining) await this.settle(call)
    }
    const results = await Promise.allSettled(Array.from({ length: Math.min(CONCURRENT_CALLS_MAX, calls.length) }, work))
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  private async settle(call: Call): Promise<void> {
    const { writer } = this
    this.signal.throwIfAborted()
    if (call.status === 'rejected') return writer.finishCall(call, 'failed', call.output!)
    if (call.status === 'answered') return writer.finishCall(call, 'finished', call.output!)
    const entry = this.toolbox.get(call.tool)
    if (entry === undefined || entry.kind === 'input')
      return writer.finishCall(call, 'failed', failure(`the tool ${call.tool} no longer exists`))
    const isInterrupted = call.status === 'started' && !writer.fresh.has(call.callId)
    if (isInterrupted && entry.kind === 'call' && !entry.tool.isRepeatable)
      return writer.finishCall(call, 'failed', failure(UNKNOWN_OUTCOME))
    const started = call.status === 'ready' ? await writer.startCall(call) : call
    return entry.kind === 'agent' ? this.askAgent(started, entry) : this.callTool(started, entry)
  }

  private async callTool(call: Call, { tool }: ToolboxEntry & { kind: 'call' }): Promise<void> {
    const { signal, writer } = this
    const startedMs = performance.now()
    // A person may have edited the arguments.
    const checked = this.context.schemas.checkArguments(tool.parameters, call.input.text)
    const outcome: ToolOutcome =
      'problem' in checked
        ? { ok: false, error: checked.problem }
        : await writer.store(() => tool.call(checked.value, { idempotencyKey: call.callId, signal }))
    const tookMs = performance.now() - startedMs
    if (outcome.ok) return writer.finishCall(call, 'finished', RawJson.of(outcome.output ?? null), tookMs)
    return writer.finishCall(call, 'failed', failure(outcome.error), tookMs)
  }

  private async askAgent(call: Call, entry: ToolboxEntry & { kind: 'agent' }): Promise<void> {
    const { signal, writer } = this
    const { children } = this.context
    const { run } = writer.progress
    const startedMs = performance.now()
    const refused = await writer.store(() => children.begin(run, call, entry.agentId))
    if (refused !== null) return writer.finishCall(call, 'failed', failure(refused.problem))
    const outcome = await writer.store(() => children.settled({ ...run, runId: call.childRunId! }, signal))
    if (outcome.kind === 'paused') return
    const tookMs = performance.now() - startedMs
    if (outcome.kind === 'released') throw new Error(`run ${call.childRunId} was released by its executor`)
    if (outcome.status === 'completed') return writer.finishCall(call, 'finished', outcome.output!, tookMs)
    const why = outcome.errorMessage ?? outcome.status
    return writer.finishCall(call, 'failed', failure(`the agent's run ended as ${outcome.status}: ${why}`), tookMs)
  }
}
