import type { Clock } from '../base/clock.ts'
import type { BodyReader } from '../base/http/body.ts'
import type { RateLimiter } from '../base/http/rate-limit.ts'
import type { SharedSlice } from '../base/http/shared-slice.ts'
import type { Limits } from '../base/limits.ts'
import type { Log } from '../base/log.ts'
import type { Loops } from '../base/loops.ts'
import type { Metrics } from '../base/metrics.ts'
import type { SetAside } from '../base/set-aside.ts'
import type { Teardown } from '../base/teardown.ts'
import type { ColumnarClient } from '../stores/clickhouse/client.ts'
import type { Idempotency } from '../stores/idempotency/store.ts'
import type { Sql } from '../stores/postgres/connect.ts'
import type { Forwarder } from './keys/forward.ts'
import type { Guards } from './keys/guards.ts'
import type { KeyRing } from './keys/key-ring.ts'
import type { Caller } from './keys/schema.ts'
import type { Partitions } from './partitions/partition.ts'

/**
 * What every feature is built from. A feature is a function that takes this, and what it needs of other features; it starts
 * its parts, adds what must be stopped to `teardown`, and returns its `routes` with what other features use of it.
 */
export interface FeatureContext {
  readonly sql: Sql
  readonly columnar: ColumnarClient
  readonly partitions: Partitions
  readonly clock: Clock
  readonly log: Log
  readonly loops: Loops
  readonly teardown: Teardown
  readonly metrics: FeatureMetrics
  readonly limits: Limits
  /** The origin at which people reach the page; undefined: not configured. */
  readonly publicUrl: string | undefined
  readonly ring: KeyRing
  readonly guards: Guards
  readonly limiter: RateLimiter
  readonly reader: BodyReader
  readonly idempotency: Idempotency
  readonly forwarder: Forwarder
  /** Shared by all calls that compute for long. */
  readonly slice: SharedSlice
  /** Call after each commit that wrote to the outbox. Cheap. */
  readonly onChange: () => void
  /** The remote address of a request's client, by which failures are counted. */
  readonly addressOf: (request: Request) => string
  /** Spends the budget of events. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller, events: number) => void
  /** Spends one read. @throws ApiError RATE_LIMITED */
  readonly takeRead: (caller: Caller) => void
}

interface FeatureMetrics {
  readonly registry: Metrics
  readonly setAside: SetAside
  eventsTaken(accepted: number, duplicates: number): void
  scoresTaken(accepted: number, duplicates: number): void
}
