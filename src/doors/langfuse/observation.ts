import { type LangfuseUsage, langfuseUsage } from '../../base/conventions/langfuse-usage.ts'
import { readString } from '../../base/http/json-reader.ts'
import type { Limits } from '../../base/limits.ts'
import type { Bytes } from '../../stores/clickhouse/bytes.ts'
import { EVENT_TYPES, TOKEN_MEMBERS } from '../traces/conventions.ts'
import { cleanText, ERROR_LENGTH_MAX, type MappedEvent, type MappedTask, typeOf } from '../traces/mapping.ts'
import { writeContent } from './content.ts'
import { SPAN_KINDS } from './event-types.ts'
import {
  COST_DETAILS,
  END,
  INPUT,
  LEVEL,
  NAME,
  OUTPUT,
  PARENT,
  START,
  STATUS_MESSAGE,
  USAGE,
  USAGE_DETAILS,
} from './fields.ts'
import { timeIn } from './json-objects.ts'
import type { Merged } from './merged.ts'
import { writePayload } from './payload.ts'

/** Type of the events that say how an observation stands that has not ended, or was changed after that. */
export const OBSERVATION_UPDATED = 'observation.updated'

/** What the state of an observation is stored as: a task, and an event. */
export interface MappedObservation extends MappedTask {
  /** An id of '' is for the journal to mint. */
  readonly event: MappedEvent
}

interface ObservationContext {
  readonly out: Bytes
  readonly limits: Limits
  readonly traceId: string
  readonly observationId: string
  readonly taskId: string
  readonly taskIdOf: (observationId: string) => string
  /** Unix milliseconds. */
  readonly now: number
  /** Whether the event is the one that the observation has once it is complete. */
  readonly isFinal: boolean
  /** Whether the event has the usage of a model call whose own event had none. */
  readonly isLateUsage: boolean
  /** When it counts as ended although it has no end: with its run. */
  readonly endedAt: number | null
}

/** The time in a field, Unix milliseconds; null for none. */
export function timeOf(merged: Merged, field: number): number | null {
  const value = merged.range(field)
  return value && timeIn(value)
}

/** The text in a field, at most so many characters; null for none. */
export function textIn(merged: Merged, field: number, lengthMax: number): string | null {
  const text = rawText(merged, field)
  return text === null ? null : cleanText(text, lengthMax)
}

/** The id of the parent observation as it was sent; null for a root. */
function parentOf(merged: Merged): string | null {
  return rawText(merged, PARENT)
}

function rawText(merged: Merged, field: number): string | null {
  const value = merged.range(field)
  return value && (readString(value.text, value.start, value.end) || null)
}

/** When an observation ended: an event when it happened. Null while it has not. */
export function endedAtOf(merged: Merged): number | null {
  const end = timeOf(merged, END)
  if (end !== null) {
    const start = timeOf(merged, START)
    return start === null ? end : Math.max(start, end)
  }
  return merged.kind === 'event' ? timeOf(merged, START) : null
}

export function isRoot(merged: Merged): boolean {
  return merged.isReleased ? merged.sentAt[PARENT] === 0 : parentOf(merged) === null
}

/** Whether a run ends with it: a root observation that has ended, and is no event. */
export function endsRun(merged: Merged): boolean {
  return merged.isCreated && merged.kind !== 'event' && isRoot(merged) && endedAtOf(merged) !== null
}

/** What went wrong; null if nothing did. */
export function errorOf(merged: Merged): string | null {
  if (textIn(merged, LEVEL, 10) !== 'ERROR') return null
  return textIn(merged, STATUS_MESSAGE, ERROR_LENGTH_MAX) ?? 'error'
}

export function isModelCall({ kind }: Merged): boolean {
  return kind !== null && SPAN_KINDS[kind] === 'model'
}

export function usageOfObservation(merged: Merged): LangfuseUsage {
  return langfuseUsage(merged.json(USAGE), merged.json(USAGE_DETAILS), merged.json(COST_DETAILS))
}

export function mapObservation(merged: Merged, context: ObservationContext): MappedObservation {
  const { out, limits, taskId, taskIdOf, now, isFinal, isLateUsage } = context
  const parent = parentOf(merged)
  const name = textIn(merged, NAME, limits.task_name_length) ?? merged.kind ?? 'observation'
  const startedAt = timeOf(merged, START)
  const completedAt = endedAtOf(merged) ?? context.endedAt
  const error = errorOf(merged)
  const content = (field: number, bytesMax: number) => {
    const value = merged.range(field)
    return value && writeContent(out, value, bytesMax)
  }
  return {
    taskId,
    parentTaskId: parent === null ? null : taskIdOf(parent),
    name,
    status: completedAt === null ? 'running' : error === null ? 'completed' : 'failed',
    input: content(INPUT, limits.run_input_bytes),
    output: content(OUTPUT, limits.run_output_bytes),
    errorMessage: completedAt === null ? null : error,
    startedAt: startedAt ?? completedAt,
    completedAt,
    event: {
      id: isFinal ? taskId : isLateUsage ? `${taskId}:usage` : '',
      type: isFinal || isLateUsage ? finalType(merged, name, limits) : OBSERVATION_UPDATED,
      level: LEVELS.get(textIn(merged, LEVEL, 10) ?? '') ?? 'info',
      payload: writePayload(out, merged, {
        bytesMax: limits.event_payload_bytes,
        // The task has them: content is most of what is sent, and storing it twice would take twice as long.
        hasContent: false,
        head: headOf(merged, context, { startedAt, completedAt }),
      }),
      occurredAt: isFinal || isLateUsage ? (completedAt ?? now) : now,
      taskId,
    },
  }
}

const LEVELS = new Map<string, MappedEvent['level']>([
  ['DEBUG', 'debug'],
  ['WARNING', 'warn'],
  ['ERROR', 'error'],
])

/** An event of the trace has its own name as type, like an event of a span. */
function finalType({ kind }: Merged, name: string, limits: Limits): string {
  if (kind === 'event') return typeOf(name, 'event', limits)
  return EVENT_TYPES[SPAN_KINDS[kind ?? 'span']]
}

const COST_MEMBER = ['costUsd', 'cost_usd'] as const

/** The members that the service adds. */
function headOf(
  merged: Merged,
  { traceId, observationId, isFinal, isLateUsage }: ObservationContext,
  { startedAt, completedAt }: { readonly startedAt: number | null; readonly completedAt: number | null },
): string {
  let head = `"trace_id":${jsonOf(traceId)},"observation_id":${jsonOf(observationId)}`
  if (merged.kind !== null) head += `,"observation_type":"${merged.kind}"`
  if (startedAt !== null && completedAt !== null) head += `,"duration_ms":${Math.max(0, completedAt - startedAt)}`
  if (!isModelCall(merged) || !(isFinal || isLateUsage)) return head
  const usage = usageOfObservation(merged)
  for (const [field, name] of [...TOKEN_MEMBERS, COST_MEMBER]) {
    const value = usage[field]
    if (value !== undefined) head += `,"${name}":${value}`
  }
  return head
}

/** Ids that need no escape are most of them. */
function jsonOf(id: string): string {
  return /^[\w-]*$/.test(id) ? `"${id}"` : JSON.stringify(id)
}
