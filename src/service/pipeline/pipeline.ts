import type { MetricsText } from '../../base/metrics.ts'
import type { FeedSource } from '../../feeds/live/feed-source.ts'
import type { LocalJournal } from '../../stores/journal/local/journal.ts'
import type { Sink } from '../../stores/sink/sink.ts'
import type { Forwarder } from '../../tenants/keys/forward.ts'
import type { KeyRing } from '../../tenants/keys/key-ring.ts'
import type { Feeds, Partitions } from '../../tenants/partitions/partition.ts'
import type { Peers } from '../../tenants/partitions/shared/peers.ts'
import type { Cluster } from '../../tenants/partitions/shared/routes.ts'
import type { PrivateRoutes } from '../ops/listen.ts'
import type { RetentionFloors } from '../retention/retention-floors.ts'
import type { Incident } from '../store-marks/store-marks.ts'
import type { ServiceContext } from './context.ts'

/** What a pipeline needs from the service. */
export interface PipelineContext extends ServiceContext {
  readonly ring: Pick<KeyRing, 'areRevocationsKnown'>
}

/** The journal with its consumers and feeds. */
export interface Pipeline {
  readonly partitions: Partitions
  readonly feeds: Feeds<FeedSource>
  readonly forwarder: Forwarder
  /** The other processes that share the partitions; undefined if there are none. */
  readonly peers?: Peers
  readonly retentionFloors: Pick<RetentionFloors, 'raise'>
  /** Call after each commit that wrote to the outbox. Cheap. */
  readonly onChange: () => void
  /** Stores that have gone back to an earlier state. */
  readonly incidents: () => readonly Incident[]
  /** Resolves when Postgres has gone back to an earlier state than the one this process has cached. */
  readonly outdated: Promise<void>
  /** Describes the nodes and partitions. */
  readonly cluster: () => Promise<Cluster>
  /** Lets this node own partitions, once it can be reached at `url`. */
  join(url: string): Promise<void>
  /** Gives up the partitions of this node. */
  leave(): Promise<void>
  /** The response of `GET /metrics`, if it covers more than this process. */
  readonly metrics?: MetricsText
  /** Routes for other processes of this machine. */
  readonly privateRoutes?: PrivateRoutes
  /** How many nodes share the rate limits of keys. */
  readonly nodes: () => number
  /** What a backup holds still while it takes a snapshot; undefined if other processes write, too. */
  readonly snapshot?: { readonly journal: LocalJournal; readonly sink: Sink }
}
