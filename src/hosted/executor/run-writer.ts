import type { Clock } from '../../base/clock.ts'
import { RawJson } from '../../base/raw-json.ts'
import type { SystemEventRow } from '../../journal/rows.ts'
import { isUnavailable, type Sql } from '../../postgres/connect.ts'
import type { TerminalStatus } from '../../runs/state.ts'
import type { Call, Children, Pause, RunOutcome, RunProgress, Step } from '../run/run.ts'
import { endRun } from '../store/end.ts'
import { loadProgress } from '../store/load.ts'
import { pauseRun } from '../store/pausing.ts'
import { OwnershipLost, storeAnswer } from '../store/progress.ts'
import { systemEvent } from '../store/system-event.ts'
import type { Cost, RunBudget } from './budget.ts'
import { endedEvent } from './step-events.ts'
import { storable } from './tool-calls.ts'

interface RunWriterDeps {
  readonly sql: Sql
  /** This process, in the table `instances`. */
  readonly owner: string
  readonly clock: Clock
  readonly children: Pick<Children, 'stop'>
  /** Called after each commit that has written to the outbox. */
  readonly onChange: () => void
}

/** An answer of the model that is stored together with what follows from it. */
export interface StoredAnswer {
  readonly step: Step
  readonly cost: Cost
  /** Its `llm.call`. */
  readonly event: SystemEventRow
}

interface EndDetails {
  readonly output?: RawJson
  /** What the session remembers of the run. */
  readonly remember?: string
  readonly reason?: string
  readonly message?: string
  readonly detail?: Record<string, unknown>
  /** The answer that ends the run. */
  readonly last?: StoredAnswer | null
}

const STORE_RETRY_MS = 200
const NO_COST: Cost = { costUsd: 0, countedUsd: 0 }

/** Stores what an executor does, and keeps {@link progress} equal to the rows. */
export class RunWriter {
  /** Calls stored by this executor: no earlier process can have made them. */
  readonly fresh = new Set<string>()
  private readonly startedMs = performance.now()
  private readonly baseUsedMs: number
  private costUsd: number
  private isStopped = false

  constructor(
    private readonly deps: RunWriterDeps,
    public progress: RunProgress,
    readonly budget: RunBudget,
    /** Aborted when the run turns out to belong to another process. */
    private readonly abort: AbortController,
  ) {
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

  /** Stores an answer of the model, with the calls and questions that it asks for. */
  async storeAnswer(
    { step, cost, event }: StoredAnswer,
    calls: readonly Call[] = [],
    pauses: readonly Pause[] = [],
    events: readonly SystemEventRow[] = [],
  ): Promise<void> {
    const { sql, owner, clock } = this.deps
    const { progress } = this
    const { costUsd, countedUsd: spentUsd } = cost
    const answer = {
      step,
      calls,
      pauses,
      costUsd,
      spentUsd,
      usedMs: this.usedMs,
      at: clock.now(),
      events: [event, ...events],
    }
    await this.store(() => storeAnswer(sql, progress.run, owner, answer))
    progress.steps.push(step)
    progress.calls.push(...calls)
    for (const { callId } of calls) this.fresh.add(callId)
    progress.pauses.push(...pauses)
    this.costUsd += costUsd
    this.budget.settled(spentUsd)
  }

  /** Pauses the run, whose open calls all wait for people. @returns null if it can continue. @throws OwnershipLost */
  async pause(): Promise<RunOutcome | null> {
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

  /** Ends the run as failed. @param reason a code, in `error_detail` */
  fail(
    reason: string,
    message: string,
    last: StoredAnswer | null = null,
    detail: Record<string, unknown> = {},
  ): Promise<RunOutcome> {
    return this.end('failed', { reason, message, last, detail })
  }

  /** Ends the run and its descendants. @throws OwnershipLost */
  async end(status: TerminalStatus, details: EndDetails): Promise<RunOutcome> {
    const { sql, owner, clock, onChange, children } = this.deps
    const { run, steps, calls } = this.progress
    const { reason, output = null, remember, last = null, detail = {} } = details
    const message = details.message === undefined ? null : storable(details.message)
    const at = clock.now()
    const errorDetail = reason === undefined ? null : RawJson.of({ reason, ...detail })
    const { costUsd, countedUsd } = last?.cost ?? NO_COST
    const hasActiveChildren = calls.some((call) => call.childRunId !== null && call.status === 'started')
    const event = endedEvent(run, at, status, {
      steps: steps.length + (last === null ? 0 : 1),
      toolCalls: calls.length,
      costUsd: this.costUsd + costUsd,
      message,
      errorDetail,
    })
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
        events: last === null ? [event] : [last.event, event],
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
}
