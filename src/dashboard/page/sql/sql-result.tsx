import { count, duration } from '../../../base/format.ts'
import { pushQuery } from '../context/router.ts'
import type { Result } from '../data/api.ts'
import { Button, openTab, Tabs } from '../parts/controls.tsx'
import { zoomOf } from '../parts/range.tsx'
import { ChartControls } from './chart-controls.tsx'
import { type ChartChoice, canDraw } from './chart-plan.ts'
import { ResultChart } from './result-chart.tsx'
import { ResultTable } from './result-table.tsx'
import { SQL } from './sql-address.ts'
import type { SqlState } from './sql-state.ts'
import { usesRange } from './time-params.ts'

const TABS = { table: 'Table', chart: 'Chart' }

/** The answer of a query as a table or a chart, and as a file. */
export function ResultPanel({ result, sql }: { readonly result: Result; readonly sql: SqlState }) {
  const hasChart = canDraw(result)
  const tab = hasChart ? openTab({ name: 'as', tabs: TABS }) : 'table'
  const choice = SQL.value.chart
  const zoom = usesRange(sql.text) ? (fromMs: number, toMs: number) => pushQuery(zoomOf(fromMs, toMs)) : undefined
  return (
    <section class="panel result" aria-label="Result">
      <div class="result-head">
        {hasChart && <Tabs label="Show the result as" name="as" tabs={TABS} />}
        <span class="hint" role="status">
          {summaryOf(result)}
        </span>
        <div class="head-actions">
          <Button class="small" onClick={() => void sql.download('csv')} icon="download" text="CSV" />
          <Button class="small" onClick={() => void sql.download('parquet')} icon="download" text="Parquet" />
        </div>
      </div>
      {tab === 'chart' ? (
        <>
          <ChartControls
            result={result}
            choice={choice}
            onChange={(to) => SQL.set({ chart: { ...choice, ...to } as ChartChoice })}
          />
          <ResultChart result={result} choice={choice} onZoom={zoom} />
        </>
      ) : (
        <ResultTable result={result} />
      )}
    </section>
  )
}

function summaryOf({ row_count, truncated, statistics }: Result): string {
  const parts = [`${count(row_count)} ${row_count === 1 ? 'row' : 'rows'}`, duration(statistics.elapsed_ms)]
  if (truncated) parts.push('cut here: add a LIMIT or aggregate; the files have all rows')
  return parts.join(' · ')
}
