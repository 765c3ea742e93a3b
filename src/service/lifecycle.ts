import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Progress } from '../base/progress.ts'
import type { DeliveryOptions } from '../feeds/webhooks/delivery/deliveries.ts'
import type { WorkerContext } from './pipeline/workers.ts'

/** A running service. */
export interface Service {
  /** The URL for clients on this machine. */
  readonly url: string
  /** Whether this start created the first workspace. */
  readonly isFirstStart: boolean
  /** The first workspace's key, to be shown once; null on later starts and when the operator provided the key. */
  readonly freshKey: string | null
  /** `BOOTSTRAP_WORKSPACE_KEY` is not valid for any workspace, and none was created for it. */
  readonly isKeyIgnored: boolean
  /**
   * Resolves when Postgres has gone back to an earlier state. This service has cached a later state, so it must be
   * restarted.
   */
  readonly outdated: Promise<void>
  /** Finishes accepted requests, flushes pending writes, and stops all child processes. Safe to call twice. */
  stop(): Promise<void>
}

export interface ServiceOptions {
  readonly log: Log
  readonly progress: Progress
  readonly clock?: Clock
  /** See {@link StoreMarks}. */
  readonly storeMarkIntervalMs?: number
  /** Milliseconds of a second in the durations of alerts; tests take fewer. */
  readonly alertSecondMs?: number
  /** When webhooks are attempted again, for tests. */
  readonly webhooks?: DeliveryOptions
  /** Set if this process is one of several that share a port and a data directory, which the supervisor has locked. */
  readonly worker?: WorkerContext
}
