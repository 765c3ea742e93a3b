import { Elysia, t } from 'elysia'
import type { Guards } from '../keys/guards.ts'
import type { EventIngest } from './ingest.ts'
import { AppendEvents, EventsAccepted } from './schema.ts'

/** `POST /api/ingest/v1/events` (spec section 4, contract section 4). */
export function eventRoutes({ guards, ingest }: { guards: Guards; ingest: EventIngest }) {
  return new Elysia({ prefix: '/api/ingest/v1' })
    .use(guards.ingestBytes)
    .post(
      '/events',
      ({ caller, bodyBytes, query, reservation }) =>
        ingest.append(caller, bodyBytes, { partial: query.partial === 'true', mint: reservation?.mint }),
      {
        query: t.Object(
          {
            partial: t.Optional(
              t.UnionEnum(['true', 'false'], {
                // Elysia would fill in the first word.
                default: undefined,
                description: 'Store the good events, list the bad.',
              }),
            ),
          },
          { additionalProperties: false },
        ),
        response: EventsAccepted,
        // The body has no schema to Elysia: `scan.ts` checks the bytes, which is what makes this route fast.
        detail: {
          summary: 'Report events of a run',
          tags: ['Ingest'],
          requestBody: { required: true, content: { 'application/json': { schema: AppendEvents as object } } },
        },
      },
    )
}
