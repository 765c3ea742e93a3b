import type { components } from '../../../client/generated/api.ts'

/** The schemas of the API document. */
export type Schemas = components['schemas']
export type Agent = Schemas['Agent']
export type Run = Schemas['Run']
export type Task = Schemas['Task']
export type Event = Schemas['EventOfFeed']
export type Session = Schemas['Session']
export type Score = Schemas['ScoreOfFeed']
/** Who is signed in. */
export type SignedIn = Schemas['SignedIn']
export type Role = SignedIn['role']
export type ListedRun = Schemas['ListedRun']
/** A run as feeds show it. */
export type RunSummary = Omit<Run, 'input' | 'output'>

/** One item of a feed. */
export interface Activity {
  readonly cursor: string
  readonly kind: 'event' | 'task' | 'run' | 'score'
  /** Null, as the run, for what concerns no run: an alert, or a webhook that was disabled. */
  readonly agent_id: string | null
  readonly run_id: string | null
  readonly received_at: string
  readonly event?: Event
  readonly task?: Task
  readonly run?: RunSummary
  readonly score?: Score
}

const LIVE = ['queued', 'running', 'awaiting_approval', 'awaiting_input'] as const
export const RUN_STATUSES: readonly Run['status'][] = [...LIVE, 'completed', 'failed', 'cancelled', 'timed_out']

/** Whether the run can still change. */
export function isLive({ status }: { readonly status: string }): boolean {
  return LIVE.some((live) => live === status)
}

type Timed = Pick<Run, 'active_ms' | 'waiting_ms' | 'waiting_since' | 'started_at' | 'completed_at'>

/** How long a run worked, or has worked so far, without waits for people; null before it starts. @param now Unix milliseconds */
export function activeMs({ active_ms, started_at, completed_at, ...waits }: Timed, now: number): number | null {
  if (active_ms !== null) return active_ms
  if (started_at === null || completed_at !== null) return null
  return Math.max(0, now - Date.parse(started_at) - waitedMs(waits, now))
}

/** How long a run waited for people, or has waited so far. @param now Unix milliseconds */
export function waitedMs(
  { waiting_ms, waiting_since }: Pick<Timed, 'waiting_ms' | 'waiting_since'>,
  now: number,
): number {
  return waiting_ms + (waiting_since === null ? 0 : Math.max(0, now - Date.parse(waiting_since)))
}

/** Stands in SQL for the run and the agent of an event that has none. */
export const NO_RUN = '00000000-0000-0000-0000-000000000000'
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

export function isUuid(text: string): boolean {
  return UUID.test(text)
}
