import { useMemo } from 'preact/hooks'
import { count, duration } from '../../../base/format.ts'
import type { Result } from '../data/query.ts'
import { Icon } from '../parts/icons.tsx'
import { openTab, Tabs } from '../parts/tabs.tsx'
import { ResultChart } from './result-chart.tsx'
import { ResultTable } from './result-table.tsx'
import { isNumeric } from './sql-state.ts'
import type { SqlState } from './use-sql.ts'

const TABS = { table: 'Table', chart: 'Chart' }

/** The answer of a query as a table or a chart, and as a file. */
export function ResultPanel({ result, sql }: { readonly result: Result; readonly sql: SqlState }) {
  const canChart = useMemo(
    () => result.rows.length > 0 && result.columns.length > 1 && result.columns.some(isNumeric),
    [result],
  )
  const tab = canChart ? openTab({ name: 'as', tabs: TABS }) : 'table'
  return (
    <section class="panel result" aria-label="Result">
      <div class="result-head">
        {canChart && <Tabs label="Show the result as" name="as" tabs={TABS} />}
        <span class="hint" role="status">
          {summaryOf(result)}
        </span>
        <div class="run-actions">
          <button type="button" class="small" onClick={() => void sql.download('csv')}>
            <Icon name="download" />
            <span>CSV</span>
          </button>
          <button type="button" class="small" onClick={() => void sql.download('parquet')}>
            <Icon name="download" />
            <span>Parquet</span>
          </button>
        </div>
      </div>
      {tab === 'chart' ? <ResultChart result={result} /> : <ResultTable result={result} />}
    </section>
  )
}

function summaryOf({ row_count, truncated, statistics }: Result): string {
  const parts = [`${count(row_count)} ${row_count === 1 ? 'row' : 'rows'}`, duration(statistics.elapsed_ms)]
  if (truncated) parts.push('cut here: add a LIMIT or aggregate; the files have all rows')
  return parts.join(' · ')
}
