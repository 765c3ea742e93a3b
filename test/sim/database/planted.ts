import type { Edit } from '../planted.ts'

const STARTS = 'activity/runs/starts.ts'
const TRANSITIONS = 'activity/runs/transitions.ts'

/** Bugs that the world `database` must find. */
export const DATABASE_BUGS: Readonly<Record<string, readonly Edit[]>> = {
  'database-run-start-not-compared': [{ path: STARTS, text: '=== startHash(run)', becomes: '!== null' }],
  'database-run-ends-twice': [
    { path: TRANSITIONS, text: "and r.status || '>' || i.status = any(", becomes: "and 'queued>running' = any(" },
  ],
  'database-run-end-seen-too-early': [
    {
      path: TRANSITIONS,
      text: "const found = await findRuns<CurrentRun>(sql, refused, 'r.status, r.started_at, r.completed_at')",
      becomes:
        "const found = new Map([...before].filter(([, { status }]) => refused.length > 0 && status !== 'running'))",
    },
    {
      path: TRANSITIONS,
      text: 'const outcomes = await update(',
      becomes:
        "const before = await findRuns<CurrentRun>(sql, transitions, 'r.status, r.started_at, r.completed_at')\n  const outcomes = await update(",
    },
  ],
  'database-task-ends-twice': [
    {
      path: 'activity/tasks/upserts.ts',
      text: "where t.status || '>' || excluded.status = any(",
      becomes: "where 'pending>completed' = any(",
    },
  ],
}
