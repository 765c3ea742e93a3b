import { RESERVED_TYPE_PREFIXES } from '../../activity/events/schema.ts'
import type { Limits } from '../../base/limits.ts'
import type { Bytes } from '../../stores/clickhouse/bytes.ts'
import type { LEVELS } from '../../stores/journal/levels.ts'
import { exceptionMessage, writeInput, writeOutput } from './content.ts'
import { EVENT_TYPES, hasErrorLevel, kindOf, type SpanKind, usageOf } from './conventions.ts'
import { type ExtraMembers, writePayload } from './payload.ts'
import { type AnyValue, type Attributes, type Range, type Span, type SpanEvent, STATUS_ERROR } from './telemetry.ts'

/** An event to be stored. */
export interface MappedEvent {
  readonly id: string
  readonly type: string
  readonly level: (typeof LEVELS)[number]
  /** Where the JSON object of the payload is in what was written. */
  readonly payload: Range
  /** Unix milliseconds. */
  readonly occurredAt: number
  /** The task of its span. */
  readonly taskId: string | null
}

/** The task that something is stored as, such as a span. */
export interface MappedTask {
  readonly taskId: string
  readonly parentTaskId: string | null
  readonly name: string
  readonly status: 'running' | 'completed' | 'failed'
  /** JSON objects, as in {@link MappedEvent}. */
  readonly input: Range | null
  readonly output: Range | null
  readonly errorMessage: string | null
  /** Unix milliseconds. */
  readonly startedAt: number | null
  /** Null while it has not ended. */
  readonly completedAt: number | null
}

/** What a span is stored as: a task and, once it has ended, events. */
export interface MappedSpan extends MappedTask {
  readonly kind: SpanKind
  readonly events: readonly MappedEvent[]
}

export interface MappingContext {
  /** Takes the JSON of the items. */
  readonly out: Bytes
  readonly workspaceId: string
  readonly limits: Limits
  /** Unix milliseconds. Stands in for a missing time. */
  readonly now: number
}

const TRACE_ID = /^[0-9a-f]{32}$/
const SPAN_ID = /^[0-9a-f]{16}$/
const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)

/** What is wrong with the ids of a span; null if nothing is. */
export function problemOf({ traceId, spanId, parentSpanId }: Span): string | null {
  if (!isTraceId(traceId)) return 'trace_id: expected 16 bytes that are not all zero'
  if (!isSpanId(spanId)) return 'span_id: expected 8 bytes that are not all zero'
  if (!isRoot({ parentSpanId }) && !isSpanId(parentSpanId)) return 'parent_span_id: expected 8 bytes or none'
  return null
}

export function isTraceId(id: string): boolean {
  return TRACE_ID.test(id) && id !== NO_TRACE
}

export function isSpanId(id: string): boolean {
  return SPAN_ID.test(id) && id !== NO_SPAN
}

export function isRoot({ parentSpanId }: Pick<Span, 'parentSpanId'>): boolean {
  return parentSpanId === '' || parentSpanId === NO_SPAN
}

/**
 * Maps a span whose ids are valid.
 * @param taskIdOf maps the span ids of its trace to task ids
 */
export function mapSpan(span: Span, taskIdOf: (spanId: string) => string, context: MappingContext): MappedSpan {
  const { limits, out } = context
  const { spanId, attributes } = span
  const taskId = taskIdOf(spanId)
  const kind = kindOf(attributes)
  const { startedAt, completedAt } = timesOf(span, context.now)
  const hasFailed = isFailed(span)
  return {
    kind,
    taskId,
    parentTaskId: isRoot(span) ? null : taskIdOf(span.parentSpanId),
    name: cleanText(span.name, limits.task_name_length) || 'span',
    status: completedAt === null ? 'running' : hasFailed ? 'failed' : 'completed',
    input: writeInput(out, attributes, limits.run_input_bytes),
    output: writeOutput(out, attributes, limits.run_output_bytes),
    errorMessage: hasFailed ? errorMessageOf(span) : null,
    startedAt,
    completedAt,
    events: completedAt === null ? [] : eventsOf(span, { taskId, kind, completedAt }, context),
  }
}

function isFailed({ statusCode, attributes }: Span): boolean {
  return statusCode === STATUS_ERROR || hasErrorLevel(attributes)
}

interface Times {
  readonly startedAt: number
  readonly completedAt: number | null
}

