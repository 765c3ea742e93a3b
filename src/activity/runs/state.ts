/** The states of a run and the legal transitions between them (docs/runs.md#run-states). */
export const RUN_STATUSES = [
  'queued',
  'running',
  'awaiting_approval',
  'awaiting_input',
  'completed',
  'failed',
  'cancelled',
  'timed_out',
] as const

export type RunStatus = (typeof RUN_STATUSES)[number]

const ENDINGS = ['completed', 'failed', 'cancelled', 'timed_out'] as const

export type TerminalStatus = (typeof ENDINGS)[number]

/** The legal transitions from each status. Terminal statuses have none. */
export const NEXT: Record<RunStatus, readonly RunStatus[]> = {
  queued: ['running', ...ENDINGS],
  running: ['awaiting_approval', 'awaiting_input', ...ENDINGS],
  awaiting_approval: ['running', ...ENDINGS],
  awaiting_input: ['running', ...ENDINGS],
  completed: [],
  failed: [],
  cancelled: [],
  timed_out: [],
}

/** {@link NEXT} as `from>to` texts, which a guarded UPDATE compares with `r.status || '>' || $to`. */
export const RUN_TRANSITIONS: readonly string[] = RUN_STATUSES.flatMap((from) =>
  NEXT[from].map((to) => `${from}>${to}`),
)

/** The statuses that are not terminal. */
export const LIVE_RUN_STATUSES: readonly RunStatus[] = RUN_STATUSES.filter((status) => NEXT[status].length > 0)

/** Whether a run in this state has ended. */
export function isTerminal(status: RunStatus): status is TerminalStatus {
  return NEXT[status].length === 0
}
