import { useEffect, useRef } from 'preact/hooks'
import { address } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import { Button } from '../parts/controls.tsx'
import type { Editor } from './editor.ts'
import { QueryMenu } from './query-menu.tsx'
import { ResultPanel } from './sql-result.tsx'
import { type Catalogue, placeholdersOf, positionOf, type SqlState, textsOf, useSql } from './sql-state.ts'

/** Queries of the workspace in ClickHouse SQL. */
export function SqlView() {
  const { api } = useSession()
  const sql = useSql()
  const { data: catalogue } = useLoad((signal) => api.get<Catalogue>('/api/v1/query/schema', {}, signal), [])
  const first = catalogue?.examples[0]
  // An empty view begins with an example, once the examples are known.
  useEffect(() => {
    if (first !== undefined && sql.text === '' && address.peek().query.q === undefined) {
      sql.replace(first.query, textsOf(first.params))
    }
  }, [first])
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

/** The editor is loaded with the view. The state follows it; it follows only what others show in it. */
function QueryEditor({ sql, catalogue }: { readonly sql: SqlState; readonly catalogue: Catalogue | undefined }) {
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<Editor | null>(null)
  const current = useRef(sql)
  const schema = useRef(catalogue)
  current.current = sql
  schema.current = catalogue
  useEffect(() => {
    let isOpen = true
    void import('./editor.ts').then(({ createEditor }) => {
      if (!isOpen) return
      editor.current = createEditor({
        parent: host.current as HTMLElement,
        text: current.current.text,
        onChange: (text) => current.current.setText(text),
        onRun: () => void current.current.run(),
      })
      if (schema.current !== undefined) editor.current.setSchema(columnsOf(schema.current))
      ;(host.current as HTMLElement).dataset.ready = 'yes'
    })
    return () => {
      isOpen = false
      editor.current?.destroy()
    }
  }, [])
  useEffect(() => editor.current?.setText(sql.shown.text), [sql.shown])
  useEffect(() => editor.current?.setProblem(positionOf(sql.problem, current.current.text), sql.problem), [sql.problem])
  useEffect(() => {
    if (catalogue !== undefined) editor.current?.setSchema(columnsOf(catalogue))
  }, [catalogue])
  return <div ref={host} class="editor" />
}

function columnsOf({ tables }: Catalogue): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(tables.map(({ name, columns }) => [name, columns.map((column) => column.name)]))
}

/** A field for each `{name:Type}` of the query. */
function Placeholders({ sql }: { readonly sql: SqlState }) {
  const found = placeholdersOf(sql.text)
  if (found.length === 0) return null
  return (
    <div class="placeholders">
      {found.map(({ name, type }) => (
        <label key={name}>
          <span>
            {name} <small>{type}</small>
          </span>
          <input
            class="small mono"
            name={name}
            value={sql.values[name] ?? ''}
            onInput={({ currentTarget }) => sql.setValues({ ...sql.values, [name]: currentTarget.value })}
            onKeyDown={({ key }) => key === 'Enter' && void sql.run()}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
      ))}
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
