import type { TerminalStatus } from '../../activity/runs/state.ts'
import { RawJson } from '../../base/raw-json.ts'
import { isUnavailable } from '../../stores/postgres/connect.ts'
import type { OutputLog } from '../output/output-log.ts'
import type { HostedContext } from '../run/context.ts'
import {
  type Call,
  type Children,
  type Cost,
  type Pause,
  pendingOf,
  type RunOutcome,
  type RunProgress,
} from '../run/run.ts'
import { isDone } from '../run/state.ts'
import { endRun } from '../store/end.ts'
import { callEvent, endedEvent, requestedEvent, systemEvent } from '../store/events.ts'
import { loadProgress } from '../store/load.ts'
import { pauseRun } from '../store/pausing.ts'
import { OwnershipLost, type PricedAnswer, storeAnswer, storeCall } from '../store/progress.ts'
import { RunBudget } from './budget.ts'
import { storable } from './tool-calls.ts'

interface EndDetails {
  readonly output?: RawJson
  /** What the session remembers of the run. */
  readonly remember?: string
  readonly reason?: string
  readonly message?: string
  readonly detail?: Record<string, unknown>
  /** The answer that ends the run. */
  readonly last?: PricedAnswer | null
}

const STORE_RETRY_MS = 200
const NO_COST: Cost = { costUsd: 0, spentUsd: 0 }

/** Stores what an executor does, and keeps {@link progress} and the output equal to the rows. */
export class RunWriter {
  readonly budget: RunBudget
  /** Calls stored by this executor: no earlier process can have made them. */
  readonly fresh = new Set<string>()
  private readonly startedMs = performance.now()
  private readonly baseUsedMs: number
  private costUsd: number
  private isStopped = false
  private storing: Promise<unknown> = Promise.resolve()

  constructor(
    private readonly context: HostedContext & { readonly children: Pick<Children, 'stop'> },
    public progress: RunProgress,
    private readonly output: OutputLog,
    /** Aborted when the run turns out to belong to another process. */
    private readonly abort: AbortController,
  ) {
    this.budget = new RunBudget(context, progress.run, progress.spentUsd)
    this.baseUsedMs = progress.usedMs
    this.costUsd = progress.costUsd
  }

  /** Ends all retries. */
  stop(): void {
    this.isStopped = true
  }

  /** How much of `timeout_seconds` is used. */
  get usedMs(): number {
    return Math.round(this.baseUsedMs + performance.now() - this.startedMs)
  }

