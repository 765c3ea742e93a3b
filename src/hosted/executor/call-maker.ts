import type { Clock } from '../../base/clock.ts'
import { RawJson } from '../../base/raw-json.ts'
import type { SchemaChecks } from '../../model/output-schema.ts'
import type { Sql } from '../../postgres/connect.ts'
import type { OutputLog } from '../output/output-log.ts'
import type { Call, Children } from '../run/run.ts'
import type { CallStatus } from '../run/state.ts'
import { storeResult, storeStart } from '../store/progress.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import type { Toolbox, ToolboxEntry } from '../tools/toolbox.ts'
import type { RunWriter } from './run-writer.ts'
import { finishedEvent, startedEvent } from './step-events.ts'
import { failure } from './tool-calls.ts'

interface CallMakerDeps {
  readonly sql: Sql
  readonly owner: string
  readonly clock: Clock
  readonly schemas: SchemaChecks
  readonly children: Children
  readonly writer: RunWriter
  readonly output: OutputLog
  readonly toolbox: Toolbox
  readonly signal: AbortSignal
  readonly onChange: () => void
}

/** How many calls of one step are made concurrently. */
const CONCURRENT_CALLS_MAX = 16
/** The statuses of calls that can be made, or finished with what a person decided. */
const CAN_CONTINUE: readonly CallStatus[] = ['rejected', 'answered', 'ready', 'started']

const UNKNOWN_OUTCOME =
  'the service was interrupted during this call; it is unknown whether the call took effect, and it was not repeated'

/** Makes the calls of a step that wait for no person. Each is made at most once, unless its tool is repeatable. */
export class CallMaker {
  private storing: Promise<unknown> = Promise.resolve()

  constructor(private readonly deps: CallMakerDeps) {}

  /** Resolves once each call is done, held for a person, or carried out by a paused run. */
  async makeAll(): Promise<void> {
    const { calls } = this.deps.writer.progress
    const remaining = calls.filter(({ status }) => CAN_CONTINUE.includes(status)).values()
    const work = async () => {
      for (const call of remaining) await this.settle(call)
    }
    const results = await Promise.allSettled(Array.from({ length: Math.min(CONCURRENT_CALLS_MAX, calls.length) }, work))
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  private async settle(call: Call): Promise<void> {
    this.deps.signal.throwIfAborted()
    if (call.status === 'rejected') return this.finish(call, 'failed', call.output!, 0)
    if (call.status === 'answered') return this.finish(call, 'finished', call.output!, 0)
    const entry = this.deps.toolbox.get(call.tool)
    if (entry === undefined || entry.kind === 'input')
      return this.finish(call, 'failed', failure(`the tool ${call.tool} no longer exists`), 0)
    if (
      call.status === 'started' &&
      !this.deps.writer.fresh.has(call.callId) &&
      entry.kind === 'call' &&
      !entry.tool.isRepeatable
    )
      return this.finish(call, 'failed', failure(UNKNOWN_OUTCOME), 0)
    const ready = call.status === 'ready' ? await this.start(call) : call
    return entry.kind === 'agent' ? this.askAgent(ready, entry) : this.callTool(ready, entry)
  }

  private async start(call: Call): Promise<Call> {
    const { sql, owner, clock, writer, output } = this.deps
    const { run } = writer.progress
    return this.inTurn(async () => {
      const frame = output.nextFrameNumber()
      const at = clock.now()
      const started: Call = { ...call, status: 'started', startedFrame: frame }
      const events = [startedEvent(run, at, started)]
      await writer.store(() => storeStart(sql, run, owner, { callId: call.callId, frame, at, events }))
      this.replace(started)
      output.addCall(started, 'started')
      return started
    })
  }

  private async callTool(call: Call, { tool }: ToolboxEntry & { kind: 'call' }): Promise<void> {
    const { signal, schemas, writer } = this.deps
    const startedMs = performance.now()
    // A person may have edited the arguments.
    const checked = schemas.checkArguments(tool.parameters, call.input.text)
    const outcome: ToolOutcome =
      'problem' in checked
        ? { ok: false, error: checked.problem }
        : await writer.store(() => tool.call(checked.value, { idempotencyKey: call.callId, signal }))
    await this.finishWith(call, outcome, performance.now() - startedMs)
  }

  private async askAgent(call: Call, entry: ToolboxEntry & { kind: 'agent' }): Promise<void> {
    const { children, signal, writer } = this.deps
    const { run } = writer.progress
    const startedMs = performance.now()
    const refused = await writer.store(() => children.begin(run, call, entry.agentId))
    if (refused !== null) return this.finish(call, 'failed', failure(refused.problem), 0)
    const outcome = await writer.store(() => children.settled({ ...run, runId: call.childRunId! }, signal))
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
    const { sql, owner, clock, writer, output: log, onChange } = this.deps
    const { run } = writer.progress
    const durationMs = Math.round(tookMs)
    await this.inTurn(async () => {
      const at = clock.now()
      const frame = log.nextFrameNumber()
      const done: Call = { ...call, status, output, finishedFrame: frame, durationMs }
      const events = [finishedEvent(run, at, done, tookMs)]
      const result = { callId: call.callId, status, output, frame, durationMs, usedMs: writer.usedMs, at, events }
      await writer.store(() => storeResult(sql, run, owner, result))
      this.replace(done)
      log.addCall(done, 'finished')
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
    const { calls } = this.deps.writer.progress
    calls[calls.findIndex(({ callId }) => callId === call.callId)] = call
  }
}
