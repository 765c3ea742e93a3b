import type { Clock } from '../clock.ts'
import type { Limits } from '../config.ts'
import type { RunRef } from '../events/schema.ts'
import type { Caller } from '../keys/schema.ts'
import type { TaskStore } from '../tasks/store.ts'
import type { WriteEvents } from './event-writer.ts'
import { createGate } from './gate.ts'
import { addTo, inGroups } from './groups.ts'
import { agentSpanRunId, traceRunId } from './ids.ts'
import { isRoot, type MappedEvent, type MappedSpan, mapSpan, problemOf } from './mapping.ts'
import { endOf, factsOfSpans } from './run-reports.ts'
import type { OtlpRuns } from './runs.ts'
import { type ExportResult, Tally } from './tally.ts'
import type { Span } from './telemetry.ts'

export interface OtlpIngestDeps {
  readonly runs: OtlpRuns
  readonly tasks: Pick<TaskStore, 'write'>
  readonly writeEvents: WriteEvents
  readonly limits: Limits
  readonly clock: Clock
  /** Deducts spans or records from the key's budget of events. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller, events: number) => void
}

/** Runs, and spans of a run, that are written together: the queues of the database are bounded. */
export const WRITTEN_AT_ONCE = 1_000
/** Well below what the queue of tasks takes. */
const TASKS_IN_FLIGHT = { itemsMax: 4_000, bytesMax: 16 << 20 }

interface Mapped {
  readonly span: Span
  readonly mapped: MappedSpan
}

/** Stores traces as runs, and spans as tasks and events (docs/opentelemetry.md). */
export class TraceIngest {
  private readonly gate = createGate(TASKS_IN_FLIGHT)

  constructor(private readonly deps: OtlpIngestDeps) {}

  /** @throws ApiError RATE_LIMITED, UNAVAILABLE: nothing is lost if the export is sent again */
  async store(caller: Caller, spans: readonly Span[]): Promise<ExportResult> {
    this.deps.takeBudget(caller, spans.length)
    const tally = new Tally('span')
    const byTrace = new Map<string, Span[]>()
    for (const span of spans) {
      const problem = problemOf(span)
      if (problem !== null) tally.reject(span.name, problem)
      else addTo(byTrace, span.traceId, span)
    }
    for (const traces of inGroups([...byTrace.values()], WRITTEN_AT_ONCE)) {
      const store = (trace: readonly Span[]) => this.storeTrace(caller, trace, tally)
      await Promise.all(
        traces.map((trace) =>
          tally.attempt(
            trace,
            () => store(trace),
            ({ name }) => name,
          ),
        ),
      )
    }
    return tally.result()
  }

  private async storeTrace(caller: Caller, spans: readonly Span[], tally: Tally): Promise<void> {
    const { runs, limits, clock } = this.deps
    const { workspaceId } = caller
    const { traceId } = spans[0]
    const now = clock.now()
    const named = { runId: traceRunId(workspaceId, traceId), externalRunId: traceId, parentRunId: null }
    const run = await runs.report(caller, named, factsOfSpans(spans, limits, now))
    const all = uniqueById(spans.map((span) => ({ span, mapped: mapSpan(span, { workspaceId, limits, now }) })))
    for (const group of inGroups(all, WRITTEN_AT_ONCE)) await this.storeSpans(run, group, tally, now)
    await Promise.all(all.map((one) => this.storeEnd(caller, run, one)))
  }

  /** Tasks before events: a span whose event is stored is complete, so a repeat of it needs no statement. */
  private async storeSpans(run: RunRef, spans: readonly Mapped[], tally: Tally, now: number): Promise<void> {
    const events: MappedEvent[] = []
    const lastRows = spans.map(({ mapped }) => events.push(...mapped.events) - 1)
    const positions = await this.deps.writeEvents(run, events, (fresh) =>
      Promise.all(
        spans.map(({ mapped }, index) =>
          mapped.completedAt === null || fresh[lastRows[index]] ? this.storeTask(run, mapped, now) : undefined,
        ),
      ),
    )
    tally.stored(positions)
  }

  private async storeTask({ workspaceId, agentId, runId }: RunRef, span: MappedSpan, at: number): Promise<void> {
    const { kind: _, events: __, ...task } = span
    const bytes = (task.input?.text.length ?? 0) + (task.output?.text.length ?? 0)
    await this.gate(bytes, () => this.deps.tasks.write({ ...task, workspaceId, agentId, runId, at }))
  }

  /** Ends the run with its root span; gives an agent that was called within the trace a run of its own. */
  private async storeEnd(caller: Caller, run: RunRef, { span, mapped }: Mapped): Promise<void> {
    const { runs, limits, clock } = this.deps
    const { completedAt, errorMessage } = mapped
    if (isRoot(span)) {
      if (completedAt !== null) await runs.end(run, endOf(span, completedAt, errorMessage, limits))
      return
    }
    if (mapped.kind !== 'agent') return
    const child = await runs.report(
      caller,
      {
        runId: agentSpanRunId(caller.workspaceId, span.traceId, span.spanId),
        externalRunId: span.traceId,
        parentRunId: run.runId,
      },
      // It counts as a root, so that the run is named after the agent and has its input.
      factsOfSpans([{ ...span, parentSpanId: '' }], limits, clock.now()),
    )
    if (completedAt !== null) await runs.end(child, endOf(span, completedAt, errorMessage, limits))
  }
}

/** A span that an export has twice counts once: the version that has ended, if there is one. */
function uniqueById(spans: readonly Mapped[]): Mapped[] {
  const byId = new Map<string, Mapped>()
  for (const one of spans) {
    const other = byId.get(one.mapped.taskId)
    if (other === undefined || other.mapped.completedAt === null) byId.set(one.mapped.taskId, one)
  }
  return [...byId.values()]
}
