import { Type } from '@sinclair/typebox'
import { t } from 'elysia'
import {
  Body,
  Count,
  Described,
  FreeForm,
  JsonText,
  ListQuery,
  Named,
  Nullable,
  OneOf,
  Page,
  QueryInt,
  QueryList,
  Text,
  Timestamp,
  TimestampIn,
  Uuid,
  Version,
} from '../../base/http/schema.ts'
import { SEQ_MAX } from '../../stores/journal/cursor.ts'
import { EventLevel } from '../../stores/journal/levels.ts'
import { QUERY_LENGTH_MAX } from './search/search-query.ts'
import { RUN_STATUSES } from './state.ts'
import { ReportedUsage, Usage } from './usage-schema.ts'

/** Wire types of runs (docs/runs.md). */

const TRIGGER_TYPES = ['manual', 'scheduled', 'webhook', 'sdk'] as const
const TriggerType = Named('TriggerType', OneOf(TRIGGER_TYPES, 'What started the run.'))
export const RunStatus = Named(
  'RunStatus',
  OneOf(
    RUN_STATUSES,
    '`queued`, `running`, `awaiting_approval` and `awaiting_input` can change; `completed`, `failed`, `cancelled` and ' +
      '`timed_out` are final.',
  ),
)

/** Maximum of the column in Postgres. */
const VERSION_MAX = 2 ** 31 - 1

const RunId = Described(Uuid, 'The run.')
const Output = Described(FreeForm, 'The output of the run.')

/** Body of `POST /api/ingest/v1/run/start`. */
export const StartRun = Named(
  'StartRun',
  Body({
    agent_id: Described(Uuid, 'The agent of the run, which must be the agent of the key.'),
    trigger_type: t.Optional(t.UnionEnum(TRIGGER_TYPES, { default: 'sdk', description: 'What started the run.' })),
    input: t.Optional(Described(FreeForm, 'The input of the run. Default `{}`.')),
    external_run_id: t.Optional(t.String({ description: "The caller's own name for the run." })),
    parent_run_id: t.Optional(Described(Uuid, 'The run of the same workspace that started this one.')),
    session_id: t.Optional(
      t.String({
        description:
          "The caller's own name for the conversation that the run belongs to. The id of a session that the service " +
          'itself runs is a CONFLICT.',
      }),
    ),
    external_user_id: t.Optional(t.String({ description: "The caller's own name for the user." })),
    tags: t.Optional(t.Array(t.String(), { description: 'Labels to find the run by.' })),
    metadata: t.Optional(Described(FreeForm, 'Any other data to store with the run. Default `{}`.')),
    run_id: t.Optional(
      Described(
        Uuid,
        'Chosen by the caller, so that a start can be repeated safely: a repeat with the same body returns the same ' +
          'run, another body is a CONFLICT. Free-form fields are compared byte for byte.',
      ),
    ),
  }),
)
export type StartRun = typeof StartRun.static

export const RunStarted = Named('RunStarted', t.Object({ run_id: RunId }))
export type RunStarted = typeof RunStarted.static

/** Body of `POST /api/ingest/v1/run/complete`. */
export const CompleteRun = Named(
  'CompleteRun',
  Body({ run_id: RunId, output: t.Optional(Output), usage: t.Optional(ReportedUsage) }),
)
export type CompleteRun = typeof CompleteRun.static

/** Body of `POST /api/ingest/v1/run/fail`. */
export const FailRun = Named(
  'FailRun',
  Body({
    run_id: RunId,
    error_message: t.String({ description: 'What went wrong, in one sentence.' }),
    error_detail: t.Optional(Described(FreeForm, 'Details of the failure. Default `{}`.')),
    usage: t.Optional(ReportedUsage),
  }),
)
export type FailRun = typeof FailRun.static

/** Body of `PATCH /api/v1/runs/:run_id`. */
export const EditRun = Named(
  'EditRun',
  Body({
    tags: t.Optional(t.Array(t.String(), { description: 'Labels to find the run by, instead of those it has.' })),
    metadata: t.Optional(Described(FreeForm, 'Data to store with the run, instead of what it has.')),
  }),
)
export type EditRun = typeof EditRun.static

