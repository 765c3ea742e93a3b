import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { RawJson } from '../../base/raw-json.ts'
import type { SystemEventRow } from '../../journal/rows.ts'
import { type Model, type ModelAnswer, ModelFailure } from '../../model/model.ts'
import type { SchemaChecks } from '../../model/output-schema.ts'
import { isUnavailable } from '../../postgres/connect.ts'
import type { TerminalStatus } from '../../runs/state.ts'
import { OutputLog } from '../output/output-log.ts'
import { isDone } from '../state.ts'
import { endRun } from '../store/end.ts'
import { loadProgress } from '../store/load.ts'
import { pauseRun } from '../store/pausing.ts'
import { OwnershipLost, storeAnswer } from '../store/progress.ts'
import type { Call, Pause, RunOutcome, RunProgress, Step } from '../store/rows.ts'
import { systemEvent } from '../store/system-event.ts'
import { McpUnavailable } from '../tools/mcp-unavailable.ts'
import { openToolbox, type Toolbox, type ToolboxDeps } from '../tools/toolbox.ts'
import { type BudgetDeps, type Cost, RunBudget } from './budget.ts'
import { CallMaker, type Children } from './call-maker.ts'
import { conversationOf } from './conversation.ts'
import { endedEvent, finishedEvent, modelEvent, requestedEvent, startedEvent } from './step-events.ts'
import { attemptName, callsOf, storable, storableAnswer } from './tool-calls.ts'

export interface ExecutorDeps extends BudgetDeps {
  readonly clock: Clock
  readonly log: Log
  readonly model: Model
  readonly schemas: SchemaChecks
  readonly tools: ToolboxDeps
  readonly children: Children
  /** How long a pause lasts before it expires; null: forever. */
  readonly pauseMs: number | null
  readonly outputBytesMax: number
  /** Called after each commit that has written to the outbox. */
  readonly onChange: () => void
}

/** How often a model is told that its output does not match the schema. */
const REPAIRS_MAX = 2
const STORE_RETRY_MS = 200

const RELEASED: RunOutcome = { kind: 'released', status: 'running' }

/** Why an executor stops before its run has ended: the run continues elsewhere, or was ended by someone else. */
export class Stopped extends Error {}

class TimedOut extends Error {}

/**
 * Executes a hosted run from its stored state until it ends or waits for a person: call the model, store the answer,
 * make the calls, store their results. What is stored is never repeated, so a process may die at any point and another
 * one continues.
 */
export class Executor {
  readonly output: OutputLog
  private readonly abort = new AbortController()
  private isStopped = false
  private readonly startedMs = performance.now()
  private readonly baseUsedMs: number
  private costUsd: number
  private readonly budget: RunBudget
  private toolbox: Promise<Toolbox> | undefined
  /** Calls that this executor has stored itself: no earlier process can have made them. */
  private readonly fresh = new Set<string>()

  constructor(
    private readonly deps: ExecutorDeps,
    private progress: RunProgress,
  ) {
    this.output = OutputLog.of(progress)
    for (const pause of progress.pauses) this.output.skipFrameNumbers(pause.frame)
    this.baseUsedMs = progress.usedMs
    this.costUsd = progress.costUsd
    this.budget = new RunBudget(deps, progress.run, progress.spentUsd)
  }

  /** Whether it still executes its run: false once it is stopped, or has lost or ended the run. */
  get isActive(): boolean {
    return !this.abort.signal.aborted
  }

  /** Stops at once and abandons what is in flight. */
  stop(): void {
    this.isStopped = true
    this.abort.abort(new Stopped())
  }

  /** Executes the run. Never throws. */
  async run(): Promise<RunOutcome> {
    const timer = setTimeout(() => this.abort.abort(new TimedOut()), Math.max(1, this.timeoutMs - this.usedMs))
    let outcome: RunOutcome
    try {
      outcome = await this.loop()
    } catch (error) {
      outcome = await this.endAfter(error)
    } finally {
      clearTimeout(timer)
      // Ends the sessions with tool servers.
      this.abort.abort(new Stopped())
    }
    this.output.close(outcome, this.progress.run.sessionId)
    return outcome
  }

