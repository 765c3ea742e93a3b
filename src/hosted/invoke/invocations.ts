import { runOfKeyErased } from '../../activity/runs/access.ts'
import { checkSize, checkText } from '../../activity/runs/limits.ts'
import { ApiError, invalid, notFound } from '../../base/errors.ts'
import type { Mint, RunIdentity } from '../../base/ids.ts'
import type { Limits } from '../../base/limits.ts'
import { EMPTY_OBJECT, RawJson } from '../../base/raw-json.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { HostedContext } from '../run/context.ts'
import type { HistoryMessage, HostedAgentRow } from '../run/plan.ts'
import type { RunOutcome, RunProgress } from '../run/run.ts'
import type { Scheduler } from '../scheduler/scheduler.ts'
import { type BeginResult, beginRun, type PlannedRun } from '../store/begin.ts'
import { endRun } from '../store/end.ts'
import { systemEvent } from '../store/events.ts'
import { phaseIs } from '../store/fragments.ts'
import { findRun, loadStarted } from '../store/load.ts'
import { checkInput, checkTools, plannedRun } from './agent.ts'
import { KnownAgents } from './known-agents.ts'
import { fillPrompt } from './prompt.ts'
import type { InvokeAgent } from './schema.ts'

/** An invoked run, and its outcome if this process executes it. */
export interface Invoked {
  readonly workspaceId: string
  readonly runId: string
  readonly sessionId: string | null
  /** An earlier attempt of the same request has invoked it. */
  readonly isRepeat: boolean
  readonly outcome: Promise<RunOutcome> | null
}

/** Invoking hosted agents (docs/hosted-agents.md#invoke): from a request to a run that is executed or queued. */
export class Invocations {
  private readonly agents: KnownAgents

  constructor(
    private readonly context: HostedContext,
    private readonly scheduler: Scheduler,
  ) {
    this.agents = new KnownAgents(context.sql)
  }

  /** @throws ApiError VALIDATION_ERROR, PAYLOAD_TOO_LARGE, NOT_FOUND, RATE_LIMITED, UNAVAILABLE */
  async invoke(caller: Caller, agentId: string, body: InvokeAgent, mint: Mint): Promise<Invoked> {
    const { limits } = this.context
    const { workspaceId } = caller
    const slice = this.context.slice.of(workspaceId)
    if (slice.isOver) await slice.yield()
    checkBody(body, limits)
    const runId = mint.uuid()
    const sessionId = body.session_id?.toLowerCase() ?? (body.start_session === true ? mint.uuid() : null)
    const ids = { workspaceId, runId, sessionId }
    const isBackground = body.background === true
    const known = this.agents.get(workspaceId, agentId)
    if (known !== undefined) {
      const run = await this.plan(known, ids, body).catch(ignoreApiError)
      const invoked = run && (await this.begin({ ...run, isAgentKnown: true }, isBackground))
      if (invoked !== null) return invoked
    }
    const agent = await this.agents.read(workspaceId, agentId)
    if (slice.isOver) await slice.yield()
    if (agent === null) throw notFound('agent')
    const run = await this.plan(agent, ids, body)
    return (await this.begin({ ...run, isAgentKnown: false }, isBackground))!
  }

  /** @throws ApiError VALIDATION_ERROR, UNAVAILABLE */
  private async plan(
    agent: HostedAgentRow,
    { workspaceId, runId, sessionId }: RunIdentity & { readonly sessionId: string | null },
    body: InvokeAgent,
  ): Promise<PlannedRun> {
    const { limits, config } = this.context
    checkAgent(agent, body)
    const variables = body.prompt_variables ?? {}
    const system = fillPrompt(agent.prompt, { variables, path: 'prompt_variables', lengthMax: limits.prompt_length })
    if (config.openAiApiKey === undefined && config.openAiBaseUrl === undefined)
      throw new ApiError(
        'UNAVAILABLE',
        'no model is configured: the operator must set OPENAI_API_KEY or OPENAI_BASE_URL',
        { reason: 'model_not_configured' },
      )
    const input = body.input ?? EMPTY_OBJECT
    checkInput(agent, input, this.context.schemas)
    await checkTools(agent, workspaceId, this.context)
    const { plan, ...run } = plannedRun(agent, { workspaceId, runId }, input, system)
    return {
      ...run,
      sessionId,
      startsSession: body.start_session === true,
      parentRunId: body.parent_run_id?.toLowerCase() ?? null,
      externalUserId: body.external_user_id ?? null,
      plan: { ...plan, history: (body.history ?? []) as HistoryMessage[], isStreamed: body.stream === true },
    }
  }