  /**
   * Repeats `write` while the database is unavailable, until the executor is stopped: an outage must not lose an answer of the
   * model.
   * @throws OwnershipLost, after aborting the executor; any other error of `write`
   */
  async store<T>(write: () => Promise<T>): Promise<T> {
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

  /**
   * Stores an answer of the model, with the calls and questions that it asks for. The run pauses with it if none of the
   * calls can be made.
   * @returns null if the run continues
   */
  async storeAnswer(
    priced: PricedAnswer,
    calls: readonly Call[] = [],
    pauses: readonly Pause[] = [],
  ): Promise<RunOutcome | null> {
    const { sql, owner, clock, onChange } = this.context
    const { progress } = this
    const { run } = progress
    const at = clock.now()
    const unheld = calls.filter(({ status }) => status !== 'held')
    const asked = pauses.map((pause) => requestedEvent(run, at, pause))
    const canContinue = pauses.length === 0 || unheld.some(({ status }) => !isDone(status))
    const pending = canContinue ? null : pendingOf(run.runId, pauses[0]!)
    const paused = pending === null ? [] : [systemEvent(run, at, 'run.paused', { pending })]
    const events = [...asked, ...unheld.map((call) => callEvent(run, at, call)), ...paused]
    const answer = { ...priced, calls, pauses, pending, usedMs: this.usedMs, at, events }
    await this.store(() => storeAnswer(sql, run, owner, answer))
    progress.steps.push(priced.step)
    progress.calls.push(...calls)
    for (const { callId } of calls) this.fresh.add(callId)
    progress.pauses.push(...pauses)
    this.costUsd += priced.cost.costUsd
    this.budget.settled(priced.cost)
    for (const call of unheld) this.output.addCall(call)
    onChange()
    return pending && { kind: 'paused', pending }
  }

  /** Records that a call is about to be made. @throws OwnershipLost */
  startCall(call: Call): Promise<Call> {
    return this.changeCall((startedFrame) => ({ ...call, status: 'started', startedFrame }))
  }

  /** Stores the result of a call. @param output for the model @throws OwnershipLost */
  async finishCall(call: Call, status: 'finished' | 'failed', output: RawJson, tookMs = 0): Promise<void> {
    const durationMs = Math.round(tookMs)
    const isRejected = call.status === 'rejected'
    await this.changeCall((finishedFrame) => ({ ...call, status, output, durationMs, finishedFrame }), isRejected)
  }

  /**
   * Frames are published in the order of their numbers, so that a reader who has seen one has seen those before it.
   * Calls that end at the same time are therefore stored one after the other; the lock on their run would serialize
   * them anyway.
   */
  private changeCall(change: (frame: number) => Call, isRejected = false): Promise<Call> {
    const { sql, owner, clock, onChange } = this.context
    const stored = this.storing.then(async () => {
      const { run, calls } = this.progress
      const call = change(this.output.nextFrameNumber())
      const at = clock.now()
      const stamp = { usedMs: this.usedMs, at, events: [callEvent(run, at, call, isRejected)] }
      await this.store(() => storeCall(sql, run, owner, call, stamp))
      calls[calls.findIndex(({ callId }) => callId === call.callId)] = call
      this.output.addCall(call)
      onChange()
      return call
    })
    this.storing = stored.catch(() => undefined)
    return stored
  }

  /** Pauses the run, whose open calls all wait for people. @returns null if it can continue. @throws OwnershipLost */
  async pause(): Promise<RunOutcome | null> {
    const { sql, owner, clock, onChange } = this.context
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

  /** Ends the run as failed. @param reason a code, in `error_detail` */
  fail(
    reason: string,
    message: string,
    last: PricedAnswer | null = null,
    detail: Record<string, unknown> = {},
  ): Promise<RunOutcome> {
    return this.end('failed', { reason, message, last, detail })
  }

  /** Ends the run and its descendants. @throws OwnershipLost */
  async end(status: TerminalStatus, details: EndDetails): Promise<RunOutcome> {
    const { sql, owner, clock, onChange, children } = this.context
    const { run, steps, calls, pauses } = this.progress
    const { reason, output = null, remember, last = null, detail = {} } = details
    const message = details.message === undefined ? null : storable(details.message)
    const at = clock.now()
    const errorDetail = reason === undefined ? null : RawJson.of({ reason, ...detail })
    const cost = last?.cost ?? NO_COST
    const hasActiveChildren = calls.some((call) => call.childRunId !== null && call.status === 'started')
    const event = endedEvent(run, at, status, {
      steps: steps.length + (last === null ? 0 : 1),
      toolCalls: calls.length,
      costUsd: this.costUsd + cost.costUsd,
      message,
      errorDetail,
    })
    const ended = await this.store(() =>
      endRun(sql, run, owner, {
        status,
        output,
        errorMessage: message,
        errorDetail,
        last,
        usedMs: this.usedMs,
        remember: remember === undefined ? null : { user: run.plan.user, assistant: remember },
        at,
        events: [event],
        descendantsReason: hasActiveChildren ? 'its parent has ended' : null,
        mayHavePauses: pauses.length > 0,
      }),
    )
    if (ended === null) throw new OwnershipLost()
    onChange()
    this.budget.settled(cost)
    const { descendants, usage } = ended
    children.stop(descendants)
    return { kind: 'ended', status, output, errorMessage: message, errorDetail, usage }
  }
}
