/** The statuses of a task and the legal transitions between them (docs/tasks.md). */
export const TASK_STATUSES = ['pending', 'running', 'completed', 'failed', 'skipped'] as const

export type TaskStatus = (typeof TASK_STATUSES)[number]

/**
 * The legal transitions from each status. A task may skip statuses. Repeating the status is legal and updates the other
 * fields (docs/tasks.md). Any other report has arrived out of order.
 */
export const NEXT: Record<TaskStatus, readonly TaskStatus[]> = {
  pending: ['pending', 'running', 'completed', 'failed', 'skipped'],
  running: ['running', 'completed', 'failed', 'skipped'],
  completed: ['completed'],
  failed: ['failed'],
  skipped: ['skipped'],
}

/** {@link NEXT} as `from>to` texts, which the guarded upsert compares with `t.status || '>' || excluded.status`. */
export const TASK_TRANSITIONS: readonly string[] = TASK_STATUSES.flatMap((from) =>
  NEXT[from].map((to) => `${from}>${to}`),
)

/** Whether a task of this status has ended. */
export function isFinal(status: TaskStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'skipped'
}