  /** @returns null if the agent has changed since it was read; never if `isAgentKnown` is false */
  private async begin(
    run: PlannedRun & { readonly isAgentKnown: boolean },
    isBackground: boolean,
  ): Promise<Invoked | null> {
    const { scheduler } = this
    const { sql, owner, clock, config, log, onChange } = this.context
    const waitingMax = config.queuedRuns
    const { workspaceId, runId, sessionId } = run
    const at = clock.now()
    const hasSlot = scheduler.takeSlot(workspaceId)
    let result: BeginResult
    let progress: RunProgress | null = null
    try {
      if (!hasSlot) await checkQueue(sql, workspaceId, waitingMax)
      const events = [systemEvent(run, at, 'run.started', {})]
      result = await beginRun(sql, { ...run, owner: hasSlot ? owner : null, waitingMax, at }, events)
      if (result === 'executing')
        progress = await loadStarted(sql, run).catch((error) => {
          // It is found unattended, and then executed.
          log.warn('a hosted run could not be read; retrying later', { workspaceId, runId, error })
          return null
        })
    } finally {
      if (hasSlot && progress === null) scheduler.releaseSlot(workspaceId)
    }
    if (result === 'erased') throw runOfKeyErased()
    if (result === 'changed') return null
    const invoked = { workspaceId, runId, sessionId, isRepeat: result === 'exists' }
    if (result === 'exists') return { ...invoked, outcome: null }
    onChange()
    if (progress === null) {
      if (result === 'queued') scheduler.queued(workspaceId)
      return { ...invoked, outcome: null }
    }
    const outcome = scheduler.execute(progress)
    return { ...invoked, outcome: isBackground ? null : outcome }
  }

  /**
   * Ends a hosted run and its descendants. Model and tool calls in flight are abandoned.
   * @returns false when it had already ended
   */
  async cancel(identity: RunIdentity, reason: string | null): Promise<boolean> {
    const { sql, clock, onChange } = this.context
    const run = await findRun(sql, identity)
    if (run === null) return false
    const at = clock.now()
    const ended = await endRun(sql, run, null, {
      status: 'cancelled',
      errorMessage: reason,
      at,
      events: [systemEvent(run, at, 'run.cancelled', { error_message: reason ?? undefined }, 'warn')],
      descendantsReason: 'its parent was cancelled',
      mayHavePauses: true,
    })
    if (ended === null) return false
    onChange()
    for (const each of [run, ...ended.descendants]) this.scheduler.stopRun(each)
    this.scheduler.dispatchSoon()
    return true
  }
}

/** A plan may fail because the agent has changed since it was read. It is then made again, from the current agent. */
function ignoreApiError(error: unknown): null {
  if (error instanceof ApiError) return null
  throw error
}

/** Checks how the members of the body may be combined. */
function checkBody(body: InvokeAgent, limits: Limits): void {
  const { session_id, start_session = false, history, external_user_id } = body
  if (session_id !== undefined && start_session)
    throw invalid('start_session', 'cannot be combined with session_id: a session is either started or continued')
  if (session_id !== undefined && history !== undefined)
    throw invalid('history', 'cannot be combined with session_id: the session has a history of its own')
  if (external_user_id !== undefined && session_id === undefined && !start_session)
    throw invalid('external_user_id', 'requires session_id or start_session')
  checkText('external_user_id', external_user_id, limits.external_id_length)
  checkSize('input', body.input, limits.run_input_bytes)
  checkSize('history', history === undefined ? undefined : RawJson.of(history), limits.run_input_bytes)
}

function checkAgent(agent: HostedAgentRow, body: InvokeAgent): void {
  if (agent.runtime_type !== 'hosted')
    throw new ApiError('VALIDATION_ERROR', "only hosted agents can be invoked; this agent's runtime_type is external", {
      reason: 'agent_not_hosted',
    })
  if (agent.status === 'paused')
    throw new ApiError('VALIDATION_ERROR', 'the agent is paused: set its status to active before it is invoked', {
      reason: 'agent_paused',
    })
  if (body.stream === true && agent.output_schema !== null)
    throw invalid('stream', 'cannot be combined with an agent that has an output_schema')
}

/** @throws ApiError RATE_LIMITED when too many runs of the workspace are queued */
async function checkQueue(sql: Sql, workspaceId: string, max: number): Promise<void> {
  const [{ count }] = await sql<[{ count: number }]>`
    select count(*) as count from (
      select from hosted_runs where workspace_id = ${workspaceId} and ${phaseIs(sql, 'queued')} limit ${max}
    ) as line`
  if (count >= max)
    throw new ApiError('RATE_LIMITED', `${max} runs of this workspace are already queued`, {
      reason: 'too_many_at_once',
      retryAfterSeconds: 5,
    })
}
