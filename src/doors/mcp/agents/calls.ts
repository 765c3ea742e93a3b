import { checkSize } from '../../../activity/runs/limits.ts'
import { invalid } from '../../../base/errors.ts'
import { hasMoreValues, JSON_VALUES_MAX } from '../../../base/http/json-scan.ts'
import { shown } from '../../../base/http/validation-message.ts'
import { mint } from '../../../base/ids.ts'
import type { Limits } from '../../../base/limits.ts'
import { RawJson } from '../../../base/raw-json.ts'
import type { Hosted } from '../../../hosted/hosted.ts'
import { stringsOf } from '../../../hosted/invoke/children.ts'
import type { InvokeAgent } from '../../../hosted/invoke/schema.ts'
import type { CallContext } from '../provider.ts'
import type { AgentTool } from './catalog.ts'
import { unfinishedResult } from './results.ts'
import { type AgentTasks, takesTasks } from './tasks.ts'

interface CallsDeps {
  readonly hosted: Pick<Hosted, 'invocations' | 'responder'>
  readonly tasks: AgentTasks
  readonly limits: Limits
  /** How long a call may be open; then the run goes on without it. */
  readonly waitMs: number
}

type Started = Parameters<Hosted['responder']['within']>[0]

/** A run that ends within this time is answered at once. */
const QUICK_MS = 2_000
/** How often a client is told that its call is alive. */
const PROGRESS_MS = 5_000

/** Calls of agents: each starts a run, and is answered at its end or with a task (docs/mcp.md#hosted-agents-as-tools). */
export class AgentCalls {
  constructor(private readonly deps: CallsDeps) {}

  /** @throws ApiError as `Invocations.invoke` and `Pauses.decide`; RpcError */
  async call(tool: AgentTool, context: CallContext, input: RawJson): Promise<object> {
    const { tasks, hosted } = this.deps
    const { signal } = context
    const resumed = await this.resumed(tool, context)
    if (resumed?.isDecided === false)
      return unfinishedResult(resumed.runId, 'The run waits for a decision, which the client did not give.')
    const run = resumed ?? (await this.start(tool, context, input))
    const first = await hosted.responder.within(run, { ms: QUICK_MS, signal })
    if (first?.kind === 'ended') return tasks.result(context, run.runId)
    if (takesTasks(context)) return tasks.created(context, run.runId)
    return this.untilEnd(run, context)
  }

  private async start(tool: AgentTool, { caller }: CallContext, input: RawJson): Promise<Started> {
    const { hosted, limits } = this.deps
    checkSize('arguments', input, limits.run_input_bytes)
    return hosted.invocations.invoke(caller, tool.agentId, bodyOf(tool, input), mint)
  }

  /** The run that an earlier answer has asked the client about, if this request brings the responses. */
  private async resumed({ agentId }: AgentTool, context: CallContext) {
    const { inputResponses, caller } = context
    if (inputResponses === undefined || Object.keys(inputResponses).length === 0) return undefined
    const pauses = await this.deps.tasks.pausesOf(context, inputResponses)
    const [first] = pauses
    if (
      first === undefined ||
      pauses.some(({ rootRunId }) => rootRunId !== first.rootRunId) ||
      first.rootAgentId !== agentId
    )
      throw invalid('inputResponses', 'expected responses to requests of one earlier call of this tool')
    const isDecided = await this.deps.tasks.decide(context, inputResponses, pauses)
    return { workspaceId: caller.workspaceId, runId: first.rootRunId, sessionId: null, outcome: null, isDecided }
  }

  /** Waits for the end of the run; meanwhile tells the client that it goes on, or asks it for a decision. */
  private async untilEnd(started: Started, context: CallContext): Promise<object> {
    const { tasks, hosted, waitMs } = this.deps
    const { signal } = context
    const run = { ...started, outcome: null }
    const endsMs = performance.now() + waitMs
    for (let progress = 1; ; progress++) {
      const { result, isPaused, message, inputRequests } = await tasks.state(context, run.runId)
      if (result !== null) return result
      if (inputRequests !== null) return { resultType: 'input_required', inputRequests }
      const left = endsMs - performance.now()
      if (left <= 0 || signal.aborted || hosted.responder.isStopping)
        return unfinishedResult(run.runId, 'The call was open for as long as it may be.')
      await context.progress({ progress, message })
      // A pause that this client cannot decide is decided elsewhere.
      await hosted.responder.within(run, {
        ms: Math.min(PROGRESS_MS, left),
        signal,
        until: isPaused ? 'ended' : 'settled',
      })
    }
  }
}

/**
 * The invocation that a call asks for. Arguments that are strings also fill placeholders of the prompt.
 * @throws ApiError VALIDATION_ERROR
 */
function bodyOf({ hasInputSchema, placeholders }: AgentTool, input: RawJson): InvokeAgent {
  if (hasMoreValues(input.text, JSON_VALUES_MAX))
    throw invalid('arguments', `expected at most ${JSON_VALUES_MAX} values`)
  const prompt_variables = stringsOf(input)
  if (hasInputSchema) return { input, prompt_variables }
  const given = input.parse() as Record<string, unknown>
  for (const [name, value] of Object.entries(given)) {
    if (name !== 'input' && placeholders?.includes(name) === false)
      throw invalid(`arguments.${shown(name)}`, 'unknown argument')
    if (typeof value !== 'string') throw invalid(`arguments.${shown(name)}`, `expected a string; got ${shown(value)}`)
  }
  const message = prompt_variables.input
  if (message === undefined) throw invalid('arguments.input', 'required: the request to the agent')
  return { input: RawJson.of({ message }), prompt_variables }
}