  private async loop(): Promise<RunOutcome> {
    for (;;) {
      this.abort.signal.throwIfAborted()
      const open = this.progress.calls.filter(({ status }) => !isDone(status))
      const outcome = open.length > 0 ? await this.makeCalls() : await this.askModel()
      if (outcome !== null) return outcome
    }
  }

  private async makeCalls(): Promise<RunOutcome | null> {
    const { deps, progress, output } = this
    const maker = new CallMaker(
      {
        ...deps,
        progress,
        output,
        toolbox: await this.tools(),
        signal: this.abort.signal,
        usedMs: () => this.usedMs,
        store: (write) => this.store(write),
      },
      this.fresh,
    )
    await maker.makeAll()
    if (progress.calls.every(({ status }) => isDone(status))) return null
    return this.pause()
  }

  /** Pauses the run: all other calls are done, and the remaining ones wait for people. */
  private async pause(): Promise<RunOutcome | null> {
    const { sql, owner, clock, onChange } = this.deps
    const { run } = this.progress
    const at = clock.now()
    const pending = await this.store(() =>
      pauseRun(sql, run, owner, {
        usedMs: this.usedMs,
        at,
        events: (waitsFor) => [systemEvent(run, at, 'run.paused', { pending: waitsFor })],
      }),
    )
    if (pending === null) throw new OwnershipLost()
    if (pending !== 'decided') {
      onChange()
      return { kind: 'paused', pending }
    }
    const progress = await this.store(() => loadProgress(sql, run))
    if (progress === null) throw new OwnershipLost()
    this.progress = progress
    return null
  }

  private async askModel(): Promise<RunOutcome | null> {
    const { model } = this.deps
    const { run, steps } = this.progress
    const { agent, isStreamed } = run.plan
    const step = steps.length + 1
    if (step > agent.maxSteps)
      return this.fail('max_steps', `the run has used its ${agent.maxSteps} steps (max_steps) and is not finished`)
    const overrun = await this.store(() => this.budget.admit(this.progress, this.abort.signal))
    if (overrun !== null) return this.fail('budget_exceeded', overrun.message, null, overrun.detail)
    let attempt = attemptName()
    this.output.beginText(step, attempt)
    const toolbox = await this.tools()
    const startedMs = performance.now()
    const watch = {
      onText: (delta: string) => this.output.addText(delta),
      onRestart: () => {
        attempt = attemptName()
        this.output.beginText(step, attempt)
      },
    }
    const answer = storableAnswer(
      await model.ask(
        {
          model: agent.model,
          messages: conversationOf(this.progress),
          tools: [...toolbox.values()].map(({ tool }) => tool),
          temperature: agent.temperature,
          maxOutputTokens: agent.maxOutputTokens,
          outputSchema: agent.outputSchema,
          ...(isStreamed && watch),
        },
        this.abort.signal,
      ),
    )
    if (!isStreamed && answer.content !== null) this.output.addText(answer.content)
    return this.takeAnswer(answer, { step, attempt, latencyMs: performance.now() - startedMs, toolbox })
  }

