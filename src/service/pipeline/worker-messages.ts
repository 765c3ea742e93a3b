import type { Signal } from '../../tenants/partitions/shared/signals.ts'

/** Messages from the supervisor to a worker, over the IPC channel of the child process. */
export type ToWorker =
  | { readonly type: 'start'; readonly start: WorkerStart }
  /** A signal that another worker has published. */
  | { readonly type: 'signal'; readonly signal: Signal }
  /** A query of this workspace forced a restart of ClickHouse. */
  | { readonly type: 'stuck'; readonly workspaceId: string }

/** Messages from a worker to the supervisor. */
export type FromWorker =
  | { readonly type: 'ready' }
  /** The worker cannot start; the operator can fix the problem. */
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
