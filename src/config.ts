import { resolve } from 'node:path'

/** Limits of a request (contract section 1), published by `GET /api/v1/limits`. Sizes in bytes, lengths in characters. */
export interface Limits {
  readonly body_bytes: number
  readonly events_per_call: number
  readonly event_payload_bytes: number
  readonly run_input_bytes: number
  readonly run_output_bytes: number
  readonly type_length: number
  readonly task_name_length: number
  readonly external_id_length: number
  readonly tags: number
  readonly tag_length: number
  readonly json_depth: number
}

/** Budgets per key; 0 means unlimited (contract section 8). */
export interface RateLimits {
  readonly ingestRequestsPerMinute: number
  readonly eventsPerSecond: number
  readonly invokesPerMinute: number
  readonly readsPerMinute: number
  readonly queriesPerMinute: number
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Everything the environment decides, parsed once. Nothing else in the service reads `process.env`. */
export interface Config {
  readonly port: number
  readonly host: string
  /** Absolute. Holds the lock, the journal and the embedded stores. */
  readonly dataDir: string
  /** Undefined: embedded Postgres in `dataDir`. */
  readonly databaseUrl: string | undefined
  /** Undefined: embedded ClickHouse in `dataDir`. */
  readonly clickhouseUrl: string | undefined
  readonly operatorToken: string | undefined
  readonly bootstrapWorkspaceKey: string | undefined
  readonly logLevel: LogLevel
  readonly limits: Limits
  readonly rateLimits: RateLimits
  /** The journal refuses appends (503) past this many bytes that ClickHouse has not taken yet. */
  readonly journalMaxBytes: number
  /** How long loaded journal segments are kept for feeds that resume, and how much of them. */
  readonly journalKeepBytes: number
  /** Longest a request body may take to arrive. */
  readonly bodyTimeoutMs: number
}