  /** Stores an answer, as the end of the run or with the calls that it requests. */
  private async takeAnswer(
    answer: ModelAnswer,
    asked: { readonly step: number; readonly attempt: string; readonly latencyMs: number; readonly toolbox: Toolbox },
  ): Promise<RunOutcome | null> {
    const { clock, pauseMs, schemas, onChange } = this.deps
    const { progress, output } = this
    const { run } = progress
    const at = clock.now()
    const cost = this.budget.costOf(answer)
    const step: Step = {
      step: asked.step,
      attempt: asked.attempt,
      content: answer.content,
      toolCalls: answer.toolCalls,
      remark: null,
      ...answer.usage,
    }
    const callEvent = modelEvent(run, at, answer, { ...asked, costUsd: cost.costUsd })
    const overrun = this.budget.overrunAfter(cost)
    if (overrun !== null)
      return this.fail('budget_exceeded', overrun.message, { step, cost, callEvent }, overrun.detail)
    if (answer.refusal !== null && answer.toolCalls.length === 0)
      return this.fail('refused', `the model refused: ${answer.refusal}`, { step, cost, callEvent })
    if (answer.toolCalls.length === 0) {
      const end = await this.finalAnswer(step, cost, callEvent)
      if (typeof end !== 'string') return end
      await this.storeStep({ ...step, remark: end }, [], [], cost, [callEvent])
      return null
    }
    const expiresAt = pauseMs === null ? null : new Date(at + pauseMs)
    const { toolbox } = asked
    const { calls, pauses } = callsOf(answer, { step: step.step, toolbox, schemas, log: output, expiresAt })
    const events = [callEvent, ...pauses.map((pause) => requestedEvent(run, at, pause))]
    for (const call of calls) {
      if (call.status === 'started') events.push(startedEvent(run, at, call))
      if (call.status === 'failed') events.push(finishedEvent(run, at, call, 0))
    }
    await this.storeStep(step, calls, pauses, cost, events)
    for (const call of calls) {
      if (call.status === 'started') output.addCall(call, 'started')
      if (call.status === 'failed') output.addCall(call, 'ended')
    }
    onChange()
    return null
  }

  private async storeStep(
    step: Step,
    calls: readonly Call[],
    pauses: readonly Pause[],
    { costUsd, countedUsd }: Cost,
    events: readonly SystemEventRow[],
  ): Promise<void> {
    const { sql, owner, clock } = this.deps
    const { progress } = this
    const answer = { step, calls, pauses, costUsd, spentUsd: countedUsd, usedMs: this.usedMs, at: clock.now(), events }
    await this.store(() => storeAnswer(sql, progress.run, owner, answer))
    progress.steps.push(step)
    progress.calls.push(...calls)
    for (const { callId } of calls) this.fresh.add(callId)
    progress.pauses.push(...pauses)
    this.costUsd += costUsd
    this.budget.settled(countedUsd)
  }

  /** Ends the run with this answer. @returns what is wrong with it, for the model to correct, instead of the outcome */
  private async finalAnswer(step: Step, cost: Cost, callEvent: SystemEventRow): Promise<RunOutcome | string> {
    const { schemas, outputBytesMax } = this.deps
    const { run, steps } = this.progress
    const { outputSchema } = run.plan.agent
    const text = step.content ?? ''
    const last = { step, cost, callEvent }
    if (Buffer.byteLength(text) > outputBytesMax)
      return this.fail('output_too_large', `the answer of the model has more than ${outputBytesMax} bytes`, last)
    if (outputSchema === null) return this.end('completed', { output: RawJson.of({ text }), remember: text, last })
    const checked = schemas.checkOutput(outputSchema, text)
    if (!('problem' in checked)) {
      const output = RawJson.of(checked.value)
      return this.end('completed', { output, remember: output.text, last })
    }
    const { problem } = checked
    const repairs = steps.filter(({ remark }) => remark !== null).length
    if (repairs < REPAIRS_MAX && schemas.schemaProblem(outputSchema) === undefined)
      return `This does not match the JSON Schema of the output: ${problem}. Answer with the corrected JSON only.`
    return this.fail('output_invalid', `the output of the model does not match output_schema: ${problem}`, last)
  }

