import { lookup } from '../../base/lookup.ts'
import type { LEVELS } from '../../stores/journal/levels.ts'
import { resourceText, textAt } from '../traces/attributes.ts'
import { sessionOf } from '../traces/conventions.ts'
import { contentId, hashedId, traceRunId } from '../traces/ids.ts'
import { isSpanId, isTraceId, type MappedEvent, type MappingContext, toMs, typeOf } from '../traces/mapping.ts'
import { type ExtraMembers, writePayload } from '../traces/payload.ts'
import type { LogRecord, Resource } from '../traces/telemetry.ts'

/** The run that a log record belongs to: that of its trace, else of its session, else of its resource and day. */
export interface LogRun {
  readonly runId: string
  readonly externalRunId: string
}

/**
 * Finds the run of a record.
 * @param agentName or the id of the agent; without a trace, each agent has runs of its own
 */
export function runOfLog(
  record: LogRecord,
  agentName: string,
  { workspaceId, now }: Pick<MappingContext, 'workspaceId' | 'now'>,
): LogRun {
  const { traceId, attributes, resource } = record
  if (isTraceId(traceId)) return { runId: traceRunId(workspaceId, traceId), externalRunId: traceId }
  const session = sessionOf(attributes) ?? sessionOf(resource.attributes)
  if (session !== null) {
    return { runId: hashedId('session', workspaceId, agentName, session), externalRunId: session }
  }
  const day = new Date(timeOf(record, now)).toISOString().slice(0, 10)
  return {
    runId: hashedId('day', workspaceId, agentName, resourceKey(resource), day),
    externalRunId: `${agentName} ${day}`,
  }
}

const INLINE_LENGTH_MAX = 4_096
const resourceHashes = new WeakMap<Resource, string>()

/** What stands for a resource in the ids that are derived from it: its text, or a hash of it if it is long. */
function resourceKey(resource: Resource): string {
  const text = resourceText(resource)
  if (text.length <= INLINE_LENGTH_MAX) return text
  const hash = resourceHashes.get(resource) ?? hashedId('resource', text)
  resourceHashes.set(resource, hash)
  return hash
}

/**
 * Maps a record to an event, whose id is a hash of the record.
 * @param copies counts the identical records of an export, so that each gets an id of its own
 * @param taskIdOf maps the span ids of its trace to task ids; undefined without a trace
 */
export function mapLog(
  record: LogRecord,
  { out, limits, now }: MappingContext,
  copies: Map<string, number>,
  taskIdOf?: (spanId: string) => string,
): MappedEvent {
  const { attributes } = record
  const extra: ExtraMembers = [['body', record.body]]
  if (isTraceId(record.traceId)) extra.push(['trace_id', record.traceId])
  if (isSpanId(record.spanId)) extra.push(['span_id', record.spanId])
  if (record.severityText !== '') extra.push(['severity', record.severityText])
  if (record.scope !== '') extra.push(['scope', record.scope])
  const payload = writePayload(out, attributes, extra, limits.event_payload_bytes)
  const name = record.eventName || textAt(attributes, 'event.name')
  const { traceId, spanId, timeNano, observedNano, severityNumber } = record
  const fields = `${traceId} ${spanId} ${timeNano} ${observedNano} ${severityNumber} ${name}`
  const context = `${fields} ${resourceKey(record.resource)}`
  const id = contentId(context, out, payload)
  const copy = copies.get(id) ?? 0
  copies.set(id, copy + 1)
  return {
    id: copy === 0 ? id : contentId(`${context} ${copy}`, out, payload),
    type: typeOf(name, 'log', limits),
    level: levelOf(record),
    payload,
    occurredAt: timeOf(record, now),
    taskId: taskIdOf !== undefined && isSpanId(spanId) ? taskIdOf(spanId) : null,
  }
}

/** Unix milliseconds. */
export function timeOf({ timeNano, observedNano }: LogRecord, now: number): number {
  return timeNano !== 0 ? toMs(timeNano) : observedNano !== 0 ? toMs(observedNano) : now
}

/** OpenTelemetry numbers severities 1–24, four of each: trace, debug, info, warn, error, fatal. */
function levelOf({ severityNumber, severityText }: LogRecord): (typeof LEVELS)[number] {
  if (severityNumber >= 17) return 'error'
  if (severityNumber >= 13) return 'warn'
  if (severityNumber >= 9) return 'info'
  if (severityNumber >= 1) return 'debug'
  return LEVEL_OF_TEXT.get(severityText.toLowerCase()) ?? 'info'
}

const LEVEL_OF_TEXT = lookup<(typeof LEVELS)[number]>({
  trace: 'debug',
  debug: 'debug',
  info: 'info',
  warn: 'warn',
  warning: 'warn',
  error: 'error',
  fatal: 'error',
  critical: 'error',
})
