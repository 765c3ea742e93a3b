import type { Clock } from '../../base/clock.ts'
import type { PricesOnDemand, PriceTable } from '../../base/conventions/prices.ts'
import type { SharedSlice } from '../../base/http/shared-slice.ts'
import type { Limits } from '../../base/limits.ts'
import type { Log } from '../../base/log.ts'
import type { Loops } from '../../base/loops.ts'
import type { Connections } from '../../feeds/live/connections.ts'
import type { EgressAllowList } from '../../outbound/egress/allow-list.ts'
import type { Egress } from '../../outbound/egress/egress.ts'
import type { Model } from '../../outbound/model/model.ts'
import type { SchemaChecks } from '../../outbound/model/output-schema.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { KeyRing } from '../../tenants/keys/key-ring.ts'
import type { Peers } from '../../tenants/partitions/shared/peers.ts'
import type { Secrets } from '../../tenants/secrets/store.ts'
import type { ChangeSignals } from './change-signals.ts'

/** How hosted agents are run (docs/hosted-agents.md). */
export interface HostedConfig {
  /** Without a key and an address no agent can be invoked. */
  readonly openAiApiKey: string | undefined
  readonly openAiBaseUrl: string | undefined
  readonly modelPrices: PriceTable
  /** What tools may access besides public addresses. */
  readonly egressAllow: EgressAllowList
  /** Encrypts the secrets of workspaces; undefined: use a key file in `dataDir`. */
  readonly secretsKey: Uint8Array | undefined
  /** Concurrent runs of this process, in total and per workspace; child runs use the slots of their root runs. */
  readonly runsAtOnce: number
  readonly runsAtOncePerWorkspace: number
  /** Queued runs of a workspace. */
  readonly queuedRuns: number
  /** How long invoke waits for a run; then the run continues without its caller. */
  readonly waitMs: number
  /** How long a paused run waits for a decision; null: forever. */
  readonly pauseMs: number | null
}

/** What the parts of hosted agents share; each takes the members that it needs. */
export interface HostedContext {
  readonly sql: Sql
  /** A connection of its own for the statements that run every second. */
  readonly patrol: Sql
  readonly clock: Clock
  readonly log: Log
  /** Supervises the background loops of runs and pauses. */
  readonly loops: Pick<Loops, 'repeat'>
  readonly limits: Limits
  readonly config: HostedConfig
  /** This process, in the table `instances`. */
  readonly owner: string
  readonly ring: Pick<KeyRing, 'authenticateFeed' | 'gone'>
  readonly connections: Connections
  /** How long a client may read nothing before it is cut off. */
  readonly slowConsumerMs: number
  /** Silence after which a stream sends a heartbeat. */
  readonly heartbeatMs: number
  readonly model: Model
  readonly egress: Egress
  readonly secrets: Secrets
  readonly schemas: SchemaChecks
  readonly prices: PricesOnDemand
  /**
   * Each run yields before it computes for long, so that many runs at the same step do not block
   * the event loop.
   */
  readonly slice: SharedSlice
  /** Keyed by the root run; notified when a model call has ended. */
  readonly budgetChanges: ChangeSignals
  /** The other processes that execute runs; undefined in a process that works alone. */
  readonly peers: Peers | undefined
  /** Called after each commit that has written to the outbox. */
  readonly onChange: () => void
}
