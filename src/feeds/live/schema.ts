import type { TProperties, TSchema } from '@sinclair/typebox'
import { t } from 'elysia'
import { EventOfFeed, RunOfFeed } from '../../activity/runs/schema.ts'
import { ScoreOfFeed } from '../../activity/scores/schema.ts'
import { TaskRecord } from '../../activity/tasks/schema.ts'
import { Described, Named, OneOf, Timestamp, Uuid } from '../../base/http/schema.ts'
import { ACTIVITY_KINDS, type ActivityKind } from '../../stores/journal/kinds.ts'
import { EventLevel } from '../../stores/journal/levels.ts'

/**
 * Feeds as clients see them (docs/feeds.md). Read by `routes.ts` and `filter.ts`; here for the
 * documentation.
 */

const resume = {
  after: t.Optional(
    t.String({
      description:
        'Resume after this cursor; 0: from the oldest retained activity. A `Last-Event-ID` header takes precedence. ' +
        'Without either, the stream starts with new activity.',
    }),
  ),
  token: t.Optional(t.String({ description: 'A feed token, for browsers; replaces the Authorization header.' })),
}

const repeatable = 'Repeatable; matches any of the values.'

const ActivityKindName = Named(
  'ActivityKind',
  OneOf(ACTIVITY_KINDS as [ActivityKind, ...ActivityKind[]], 'What an activity is about.'),
)

export const StreamQuery = t.Object({
  agent_id: t.Optional(t.Array(Uuid, { description: `Activity of this agent. ${repeatable}` })),
  run_id: t.Optional(t.Array(Uuid, { description: `Activity of this run. ${repeatable}` })),
  task_id: t.Optional(t.Array(Uuid, { description: `Events, scores and tasks only: of this task. ${repeatable}` })),
  session_id: t.Optional(t.Array(t.String(), { description: `Activity of runs of this session. ${repeatable}` })),
  external_user_id: t.Optional(
    t.Array(t.String(), { description: `Activity of runs of this user, by your own name. ${repeatable}` }),
  ),
  kind: t.Optional(t.Array(ActivityKindName, { description: `Activity of this kind. ${repeatable}` })),
  type: t.Optional(t.Array(t.String(), { description: 'Events only. A trailing `*` matches a prefix. Repeatable.' })),
  level: t.Optional(Described(EventLevel, 'Events only: this level or higher.')),
  status: t.Optional(t.Array(t.String(), { description: 'Runs and tasks only. Repeatable, or separated by commas.' })),
  tag: t.Optional(t.Array(t.String(), { description: 'Runs only. Repeatable; matches any of the tags.' })),
  ...resume,
})

export const RunStreamQuery = t.Object(resume)

/** Query of `GET /api/v1/live`: everything else is sent in messages. */
export const LiveQuery = t.Object({ token: resume.token }, { additionalProperties: false })

const activityFields = {
  cursor: t.String({ description: 'Its position: a feed that resumes after it continues with the next activity.' }),
  agent_id: Described(Uuid, 'The agent that it is about.'),
  run_id: Described(Uuid, 'The run that it is about.'),
  received_at: Described(Timestamp, 'When the service accepted it.'),
}

const activity = <Fields extends TProperties>(name: string, description: string, fields: Fields) =>
  Named(name, t.Object({ ...activityFields, ...fields }, { description }))

const EventActivity = activity('EventActivity', 'An event was reported.', {
  kind: t.Literal('event', { description: 'An event was reported.' }),
  event: EventOfFeed,
})
const TaskActivity = activity('TaskActivity', 'A task was created or changed.', {
  kind: t.Literal('task', { description: 'A task changed.' }),
  task: TaskRecord,
})
const RunActivity = activity('RunActivity', 'A run was created or changed.', {
  kind: t.Literal('run', { description: 'A run changed.' }),
  run: RunOfFeed,
})
const ScoreActivity = activity('ScoreActivity', 'A run was scored.', {
  kind: t.Literal('score', { description: 'A run was scored, or a score was replaced.' }),
  score: ScoreOfFeed,
})

const ACTIVITIES = {
  event: EventActivity,
  task: TaskActivity,
  run: RunActivity,
  score: ScoreActivity,
} satisfies Record<ActivityKind, TSchema>

/** The unit of every feed. */
export const Activity = Named(
  'Activity',
  t.Union(Object.values(ACTIVITIES), {
    description: 'Something that happened in the workspace.',
  }),
)

/** Positions whose activity is no longer available. */
export const gapFields = {
  after: t.String({ description: 'The requested cursor.' }),
  resumed_at: t.String({ description: 'The cursor that the feed continues from; activity in between is missing.' }),
}

/** The 200 response of a feed of server-sent events. */
export const ACTIVITY_STREAM = {
  description:
    'Frames with `id` (a cursor), `event` and `data`, until the client disconnects; a comment at least every 10 s. ' +
    '`x-event-stream` has the schema of the data of each event.',
  content: {
    'text/event-stream': {
      schema: { type: 'string' as const },
      'x-event-stream': {
        ...ACTIVITIES,
        gap: Named('StreamGap', t.Object(gapFields, { description: 'Requested activity is missing.' })),
      },
    },
  },
}