/** Body of `POST /api/v1/runs/:run_id/cancel`. */
export const CancelRun = Named(
  'CancelRun',
  Body({ reason: t.Optional(t.String({ description: 'Stored as the error_message of the run.' })) }),
)
export type CancelRun = typeof CancelRun.static

/** Response of run/complete, run/fail and cancel. */
export const RunEnded = Named(
  'RunEnded',
  t.Object({
    run_id: RunId,
    status: Described(RunStatus, 'How the run ended.'),
    completed_at: Described(Timestamp, 'When it ended.'),
    duration_ms: Nullable(Count('From started_at; null for a run that never started.')),
    already: t.Boolean({ description: 'The run had already ended in this way; this call changed nothing.' }),
  }),
)
export type RunEnded = typeof RunEnded.static

const waitingRun = Described(Uuid, 'The run that waits: this one, or one that it started.')
export const PauseExpiry = Described(Nullable(Timestamp), 'When it expires; null: never.')
export const QuestionOptions = t.Optional(
  t.Array(t.String(), { description: 'Suggested answers; absent if the model gave none.' }),
)

/** What a hosted run waits for. */
const PendingPause = Named(
  'PendingPause',
  t.Union(
    [
      t.Object({
        type: t.Literal('approval', { description: 'A tool call waits for a person to approve it.' }),
        id: Described(Uuid, 'The approval.'),
        run_id: waitingRun,
        tool: t.String({ description: 'The tool to be called.' }),
        input: Described(FreeForm, 'The arguments of the call.'),
        expires_at: PauseExpiry,
      }),
      t.Object({
        type: t.Literal('input', { description: 'The model waits for an answer to its question.' }),
        id: Described(Uuid, 'The input request.'),
        run_id: waitingRun,
        question: t.String({ description: 'What the model asks.' }),
        options: QuestionOptions,
        expires_at: PauseExpiry,
      }),
    ],
    { description: 'What the run waits for.' },
  ),
)

const runFields = {
  run_id: RunId,
  agent_id: Described(Uuid, 'The agent that ran.'),
  agent_version: Type.Integer({ minimum: 1, description: 'The version of the agent when the run started.' }),
  status: RunStatus,
  trigger_type: TriggerType,
  external_run_id: Described(Nullable(t.String()), "The caller's own name for the run."),
  parent_run_id: Described(Nullable(Uuid), 'The run that started this one.'),
  session_id: Described(Nullable(t.String()), 'The session that the run belongs to.'),
  external_user_id: Described(Nullable(t.String()), "The caller's own name for the user."),
  tags: t.Array(t.String(), { description: 'Labels to find the run by.' }),
  metadata: Described(FreeForm, 'Data that the caller stores with the run.'),
}
const runContent = {
  input: Described(FreeForm, 'The input of the run.'),
  output: Described(Nullable(FreeForm), 'The output of the run; null unless it completed.'),
}
const runProgress = {
  error_message: Described(Nullable(t.String()), 'Why the run failed, was cancelled or timed out.'),
  error_detail: Described(Nullable(FreeForm), 'Details of the failure.'),
  created_at: Described(Timestamp, 'When the run was created.'),
  started_at: Described(Nullable(Timestamp), 'When it first ran; null while it is queued.'),
  completed_at: Described(Nullable(Timestamp), 'When it ended; null until then.'),
  duration_ms: Nullable(Count('From started_at to completed_at.')),
  active_ms: Nullable(Count('duration_ms without waiting_ms.')),
  waiting_ms: Count(
    'How long the run waited for people, to approve a call or to answer a question, without the wait that began at ' +
      '`waiting_since`. 0 for external runs.',
  ),
  waiting_since: Described(Nullable(Timestamp), 'Since when it waits for a person; null if it does not.'),
  usage: Usage,
  cost_usd: t.Number({
    minimum: 0,
    description:
      'Cost of all model calls, in US dollars. Trails the last accepted event by about a second, like `usage`.',
  }),
  event_count: Count('Events reported so far. Trails the last accepted event by about a second.'),
  last_event_at: Described(Nullable(Timestamp), 'When the service received the last event.'),
  pending: Described(Nullable(JsonText(PendingPause)), 'What the run waits for; null if it is not waiting.'),
}

