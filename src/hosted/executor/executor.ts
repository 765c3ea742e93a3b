import type { Slice } from '../../base/http/shared-slice.ts'
import { RawJson } from '../../base/raw-json.ts'
import { type ModelAnswer, ModelFailure } from '../../outbound/model/model.ts'
import { OutputLog } from '../output/output-log.ts'
import type { HostedContext } from '../run/context.ts'
import { type Children, RELEASED, type RunOutcome, type RunProgress } from '../run/run.ts'
import { isDone } from '../run/state.ts'
import { modelEvent } from '../store/events.ts'
import { OwnershipLost, type PricedAnswer } from '../store/progress.ts'
import { McpUnavailable } from '../tools/mcp-lists.ts'
import type { ToolContext } from '../tools/tool.ts'
import { openToolbox, type Toolbox } from '../tools/toolbox.ts'
import { CallMaker } from './call-maker.ts'
import { conversationOf } from './conversation.ts'
import { RunWriter } from './run-writer.ts'
import { attemptName, callsOf, storableAnswer } from './tool-calls.ts'

export interface ExecutorContext extends HostedContext, ToolContext {
  readonly children: Children
}

/** How often a model may correct output that does not match the schema. */
const REPAIRS_MAX = 2

/** The provider's `length`: `max_output_tokens`, its own limit, or the end of the context. */
const CUT = 'the model has reached its limit of tokens (max_output_tokens)'

/** Why an executor stops before its run has ended: the run continues in another process, or was ended by one. */
class Stopped extends Error {}

/** The run has used up its `timeout_seconds`. */
class TimedOut extends Error {}

/**
 * Executes a hosted run from its stored state until it ends or waits for a person: call the model, store the answer,
 * make the calls, store their results. What is stored is never repeated, so a process may die at any point and another
 * one continues.
 */
export class Executor {
  readonly output: OutputLog
  private readonly abort = new AbortController()
  private readonly writer: RunWriter
  private readonly slice: Slice
  private toolbox: Promise<Toolbox> | undefined

  constructor(
    private readonly context: ExecutorContext,
    progress: RunProgress,
  ) {
    this.slice = context.slice.of(progress.run.workspaceId)
    this.output = OutputLog.of(progress)
    for (const pause of progress.pauses) this.output.skipFrameNumbers(pause.frame)
    this.writer = new RunWriter(context, progress, this.output, this.abort)
  }

  /** Whether it still executes its run: false once it is stopped, or has lost or ended the run. */
  get isActive(): boolean {
    return !this.abort.signal.aborted
  }

  /** Stops at once and abandons what is in flight. */
  stop(): void {
    this.writer.stop()
    this.abort.abort(new Stopped())
  }

