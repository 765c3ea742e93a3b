import { t } from 'elysia'
import { Accepted, Described, FreeForm, Named, Timestamp, Uuid } from '../../base/http/schema.ts'
import { LEVELS } from '../../stores/journal/levels.ts'

/** Types of system events, which callers must not report (docs/events.md). */
export const RESERVED_TYPE_PREFIXES = ['run.', 'task.', 'approval.', 'input.'] as const

/** An event as callers send it (docs/events.md). Checked by `scan.ts`; here for the documentation. */
const NewEvent = Named(
  'NewEvent',
  t.Object({
    id: t.Optional(
      t.String({
        minLength: 1,
        maxLength: 64,
        description: 'A second event of the run with the same id is a duplicate.',
      }),
    ),
    task_id: t.Optional(
      Described(Uuid, 'The task of the run that the event is part of. The task may be reported later.'),
    ),
    type: t.String({
      minLength: 1,
      maxLength: 200,
      description: `The type of the event. The prefixes ${RESERVED_TYPE_PREFIXES.join(', ')} are reserved for system events.`,
    }),
    level: t.Optional(t.UnionEnum(LEVELS, { default: 'info', description: 'How severe the event is.' })),
    payload: t.Optional(Described(FreeForm, 'The content of the event. Default `{}`.')),
    occurred_at: t.Optional(Described(Timestamp, 'When it happened, in RFC 3339; default: the time of the call.')),
  }),
)

/** Body of `POST /api/ingest/v1/events`. */
export const AppendEvents = Named(
  'AppendEvents',
  t.Object({
    run_id: Described(Uuid, 'The run that the events belong to.'),
    events: t.Array(NewEvent, { minItems: 1, maxItems: 5_000, description: 'The events, in order.' }),
  }),
)

/** Response of `POST /api/ingest/v1/events`. `first_seq` and `last_seq` are null when nothing was stored. */
export const EventsAccepted = Accepted(
  'Events',
  'event',
  'Events that the run already had, by their id; they were not stored again.',
)
export type EventsAccepted = typeof EventsAccepted.static
