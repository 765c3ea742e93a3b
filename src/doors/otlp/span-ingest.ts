import { inSlices, type Slice } from '../../base/http/shared-slice.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { type ExportResult, ExportTally, placesOf } from '../traces/export-tally.ts'
import { addTo } from '../traces/groups.ts'
import { spanTaskIds } from '../traces/ids.ts'
import { problemOf } from '../traces/mapping.ts'
import { detailsOfSpans } from '../traces/run-details.ts'
import type { OpenedExport, Span } from '../traces/telemetry.ts'
import type { ReportedTrace, TraceDialect, TraceStore } from '../traces/trace-store.ts'

interface SpanIngestDeps {
  readonly traces: Pick<TraceStore, 'store'>
  /** Deducts spans from the key's budget of events. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller, events: number) => void
}

const OTLP: TraceDialect = { taskIds: spanTaskIds, hasChildRuns: true, nameOf: ({ name }) => name }

/** Stores the spans of exports, grouped by their traces (docs/opentelemetry.md). */
export class SpanIngest {
  constructor(private readonly deps: SpanIngestDeps) {}

  /** @throws ApiError RATE_LIMITED, UNAVAILABLE: nothing is lost if the export is sent again */
  async store(caller: Caller, opened: OpenedExport<Span>, slice: Slice): Promise<ExportResult> {
    this.deps.takeBudget(caller, opened.cost)
    const { items: spans, refusals } = await inSlices(slice, opened.decode())
    const tally = new ExportTally(placesOf('span'))
    tally.refuse(refusals)
    const byTrace = new Map<string, Span[]>()
    for (const span of spans) {
      const problem = problemOf(span)
      if (problem !== null) tally.reject(span.name, problem)
      else addTo(byTrace, span.traceId, span)
      if (slice.isOver) await slice.yield()
    }
    const traces = [...byTrace].map(
      ([traceId, own]): ReportedTrace => ({
        ...{ traceId, spans: own, items: own.length },
        name: () => own[0].name,
        detailsOf: (limits, now) => detailsOfSpans(own, limits, now),
      }),
    )
    await this.deps.traces.store(caller, traces, { tally, slice, dialect: OTLP })
    return tally.result()
  }
}
