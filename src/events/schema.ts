import { t } from 'elysia'
import { FreeForm, Nullable, Timestamp, Uuid } from '../http/schema.ts'
import type { RunIdentity } from '../ids.ts'
import type { EventScan } from './scan.ts'

/** Event levels in rising order; their places (from 1) are the values of the `level` enum in ClickHouse. */
export const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** What the service says of runs itself; a caller must not speak in its name (docs/specification.md#events). */
export const RESERVED_TYPE_PREFIXES = ['run.', 'task.', 'approval.', 'input.'] as const

/** The run that events belong to, as the journal needs it. Never changes once the run exists, so it is safe to cache. */
export interface RunRef extends RunIdentity {
  readonly agentId: string
  readonly runtimeType: 'external' | 'hosted'
}

/** Checked events of one call on their way into the journal: which rows of a scan, under which ids. */
export interface EventBatch {
  readonly run: RunRef
  readonly scan: EventScan
  /** The rows to store, in order; undefined: all of the scan's. */
  readonly rows: readonly number[] | undefined
  /** Event ids by row; undefined where the journal is to mint one. */
  readonly ids: readonly (string | undefined)[] | undefined
}

/** An event as callers send it (docs/specification.md#events). Checked by `scan.ts`; here for the documentation. */
export const NewEvent = t.Object({
  id: t.Optional(
    t.String({
      minLength: 1,
      maxLength: 64,
      description: 'A second event of the run with the same id is a duplicate.',
    }),
  ),
  type: t.String({ minLength: 1, maxLength: 200 }),
  level: t.Optional(t.UnionEnum(LEVELS, { default: 'info' })),
  payload: t.Optional(FreeForm),
  occurred_at: t.Optional(Timestamp),
})

/** Body of `POST /api/ingest/v1/events`. */
export const AppendEvents = t.Object({ run_id: Uuid, events: t.Array(NewEvent, { minItems: 1, maxItems: 5_000 }) })

/** Answer of `POST /api/ingest/v1/events`. `first_seq` and `last_seq` are null when nothing was stored. */
export const EventsAccepted = t.Object({
  accepted: t.Integer(),
  duplicates: t.Integer(),
  first_seq: Nullable(t.Integer()),
  last_seq: Nullable(t.Integer()),
  rejected: t.Optional(
    t.Array(t.Object({ index: t.Integer(), message: t.String() }), {
      description: 'With ?partial=true: the events left out.',
    }),
  ),
})
export type EventsAccepted = typeof EventsAccepted.static
