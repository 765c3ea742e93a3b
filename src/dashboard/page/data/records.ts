import type { AgentRecord } from '../../../agents/schema.ts'
import type { SessionRecord } from '../../../hosted/sessions/schema.ts'
import type { EventRecord, RunRecord } from '../../../runs/schema.ts'
import type { TaskRecord } from '../../../tasks/schema.ts'
import type { OnWire } from './api.ts'

/** Records of the API, as this page receives them. */
export type Agent = OnWire<AgentRecord>
export type Run = OnWire<RunRecord>
export type Task = OnWire<TaskRecord>
export type Event = Omit<OnWire<EventRecord>, 'received_at'>
export type Session = OnWire<SessionRecord>
/** A run as lists and feeds show it. */
export type RunSummary = Omit<Run, 'input' | 'output'>

/** One item of a feed. */
export interface Activity {
  readonly cursor: string
  readonly kind: 'event' | 'task' | 'run'
  readonly agent_id: string
  readonly run_id: string
  readonly received_at: string
  readonly event?: Event
  readonly task?: Task
  readonly run?: RunSummary
}

const LIVE: readonly string[] = ['queued', 'running', 'awaiting_approval', 'awaiting_input']

/** The run can still change. */
export function isLive({ status }: { readonly status: string }): boolean {
  return LIVE.includes(status)
}

/** How long a run took, or has taken so far; null before it starts. @param now Unix milliseconds */
export function durationMs(
  { duration_ms, started_at, completed_at }: Pick<Run, 'duration_ms' | 'started_at' | 'completed_at'>,
  now: number,
): number | null {
  if (duration_ms !== null) return duration_ms
  return started_at === null || completed_at !== null ? null : Math.max(0, now - Date.parse(started_at))
}

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

export function isUuid(text: string): boolean {
  return UUID.test(text)
}