/** Not of feeds, which nobody answers with an edit. */
const runVersion = {
  version: Described(
    Version,
    'Begins at 1, and rises with each change of the tags or the metadata, whoever makes it. Also the `ETag`.',
  ),
}

/** A run as clients see it. */
export const RunRecord = Named(
  'Run',
  t.Object(
    { ...runFields, ...runContent, ...runProgress, ...runVersion },
    { description: 'One execution of an agent.' },
  ),
)
export type RunRecord = typeof RunRecord.static

/** A run as feeds show it. */
export const RunOfFeed = Named(
  'RunOfFeed',
  t.Object({ ...runFields, ...runProgress }, { description: 'A run, without its `input` and `output`.' }),
)

const include = t.Optional(
  QueryList(
    OneOf(['input', 'output'], 'Content of runs.'),
    'Content that the runs of the list have: `input`, `output`, or both. Without it they have previews only.',
  ),
)

/** Query of `GET /api/v1/runs/:run_id/children`. */
export const ListChildren = ListQuery({ include })

/**
 * Query of `GET /api/v1/runs`. Conditions are combined with AND; `from` (inclusive) and `to` (exclusive) bound
 * `created_at`.
 */
export const ListRuns = ListQuery({
  q: t.Optional(
    Text({
      minLength: 1,
      maxLength: QUERY_LENGTH_MAX,
      description:
        'Runs in which all of these words and phrases were said: `refund "order 4711"`. Each run says where, in `match`.',
    }),
  ),
  status: t.Optional(
    QueryList(RunStatus, 'Runs of any of these statuses: repeated, or separated by commas, as in `failed,timed_out`.'),
  ),
  agent_id: t.Optional(Described(Uuid, 'Runs of this agent.')),
  agent_version: t.Optional(
    QueryInt({ minimum: 1, maximum: VERSION_MAX, description: 'Runs of this version of their agent.' }),
  ),
  trigger_type: t.Optional(Described(TriggerType, 'Runs with this trigger.')),
  external_run_id: t.Optional(Text({ maxLength: 2_000, description: 'Runs with this external_run_id.' })),
  parent_run_id: t.Optional(Described(Uuid, 'Runs that this run started.')),
  session_id: t.Optional(Text({ maxLength: 2_000, description: 'Runs of this session.' })),
  external_user_id: t.Optional(Text({ maxLength: 2_000, description: 'Runs of this user.' })),
  tag: t.Optional(Text({ maxLength: 2_000, description: 'Runs that have this tag.' })),
  from: t.Optional(Described(TimestampIn, 'Runs created at this moment or later.')),
  to: t.Optional(Described(TimestampIn, 'Runs created before this moment.')),
  include,
})
export type ListRuns = typeof ListRuns.static

export const SearchMatch = Named(
  'SearchMatch',
  t.Object(
    {
      field: OneOf(
        [
          'run_id',
          'external_run_id',
          'session_id',
          'external_user_id',
          'agent_name',
          'tags',
          'error_message',
          'error_detail',
          'input',
          'output',
          'metadata',
          'event.id',
          'event.payload',
          'task.id',
          'task.name',
          'task.input',
          'task.output',
          'task.error_message',
        ],
        'The field of the run, of the event, or of the task.',
      ),
      snippet: t.Array(
        t.Object({
          text: t.String({ description: 'A piece of the text.' }),
          match: t.Optional(t.Literal(true, { description: 'This piece is what was searched.' })),
        }),
        { description: 'The text around the place, in pieces.' },
      ),
      event_id: t.Optional(t.String({ description: 'The event.' })),
      event_seq: t.Optional(Type.Integer({ minimum: 1, description: 'The `seq` of the event.' })),
      event_type: t.Optional(t.String({ description: 'The type of the event.' })),
      task_id: t.Optional(Described(Uuid, 'The task, or the task of the event.')),
    },
    { description: 'Where a run has what was searched.' },
  ),
)
export type SearchMatch = typeof SearchMatch.static

