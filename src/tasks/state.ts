/** The statuses of a task and the legal transitions between them (docs/specification.md#tasks). */
export const TASK_STATUSES = ['pending', 'running', 'completed', 'failed', 'skipped'] as const

export type TaskStatus = (typeof TASK_STATUSES)[number]

/**
 * Where a report may take a task from each status. A task may skip steps. Repeating the status is legal, it updates the
 * other fields (docs/specification.md#tasks). Everything else is a report that arrived out of order.
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
