import type { AnyElysia } from 'elysia'
import packageJson from '../../package.json' with { type: 'json' }
import { usageLag } from '../activity/runs/usage-changes.ts'
import { createEnvelope } from '../base/http/envelope.ts'
import { dashboardRoutes } from '../dashboard/routes.ts'
import type { Deliveries } from '../feeds/webhooks/delivery/deliveries.ts'
import { columnarHealth } from '../sql/analytics/health.ts'
import { outboxLag } from '../stores/journal/outbox-relay.ts'
import { unavailableOf } from '../stores/postgres/connect.ts'
import type { OwnedPartition, Partitions } from '../tenants/partitions/partition.ts'
import type { HealthDeps } from './ops/health.ts'
import { type OpsDeps, opsRoutes } from './ops/routes.ts'
import { sumOfHubs } from './ops/service-metrics.ts'
import type { ServiceContext } from './pipeline/context.ts'
import type { Pipeline } from './pipeline/pipeline.ts'

export type App = AnyElysia

interface AppDeps extends Pick<HealthDeps, 'isStopping'> {
  /** Those of all features. */
  readonly routes: readonly AnyElysia[]
  readonly pipeline: Pipeline
  readonly deliveries: Pick<Deliveries, 'unstored'>
}

/** Mounts all routes. Does not listen yet. */
export function createApp(context: ServiceContext, deps: AppDeps): App {
  const { config, log, metrics } = context
  const root = createEnvelope({
    log,
    limits: config.limits,
    unavailableOf,
    logRequests: config.logLevel === 'debug',
    observeRequest: metrics.requestAnswered,
  })
  for (const own of deps.routes) root.use(own)
  return root.use(opsRoutes({ ...opsDeps(context, deps), app: () => root })).use(dashboardRoutes())
}

/** What health and metrics read. */
function opsDeps(context: ServiceContext, { pipeline, deliveries, isStopping }: AppDeps): Omit<OpsDeps, 'app'> {
  const { partitions, feeds, incidents } = pipeline
  const { config, sql, columnar, clock, loops, metrics } = context
  return {
    config,
    version: packageJson.version,
    metrics: pipeline.metrics ?? metrics.registry,
    health: {
      dependencies: [
        { name: 'postgres', essential: true, check: () => sql`select 1` },
        { name: 'journal', essential: true, check: () => partitions.check() },
        ...columnarHealth({ client: columnar, owned: () => partitions.owned() }),
      ],
      lags: {
        clickhouse: () => sumOf(partitions, ({ journal, sink }) => journal.endSeq - sink.loadedSeq()),
        run_statistics: () => sumOf(partitions, ({ statistics }) => statistics.lag()),
        outbox: () => outboxLag(sql),
        run_usage: () => usageLag(sql),
        live_feeds: () => sumOfHubs(feeds, (hub) => hub.lag()),
        webhook_results: () => deliveries.unstored(),
      },
      setAside: metrics.setAside,
      owned: () => partitions.owned(),
      setBack: incidents,
      clock,
      loops,
      isStopping,
    },
  }
}

function sumOf(partitions: Partitions, measure: (owned: OwnedPartition) => number): number {
  return partitions.owned().reduce((sum, owned) => sum + measure(owned), 0)
}
