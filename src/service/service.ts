import { SteadyClock } from '../base/clock.ts'
import { type DataDir, openDataDir } from '../base/data-dir.ts'
import { withFields } from '../base/log.ts'
import { Loops } from '../base/loops.ts'
import { Teardown } from '../base/teardown.ts'
import { Penalties } from '../sql/analytics/caps.ts'
import { sweepSnapshots } from './backup/snapshot.ts'
import type { Config } from './config/config.ts'
import type { Service, ServiceOptions } from './lifecycle.ts'
import { watchClock } from './ops/clock-watch.ts'
import { checkPort } from './ops/listen.ts'
import { watchLoopLag } from './ops/loop-lag.ts'
import { createServiceMetrics } from './ops/service-metrics.ts'
import type { ServiceContext } from './pipeline/context.ts'
import { startStores } from './pipeline/stores.ts'
import type { WorkerContext } from './pipeline/workers.ts'

/**
 * Starts the stores, then everything else (`components.ts`). A start that fails leaves nothing running.
 *
 * @throws StartError for problems that the operator can fix
 */
export function startService(config: Config, options: ServiceOptions): Promise<Service> {
  return Teardown.ifStartFails(options.log, async (teardown) => {
    // The modules of the components are loaded while the stores start in their processes.
    const launched = Promise.withResolvers<void>()
    const components = launched.promise.then(() => import('./components.ts'))
    const context = await openContext(config, options, { teardown, onLaunched: launched.resolve })
    const { startComponents } = await components
    return startComponents(context, options)
  })
}

interface Opening {
  readonly teardown: Teardown
  /** Called once the stores are starting in their own processes. */
  readonly onLaunched: () => void
}

/** Locks the data directory and starts the stores. */
async function openContext(
  config: Config,
  options: ServiceOptions,
  { teardown, onLaunched }: Opening,
): Promise<ServiceContext> {
  const { progress, clock = new SteadyClock(), worker } = options
  const metrics = createServiceMetrics()
  teardown.add('loop lag', watchLoopLag(metrics.loopLagged))
  const dataDir = worker === undefined ? openDataDir(config.dataDir) : sharedDataDir(config.dataDir, worker)
  teardown.add('data directory', dataDir.release)
  const log = withFields(options.log, logFieldsOf(config, dataDir, worker))
  teardown.add('clock', watchClock(clock, log, metrics.registry))
  const loops = new Loops(log)
  if (worker === undefined) {
    await checkPort(config)
    await sweepSnapshots(config.dataDir)
  }
  const penalties = new Penalties(config.queries.penaltySeconds)
  worker?.onStuckQuery((workspaceId) => penalties.add(workspaceId))
  const onStuckQuery = (workspaceId: string) => {
    penalties.add(workspaceId)
    log.error('a query could not be cancelled; ClickHouse was restarted', { workspace_id: workspaceId })
  }
  const deps = { log, progress, metrics: metrics.registry, teardown, onStuckQuery, onLaunched }
  const stores = await startStores(config, deps)
  return { ...stores, config, clock, log, progress, metrics, loops, teardown, dataDir, penalties }
}

/** The data directory of a worker, which its supervisor has locked. */
function sharedDataDir(path: string, { instanceId, previousInstanceId }: WorkerContext): DataDir {
  return { path, instanceId, previousInstanceId, release: () => {} }
}

/** The fields that tell the log lines of this process from those of others. */
function logFieldsOf({ cluster }: Config, { instanceId }: DataDir, worker: WorkerContext | undefined): object {
  if (worker !== undefined) return { worker: worker.index }
  return cluster === undefined ? {} : { node: instanceId }
}
