import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Loops } from '../../base/loops.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Partitions } from '../../tenants/partitions/partition.ts'
import type { Analytics } from '../analytics/analytics.ts'
import { DryRuns } from './dry-run.ts'
import { startAlertScheduler } from './scheduler.ts'
import { AlertStore } from './store.ts'

interface AlertsDeps {
  readonly sql: Sql
  readonly columnar: ColumnarClient
  readonly analytics: Analytics
  readonly partitions: Partitions
  readonly clock: Clock
  readonly log: Log
  readonly loops?: Loops
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
  /** Milliseconds of a second in all durations of alerts; tests take fewer. */
  readonly secondMs?: number | undefined
}

interface Alerts {
  readonly alerts: AlertStore
  readonly dryRuns: DryRuns
  stop(): Promise<void>
}

/**
 * Starts alerts (docs/alerts.md): `store.ts` has the definitions, `scheduler.ts` evaluates each
 * at its ticks (`evaluation.ts`), `machine.ts` turns the results into states, and `dry-run.ts` repeats both for the past.
 */
export function startAlerts({ secondMs = 1_000, ...deps }: AlertsDeps): Alerts {
  const alerts = new AlertStore({ ...deps, secondMs })
  const dryRuns = new DryRuns({ ...deps, store: alerts, secondMs })
  const stop = startAlertScheduler({ ...deps, store: alerts, secondMs })
  return { alerts, dryRuns, stop }
}
