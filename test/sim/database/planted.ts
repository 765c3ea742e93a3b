import type { Edit } from '../planted.ts'

const STARTS = 'activity/runs/starts.ts'
const IDEMPOTENCY = 'stores/idempotency/store.ts'
const KEY_RING = 'tenants/keys/key-ring.ts'
const LEASE = 'tenants/keys/lease.ts'
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
  'database-request-gets-other-ids': [
    {
      path: IDEMPOTENCY,
      text: 'then excluded.seed else kept.seed end',
      becomes: 'then kept.seed else excluded.seed end',
    },
  ],
  'database-request-forgotten-after-silence': [
    { path: IDEMPOTENCY, text: '{ hasEffect: true }', becomes: '{ hasEffect: false }' },
  ],
  'database-revocation-not-awaited': [{ path: KEY_RING, text: 'await this.lease.settle(changeId)\n', becomes: '\n' }],
  'database-changes-read-unseen': [
    {
      path: LEASE,
      text: 'if (others.length > 0) this.onChanges(others)',
      becomes: 'if (others.length > 1) this.onChanges(others)',
    },
  ],
  'database-key-outlives-lease': [
    { path: LEASE, text: 'return performance.now() < this.until', becomes: 'return this.until > 0' },
  ],
}