/** A span without an end is still running; one without any times counts as just ended. */
function timesOf({ startNano, endNano }: Span, now: number): Times {
  if (endNano === 0)
    return startNano === 0 ? { startedAt: now, completedAt: now } : { startedAt: toMs(startNano), completedAt: null }
  const startedAt = toMs(startNano === 0 ? endNano : startNano)
  return { startedAt, completedAt: Math.max(startedAt, toMs(endNano)) }
}

/** The latest time that ClickHouse's `DateTime64(3)` holds; later ones are stored as this. */
const MS_MAX = Date.UTC(2300, 0, 1) - 1

/** A double cannot hold today's nanoseconds exactly: without this, whole milliseconds may be rounded down by one. */
const ROUNDING_MS = 0.0005

/** Unix nanoseconds to milliseconds. */
export function toMs(nano: number): number {
  return Math.min(MS_MAX, Math.max(0, Math.floor(nano / 1e6 + ROUNDING_MS)))
}

/** The events in the span, then the event for the span itself. */
function eventsOf(
  span: Span,
  { taskId, kind, completedAt }: { taskId: string; kind: SpanKind; completedAt: number },
  context: MappingContext,
): MappedEvent[] {
  const { out, limits } = context
  const events = span.events.map((event, index) => mapSpanEvent(event, { span, taskId, index }, context))
  const extra: ExtraMembers = [
    ['name', span.name],
    ['trace_id', span.traceId],
    ['span_id', span.spanId],
    ['parent_span_id', isRoot(span) ? null : span.parentSpanId],
    ['status', STATUS_NAMES[span.statusCode] ?? 'unset'],
    ['duration_ms', Math.max(0, Math.round((span.endNano - span.startNano) / 1e3) / 1e3)],
  ]
  if (span.statusMessage !== '') extra.push(['status_message', span.statusMessage])
  if (span.scope !== '') extra.push(['scope', span.scope])
  if (span.links.length > 0) extra.push(['links', span.links.map(linkOf)])
  if (kind === 'model') extra.push(...usageOf(span.attributes))
  events.push({
    id: taskId,
    type: EVENT_TYPES[kind],
    level: isFailed(span) ? 'error' : 'info',
    payload: writePayload(out, span.attributes, extra, limits.event_payload_bytes),
    occurredAt: completedAt,
    taskId,
  })
  return events
}

const STATUS_NAMES = ['unset', 'ok', 'error']

function linkOf({ traceId, spanId, attributes }: Span['links'][number]): Attributes {
  const link: Attributes = new Map<string, AnyValue>([
    ['trace_id', traceId],
    ['span_id', spanId],
  ])
  if (attributes.size > 0) link.set('attributes', attributes)
  return link
}

function mapSpanEvent(
  event: SpanEvent,
  { span, taskId, index }: { span: Span; taskId: string; index: number },
  { out, limits, now }: MappingContext,
): MappedEvent {
  const extra: ExtraMembers = [
    ['trace_id', span.traceId],
    ['span_id', span.spanId],
  ]
  return {
    id: `${taskId}.${index}`,
    type: typeOf(event.name, 'span.event', limits),
    level: event.name === 'exception' ? 'error' : 'info',
    payload: writePayload(out, event.attributes, extra, limits.event_payload_bytes),
    occurredAt: event.timeNano === 0 ? now : toMs(event.timeNano),
    taskId,
  }
}

/** The name as an event type. Names with a prefix reserved for system events get `otel.` in front. */
export function typeOf(name: string, otherwise: string, limits: Limits): string {
  const isReserved = RESERVED_TYPE_PREFIXES.some((prefix) => name.startsWith(prefix))
  return cleanText(isReserved ? `otel.${name}` : name, limits.type_length) || otherwise
}

function errorMessageOf(span: Span): string {
  const exception = span.events.find(({ name }) => name === 'exception')
  const message =
    span.statusMessage ||
    (exception === undefined ? null : exceptionMessage(exception.attributes)) ||
    exceptionMessage(span.attributes) ||
    'error'
  return cleanText(message, ERROR_LENGTH_MAX)
}

export const ERROR_LENGTH_MAX = 10_000

/** The text without what a store would reject (NUL, lone surrogates), at most `lengthMax` characters. */
export function cleanText(text: string, lengthMax: number): string {
  const short = text.length > lengthMax ? text.slice(0, lengthMax) : text
  return short.replaceAll('\0', '\ufffd').toWellFormed()
}
