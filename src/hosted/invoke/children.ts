import { ApiError } from '../../base/errors.ts'
import type { RawJson } from '../../base/raw-json.ts'
import { budgetsOver } from '../executor/budget.ts'
import type { Children } from '../executor/call-maker.ts'
import { storable } from '../executor/tool-calls.ts'
import { beginRun, type NewHostedRun } from '../store/begin.ts'
import { loadStarted } from '../store/load.ts'
import type { Call, HostedRun } from '../store/rows.ts'
import { systemEvent } from '../store/system-event.ts'
import { checkTools, findAgent } from './agent.ts'
import type { InvocationsDeps } from './invocations.ts'
import { type HostedAgentRow, plannedAgent, type RunPlan, userMessage } from './plan.ts'
import { fillPrompt } from './prompt.ts'

/** Ancestors that a run may have: stops agents that call each other in a cycle. */
const DEPTH_MAX = 8

const NO_AGENT = 'the agent does not exist'

/** Starts the runs that carry out calls of other runs. */
export class ChildRuns implements Pick<Children, 'begin'> {
  constructor(private readonly deps: Omit<InvocationsDeps, 'hasModel' | 'queuedMax'>) {}

  async begin(parent: HostedRun, call: Call, agentId: string): Promise<{ readonly problem: string } | null> {
    const { sql, owner, clock, limits, onChange } = this.deps
    const runId = call.childRunId!
    const { workspaceId } = parent
    if (this.deps.scheduler().outputOf({ workspaceId, runId }) !== undefined) return null
    const [existing] = await sql`
      select from hosted_runs where workspace_id = ${workspaceId} and run_id = ${runId}`
    if (existing !== undefined) return null
    const agent = await findAgent(sql, workspaceId, agentId)
    const problem = await this.problemOf(agent, parent)
    if (agent === null || problem !== null) return { problem: problem ?? NO_AGENT }
    const variables = stringsOf(call.input)
    let system: string
    try {
      system = fillPrompt(agent.prompt, { variables, path: 'arguments', lengthMax: limits.prompt_length })
    } catch (error) {
      return { problem: (error as Error).message }
    }
    const user = storable(userMessage(call.input))
    const plan: RunPlan = {
      agent: plannedAgent(agent),
      system,
      history: [],
      user,
      isStreamed: false,
      depth: parent.plan.depth + 1,
      budgetsAbove: budgetsOver(parent),
    }
    const at = clock.now()
    const run: NewHostedRun = {
      runId,
      workspaceId,
      agentId,
      rootRunId: parent.rootRunId,
      parentCallId: call.callId,
      sessionId: null,
      plan,
      agentVersion: agent.version,
      parentRunId: parent.runId,
      externalUserId: null,
      input: call.input,
      startsSession: false,
      owner,
      waitingMax: 0,
      at,
    }
    const result = await beginRun(sql, run, [systemEvent(run, at, 'run.started', { parent_run_id: parent.runId })])
    onChange()
    if (result === 'executing') void this.deps.scheduler().execute(await loadStarted(sql, run))
    return null
  }

  /** Why the agent cannot carry out a call, for the model. */
  private async problemOf(agent: HostedAgentRow | null, parent: HostedRun): Promise<string | null> {
    if (agent === null) return NO_AGENT
    if (agent.runtime_type !== 'hosted') return 'only hosted agents can be called; this one is external'
    if (agent.status !== 'active') return `the agent is ${agent.status}`
    if (parent.plan.depth + 1 > DEPTH_MAX) return `agents call each other more than ${DEPTH_MAX} levels deep`
    try {
      await checkTools(agent, parent.workspaceId, this.deps)
      return null
    } catch (error) {
      if (error instanceof ApiError && error.code === 'VALIDATION_ERROR') return error.message
      throw error
    }
  }
}

/** Arguments of a call that fill placeholders of the agent's prompt by name. */
function stringsOf(input: RawJson): Record<string, string> {
  const members = Object.entries(input.parse() as Record<string, unknown>)
  return Object.fromEntries(members.filter((member): member is [string, string] => typeof member[1] === 'string'))
}
