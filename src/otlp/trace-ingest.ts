import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { Limits } from '../config.ts'
import type { RunRef } from '../events/schema.ts'
import { runKey } from '../ids.ts'
import type { TaskRow } from '../journal/rows.ts'
import type { Caller } from '../keys/schema.ts'
import type { TelemetryTasks } from '../tasks/telemetry-tasks.ts'
import type { WriteEvents } from './event-writer.ts'
import { addTo, inGroups } from './groups.ts'
import { agentSpanRunId, spanTaskIds, traceRunId } from './ids.ts'
import { isRoot, type MappedEvent, type MappedSpan, mapSpan, problemOf } from './mapping.ts'
import { endOf, factsOfSpans } from './run-reports.ts'
import type { OtlpRuns } from './runs.ts'
import { type ExportResult, Tally } from './tally.ts'
import type { Span } from './telemetry.ts'
import { createTurns } from './turns.ts'

export interface OtlpIngestDeps {
  readonly runs: OtlpRuns
  readonly tasks: Pick<TelemetryTasks, 'among'>
  readonly writeEvents: WriteEvents
  readonly limits: Limits
  readonly clock: Clock
  /** Deducts spans or records from the key's budget of events. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller, events: number) => void
}

/** Runs, and spans of a run, that are written together: the queues of the database are bounded. */
export const WRITTEN_AT_ONCE = 1_000
const UNDER_WAY_REMEMBERED = 20_000

interface Mapped {
  readonly span: Span
  readonly mapped: MappedSpan
}

/** Stores traces as runs, and spans as tasks and events (docs/opentelemetry.md). */
export class TraceIngest {
  /** The exports of a run are written one after the other: the end of a span must not come before its start. */
  private readonly turns = createTurns()
  /** Tasks whose start was written. */
  private readonly underWay = new LRUCache<string, true>({ max: UNDER_WAY_REMEMBERED })

  constructor(private readonly deps: OtlpIngestDeps) {}

  /** @throws ApiError RATE_LIMITED, UNAVAILABLE: nothing is lost if the export is sent again */
  async store(caller: Caller, spans: readonly Span[]): Promise<ExportResult> {
    this.deps.takeBudget(caller, eventsOf(spans))
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
    const taskIdOf = spanTaskIds(workspaceId, traceId)
    const ends: Mapped[] = []
    await this.turns(runKey(workspaceId, run.runId), async () => {
      for (const group of inGroups(uniqueById(spans), WRITTEN_AT_ONCE)) {
        const all = group.map((span) => ({ span, mapped: mapSpan(span, taskIdOf, { workspaceId, limits, now }) }))
        await this.storeSpans(run, all, tally, now)
        ends.push(...all.filter(({ span, mapped }) => isRoot(span) || mapped.kind === 'agent'))
      }
    })
    await Promise.all(ends.map((one) => this.storeEnd(caller, run, one)))
  }

  /** A span whose event is stored is complete: a repeat of it changes nothing, nor does a report that it is under way. */
  private async storeSpans(run: RunRef, spans: readonly Mapped[], tally: Tally, now: number): Promise<void> {
    const started = await this.newlyStarted(run, spans)
    const events: MappedEvent[] = []
    const lastRows = spans.map(({ mapped }) => events.push(...mapped.events) - 1)
    const positions = await this.deps.writeEvents(run, events, (fresh) =>
      spans.flatMap(({ mapped }, index) => {
        const isNew = mapped.completedAt === null ? started.has(mapped.taskId) : fresh[lastRows[index]]
        return isNew ? taskRow(run, mapped, now) : []
      }),
    )
    for (const taskId of started) this.underWay.set(taskId, true)
    tally.stored(positions)
  }

  /** The tasks that begin with these spans: those under way that are not stored yet. */
  private async newlyStarted(run: RunRef, spans: readonly Mapped[]): Promise<ReadonlySet<string>> {
    const running = spans.filter(({ mapped }) => mapped.completedAt === null).map(({ mapped }) => mapped.taskId)
    const unknown = running.filter((taskId) => !this.underWay.has(taskId))
    if (unknown.length === 0) return new Set()
    const stored = await this.deps.tasks.among(run, unknown)
    return new Set(unknown.filter((taskId) => !stored.has(taskId)))
  }

  /** Ends the run with its root span; gives an agent that was called within the trace a run of its own. */
  private async storeEnd(caller: Caller, run: RunRef, { span, mapped }: Mapped): Promise<void> {
    const { runs, limits, clock } = this.deps
    const { completedAt, errorMessage } = mapped
    if (isRoot(span)) {
      if (completedAt !== null) await runs.end(run, endOf(span, completedAt, errorMessage, limits))
      return
    }
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

function taskRow({ workspaceId, agentId, runId }: RunRef, task: MappedSpan, now: number): TaskRow {
  return {
    workspace_id: workspaceId,
    agent_id: agentId,
    run_id: runId,
    task_id: task.taskId,
    parent_task_id: task.parentTaskId,
    name: task.name,
    status: task.status,
    input: task.input?.text ?? null,
    output: task.output?.text ?? null,
    error_message: task.errorMessage,
    created_at: now,
    updated_at: now,
    started_at: task.startedAt,
    completed_at: task.completedAt,
  }
}

/** A span that an export has twice counts once: the version that has ended, if there is one. */
function uniqueById(spans: readonly Span[]): Span[] {
  const byId = new Map<string, Span>()
  for (const span of spans) {
    const other = byId.get(span.spanId)
    if (other === undefined || other.endNano === 0) byId.set(span.spanId, span)
  }
  return [...byId.values()]
}

/** Spans and the events in them, all of which become events. */
function eventsOf(spans: readonly Span[]): number {
  return spans.reduce((sum, { events }) => sum + 1 + events.length, 0)
}
