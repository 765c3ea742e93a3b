import { LRUCache } from 'lru-cache'
import type { TelemetryTasks } from '../../activity/tasks/telemetry-tasks.ts'
import type { Clock } from '../../base/clock.ts'
import { inSlices, type Slice, type Steps } from '../../base/http/shared-slice.ts'
import type { RunRef } from '../../base/ids.ts'
import { runKey } from '../../base/ids.ts'
import type { KeyedMutex } from '../../base/keyed-mutex.ts'
import type { Limits } from '../../base/limits.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { taskRow, type WriteEvents } from './event-writer.ts'
import { type ExportResult, ExportTally, type Places } from './export-tally.ts'
import { addTo, inBatches, inParallel, WriteBatch } from './groups.ts'
import { agentSpanRunId, type spanTaskIds, traceRunId } from './ids.ts'
import { isRoot, type MappedEvent, type MappedSpan, mapSpan } from './mapping.ts'
import { detailsOfSpans, endOf, type RunDetails } from './run-details.ts'
import type { TraceRuns } from './runs.ts'
import type { Attributes, OpenedExport, Span } from './telemetry.ts'

export interface TraceStoreDeps {
  readonly runs: TraceRuns
  readonly tasks: Pick<TelemetryTasks, 'existing'>
  readonly writeEvents: WriteEvents
  readonly limits: Limits
  readonly clock: Clock
  /** Held while something of a run is written, with the key of the run of its trace. Shared by all doors. */
  readonly withRunLock: KeyedMutex
  /** Deducts spans or records from the key's budget of events. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller, events: number) => void
}

/** Runs written concurrently: the queues of the stores are bounded. */
export const BATCH_ITEMS_MAX = 1_000
const STARTED_TASKS_CACHED_MAX = 20_000

/** What one export says of a trace. */
interface TraceReport {
  readonly spans: readonly Span[]
  detailsOf(limits: Limits, now: number): Steps<RunDetails>
  /** Attributes with the output of the run if its root has none. */
  readonly answer?: Attributes | undefined
}

/** What an export consists of: spans, and what else it says of their traces. */
interface TraceItem {
  readonly traceId: string
}

/** What the doors for traces differ in. */
export interface TraceDialect<Item extends TraceItem> {
  readonly places: Places
  readonly taskIds: typeof spanTaskIds
  /** Whether an agent that is called within a trace is also a child run. */
  readonly hasChildRuns: boolean
  /** For the tally. */
  nameOf(item: Item | Span): string
  /** Why the item is rejected; null if it is not: its ids are valid. */
  problemOf(item: Item): string | null
  /** @param items of the trace, at least one */
  traceOf(caller: Caller, traceId: string, items: readonly Item[]): TraceReport
}

interface Storing {
  readonly tally: ExportTally
  readonly slice: Slice
  readonly dialect: TraceDialect<TraceItem>
}

interface ReportedTrace extends TraceReport {
  readonly traceId: string
  readonly items: readonly TraceItem[]
}

interface StoredExport extends ExportResult {
  /** How many items it had. */
  readonly items: number
}

interface Mapped {
  readonly span: Span
  readonly mapped: MappedSpan
}

/** A span that ends a run: the root of a trace, or an agent called within it. */
interface RunSpan extends Mapped {
  readonly run: RunRef
  readonly answer: Attributes | undefined
}

/** Stores traces as runs, and spans as tasks and events (docs/opentelemetry.md). */
export class TraceStore {
  /** Ids of tasks whose start is known to be stored. */
  private readonly startedTasks = new LRUCache<string, true>({ max: STARTED_TASKS_CACHED_MAX })

  constructor(private readonly deps: TraceStoreDeps) {}

  /** @throws ApiError RATE_LIMITED, UNAVAILABLE: nothing is lost if the export is sent again */
  async storeExport<Item extends TraceItem>(
    caller: Caller,
    opened: OpenedExport<Item>,
    dialect: TraceDialect<Item>,
    slice: Slice,
  ): Promise<StoredExport> {
    this.deps.takeBudget(caller, opened.cost)
    const { items, refusals } = await inSlices(slice, opened.decode())
    const tally = new ExportTally(dialect.places)
    tally.refuse(refusals)
    const byTrace = new Map<string, Item[]>()
    for (const item of items) {
      const problem = dialect.problemOf(item)
      if (problem !== null) tally.reject(dialect.nameOf(item), problem)
      else addTo(byTrace, item.traceId, item)
      if (slice.isOver) await slice.yield()
    }
    const traces: ReportedTrace[] = []
    for (const [traceId, own] of byTrace) {
      if (slice.isOver) await slice.yield()
      traces.push({ traceId, items: own, ...dialect.traceOf(caller, traceId, own) })
    }
    await this.store(caller, traces, { tally, slice, dialect })
    return { ...tally.result(), items: refusals.reduce((sum, refusal) => sum + refusal.items, items.length) }
  }

