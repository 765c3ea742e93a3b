import type { components } from '../../../client/generated/api.ts'

/** The schemas of the API document. */
export type Schemas = components['schemas']
export type Agent = Schemas['Agent']
export type Run = Schemas['Run']
export type Task = Schemas['Task']
export type Event = Schemas['EventOfFeed']
export type Session = Schemas['Session']
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

const LIVE = ['queued', 'running', 'awaiting_approval', 'awaiting_input'] as const
export const RUN_STATUSES: readonly Run['status'][] = [...LIVE, 'completed', 'failed', 'cancelled', 'timed_out']

/** Whether the run can still change. */
export function isLive({ status }: { readonly status: string }): boolean {
  return LIVE.some((live) => live === status)
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
