import { t } from 'elysia'
import { cursorCodec, PAGE_LIMIT_DEFAULT } from '../../base/http/page.ts'
import { Int, type PageQuery } from '../../base/http/schema.ts'
import { RawJson } from '../../base/raw-json.ts'
import { SEQ_MAX } from '../../stores/journal/cursor.ts'
import type { ScoreSource } from '../../stores/journal/scores.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { readable } from '../runs/access.ts'
import type { RunDirectory } from '../runs/directory.ts'
import { type LoadedDeps, queryLoaded } from '../runs/events.ts'
import type { ScorePage, ScoreRecord } from './schema.ts'

/** A page ends with the score that makes the total of its texts exceed this. */
const PAGE_BYTES_MAX = 4 << 20

const listCursor = cursorCodec(t.Tuple([Int({ minimum: 1, maximum: SEQ_MAX })]))

/** The scores of runs, from ClickHouse. */
export class ScoreReader {
  constructor(private readonly deps: LoadedDeps & { readonly runs: RunDirectory }) {}

  /**
   * The latest state of each score of a run, the one stored last first, including all that were acknowledged before the request.
   * @throws ApiError NOT_FOUND, FORBIDDEN (the run), VALIDATION_ERROR for an invalid cursor, UNAVAILABLE while ClickHouse is
   *   unavailable or far behind
   */
  async list(caller: Caller, runId: string, query: PageQuery): Promise<ScorePage> {
    const run = readable(caller, await this.deps.runs.find(caller.workspaceId, runId.toLowerCase()))
    const limit = query.limit ?? PAGE_LIMIT_DEFAULT
    const [before] = query.cursor === undefined ? [undefined] : listCursor.decode(query.cursor)
    const sql = `
      select * from (
        select *, count() over () as found,
          sum(bytes) over (order by seq desc rows between unbounded preceding and 1 preceding) as bytes_before
        from (
          select score_id, agent_id, task_id, event_id, session_id, name, value, toString(data_type) as kind, label, text,
            comment, toString(source) as source, metadata, seq, toUnixTimestamp64Milli(created_at) as created_ms,
            toUnixTimestamp64Milli(received_at) as received_ms,
            length(metadata) + ifNull(length(text), 0) + ifNull(length(comment), 0) as bytes
          from scores final
          where workspace_id = {workspace:UUID} and run_id = {run:UUID}
            ${before === undefined ? '' : 'and seq < {before:UInt64}'}
            ${run.deletedScores === undefined ? '' : 'and score_id not in {deleted:Array(String)}'}
          order by seq desc limit {limit:UInt32}
        )
      )
      where bytes_before < {bytes:UInt64}
      order by seq desc limit {limit:UInt32} - 1`
    const rows = await queryLoaded<ScoreListRow>(this.deps, caller, 'scores', sql, {
      workspace: run.workspaceId,
      run: run.runId,
      limit: limit + 1,
      bytes: PAGE_BYTES_MAX,
      ...(before !== undefined && { before }),
      ...(run.deletedScores !== undefined && { deleted: [...run.deletedScores] }),
    })
    const last = rows.at(-1)
    return {
      items: rows.map((row) => toRecord(run.runId, row)),
      next_cursor: last !== undefined && last.found > rows.length ? listCursor.encode([last.seq]) : null,
    }
  }
}

interface ScoreListRow extends Pick<ScoreRecord, 'agent_id' | 'task_id' | 'event_id' | 'session_id' | 'name'> {
  readonly score_id: string
  readonly value: number | null
  readonly kind: string
  readonly label: string | null
  readonly text: string | null
  readonly comment: string | null
  readonly source: ScoreSource
  readonly metadata: string
  readonly seq: number
  readonly created_ms: number
  readonly received_ms: number
  readonly found: number
}

function toRecord(runId: string, row: ScoreListRow): ScoreRecord {
  return {
    id: row.score_id,
    run_id: runId,
    agent_id: row.agent_id,
    task_id: row.task_id,
    event_id: row.event_id,
    session_id: row.session_id,
    name: row.name,
    value: row.kind === 'boolean' ? row.value === 1 : row.value,
    label: row.label,
    text: row.text,
    comment: row.comment,
    source: row.source,
    metadata: new RawJson(row.metadata),
    created_at: new Date(row.created_ms).toISOString(),
    seq: row.seq,
    received_at: new Date(row.received_ms).toISOString(),
  }
}
