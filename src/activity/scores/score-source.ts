import type { RunRef } from '../../base/ids.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import type { LoadProgress } from '../../stores/sink/sink.ts'
import { behind, HAS_IT_ALL, type KnownMark } from '../events/id-index.ts'
import type { ScoreSource } from './score-index.ts'

const CATCH_UP_MS = 5_000
/** Rows of an answer: parsing it holds the event loop. */
const PAGE_ROWS = 20_000

interface Stored {
  readonly run_id: string
  readonly score_id: string
  readonly hash: number
}

/**
 * Reads the hashes of scores from ClickHouse, once it has everything acknowledged so far. While ClickHouse is unavailable, calls
 * with ids for runs that are not in memory are refused, because they might store a score twice.
 */
export function createScoreSource(deps: {
  readonly loading: LoadProgress
  readonly client: ColumnarClient
  readonly columnarMark: () => KnownMark
}): ScoreSource {
  async function select<Row>(runs: readonly RunRef[], sql: string, params: Record<string, unknown>): Promise<Row[]> {
    if (!(await deps.loading.waitForAll(CATCH_UP_MS))) throw behind()
    const workspace = runs[0].workspaceId
    const all = { workspace, runs: runs.map(({ runId }) => runId), ...deps.columnarMark(), ...params }
    return deps.client.query<Row>(sql, { params: all }).catch((error) => {
      throw behind(error)
    })
  }
  const from = `from scores where workspace_id = {workspace:UUID} and run_id in {runs:Array(UUID)} and ${HAS_IT_ALL}`
  const columns = 'select run_id, score_id, argMax(content_hash, seq) as hash'
  return {
    async counts(runs) {
      const sql = `select run_id, uniqExact(score_id) as scores ${from} group by run_id`
      const rows = await select<{ run_id: string; scores: number }>(runs, sql, {})
      return new Map(rows.map(({ run_id, scores }) => [run_id, scores]))
    },
    async all(runs, visit) {
      let after: Pick<Stored, 'run_id' | 'score_id'> | undefined
      for (;;) {
        const rest = after === undefined ? '' : 'and (run_id, score_id) > ({afterRun:UUID}, {afterId:String})'
        const sql = `${columns} ${from} ${rest} group by run_id, score_id order by run_id, score_id limit ${PAGE_ROWS}`
        const start = after === undefined ? {} : { afterRun: after.run_id, afterId: after.score_id }
        const rows = await select<Stored>(runs, sql, start)
        for (const { run_id, score_id, hash } of rows) visit(run_id, score_id, hash)
        if (rows.length < PAGE_ROWS) return
        after = rows.at(-1)
      }
    },
    async among(wanted, visit) {
      const runs = [...new Map(wanted.map(({ run }) => [run.runId, run])).values()]
      const pairs = { ofRuns: wanted.map(({ run }) => run.runId), ids: wanted.map(({ id }) => id) }
      const isWanted = '(run_id, score_id) in arrayZip({ofRuns:Array(UUID)}, {ids:Array(String)})'
      const sql = `${columns} ${from} and ${isWanted} group by run_id, score_id`
      for (const { run_id, score_id, hash } of await select<Stored>(runs, sql, pairs)) visit(run_id, score_id, hash)
    },
  }
}