  /** Executes the run. Never throws. */
  async run(): Promise<RunOutcome> {
    const timer = setTimeout(() => this.abort.abort(new TimedOut()), Math.max(1, this.timeoutMs - this.writer.usedMs))
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
      const isBusy = this.progress.calls.some(({ status }) => !isDone(status))
      const outcome = isBusy ? await this.makeCalls() : await this.askModel()
      if (outcome !== null) return outcome
    }
  }

  private async makeCalls(): Promise<RunOutcome | null> {
    const { context, writer } = this
    await new CallMaker(context, writer, await this.tools(), this.abort.signal).makeAll()
    return this.progress.calls.every(({ status }) => isDone(status)) ? null : writer.pause()
  }

  private async askModel(): Promise<RunOutcome | null> {
    const { writer, output } = this
    const { run, steps } = this.progress
    const { agent, isStreamed } = run.plan
    const { signal } = this.abort
    const step = steps.length + 1
    if (step > agent.maxSteps)
      return writer.fail('max_steps', `the run has used its ${agent.maxSteps} steps (max_steps) and is not finished`)
    const overrun = await writer.store(() => writer.budget.admit(this.progress, signal))
    if (overrun !== null) return writer.fail('budget_exceeded', overrun.message, null, overrun.detail)
    let attempt = ''
    const begin = () => {
      attempt = attemptName()
      output.beginText(step, attempt)
    }
    begin()
    const toolbox = await this.tools()
    if (this.slice.isOver) await this.slice.yield()
    signal.throwIfAborted()
    const startedMs = performance.now()
    const request = {
      model: agent.model,
      messages: conversationOf(this.progress),
      tools: [...toolbox.values()].map(({ tool }) => tool),
      temperature: agent.temperature,
      maxOutputTokens: agent.maxOutputTokens,
      outputSchema: agent.outputSchema,
      ...(isStreamed && {
        onText: (delta: string) => output.addText(delta),
        slice: this.slice,
        onRestart: begin,
      }),
    }
    const received = await this.context.model.ask(request, signal)
    const latencyMs = performance.now() - startedMs
    if (this.slice.isOver) await this.slice.yield()
    const answer = storableAnswer(received)
    if (!isStreamed && answer.content !== null) output.addText(answer.content)
    return this.takeAnswer(answer, { step, attempt, latencyMs, toolbox })
  }

  /** Stores an answer, as the end of the run or with the calls that it requests. */
  private async takeAnswer(
    answer: ModelAnswer,
    asked: { readonly step: number; readonly attempt: string; readonly latencyMs: number; readonly toolbox: Toolbox },
  ): Promise<RunOutcome | null> {
    const { clock, config, schemas } = this.context
    const { writer, output } = this
    const { run } = this.progress
    const { step, attempt, toolbox } = asked
    const at = clock.now()
    const cost = await writer.budget.costOf(answer)
    const { content, toolCalls, refusal, finishReason, extra } = answer
    const event = modelEvent(run, at, answer, { ...asked, costUsd: cost.costUsd })
    const last = { step: { step, attempt, content, toolCalls, extra, remark: null, ...answer.usage }, cost, event }
    const overrun = writer.budget.overrunAfter(cost)
    if (overrun !== null) return writer.fail('budget_exceeded', overrun.message, last, overrun.detail)
    const isFinal = toolCalls.length === 0
    if (isFinal && refusal !== null) return writer.fail('refused', `the model refused: ${refusal}`, last)
    if (finishReason === 'content_filter')
      return writer.fail(
        'content_filter',
        "the content filter of the model provider has stopped the model's answer",
        last,
      )
    const isCut = finishReason === 'length'
    // The last call is not whole, and others may be missing.
    if (isCut && !isFinal) return writer.fail('length', `${CUT} in its tool calls`, last)
    if (isFinal) {
      const end = await this.finalAnswer(last, isCut)
      if (typeof end !== 'string') return end
      return writer.storeAnswer({ ...last, step: { ...last.step, remark: end } })
    }
    const expiresAt = config.pauseMs === null ? null : new Date(at + config.pauseMs)
    const { calls, pauses } = callsOf(answer, { step, toolbox, schemas, log: output, expiresAt })
    return writer.storeAnswer(last, calls, pauses)
  }

  /**
   * Ends the run with this answer.
   * @param isCut by a limit of tokens
   * @returns the outcome, or a message to the model about what it has to correct
   */
  private async finalAnswer(last: PricedAnswer, isCut: boolean): Promise<RunOutcome | string> {
    const { schemas, limits } = this.context
    const bytesMax = limits.run_output_bytes
    const { writer } = this
    const { run, steps } = this.progress
    const { outputSchema } = run.plan.agent
    const text = last.step.content ?? ''
    if (Buffer.byteLength(text) > bytesMax)
      return writer.fail('output_too_large', `the answer of the model has more than ${bytesMax} bytes`, last)
    if (outputSchema === null) {
      if (isCut && text === '') return writer.fail('length', `${CUT} before it had written any text`, last)
      const output = RawJson.of({ text, ...(isCut && { truncated: true }) })
      return writer.end('completed', { output, remember: text, last })
    }
    const checked = schemas.checkOutput(outputSchema, text)
    if (!('problem' in checked)) {
      const output = RawJson.of(checked.value)
      return writer.end('completed', { output, remember: output.text, last })
    }
    if (isCut) return writer.fail('length', `${CUT} in its output`, last)
    const { problem } = checked
    const repairs = steps.filter(({ remark }) => remark !== null).length
    if (repairs < REPAIRS_MAX && schemas.schemaProblem(outputSchema) === undefined)
      return `This does not match the JSON Schema of the output: ${problem}. Answer with the corrected JSON only.`
    return writer.fail('output_invalid', `the output of the model does not match output_schema: ${problem}`, last)
  }

  private async endAfter(error: unknown): Promise<RunOutcome> {
    const { writer } = this
    const { log } = this.context
    const reason = this.abort.signal.aborted ? this.abort.signal.reason : error
    try {
      if (reason instanceof TimedOut) {
        const message = `the run has taken longer than ${this.timeoutMs / 1000} s (timeout_seconds)`
        return await writer.end('timed_out', { reason: 'timeout', message })
      }
      if (reason instanceof Stopped || reason instanceof OwnershipLost) return RELEASED
      if (reason instanceof ModelFailure) {
        return await writer.fail('model_failed', reason.message, null, { provider: reason.provider })
      }
      if (reason instanceof McpUnavailable) return await writer.fail('tool_unavailable', reason.message)
      log.error('a hosted run failed with an internal error', { runId: this.progress.run.runId, error: reason })
      return await writer.fail('internal', 'the run failed because of an internal error; see the log of the service')
    } catch (cause) {
      if (!(cause instanceof OwnershipLost || cause instanceof Stopped))
        log.error('the end of a hosted run could not be stored', { cause })
      return RELEASED
    }
  }

  private tools(): Promise<Toolbox> {
    this.toolbox ??= this.writer.store(() => openToolbox(this.progress.run, this.context, this.abort.signal))
    return this.toolbox
  }

  private get progress(): RunProgress {
    return this.writer.progress
  }

  private get timeoutMs(): number {
    return this.progress.run.plan.agent.timeoutSeconds * 1000
  }
}
