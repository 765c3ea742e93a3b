import { t } from 'elysia'
import { LEVELS } from '../events/schema.ts'
import {
  Body,
  FreeForm,
  Nullable,
  Page,
  PageQuery,
  QueryInt,
  Text,
  Timestamp,
  TimestampIn,
  Uuid,
} from '../http/schema.ts'
import { SEQ_MAX } from '../journal/cursor.ts'
import { RUN_STATUSES } from './state.ts'

/** What of a run goes over the wire (docs/specification.md#runs). */

/** A choice of words. Elysia would fill a missing optional one with the first word, hence the explicit default. */
const NO_DEFAULT = { default: undefined }

const TRIGGER_TYPES = ['manual', 'scheduled', 'webhook', 'sdk'] as const
const TriggerType = t.UnionEnum(TRIGGER_TYPES, NO_DEFAULT)
const RunStatusName = t.UnionEnum(RUN_STATUSES, NO_DEFAULT)

/** Body of `POST /api/ingest/v1/run/start`. */
export const StartRun = Body({
  agent_id: Uuid,
  trigger_type: t.Optional(t.UnionEnum(TRIGGER_TYPES, { default: 'sdk' })),
  input: t.Optional(FreeForm),
  external_run_id: t.Optional(t.String({ description: "The caller's own name for the run." })),
  parent_run_id: t.Optional(Uuid),
  tags: t.Optional(t.Array(t.String())),
  metadata: t.Optional(FreeForm),
  run_id: t.Optional(
    t.String({
      ...Uuid,
      description:
        'Chosen by the caller, so that a start can be repeated safely: a repeat with the same body returns the same ' +
        'run, another body is CONFLICT. Bodies are the same when their fields are, free-form ones byte for byte.',
    }),
  ),
})
export type StartRun = typeof StartRun.static

export const RunStarted = t.Object({ run_id: Uuid })
export type RunStarted = typeof RunStarted.static

/** Body of `POST /api/ingest/v1/run/complete`. */
export const CompleteRun = Body({ run_id: Uuid, output: t.Optional(FreeForm) })
export type CompleteRun = typeof CompleteRun.static

/** Body of `POST /api/ingest/v1/run/fail`. */
export const FailRun = Body({ run_id: Uuid, error_message: t.String(), error_detail: t.Optional(FreeForm) })
export type FailRun = typeof FailRun.static

/** Body of `POST /api/v1/runs/:runId/cancel`. */
export const CancelRun = Body({
  reason: t.Optional(t.String({ description: 'Kept as the error_message of the run.' })),
})
export type CancelRun = typeof CancelRun.static

/** Answer of run/complete, run/fail and cancel. */
export const RunEnded = t.Object({
  run_id: Uuid,
  status: RunStatusName,
  completed_at: Timestamp,
  duration_ms: Nullable(t.Integer({ description: 'From started_at; null for a run that never started.' })),
  already: t.Boolean({ description: 'The run had ended so before; this call changed nothing.' }),
})
export type RunEnded = typeof RunEnded.static

/** A run as clients read it. */
export const RunRecord = t.Object({
  run_id: Uuid,
  agent_id: Uuid,
  agent_version: t.Integer({ description: 'The version of the agent when the run started.' }),
  status: RunStatusName,
  trigger_type: TriggerType,
  external_run_id: Nullable(t.String()),
  parent_run_id: Nullable(Uuid),
  session_id: Nullable(Uuid),
  external_user_id: Nullable(t.String()),
  tags: t.Array(t.String()),
  metadata: FreeForm,
  input: FreeForm,
  output: Nullable(FreeForm),
  error_message: Nullable(t.String()),
  error_detail: Nullable(FreeForm),
  created_at: Timestamp,
  started_at: Nullable(Timestamp),
  completed_at: Nullable(Timestamp),
  duration_ms: Nullable(t.Integer()),
  usage: t.Object({ input_tokens: t.Integer(), output_tokens: t.Integer(), total_tokens: t.Integer() }),
  cost_usd: t.Number(),
  event_count: t.Integer({ description: 'Trails the last accepted event by about a second.' }),
  last_event_at: Nullable(t.String({ ...Timestamp, description: 'When the service received the last event.' })),
  pending: Nullable(FreeForm),
})
export type RunRecord = typeof RunRecord.static

/** Query of `GET /api/v1/runs`. Conditions are joined by AND; `from` is included, `to` is not, both bound `created_at`. */
export const ListRuns = t.Object(
  {
    status: t.Optional(RunStatusName),
    agent_id: t.Optional(Uuid),
    trigger_type: t.Optional(TriggerType),
    external_run_id: t.Optional(Text({ maxLength: 2_000 })),
    parent_run_id: t.Optional(Uuid),
    session_id: t.Optional(Uuid),
    tag: t.Optional(Text({ maxLength: 2_000 })),
    from: t.Optional(TimestampIn),
    to: t.Optional(TimestampIn),
    ...PageQuery,
  },
  { additionalProperties: false },
)
export type ListRuns = typeof ListRuns.static

/** Query of `GET /api/v1/runs/:runId/children`. */
export const ListChildren = t.Object(PageQuery, { additionalProperties: false })

/** Newest first. A page ends early when its runs together pass 8 MiB; `next_cursor` tells whether more follow. */
export const RunPage = Page(RunRecord)
export type RunPage = typeof RunPage.static

/** Query of `GET /api/v1/runs/:runId/events`. */
export const ListEvents = t.Object(
  {
    type: t.Optional(Text({ maxLength: 10_000, description: 'A type, or the start of one and `*`.' })),
    level: t.Optional(t.UnionEnum(LEVELS, { ...NO_DEFAULT, description: 'This level or a higher one.' })),
    after_seq: t.Optional(QueryInt({ minimum: 0, maximum: SEQ_MAX, description: 'Only events after this `seq`.' })),
    ...PageQuery,
  },
  { additionalProperties: false },
)
export type ListEvents = typeof ListEvents.static

/** An event as clients read it (docs/specification.md#events). */
export const EventRecord = t.Object({
  id: t.String(),
  seq: t.Integer(),
  type: t.String(),
  level: t.UnionEnum(LEVELS, NO_DEFAULT),
  payload: FreeForm,
  occurred_at: Timestamp,
  received_at: Timestamp,
})
export type EventRecord = typeof EventRecord.static

/** Oldest first, unlike other lists: a log is read forwards. `next_cursor` is the `after_seq` of the next page. */
export const EventPage = Page(EventRecord)
export type EventPage = typeof EventPage.static

/** `:runId` of a path. */
export const RunParams = t.Object({ runId: Uuid })