const Searched = Named(
  'Searched',
  t.Object(
    {
      runs_since: Described(
        Nullable(Timestamp),
        'Null if all runs were searched. Otherwise time ran out: only runs created at this moment or later were ' +
          'searched, and `next_cursor` continues with the others.',
      ),
    },
    { description: 'How far a search with `q` got.' },
  ),
)

const preview = (of: string) =>
  Described(
    Nullable(t.String()),
    `One line about the ${of}, of at most 240 characters; null if there is none, or it is too large.`,
  )

/** A run as lists show it. */
export const ListedRun = Named(
  'ListedRun',
  t.Object(
    {
      ...runFields,
      input: t.Optional(Described(FreeForm, 'The input of the run, with `include=input`.')),
      output: t.Optional(
        Described(Nullable(FreeForm), 'The output of the run, with `include=output`; null unless it completed.'),
      ),
      input_preview: preview('input'),
      output_preview: preview('output'),
      ...runProgress,
      ...runVersion,
      match: t.Optional(Described(Nullable(SearchMatch), 'With `q`: a place that matches.')),
    },
    { description: 'A run of a list.' },
  ),
)
export type ListedRun = typeof ListedRun.static

/** Newest first. A page ends early when its runs together pass 8 MiB; `next_cursor` says whether more follow. */
export const RunPage = Page('RunPage', ListedRun)
export type RunPage = typeof RunPage.static

/** {@link RunPage}; with `q`, where each run matches. */
export const RunList = Named(
  'RunList',
  t.Object(
    {
      items: t.Array(ListedRun, { description: 'The items of this page, newest first.' }),
      next_cursor: Described(Nullable(t.String()), '`cursor` of the next page; null at the end of the list.'),
      searched: t.Optional(Searched),
    },
    { description: 'A page of the list of runs, newest first.' },
  ),
)
export type RunList = typeof RunList.static

/** Query of `GET /api/v1/runs/:run_id/events`. */
export const ListEvents = ListQuery({
  type: t.Optional(Text({ maxLength: 10_000, description: 'A type, or the start of one followed by `*`.' })),
  level: t.Optional(Described(EventLevel, 'This level or a higher one.')),
  after_seq: t.Optional(QueryInt({ minimum: 0, maximum: SEQ_MAX, description: 'Only events after this `seq`.' })),
})
export type ListEvents = typeof ListEvents.static

const eventFields = {
  id: t.String({ description: "The caller's id of the event, unique in its run, or a ULID that the service made." }),
  seq: Type.Integer({ minimum: 1, description: 'Its position in the order of acceptance.' }),
  task_id: t.Optional(Described(Uuid, 'The task that it is part of; absent if it names none.')),
  type: t.String({ description: 'The type of the event, such as `llm.call`.' }),
  level: EventLevel,
  payload: Described(FreeForm, 'The content of the event, as it was sent.'),
  occurred_at: Described(Timestamp, 'When it happened, according to the caller.'),
}
/** An event as clients see it (docs/events.md). */
export const EventRecord = Named(
  'Event',
  t.Object(
    { ...eventFields, received_at: Described(Timestamp, 'When the service accepted it.') },
    { description: 'An event of a run.' },
  ),
)
export type EventRecord = typeof EventRecord.static

/** An event as feeds show it: the enclosing activity says when it was received. */
export const EventOfFeed = Named(
  'EventOfFeed',
  t.Object(eventFields, { description: 'An event, without `received_at`.' }),
)

/** Oldest first, unlike other lists: a log is read forwards. `next_cursor` is the `after_seq` of the next page. */
export const EventPage = Page('EventPage', EventRecord, 'oldest first')
export type EventPage = typeof EventPage.static

/** `:run_id` of a path. */
export const RunParams = t.Object({ run_id: RunId })
