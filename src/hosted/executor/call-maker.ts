import type { Clock } from '../../base/clock.ts'
import type { RunIdentity } from '../../base/ids.ts'
import { RawJson } from '../../base/raw-json.ts'
import type { SchemaChecks } from '../../model/output-schema.ts'
import type { Sql } from '../../postgres/connect.ts'
import type { OutputLog } from '../output/output-log.ts'
import type { CallStatus } from '../state.ts'
import { storeResult, storeStart } from '../store/progress.ts'
import type { Call, HostedRun, RunOutcome, RunProgress } from '../store/rows.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import type { Toolbox, ToolboxEntry } from '../tools/toolbox.ts'
import { finishedEvent, startedEvent } from './step-events.ts'
import { failure } from './tool-calls.ts'

/** Child runs: each carries out a call of its parent. */
export interface Children {
  /**
   * Makes sure that the call's run exists. An existing run continues.
   * @returns why there is none, for the model
   * @throws OwnershipLost when the parent may no longer start runs
   */
  begin(parent: HostedRun, call: Call, agentId: string): Promise<{ readonly problem: string } | null>
  /** Resolves once the run has ended or paused. Rejects when the signal aborts. */
  settled(run: RunIdentity, signal: AbortSignal): Promise<RunOutcome>
  /** Stops the executors of runs that have ended with their parent. */
  stop(runs: readonly RunIdentity[]): void
}

export interface CallMakerDeps {
  readonly sql: Sql
  readonly owner: string
  readonly clock: Clock
  readonly schemas: SchemaChecks
  readonly children: Children
  readonly progress: RunProgress
  readonly output: OutputLog
  readonly toolbox: Toolbox
  readonly signal: AbortSignal
  readonly usedMs: () => number
  /** Retries while the database is unavailable. */
  readonly store: <T>(write: () => Promise<T>) => Promise<T>
  readonly onChange: () => void
}

/** How many calls of one step are made concurrently. */
const AT_ONCE = 16
const CAN_BE_MADE: readonly CallStatus[] = ['rejected', 'answered', 'ready', 'started']

const UNKNOWN_OUTCOME =
  'the service was interrupted during this call; it is unknown whether the call took effect, and it was not repeated'

/** Makes the calls of a step that wait for no person. Each is made at most once, unless its tool is repeatable. */
export class CallMaker {
  private storing: Promise<unknown> = Promise.resolve()

  /** @param fresh calls that this executor has stored itself: no earlier process can have made them */
  constructor(
    private readonly deps: CallMakerDeps,
    private readonly fresh: ReadonlySet<string>,
  ) {}

  /** Resolves once each call is done, held for a person, or carried out by a paused run. */
  async makeAll(): Promise<void> {
    const { calls } = this.deps.progress
    const waiting = calls.filter(({ status }) => CAN_BE_MADE.includes(status)).values()
    const work = async () => {
      for (const call of waiting) await this.settle(call)
    }
    const results = await Promise.allSettled(Array.from({ length: Math.min(AT_ONCE, calls.length) }, work))
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  private async settle(call: Call): Promise<void> {
    this.deps.signal.throwIfAborted()
    if (call.status === 'rejected') return this.finish(call, 'failed', call.output!, 0)
    if (call.status === 'answered') return this.finish(call, 'finished', call.output!, 0)
    const entry = this.deps.toolbox.get(call.tool)
    if (entry === undefined || entry.kind === 'input')
      return this.finish(call, 'failed', failure(`the tool ${call.tool} no longer exists`), 0)
    if (call.status === 'started' && !this.fresh.has(call.callId) && entry.kind === 'call' && !entry.tool.isRepeatable)
      return this.finish(call, 'failed', failure(UNKNOWN_OUTCOME), 0)
    const ready = call.status === 'ready' ? await this.start(call) : call
    return entry.kind === 'agent' ? this.askAgent(ready, entry) : this.callTool(ready, entry)
  }

  private async start(call: Call): Promise<Call> {
    const { sql, owner, clock, progress, output, store } = this.deps
    return this.inTurn(async () => {
      const frame = output.nextFrameNumber()
      const at = clock.now()
      const started: Call = { ...call, status: 'started', startedFrame: frame }
      const events = [startedEvent(progress.run, at, started)]
      await store(() => storeStart(sql, progress.run, owner, { callId: call.callId, frame, at, events }))
      this.replace(started)
      output.addCall(started, 'started')
      return started
    })
  }

  private async callTool(call: Call, { tool }: ToolboxEntry & { kind: 'call' }): Promise<void> {
    const { signal, schemas, store } = this.deps
    const startedMs = performance.now()
    // A person may have edited the arguments.
    const checked = schemas.checkArguments(tool.parameters, call.input.text)
    const outcome: ToolOutcome =
      'problem' in checked
        ? { ok: false, error: checked.problem }
        : await store(() => tool.call(checked.value, { idempotencyKey: call.callId, signal }))
    await this.finishWith(call, outcome, performance.now() - startedMs)
  }

  private async askAgent(call: Call, entry: ToolboxEntry & { kind: 'agent' }): Promise<void> {
    const { children, progress, signal, store } = this.deps
    const { workspaceId } = progress.run
    const startedMs = performance.now()
    const refused = await store(() => children.begin(progress.run, call, entry.agentId))
    if (refused !== null) return this.finish(call, 'failed', failure(refused.problem), 0)
    const outcome = await store(() => children.settled({ workspaceId, runId: call.childRunId! }, signal))
    if (outcome.kind === 'paused') return
    const tookMs = performance.now() - startedMs
    if (outcome.kind === 'released') throw new Error(`run ${call.childRunId} was released by its executor`)
    if (outcome.status === 'completed') return this.finish(call, 'finished', outcome.output!, tookMs)
    const why = outcome.errorMessage ?? outcome.status
    await this.finish(call, 'failed', failure(`the agent's run ended as ${outcome.status}: ${why}`), tookMs)
  }

  private finishWith(call: Call, outcome: ToolOutcome, tookMs: number): Promise<void> {
    if (outcome.ok) return this.finish(call, 'finished', RawJson.of(outcome.output ?? null), tookMs)
    return this.finish(call, 'failed', failure(outcome.error), tookMs)
  }

  private async finish(call: Call, status: 'finished' | 'failed', output: RawJson, tookMs: number): Promise<void> {
    const { sql, owner, clock, progress, output: log, store, usedMs, onChange } = this.deps
    const durationMs = Math.round(tookMs)
    await this.inTurn(async () => {
      const at = clock.now()
      const frame = log.nextFrameNumber()
      const done: Call = { ...call, status, output, finishedFrame: frame, durationMs }
      const events = [finishedEvent(progress.run, at, done, tookMs)]
      const result = { callId: call.callId, status, output, frame, durationMs, usedMs: usedMs(), at, events }
      await store(() => storeResult(sql, progress.run, owner, result))
      this.replace(done)
      log.addCall(done, 'ended')
    })
    onChange()
  }

  /**
   * Frames are published in the order of their numbers, so that a reader who has seen one has seen those before it.
   * Calls that end at the same time are therefore stored one after the other; the lock on their run would serialize
   * them anyway.
   */
  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.storing.then(work)
    this.storing = done.catch(() => undefined)
    return done
  }

  private replace(call: Call): void {
    const { calls } = this.deps.progress
    calls[calls.findIndex(({ callId }) => callId === call.callId)] = call
  }
}