  private async endAfter(error: unknown): Promise<RunOutcome> {
    const reason = this.abort.signal.aborted ? this.abort.signal.reason : error
    try {
      if (reason instanceof TimedOut) {
        const message = `the run has taken longer than ${this.timeoutMs / 1000} s (timeout_seconds)`
        return await this.end('timed_out', { reason: 'timeout', message })
      }
      if (reason instanceof Stopped || reason instanceof OwnershipLost) return RELEASED
      if (reason instanceof ModelFailure) {
        const { status, code, message } = reason
        return await this.fail('model_failed', message, null, { provider: { status, code } })
      }
      if (reason instanceof McpUnavailable) return await this.fail('tool_unavailable', reason.message)
      this.deps.log.error('a hosted run failed with an internal error', {
        runId: this.progress.run.runId,
        error: reason,
      })
      return await this.fail('internal', 'the run failed because of an internal error; see the log of the service')
    } catch (cause) {
      if (!(cause instanceof OwnershipLost || cause instanceof Stopped))
        this.deps.log.error('the end of a hosted run could not be stored', { cause })
      return RELEASED
    }
  }

  private fail(
    reason: string,
    message: string,
    last: LastStep | null = null,
    detail: Record<string, unknown> = {},
  ): Promise<RunOutcome> {
    return this.end('failed', { reason, message, last, detail })
  }

  private async end(status: TerminalStatus, what: EndDetails): Promise<RunOutcome> {
    const { sql, owner, clock, onChange, children } = this.deps
    const { run, steps, calls } = this.progress
    const { reason, output = null, remember, last = null, detail = {} } = what
    const message = what.message === undefined ? null : storable(what.message)
    const at = clock.now()
    const errorDetail = reason === undefined ? null : RawJson.of({ reason, ...detail })
    const { costUsd, countedUsd } = last?.cost ?? { costUsd: 0, countedUsd: 0 }
    const hasActiveChildren = calls.some(({ childRunId, status: made }) => childRunId !== null && made === 'started')
    const totals = {
      steps: steps.length + (last === null ? 0 : 1),
      toolCalls: calls.length,
      costUsd: this.costUsd + costUsd,
    }
    const event = endedEvent(run, at, status, { ...totals, message, errorDetail })
    const ended = await this.store(() =>
      endRun(sql, run, owner, {
        status,
        output,
        errorMessage: message,
        errorDetail,
        step: last?.step ?? null,
        costUsd,
        spentUsd: countedUsd,
        usedMs: this.usedMs,
        remember: remember === undefined ? null : { user: run.plan.user, assistant: remember },
        at,
        events: last === null ? [event] : [last.callEvent, event],
        descendantsReason: hasActiveChildren ? 'its parent has ended' : null,
      }),
    )
    if (ended === null) throw new OwnershipLost()
    onChange()
    this.budget.settled(countedUsd)
    const { descendants, ...usage } = ended
    children.stop(descendants)
    return { kind: 'ended', status, output, errorMessage: message, errorDetail, ...usage }
  }

  private tools(): Promise<Toolbox> {
    this.toolbox ??= this.store(() => openToolbox(this.progress.run, this.deps.tools, this.abort.signal))
    return this.toolbox
  }

  /** Retries until the run's deadline: a short database outage must not lose an answer of the model. */
  private async store<T>(write: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await write()
      } catch (error) {
        // Calls in flight belong to the new owner, too.
        if (error instanceof OwnershipLost) this.abort.abort(error)
        if (!isUnavailable(error) || this.isStopped) throw error
        await Bun.sleep(STORE_RETRY_MS)
      }
    }
  }

  private get timeoutMs(): number {
    return this.progress.run.plan.agent.timeoutSeconds * 1000
  }

  private get usedMs(): number {
    return Math.round(this.baseUsedMs + performance.now() - this.startedMs)
  }
}

interface LastStep {
  readonly step: Step
  readonly cost: Cost
  readonly callEvent: SystemEventRow
}

interface EndDetails {
  readonly output?: RawJson
  readonly remember?: string
  readonly reason?: string
  readonly message?: string
  readonly detail?: Record<string, unknown>
  readonly last?: LastStep | null
}
