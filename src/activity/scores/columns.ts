import { parseTimestamp } from '../../base/timestamp.ts'
import { Bytes } from '../../stores/clickhouse/bytes.ts'
import { SCORE_CELLS as CELLS, type ScoreColumns } from '../../stores/journal/rows.ts'
import { SCORE_SOURCES } from '../../stores/journal/scores.ts'
import type { NewScore } from './schema.ts'

/** Scores as columns, with the runs that their cells refer to. */
export interface ColumnsOfRuns extends ScoreColumns {
  readonly count: number
  readonly hasIds: boolean
  /** In lower case. */
  readonly runIds: readonly string[]
  /** The index of a score in the request. */
  indexOf(row: number): number
}

/** Lays out scores in the columns that a scan of `POST /api/ingest/v1/scores` makes of its body. */
export function columnsOf(scores: readonly NewScore[]): ColumnsOfRuns {
  const out = new Bytes(scores.length * 128)
  const cells = new Int32Array(scores.length * CELLS.count).fill(-1)
  const value = new Float64Array(scores.length)
  const createdAt = new Float64Array(scores.length).fill(Number.NaN)
  const runs = new Map<string, number>()
  scores.forEach((score, row) => {
    const at = row * CELLS.count
    const put = (cell: number, text: string | undefined) => {
      if (text === undefined) return
      cells[at + cell] = out.length
      out.text(text)
      cells[at + cell + 1] = out.length
    }
    const runId = score.run_id.toLowerCase()
    const run = runs.get(runId) ?? runs.size
    runs.set(runId, run)
    cells[at + CELLS.run] = run
    cells[at + CELLS.dataType] = dataTypeOf(score)
    cells[at + CELLS.source] = score.source === undefined ? 0 : SCORE_SOURCES.indexOf(score.source) + 1
    put(CELLS.id, score.id)
    put(CELLS.name, score.name)
    put(CELLS.taskId, score.task_id)
    put(CELLS.eventId, score.event_id)
    put(CELLS.sessionId, score.session_id)
    put(CELLS.label, score.label)
    put(CELLS.text, score.text)
    put(CELLS.comment, score.comment)
    put(CELLS.metadata, score.metadata?.text)
    value[row] = Number(score.value ?? 0)
    createdAt[row] = score.created_at === undefined ? Number.NaN : (parseTimestamp(score.created_at) ?? Number.NaN)
  })
  return {
    text: out.buffer,
    cells,
    value,
    createdAt,
    count: scores.length,
    runIds: [...runs.keys()],
    hasIds: scores.some(({ id }) => id !== undefined),
    indexOf: (row) => row,
  }
}

/** The index in `DATA_TYPES`, from 1. */
function dataTypeOf({ value, label }: NewScore): number {
  if (value !== undefined) return typeof value === 'boolean' ? 2 : 1
  return label === undefined ? 4 : 3
}
