import { ApiError } from '../../base/errors.ts'
import { type RunRef, runKey } from '../../base/ids.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import type { JournalReader } from '../../stores/journal/journal.ts'
import type { LoadProgress } from '../../stores/sink/sink.ts'
import type { ClaimSource, StoredId } from './claim-index.ts'

/** Where ClickHouse has the ids of a kind of report. */
interface IdTable {
  /** As in FROM. */
  readonly table: string
  readonly id: string
  /** The column with the hash of the content; null where the first report with an id counts. */
  readonly content: string | null
}

export const EVENT_IDS: IdTable = { table: 'events', id: 'event_id', content: null }
export const SCORE_IDS: IdTable = { table: 'scores final', id: 'score_id', content: 'content_hash' }

const CATCH_UP_MS = 5_000
/** Ids of a run that are fetched together with those of others. */
const FEW_IDS = 200
/** Rows of an answer: parsing it holds the event loop. */
const PAGE_ROWS = 20_000

/** Identifies the newest progress that ClickHouse is known to have stored, see `store-marks/`. */
export interface KnownMark {
  readonly journal: string
  readonly beat: number
}

/** Fails when ClickHouse has been set back to an earlier state, where a missing id is not necessarily new. */
const HAS_IT_ALL = `(
  select throwIf(max(beat) < {beat:UInt64}, 'ClickHouse has gone back') from store_marks
  where journal_id = {journal:UUID}
) = 0`

/** The conditions on single columns let ClickHouse find the rows by the order of the table. */
const OF_RUNS = `workspace_id in {workspaces:Array(UUID)} and agent_id in {agents:Array(UUID)} and run_id in {runs:Array(UUID)}
  and ${HAS_IT_ALL}`

/**
 * Reads the ids of reports from ClickHouse. While it is unavailable, calls with caller-chosen ids for runs that are not in
 * memory are refused, because they might store a report twice.
 */
export function createClaimSource(
  { table, id, content }: IdTable,
  deps: {
    readonly journal: Pick<JournalReader, 'endSeq'>
    readonly loading: Pick<LoadProgress, 'waitFor'>
    readonly client: Pick<ColumnarClient, 'query'>
    readonly columnarMark: () => KnownMark
  },
): ClaimSource {
  const entry = `${id}, ${content ?? 1}`
  async function select<Row>(
    runs: readonly RunRef[],
    sql: string,
    params: Record<string, unknown> = {},
  ): Promise<Row[]> {
    const all = { ...deps.columnarMark(), ...paramsOf(runs), ...params }
    return deps.client.query<Row>(sql, { params: all }).catch((error) => {
      throw behind(error)
    })
  }
  return {
    hasContents: content !== null,
    endSeq: () => deps.journal.endSeq,
    async ready(seq) {
      if (!(await deps.loading.waitFor(seq, CATCH_UP_MS))) throw behind()
    },
    async few(runs) {
      const sql = `select workspace_id, run_id, count() as count, groupUniqArray(${FEW_IDS + 1})((${entry})) as ids from ${table}
        where ${OF_RUNS}
          and (workspace_id, agent_id, run_id) in arrayZip({workspaces:Array(UUID)}, {agents:Array(UUID)}, {runs:Array(UUID)})
        group by workspace_id, run_id`
      const rows = await select<RunIds>(runs, sql)
      const found = new Map(rows.map((row) => [runKey(row.workspace_id, row.run_id), row]))
      return runs.map(({ workspaceId, runId }) => {
        const { count, ids } = found.get(runKey(workspaceId, runId)) ?? { count: 0, ids: [] }
        return ids.length <= FEW_IDS ? ids : count
      })
    },
    async all(run) {
      const ids: StoredId[] = []
      for (;;) {
        const sql = `select distinct ${id} as id, ${content ?? 1} as content from ${table}
          where ${OF_RUNS} and ${id} > {after:String} order by id limit ${PAGE_ROWS}`
        const page = await select<{ id: string; content: number }>([run], sql, { after: ids.at(-1)?.[0] ?? '' })
        for (const { id, content } of page) ids.push([id, content])
        if (page.length < PAGE_ROWS) return ids
      }
    },
    async among(wanted, visit) {
      const sql = `select distinct run_id, ${id} as id, ${content ?? 1} as content from ${table}
        where ${OF_RUNS} and ${id} in {ids:Array(String)}
          and (run_id, ${id}) in arrayZip({ofRuns:Array(UUID)}, {ids:Array(String)})`
      const runs = [...new Map(wanted.map(({ run }) => [run.runId, run])).values()]
      const pairs = { ofRuns: wanted.map(({ run }) => run.runId), ids: wanted.map(({ id }) => id) }
      const rows = await select<{ run_id: string; id: string; content: number }>(runs, sql, pairs)
      for (const { run_id, id, content } of rows) visit(run_id, id, content)
    },
  }
}

interface RunIds {
  readonly workspace_id: string
  readonly run_id: string
  readonly count: number
  readonly ids: readonly StoredId[]
}

function paramsOf(runs: readonly RunRef[]) {
  return {
    workspaces: runs.map(({ workspaceId }) => workspaceId),
    agents: runs.map(({ agentId }) => agentId),
    runs: runs.map(({ runId }) => runId),
  }
}

/** Refuses a call whose duplicates cannot be detected. */
function behind(cause?: unknown): ApiError {
  return new ApiError(
    'UNAVAILABLE',
    'ClickHouse is behind, and it is needed to detect duplicates of earlier reports; try again',
    { cause, retryAfterSeconds: 2 },
  )
}
