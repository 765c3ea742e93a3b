import { hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Result } from '../data/api.ts'
import type { SavedQuery } from '../data/boards.ts'
import { useAttempt, useLoad } from '../data/loading.ts'
import { Button } from '../parts/controls.tsx'
import { SelectField } from '../parts/fields.tsx'
import type { FormState } from '../parts/form.tsx'
import { Scrollable } from '../parts/scrollable.tsx'
import { PlaceholderFields } from '../sql/placeholder-fields.tsx'
import { textsOf } from '../sql/placeholders.ts'
import { QueryEditor } from '../sql/query-editor.tsx'
import { ResultTable } from '../sql/result-table.tsx'
import type { Catalogue } from '../sql/sql-state.ts'
import { type AlertDraft, ownPlaceholders } from './alert-draft.ts'

interface QueryProps {
  readonly form: FormState<AlertDraft>
  /** Of the query, also of a saved one. */
  readonly text: string
  /** What the editor is to show; its own text is in the draft. */
  readonly shown: { readonly text: string }
  readonly queries: readonly SavedQuery[]
  /** What the query returned when it was tried. */
  readonly tried: Result | null
  readonly tryQuery: () => Promise<void>
}

const ROWS_SHOWN = 6

/** The query of an alert: a saved one, or its own, with the values of its placeholders. It can be tried. */
export function AlertQuery({ form, text, shown, queries, tried, tryQuery }: QueryProps) {
  const { draft, set } = form
  const { api } = useSession()
  const { data: catalogue } = useLoad((signal) => api.get<Catalogue>('/api/v1/query/schema', {}, signal), [])
  const { problem: failure, attempt } = useAttempt()
  const run = () => void attempt(tryQuery)
  const found = ownPlaceholders(text, draft.window)
  const refused = failure || form.refusedAt('query') || form.refusedAt('query_id')
  const choose = (queryId: string) => {
    const chosen = queries.find(({ query_id }) => query_id === queryId)
    set({ queryId, ...(chosen ? { params: textsOf(chosen.params as never) } : { query: text }) })
  }
  const setText = (query: string) => set({ query })
  return (
    <div class="alert-query">
      <SelectField
        label="Query"
        problem={refused}
        name="query_id"
        value={draft.queryId}
        set={choose}
        options={[['', 'written here'], ...queries.map(({ query_id, name }) => [query_id, name] as const)]}
      />
      {draft.queryId === '' ? (
        <QueryEditor sql={{ text: draft.query, setText, shown, problem: refused, run }} catalogue={catalogue} />
      ) : (
        <Scrollable as="pre" label="The saved query">
          {text}
        </Scrollable>
      )}
      {found.length > 0 && (
        <div class="placeholders">
          <PlaceholderFields
            found={found}
            values={draft.params}
            setValues={(params) => set({ params })}
            onEnter={run}
          />
        </div>
      )}
      <div class="actions">
        <Button class="small" icon="play" disabled={text.trim() === ''} text="Try the query" onClick={run} />
        {draft.queryId !== '' && <a href={hrefOf('sql', [], { q: text, saved: draft.queryId })}>Open it in SQL</a>}
        {draft.window !== '' && (
          <span class="hint">
            <code>{'{from:DateTime64(3)}'}</code> and <code>{'{to:DateTime64(3)}'}</code> are the window.
          </span>
        )}
      </div>
      {tried !== null &&
        (tried.rows.length === 0 ? (
          <p class="hint">No rows at the moment.</p>
        ) : (
          <ResultTable result={tried} rowsMax={ROWS_SHOWN} />
        ))}
    </div>
  )
}
