import { Elysia } from 'elysia'
import type { PriceTable } from '../base/conventions/prices.ts'
import type { FeatureContext } from '../tenants/feature.ts'
import { startAlerts } from './alerts/alerts.ts'
import { alertRoutes } from './alerts/routes.ts'
import { AgentVersionCopies } from './analytics/agent-versions.ts'
import { Analytics } from './analytics/analytics.ts'
import { boardRoutes } from './analytics/board-routes.ts'
import { Boards } from './analytics/board-store.ts'
import type { Penalties } from './analytics/caps.ts'
import { clickHouseRoutes } from './analytics/clickhouse-routes.ts'
import type { QueryCaps } from './analytics/query-caps.ts'
import { queryRoutes } from './analytics/routes.ts'
import { savedQueryRoutes } from './analytics/saved-routes.ts'
import { SavedQueries } from './analytics/saved-store.ts'

interface SqlDeps {
  readonly caps: QueryCaps
  readonly penalties: Penalties
  readonly modelPrices: PriceTable
  /** See {@link startAlerts}. */
  readonly secondMs: number | undefined
}

/** Queries, and what is made of them: saved queries, boards, alerts. */
export function startSql(context: FeatureContext, { caps, penalties, modelPrices, secondMs }: SqlDeps) {
  const { sql, columnar, partitions, clock, guards, teardown } = context
  const analytics = new Analytics(columnar, partitions, caps, penalties, new AgentVersionCopies({ sql, columnar }))
  const alerts = startAlerts({ ...context, analytics, secondMs })
  teardown.add('alerts', () => alerts.stop())
  const routes = new Elysia()
    .use(queryRoutes({ guards, analytics, modelPrices }))
    .use(clickHouseRoutes({ ...context, analytics }))
    .use(savedQueryRoutes({ guards, savedQueries: new SavedQueries({ sql, clock, analytics }), analytics }))
    .use(boardRoutes({ guards, boards: new Boards({ sql, clock }) }))
    .use(alertRoutes({ guards, ...alerts }))
  return { routes, analytics }
}
