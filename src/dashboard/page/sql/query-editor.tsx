import { useEffect, useRef, useState } from 'preact/hooks'
import { NOT_LOADED } from '../parts/lazy-view.tsx'
import { Problem } from '../parts/states.tsx'
import type { Editor } from './editor.ts'
import { type Catalogue, positionOf, type SqlState } from './sql-state.ts'

interface EditorProps {
  readonly sql: EditedQuery
  /** Its tables are completed. */
  readonly catalogue: Catalogue | undefined
}

/** A query that is being written; `shown` replaces the text of the editor when it changes. */
interface EditedQuery extends Pick<SqlState, 'text' | 'shown' | 'problem'> {
  readonly setText: (text: string) => void
  readonly run: () => unknown
}

/** The editor is loaded with the view. The state follows it; it follows only what others show in it. */
export function QueryEditor({ sql, catalogue }: EditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<Editor | null>(null)
  const [hasFailed, setFailed] = useState(false)
  const current = useRef(sql)
  const schema = useRef(catalogue)
  current.current = sql
  schema.current = catalogue
  useEffect(() => {
    let isOpen = true
    void import('./editor.ts').then(
      ({ createEditor }) => {
        const parent = host.current
        // The view may be left meanwhile: the element goes first, and this effect ends after the next paint.
        if (!isOpen || parent === null) return
        editor.current = createEditor({
          parent,
          text: current.current.text,
          onChange: (text) => current.current.setText(text),
          onRun: () => void current.current.run(),
        })
        if (schema.current !== undefined) editor.current.setSchema(columnsOf(schema.current))
        parent.dataset.ready = 'yes'
      },
      () => setFailed(true),
    )
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
  return (
    <div ref={host} class="editor">
      {hasFailed && <Problem problem={NOT_LOADED} retry={() => location.reload()} />}
    </div>
  )
}

function columnsOf({ tables }: Catalogue): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(tables.map(({ name, columns }) => [name, columns.map((column) => column.name)]))
}
