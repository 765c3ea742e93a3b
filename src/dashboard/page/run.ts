import type { RunRecord } from '../../runs/schema.ts'
import type { OnWire } from './api.ts'
import { duration } from './format.ts'

export type Run = OnWire<RunRecord>

/** The duration of a run, so far if it is still running. */
export function durationOf({ duration_ms, started_at, completed_at }: Run): string {
  if (duration_ms !== null) return duration(duration_ms)
  return started_at === null || completed_at !== null ? '–' : duration(Date.now() - Date.parse(started_at))
}
