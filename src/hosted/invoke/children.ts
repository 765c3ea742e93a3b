import { ApiError, invalid } from '../../base/errors.ts'
import type { RawJson } from '../../base/raw-json.ts'
import type { HostedContext } from '../run/context.ts'
import { budgetsOver, type HostedAgentRow } from '../run/plan.ts'
import type { Call, Children, HostedRun } from '../run/run.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import { beginRun } from '../store/begin.ts'
import { systemEvent } from '../store/events.ts'
import { loadStarted } from '../store/load.ts'
import { checkInput, checkTools, findAgent, plannedRun } from './agent.ts'
import { fillPrompt } from './prompt.ts'

/** Ancestors that a run may have: stops agents that call each other in a cycle. */
const DEPTH_MAX = 8

/** Starts the run that carries out a call of another run, as {@link Children} says. */
export async function beginChild(
  context: HostedContext,
  scheduler: Scheduler,
  parent: HostedRun,
  call: Call,
  agentId: string,
): ReturnType<Children['begin']> {
  const { sql, owner, clock, limits, onChange } = context
  const runId = call.childRunId!
  const { workspaceId } = parent
  if (scheduler.outputOf({ workspaceId, runId }) !== undefined) return null
  const [existing] = await sql`
    select from hosted_runs where workspace_id = ${workspaceId} and run_id = ${runId}`
  if (existing !== undefined) return null
  let agent: HostedAgentRow
  let system: string
  try {
    agent = await callableAgent(context, parent, agentId)
    checkInput(agent, call.input, context.schemas)
    const variables = stringsOf(call.input)
    system = fillPrompt(agent.prompt, { variables, path: 'arguments', lengthMax: limits.prompt_length })
  } catch (error) {
    if (error instanceof ApiError && error.code === 'VALIDATION_ERROR') return { problem: error.message }
    throw error
  }
  const at = clock.now()
  const { plan, ...alone } = plannedRun(agent, { workspaceId, runId }, call.input, system)
  const run = {
    ...alone,
    rootRunId: parent.rootRunId,
    parentRunId: parent.runId,
    parentCallId: call.callId,
    plan: { ...plan, depth: parent.plan.depth + 1, budgetsAbove: budgetsOver(parent) },
    owner,
    isAgentKnown: false,
    waitingMax: 0,
    at,
  }
  const result = await beginRun(sql, run, [systemEvent(run, at, 'run.started', { parent_run_id: parent.runId })])
  if (result === 'erased') return { problem: 'the run of this call was deleted' }
  onChange()
  if (result === 'executing') void scheduler.execute(await loadStarted(sql, run))
  return null
}

/** @throws ApiError VALIDATION_ERROR with the reason why the agent cannot carry out a call, for the model */
async function callableAgent(context: HostedContext, parent: HostedRun, agentId: string): Promise<HostedAgentRow> {
  const agent = await findAgent(context.sql, parent.workspaceId, agentId)
  if (agent === null) throw invalid('', 'the agent does not exist')
  if (agent.runtime_type !== 'hosted') throw invalid('', 'only hosted agents can be called; this one is external')
  if (agent.status !== 'active') throw invalid('', `the agent is ${agent.status}`)
  if (parent.plan.depth + 1 > DEPTH_MAX) throw invalid('', `agents call each other more than ${DEPTH_MAX} levels deep`)
  await checkTools(agent, parent.workspaceId, context)
  return agent
}

/** Arguments of a call that fill placeholders of the agent's prompt by name. */
export function stringsOf(input: RawJson): Record<string, string> {
  const members = Object.entries(input.parse() as Record<string, unknown>)
  return Object.fromEntries(members.filter((member): member is [string, string] => typeof member[1] === 'string'))
}
