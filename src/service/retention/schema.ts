import { t } from 'elysia'
import { RunParams } from '../../activity/runs/schema.ts'
import { SCORE_LENGTHS } from '../../activity/scores/schema.ts'
import { Count, Described, Named, Nullable, OneOf, Text, Timestamp, Uuid } from '../../base/http/schema.ts'

/** Answer of `DELETE /api/v1/workspaces/:workspace_id`: how much was deleted. */
export const ErasedWorkspace = Named(
  'ErasedWorkspace',
  t.Object({
    workspace_id: Described(Uuid, 'The workspace.'),
    status: t.Literal('erased', { description: 'All of its data is deleted.' }),
    deleted: t.Object(
      {
        events: Count('Deleted events.'),
        runs: Count('Deleted runs.'),
        tasks: Count('Deleted tasks.'),
        agents: Count('Deleted agents.'),
        keys: Count('Deleted keys.'),
      },
      { description: 'The number of deleted objects.' },
    ),
  }),
)
export type ErasedWorkspace = typeof ErasedWorkspace.static

/** A score of a run, in the path. */
export const RunScoreParams = t.Object({
  ...RunParams.properties,
  score_id: Text({ minLength: 1, maxLength: SCORE_LENGTHS.id, description: 'The score.' }),
})

export const ErasureParams = t.Object({ erasure_id: Described(Uuid, 'The erasure.') })

/** Answer of `DELETE /api/v1/runs/:run_id` and `…/scores/:score_id`: how far the deletion is. */
export const RunErasure = Named(
  'RunErasure',
  t.Object({
    erasure_id: Described(Uuid, 'The erasure, for `GET /api/v1/erasures/:erasure_id`.'),
    status: OneOf(
      ['running', 'done'],
      '`done` once no store has anything that was reported for the run, or the score.',
    ),
    requested_at: Described(Timestamp, 'When it was first asked for.'),
    done_at: Described(Nullable(Timestamp), 'When it was verified; null until then.'),
    runs: Count('How many runs it deletes.'),
    scores: Count('How many scores it deletes, not counting those of the run.'),
  }),
)
export type RunErasure = typeof RunErasure.static
