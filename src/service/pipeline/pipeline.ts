import type { MetricsText } from '../../base/metrics.ts'
import type { LocalJournal } from '../../journal/local/journal.ts'
import type { Forwarder } from '../../keys/forward.ts'
import type { KeyRing } from '../../keys/key-ring.ts'
import type { FeedSource } from '../../live/feed-source.ts'
import type { Feeds } from '../../partitions/feeds.ts'
import type { Partitions } from '../../partitions/partition.ts'
import type { Peers } from '../../partitions/peers.ts'
import type { Cluster } from '../../partitions/shared/schema.ts'
import type { RetentionFloors } from '../../retention/retention-floors.ts'
import type { Sink } from '../../sink/sink.ts'
import type { Incident } from '../../store-marks/store-marks.ts'
import type { ServiceContext } from '../context.ts'
import type { PrivateRoutes } from '../ops/listen.ts'

/** What a pipeline needs. */
export interface PipelineContext extends ServiceContext {
  readonly ring: Pick<KeyRing, 'areRevocationsKnown'>
}

/** The journal with everything that reads it. */
export interface Pipeline {
  readonly partitions: Partitions
  readonly feeds: Feeds<FeedSource>
  readonly forwarder: Forwarder
  /** The other processes that share the partitions; undefined in a process that works alone. */
  readonly peers?: Peers
  readonly retentionFloors: Pick<RetentionFloors, 'raise'>
  /** Call after each commit that wrote to the outbox. Cheap. */
  readonly onChange: () => void
  /** Stores that have gone back to an earlier state. */
  readonly incidents: () => readonly Incident[]
  /** Resolves when Postgres has gone back: memory then holds a later state. */
  readonly outdated: Promise<void>
  /** Describes the nodes and partitions. */
  readonly cluster: () => Promise<Cluster>
  /** Lets this node own partitions, once it can be reached at `url`. */
  join(url: string): Promise<void>
  /** Gives its partitions up. */
  leave(): Promise<void>
  /** What `GET /metrics` answers, where that is not about this process alone. */
  readonly metrics?: MetricsText
  /** Routes for other processes of this machine. */
  readonly privateRoutes?: PrivateRoutes
  /** How many nodes share the budgets of keys. */
  readonly nodes: () => number
  /** What a backup stops while it takes a snapshot; undefined where this process cannot stop everything. */
  readonly snapshot?: { readonly journal: LocalJournal; readonly sink: Sink }
}
