import { columnsOf } from '../../src/activity/scores/columns.ts'
import type { NewScore } from '../../src/activity/scores/schema.ts'
import { NIL_UUID, type RunRef } from '../../src/base/ids.ts'
import type { ScoreBatch } from '../../src/stores/journal/rows.ts'

/** Scores of a run for the journal; without content hashes. */
export function scoreBatch(run: RunRef, scores: readonly Partial<NewScore>[]): ScoreBatch {
  const columns = columnsOf(
    scores.map((score) => {
      const value = score.label === undefined && score.text === undefined ? { value: 1 } : {}
      return { run_id: NIL_UUID, name: 'quality', ...value, ...score }
    }),
  )
  return {
    ...{ runs: [run], scores: columns, rows: scores.map((_, row) => row) },
    ...{ ids: undefined, hashes: undefined, defaultSource: 1 },
  }
}
