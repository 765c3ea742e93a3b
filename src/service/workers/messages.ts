import type { Signal } from '../../partitions/shared/signals.ts'

/** What the supervisor tells a worker, over the channel of a child process. */
export type ToWorker =
  | { readonly type: 'start'; readonly start: WorkerStart }
  /** Another worker has published it. */
  | { readonly type: 'signal'; readonly signal: Signal }
  /** A query of this workspace forced a restart of ClickHouse. */
  | { readonly type: 'stuck'; readonly workspaceId: string }

/** What a worker tells the supervisor. */
export type FromWorker =
  | { readonly type: 'ready' }
  /** It cannot start, for a reason that the operator can change. */
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'signal'; readonly signal: Signal }
  /** Postgres has gone back to an earlier state, so all workers must be restarted. */
  | { readonly type: 'outdated' }

/** What a worker needs besides the configuration, which it reads itself. */
export interface WorkerStart {
  /** Counted from 0. */
  readonly index: number
  readonly instanceId: string
  /** The process that it replaces. */
  readonly previousInstanceId: string | undefined
  readonly port: number
  /** The URLs contain passwords. */
  readonly databaseUrl: string
  readonly clickhouseUrl: string
  /** The number of partitions. */
  readonly partitions: number
  /** Signs what the workers send each other. */
  readonly secret: string
}
