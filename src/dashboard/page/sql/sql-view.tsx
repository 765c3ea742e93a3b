import { useEffect, useRef } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import { Button } from '../parts/controls.tsx'
import { RangePicker, rangeOf } from '../parts/range.tsx'
import { PlaceholderFields } from './placeholder-fields.tsx'
import { placeholdersOf, textsOf } from './placeholders.ts'
import { QueryEditor } from './query-editor.tsx'
import { QueryMenu } from './query-menu.tsx'
import { SQL, SQL_TIME } from './sql-address.ts'
import { ResultPanel } from './sql-result.tsx'
import { type Catalogue, type SqlState, useSql } from './sql-state.ts'
import { timeParams, usesRange } from './time-params.ts'

/** Queries of the workspace in ClickHouse SQL. */
export function SqlView() {
  const { api } = useSession()
  const sql = useSql()
  const { data: catalogue } = useLoad((signal) => api.get<Catalogue>('/api/v1/query/schema', {}, signal), [])
  const first = catalogue?.examples[0]
  // An empty view begins with an example, once the examples are known.
  useEffect(() => {
    if (first !== undefined && sql.text === '' && SQL.value.q === '') {
      sql.replace(first.query, textsOf(first.params))
    }
  }, [first])
  const { range, from, to } = SQL_TIME.value
  const isFirst = useRef(true)
  // The view runs the query of a link by itself.
  useEffect(() => {
    if (!isFirst.current && usesRange(sql.text)) void sql.run()
    isFirst.current = false
  }, [range, from, to])
  return (
    <section class="view sql" aria-label="SQL">
      <div class="view-head">
        <h1>SQL</h1>
        <QueryMenu sql={sql} examples={catalogue?.examples ?? []} />
      </div>
      <div class="panel sql-editor">
        <QueryEditor sql={sql} catalogue={catalogue} />
        <Placeholders sql={sql} />
        <div class="actions">
          <Button
            class="primary"
            disabled={sql.isRunning}
            onClick={() => void sql.run()}
            icon="play"
            text={sql.isRunning ? 'Running…' : 'Run'}
          />
          {sql.isRunning && <Button onClick={sql.stop} text="Stop" />}
          <span class="hint">or Ctrl+Enter</span>
        </div>
        {sql.problem !== '' && (
          <p class="problem mono" role="alert">
            {sql.problem}
          </p>
        )}
      </div>
      {sql.result !== null && <ResultPanel result={sql.result} sql={sql} />}
      <Tables catalogue={catalogue} />
    </section>
  )
}

/** A field for each `{name:Type}` of the query, and one time range for those that follow it. */
function Placeholders({ sql }: { readonly sql: SqlState }) {
  const followed = timeParams(sql.text, rangeOf({}, 0))
  const found = placeholdersOf(sql.text).filter(({ name }) => !Object.hasOwn(followed, name))
  const isRanged = usesRange(sql.text)
  if (found.length === 0 && !isRanged) return null
  return (
    <div class="placeholders">
      {isRanged && (
        <div class="placeholder-range">
          <span>
            {Object.keys(followed).join(', ')} <small>time range</small>
          </span>
          <RangePicker time={SQL_TIME} />
        </div>
      )}
      <PlaceholderFields found={found} values={sql.values} setValues={sql.setValues} onEnter={() => void sql.run()} />
    </div>
  )
}

function Tables({ catalogue }: { readonly catalogue: Catalogue | undefined }) {
  return (
    <details class="panel tables-help">
      <summary>Tables and columns</summary>
      {catalogue?.tables.map(({ name, description, columns }) => (
        <section key={name}>
          <h2>
            <code>{name}</code>
          </h2>
          <p class="hint">{description}</p>
          <dl>
            {columns.map((column) => (
              <div key={column.name}>
                <dt>
                  <code>{column.name}</code> <small>{column.type}</small>
                </dt>
                <dd>{column.description}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </details>
  )
}