  /** Stores each trace once. What is rejected is in the tally. */
  private async store(caller: Caller, all: readonly ReportedTrace[], storing: Storing): Promise<void> {
    const { tally, slice, dialect } = storing
    for (const traces of inBatches(all, BATCH_ITEMS_MAX)) {
      const ends: RunSpan[] = []
      await inParallel(traces, (trace) =>
        tally.attempt(
          trace.items.length,
          async () => void ends.push(...(await this.storeTrace(caller, trace, storing))),
          () => dialect.nameOf(trace.items[0]),
        ),
      )
      // After all traces, because one trace may have as many as an export has spans.
      for (const group of inBatches(ends, BATCH_ITEMS_MAX)) {
        await inParallel(group, (end) =>
          tally.attempt(
            1,
            () => this.storeEnd(caller, end, slice),
            () => dialect.nameOf(end.span),
          ),
        )
      }
    }
  }

  /** @returns the spans that end runs: at most one for the trace's own run */
  private async storeTrace(caller: Caller, trace: ReportedTrace, storing: Storing): Promise<RunSpan[]> {
    const { tally, slice, dialect } = storing
    const { traceId, spans } = trace
    const { runs, limits, clock, withRunLock } = this.deps
    if (slice.isOver) await slice.yield()
    const { workspaceId } = caller
    const now = clock.now()
    const named = { runId: traceRunId(workspaceId, traceId), externalRunId: traceId, parentRunId: null }
    const run = await runs.report(caller, named, await inSlices(slice, trace.detailsOf(limits, now)))
    const taskIdOf = dialect.taskIds(workspaceId, traceId)
    const ends: RunSpan[] = []
    let hasEnded = false
    // So that no span is stored as running after its end.
    await withRunLock(runKey(workspaceId, named.runId), async () => {
      let batch = new WriteBatch<Mapped>(spans.length)
      for (const span of uniqueById(spans)) {
        if (slice.isOver) await slice.yield()
        const mapped = mapSpan(span, taskIdOf, { workspaceId, limits, now, out: batch.json })
        batch.add({ span, mapped }, mapped.events.length)
        const endsTrace = isRoot(span) && mapped.completedAt !== null && !hasEnded
        if (endsTrace || (dialect.hasChildRuns && !isRoot(span) && mapped.kind === 'agent'))
          ends.push({ run, span, mapped, answer: trace.answer })
        hasEnded ||= endsTrace
        if (!batch.isFull) continue
        if (slice.isOver) await slice.yield()
        await this.storeSpans(caller, run, batch, tally)
        batch = new WriteBatch(spans.length)
      }
      if (slice.isOver) await slice.yield()
      await this.storeSpans(caller, run, batch, tally)
    })
    return ends
  }

  /** A span whose event is stored is complete: neither a repeat nor a late report of its start changes anything. */
  private async storeSpans(caller: Caller, run: RunRef, batch: WriteBatch<Mapped>, tally: ExportTally): Promise<void> {
    const { items: spans, json } = batch
    if (spans.length === 0) return
    const now = this.deps.clock.now()
    const started = await this.newlyStarted(caller, run, spans)
    const events: MappedEvent[] = []
    const lastRows = spans.map(({ mapped }) => events.push(...mapped.events) - 1)
    const positions = await this.deps.writeEvents(caller, run, { events, json }, (fresh) =>
      spans.flatMap(({ mapped }, index) => {
        const isNew = mapped.completedAt === null ? started.has(mapped.taskId) : fresh.has(lastRows[index] as number)
        return isNew ? taskRow(run, mapped, json, now) : []
      }),
    )
    for (const taskId of started) this.startedTasks.set(taskId, true)
    tally.stored(positions)
  }

  /** The tasks of spans that have not ended, without those that are stored already. */
  private async newlyStarted(caller: Caller, run: RunRef, spans: readonly Mapped[]): Promise<ReadonlySet<string>> {
    const running = spans.filter(({ mapped }) => mapped.completedAt === null).map(({ mapped }) => mapped.taskId)
    const unknown = running.filter((taskId) => !this.startedTasks.has(taskId))
    if (unknown.length === 0) return new Set()
    const stored = await this.deps.tasks.existing(caller, run, unknown)
    return new Set(unknown.filter((taskId) => !stored.has(taskId)))
  }

  /** Ends the run at its root span; stores an agent that was called within the trace as a child run. */
  private async storeEnd(caller: Caller, { run, span, mapped, answer }: RunSpan, slice: Slice): Promise<void> {
    const { runs, limits, clock } = this.deps
    const { completedAt, errorMessage } = mapped
    if (isRoot(span)) {
      if (completedAt !== null) await runs.end(run, endOf(span, completedAt, errorMessage, limits, answer))
      return
    }
    const child = await runs.report(
      caller,
      {
        runId: agentSpanRunId(caller.workspaceId, span.traceId, span.spanId),
        externalRunId: span.traceId,
        parentRunId: run.runId,
      },
      // As a root span, so that the run gets the agent's name and input.
      await inSlices(slice, detailsOfSpans([{ ...span, parentSpanId: '' }], limits, clock.now())),
    )
    if (completedAt !== null) await runs.end(child, endOf(span, completedAt, errorMessage, limits))
  }
}

/** Removes repeated spans; keeps the version that has ended, if there is one. */
function uniqueById(spans: readonly Span[]): Span[] {
  const byId = new Map<string, Span>()
  for (const span of spans) {
    const other = byId.get(span.spanId)
    if (other === undefined || other.endNano === 0) byId.set(span.spanId, span)
  }
  return [...byId.values()]
}
