import type { Clock } from '../../base/clock.ts'
import type { DataDir } from '../../base/data-dir.ts'
import type { Log } from '../../base/log.ts'
import type { Loops } from '../../base/loops.ts'
import type { Progress } from '../../base/progress.ts'
import type { Teardown } from '../../base/teardown.ts'
import type { Penalties } from '../../sql/analytics/caps.ts'
import type { Config } from '../config/config.ts'
import type { ServiceMetrics } from '../ops/service-metrics.ts'
import type { Stores } from './stores.ts'

/** The configuration and resources that all parts of the service share. */
export interface ServiceContext extends Stores {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly progress: Progress
  readonly metrics: ServiceMetrics
  readonly loops: Loops
  readonly teardown: Teardown
  readonly dataDir: DataDir
  /** Workspaces whose queries are refused temporarily. */
  readonly penalties: Penalties
}
