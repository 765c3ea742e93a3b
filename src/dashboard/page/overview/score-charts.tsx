import { count, counted } from '../../../base/format.ts'
import { hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Queries } from '../data/api.ts'
import { num, numOrNull } from '../data/json.ts'
import { useLoad } from '../data/loading.ts'
import { TimeChart } from '../parts/chart.tsx'
import { bucketsOf, completeBuckets, type TimeRange } from '../parts/range.tsx'
import { SCORES_OVER_TIME } from '../scores/over-time.ts'
import { numberText } from '../scores/score.ts'
import { lookOf } from '../sql/chart-plan.ts'
import { SQL } from '../sql/sql-address.ts'

/** The scores of one name over time. */
interface ScoreSeries {
  readonly name: string
  readonly scores: number
  /** The average of all. */
  readonly mean: number
  /** By bucket; null where none was given. */
  readonly values: readonly (number | null)[]
}

/** Of more names, those with the most scores are shown. */
const NAMES_MAX = 3

const WITHIN = `value IS NOT NULL
    AND created_at >= fromUnixTimestamp64Milli({from:Int64}) AND created_at < fromUnixTimestamp64Milli({to:Int64})`
const SCORES_QUERY = `SELECT name, toUnixTimestamp(toStartOfInterval(created_at, toIntervalSecond({step:UInt32}))) AS bucket,
  count() AS scores, sum(value) AS total
FROM scores
WHERE ${WITHIN} AND name IN (
  SELECT name FROM scores WHERE ${WITHIN} GROUP BY name ORDER BY count() DESC, name LIMIT ${NAMES_MAX}
)
GROUP BY name, bucket`

/** The names with the most scores first. @throws ApiFailure */
export async function readScores(
  queries: Queries,
  range: TimeRange,
  signal: AbortSignal,
): Promise<readonly ScoreSeries[]> {
  const { fromMs, toMs, bucketSeconds } = range
  const { rows } = await queries.run(SCORES_QUERY, { from: fromMs, to: toMs, step: bucketSeconds }, signal)
  const buckets = bucketsOf(range)
  return [...Map.groupBy(rows, ({ name }) => String(name))]
    .map(([name, points]): ScoreSeries => {
      const byBucket = new Map(points.map((row) => [num(row.bucket), num(row.total) / num(row.scores)]))
      const sum = (member: 'scores' | 'total') => points.reduce((all, row) => all + num(row[member]), 0)
      const values = buckets.map((bucket) => numOrNull(byBucket.get(bucket)))
      return { name, scores: sum('scores'), mean: sum('total') / sum('scores'), values }
    })
    .sort((a, b) => b.scores - a.scores || (a.name < b.name ? -1 : 1))
}

interface ScoreChartsProps {
  readonly range: TimeRange
  /** The charts are read again when it changes. */
  readonly inputs: readonly unknown[]
  readonly subject: string
  readonly zoom: (fromMs: number, toMs: number) => void
}

/** The averages of scores over time; nothing while there are none. */
export function ScoreCharts({ range, inputs, subject, zoom }: ScoreChartsProps) {
  const { queries } = useSession()
  const { data = [] } = useLoad((signal) => readScores(queries, range, signal), inputs, { subject })
  if (data.length === 0) return null
  const times = bucketsOf(range)
  const complete = completeBuckets(range, Date.now())
  return (
    <section class="score-charts" aria-label="Scores">
      <div class="charts">
        {data.map(({ name, scores, mean, values }) => (
          <section key={name} class="panel chart-panel">
            <h2>Score: {name}</h2>
            <p class="hint" title={count(scores)}>
              {numberText(mean)} on average of {counted(scores, 'score')}
            </p>
            <TimeChart
              title={`Average of the score ${name} over time`}
              times={times}
              complete={complete}
              format={numberText}
              series={[{ label: 'average', colour: 'chart-2', values }]}
              onZoom={zoom}
            />
          </section>
        ))}
      </div>
      <p>
        <a
          class="button small"
          href={hrefOf('sql', [], SQL.write({ q: SCORES_OVER_TIME, ...lookOf({ kind: 'line' }) }))}
        >
          All scores in SQL
        </a>
      </p>
    </section>
  )
}
