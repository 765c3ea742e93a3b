import { Type } from '@sinclair/typebox'
import { t } from 'elysia'
import {
  Accepted,
  Body,
  Count,
  Described,
  FreeForm,
  Named,
  Nullable,
  OneOf,
  Page,
  Text,
  Timestamp,
  TimestampIn,
  Uuid,
} from '../../base/http/schema.ts'
import { SCORE_SOURCES } from '../../stores/journal/scores.ts'

/** The wire format of scores (docs/scores.md). */

/** Lengths in characters. */
export const SCORE_LENGTHS = {
  id: 255,
  event_id: 64,
  session_id: 255,
  name: 200,
  label: 1_000,
  text: 100_000,
  comment: 10_000,
} as const

const ScoreSourceName = Named('ScoreSource', OneOf(SCORE_SOURCES, 'Who or what gave the score.'))

const value = Type.Union([Type.Number(), Type.Boolean()], {
  description: 'A number, or true or false, which SQL shows as 1 and 0.',
})
const name = Text({
  minLength: 1,
  maxLength: SCORE_LENGTHS.name,
  description: 'What is scored, such as `correctness`.',
})

const given = {
  id: t.Optional(
    Text({
      minLength: 1,
      maxLength: SCORE_LENGTHS.id,
      description:
        'Identifies the score in its run: a later score with the same id replaces it, and one with the same content is ' +
        'a duplicate. Default: a new ULID.',
    }),
  ),
  task_id: t.Optional(Described(Uuid, 'The task of the run that is scored. At most one of task, event and session.')),
  event_id: t.Optional(
    Text({ minLength: 1, maxLength: SCORE_LENGTHS.event_id, description: 'The event of the run that is scored.' }),
  ),
  session_id: t.Optional(
    Text({ minLength: 1, maxLength: SCORE_LENGTHS.session_id, description: 'The session that is scored.' }),
  ),
  name,
  value: t.Optional(value),
  label: t.Optional(
    Text({ minLength: 1, maxLength: SCORE_LENGTHS.label, description: 'A category, such as `refund`.' }),
  ),
  text: t.Optional(Text({ minLength: 1, maxLength: SCORE_LENGTHS.text, description: 'A verdict in words.' })),
  comment: t.Optional(Text({ maxLength: SCORE_LENGTHS.comment, description: 'The reason for the score.' })),
  source: t.Optional(
    Described(ScoreSourceName, 'Default: `person` for people who are signed in and for feed tokens, otherwise `api`.'),
  ),
  metadata: t.Optional(Described(FreeForm, 'Any other data to store with the score. Default `{}`.')),
  created_at: t.Optional(Described(TimestampIn, 'When the score was given. Default: the time of the call.')),
}

/** A score of a known run: body of `POST /api/v1/runs/:run_id/scores`. At least one of value, label and text is required. */
export const NewRunScore = Named('NewRunScore', Body(given))
export type NewRunScore = typeof NewRunScore.static

/** A score as callers send it. At least one of value, label and text is required. */
export const NewScore = Named('NewScore', Body({ run_id: Described(Uuid, 'The run that is scored.'), ...given }))
export type NewScore = typeof NewScore.static

/** Body of `POST /api/ingest/v1/scores`. Read by `scan.ts`; here for the documentation. */
export const AddScores = Named(
  'AddScores',
  Body({
    scores: t.Array(NewScore, { minItems: 1, maxItems: 5_000, description: 'The scores, in order. Of any runs.' }),
  }),
)

/** Response of `POST /api/ingest/v1/scores`. */
export const ScoresAccepted = Accepted(
  'Scores',
  'score',
  'Scores that their run already had, with the same id and content; they were not stored again.',
)
export type ScoresAccepted = typeof ScoresAccepted.static

const stored = {
  id: t.String({ description: 'Identifies the score in its run.' }),
  task_id: Described(Nullable(Uuid), 'The task that is scored.'),
  event_id: Described(Nullable(t.String()), 'The event that is scored.'),
  session_id: Described(Nullable(t.String()), 'The session that is scored.'),
  name: t.String({ description: 'What is scored.' }),
  value: Described(Nullable(value), 'A number, or true or false; null if the score has only a label or text.'),
  label: Described(Nullable(t.String()), 'A category.'),
  text: Described(Nullable(t.String()), 'A verdict in words.'),
  comment: Described(Nullable(t.String()), 'The reason for the score.'),
  source: ScoreSourceName,
  metadata: Described(FreeForm, 'Data that the caller stores with the score.'),
  created_at: Described(Timestamp, 'When the score was given.'),
}

/** A score as feeds show it. */
export const ScoreOfFeed = Named('ScoreOfFeed', t.Object(stored, { description: 'A score of a run.' }))

/** A score as clients read it. */
export const ScoreRecord = Named(
  'Score',
  t.Object(
    {
      ...stored,
      run_id: Described(Uuid, 'The run that is scored.'),
      agent_id: Described(Uuid, 'The agent of that run.'),
      seq: Count('Its position in the order of acceptance, as in the cursors of feeds.'),
      received_at: Described(Timestamp, 'When the service accepted it.'),
    },
    { description: 'The latest state of a score.' },
  ),
)
export type ScoreRecord = typeof ScoreRecord.static

export const ScorePage = Page('ScorePage', ScoreRecord)
export type ScorePage = typeof ScorePage.static
