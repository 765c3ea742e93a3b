import { inSlices, type Slice } from '../../base/http/shared-slice.ts'
import type { Limits } from '../../base/limits.ts'
import { RawJson } from '../../base/raw-json.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { type ExportResult, ExportTally, type Places } from '../traces/export-tally.ts'
import { hashedId } from '../traces/ids.ts'
import { cleanText, toMs } from '../traces/mapping.ts'
import { inputOf, metadataMember, NAME_LENGTH_MAX, type RunDetails } from '../traces/run-details.ts'
import type { OpenedExport, Span } from '../traces/telemetry.ts'
import type { ReportedTrace, TraceDialect, TraceStore } from '../traces/trace-store.ts'
import type { Item, PlacedSpan, TraceHead } from './decode.ts'
import { questionOf, TraceContent } from './turn-content.ts'
import { TurnUsage } from './turn-usage.ts'

interface OpenAiTracesDeps {
  readonly traces: Pick<TraceStore, 'store'>
  /** Deducts items from the key's budget of events. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller, events: number) => void
}

/** The agent of a trace whose beginning was not reported: what the SDK calls a workflow without a name. */
const UNNAMED_WORKFLOW = 'Agent workflow'
const METADATA_START = '{"source":"openai-agents"'

/** Spans have longer ids than OpenTelemetry's; agents within a trace are steps of its run. */
const DIALECT: TraceDialect = {
  taskIds: (workspaceId, traceId) => (spanId) => hashedId('openai span', workspaceId, traceId, spanId),
  hasChildRuns: false,
  nameOf: (span) => placeOf(span as PlacedSpan),
}

const PLACES: Places = {
  item: (name) => name,
  range: (first) => `data[${first - 1}]`,
}

/** What a call says of one trace. */
interface Collected {
  head: TraceHead | null
  readonly spans: PlacedSpan[]
  items: number
  first: number
}

/** Stores what the exporter of the OpenAI Agents SDK sends: traces as runs, spans as tasks and events (docs/openai-agents.md). */
export class OpenAiTraces {
  private readonly turns = new TurnUsage()
  private readonly content = new TraceContent()

  constructor(private readonly deps: OpenAiTracesDeps) {}

  /** @throws ApiError RATE_LIMITED, UNAVAILABLE: nothing is lost if the same is sent again */
  async store(caller: Caller, opened: OpenedExport<Item>, slice: Slice): Promise<Stored> {
    this.deps.takeBudget(caller, opened.cost)
    const { items, refusals } = await inSlices(slice, opened.decode())
    const tally = new ExportTally(PLACES)
    tally.refuse(refusals)
    const traces = new Map<string, Collected>()
    for (const item of items) {
      if (item.kind === 'bad') tally.reject(`${placeOf(item.bad)}.${item.bad.member}`, item.bad.problem)
      else collect(traces, item)
      if (slice.isOver) await slice.yield()
    }
    const reported: ReportedTrace[] = []
    for (const [traceId, { head, spans, items, first }] of traces) {
      if (slice.isOver) await slice.yield()
      this.turns.assign(caller.workspaceId, traceId, spans)
      reported.push({
        ...{ traceId, spans, items },
        name: () => placeOf({ place: first }),
        *detailsOf(limits, now) {
          yield
          return detailsOf(head, spans, limits, now)
        },
        answer: this.content.answerOf(caller, traceId, spans),
      })
    }
    await this.deps.traces.store(caller, reported, { tally, slice, dialect: DIALECT })
    return { ...tally.result(), items: refusals.reduce((sum, refusal) => sum + refusal.items, items.length) }
  }
}

/** What a call has stored. */
interface Stored extends ExportResult {
  /** How many items it had. */
  readonly items: number
}

function placeOf({ place }: { readonly place: number }): string {
  return `data[${place}]`
}

function collect(traces: Map<string, Collected>, item: Exclude<Item, { kind: 'bad' }>): void {
  const { traceId, place } = item.kind === 'trace' ? item.trace : item.span
  let trace = traces.get(traceId)
  if (trace === undefined) {
    trace = { head: null, spans: [], items: 0, first: place }
    traces.set(traceId, trace)
  }
  trace.items++
  if (item.kind === 'trace') trace.head = item.trace
  else trace.spans.push(item.span)
}

function detailsOf(head: TraceHead | null, spans: readonly Span[], limits: Limits, now: number): RunDetails {
  let start = Number.POSITIVE_INFINITY
  for (const { startNano } of spans) if (startNano > 0 && startNano < start) start = startNano
  const { workflowName = '', groupId = '' } = head ?? {}
  return {
    agentName: cleanText(workflowName, NAME_LENGTH_MAX) || UNNAMED_WORKFLOW,
    startedAt: start === Number.POSITIVE_INFINITY ? now : toMs(start),
    externalUserId: null,
    sessionId: groupId === '' ? null : cleanText(groupId, limits.external_id_length),
    tags: [],
    metadata: metadataOf(head),
    input: inputOf(questionOf(spans) ?? new Map(), limits),
  }
}

function metadataOf(head: TraceHead | null): RawJson {
  const { workflowName = '', metadata = new Map() } = head ?? {}
  const members = [METADATA_START]
  if (workflowName !== '') {
    members.push(`"workflow_name":${JSON.stringify(cleanText(workflowName, NAME_LENGTH_MAX))}`)
  }
  if (metadata.size > 0) members.push(`"metadata":${metadataMember(metadata)}`)
  return new RawJson(`${members.join(',')}}`)
}
