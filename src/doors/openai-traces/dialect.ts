import type { Limits } from '../../base/limits.ts'
import { RawJson } from '../../base/raw-json.ts'
import { hashedId } from '../traces/ids.ts'
import { cleanText } from '../traces/mapping.ts'
import { earliestStart, inputOf, metadataMember, NAME_LENGTH_MAX, type RunDetails } from '../traces/run-details.ts'
import type { Span } from '../traces/telemetry.ts'
import type { TraceDialect } from '../traces/trace-store.ts'
import type { Item, PlacedSpan, TraceHead } from './decode.ts'
import { questionOf, TraceContent } from './turn-content.ts'
import { TurnUsage } from './turn-usage.ts'

/** The agent of a trace whose beginning was not reported: what the SDK calls a workflow without a name. */
const UNNAMED_WORKFLOW = 'Agent workflow'
const METADATA_START = '{"source":"openai-agents"'

/** What the exporter of the OpenAI Agents SDK sends: traces as runs, spans as tasks and events (docs/openai-agents.md). */
export function createDialect(): TraceDialect<Item> {
  const turns = new TurnUsage()
  const content = new TraceContent()
  return {
    places: { item: (name) => name, range: (first) => `data[${first - 1}]` },
    // Longer than OpenTelemetry's.
    taskIds: (workspaceId, traceId) => (spanId) => hashedId('openai span', workspaceId, traceId, spanId),
    // Agents within a trace are steps of its run.
    hasChildRuns: false,
    nameOf(item) {
      const place = `data[${(item as Item).place}]`
      return 'member' in item ? `${place}.${item.member}` : place
    },
    problemOf: (item) => ('problem' in item ? item.problem : null),
    traceOf(caller, traceId, items) {
      const spans = items.filter((item): item is PlacedSpan => 'spanId' in item)
      turns.assign(caller.workspaceId, traceId, spans)
      return {
        spans,
        *detailsOf(limits, now) {
          yield
          const head = items.findLast((item): item is TraceHead => 'workflowName' in item)
          return detailsOf(head, spans, limits, now)
        },
        answer: content.answerOf(caller, traceId, spans),
      }
    },
  }
}

function detailsOf(head: TraceHead | undefined, spans: readonly Span[], limits: Limits, now: number): RunDetails {
  const { workflowName = '', groupId = '' } = head ?? {}
  return {
    agentName: cleanText(workflowName, NAME_LENGTH_MAX) || UNNAMED_WORKFLOW,
    startedAt: earliestStart(spans, now),
    externalUserId: null,
    sessionId: groupId === '' ? null : cleanText(groupId, limits.external_id_length),
    tags: [],
    metadata: metadataOf(head),
    input: inputOf(questionOf(spans) ?? new Map(), limits),
  }
}

function metadataOf(head: TraceHead | undefined): RawJson {
  const { workflowName = '', metadata = new Map() } = head ?? {}
  const members = [METADATA_START]
  if (workflowName !== '') {
    members.push(`"workflow_name":${JSON.stringify(cleanText(workflowName, NAME_LENGTH_MAX))}`)
  }
  if (metadata.size > 0) members.push(`"metadata":${metadataMember(metadata)}`)
  return new RawJson(`${members.join(',')}}`)
}
