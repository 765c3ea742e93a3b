import { t } from 'elysia'
import {
  Count,
  Described,
  ListQuery,
  Named,
  Nullable,
  OneOf,
  Page,
  Text,
  Timestamp,
  TimestampIn,
  Uuid,
} from '../../base/http/schema.ts'
import { RunStatus } from '../runs/schema.ts'
import { Usage } from '../runs/usage-schema.ts'

/** Wire types of sessions and users (docs/runs.md#sessions-and-users). */

/** Newest runs that the figures of a session or user cover, so that reading them takes bounded time. */
export const SESSION_RUNS_COUNTED = 2_000
/** The same in a list, which has many sessions. */
export const LISTED_RUNS_COUNTED = 200
export const USER_RUNS_COUNTED = 10_000

const SESSION_KINDS = ['hosted', 'external'] as const
const SessionKind = Named(
  'SessionKind',
  OneOf(SESSION_KINDS, '`hosted`: the service itself runs the session. `external`: runs of agents elsewhere name it.'),
)

const figures = {
  failed_count: Count('Those that have failed or timed out.'),
  waiting_count: Count('Those that wait for a person.'),
  usage: Described(Usage, 'Tokens of these runs.'),
  cost_usd: t.Number({ minimum: 0, description: 'Cost of these runs, in US dollars.' }),
  agent_ids: t.Array(Uuid, { description: 'Agents of these runs, ten at most.' }),
}

/** A session as clients see it. */
export const SessionRecord = Named(
  'Session',
  t.Object(
    {
      session_id: t.String({
        description: 'The session: a UUID if it is hosted, or else the name that its runs give it.',
      }),
      kind: SessionKind,
      agent_id: Described(Uuid, 'The agent of the session; of an external one, that of its newest run.'),
      external_user_id: Described(
        Nullable(t.String()),
        "The caller's own name for the user; of an external session, that of the newest run that names one.",
      ),
      message_count: Count('Messages that a hosted session remembers so far; 0 of an external one.'),
      active_run_id: Described(
        Nullable(Uuid),
        'The run that may continue a hosted session now; others wait. Null of an external one.',
      ),
      status: Described(RunStatus, 'The status of the newest run.'),
      run_count: Count(
        `Its runs; only the newest ${SESSION_RUNS_COUNTED.toLocaleString('en')} are counted, in a list ${LISTED_RUNS_COUNTED}.`,
      ),
      is_partial: t.Boolean({ description: 'Whether it has more runs than are counted.' }),
      ...figures,
      external_user_ids: t.Array(t.String(), { description: 'Users that these runs name, ten at most.' }),
      first_message: Nullable(
        t.String({
          description:
            'The input of the first run, shortened; null if it is empty, or an agent key reads a session that very many runs of other agents begin.',
        }),
      ),
      last_message: Nullable(
        t.String({ description: 'The output of the newest run, or else why it failed or its input, shortened.' }),
      ),
      last_run_id: Described(Uuid, 'The newest run.'),
      created_at: Described(Timestamp, 'When the session started.'),
      updated_at: Described(Timestamp, 'When the session last changed.'),
      last_activity_at: Described(Timestamp, 'When one of these runs last began, reported an event, or ended.'),
    },
    { description: 'A conversation over several runs.' },
  ),
)
export type SessionRecord = typeof SessionRecord.static

/** Query of `GET /api/v1/sessions`. */
export const ListSessions = ListQuery({
  kind: t.Optional(Described(SessionKind, 'Sessions of this kind.')),
  agent_id: t.Optional(Described(Uuid, 'Sessions with a run of this agent.')),
  external_user_id: t.Optional(Text({ maxLength: 2_000, description: 'Sessions with a run of this user.' })),
  from: t.Optional(Described(TimestampIn, 'Sessions with a run created at this moment or later.')),
  to: t.Optional(Described(TimestampIn, 'Sessions with a run created before this moment.')),
})
export type ListSessions = typeof ListSessions.static

export const SessionPage = Page('SessionPage', SessionRecord, 'newest activity first')

/** `:session_id` of a path. */
export const SessionParams = t.Object({ session_id: Text({ maxLength: 2_000, description: 'The session.' }) })

/** A user as runs name it. */
export const UserRecord = Named(
  'User',
  t.Object(
    {
      external_user_id: t.String({ description: "The caller's own name for the user." }),
      run_count: Count(`Its runs; at most ${USER_RUNS_COUNTED.toLocaleString('en')} are counted, the newest.`),
      is_partial: t.Boolean({ description: 'Whether it has more runs than are counted.' }),
      session_count: Count('Sessions of these runs.'),
      ...figures,
      failure_rate: Nullable(
        t.Number({
          minimum: 0,
          maximum: 1,
          description:
            'The share of failed runs, those that timed out included, among those that completed or failed; null if none has.',
        }),
      ),
      first_seen_at: Described(Timestamp, 'When the first run of all began.'),
      last_seen_at: Described(Timestamp, 'When one of these runs last began, reported an event, or ended.'),
    },
    { description: 'A user of agents, as runs name it in `external_user_id`.' },
  ),
)
export type UserRecord = typeof UserRecord.static

/** `:external_user_id` of a path. */
export const UserParams = t.Object({ external_user_id: Text({ maxLength: 2_000, description: 'The user.' }) })
