import { useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { failureOf, useAttempt, useLoad } from '../data/loading.ts'
import type { Schemas } from '../data/records.ts'
import { Button, CopyButton, Dialog } from '../parts/controls.tsx'
import { Field } from '../parts/fields.tsx'
import { type Catalogue, paramsOf, readHistory, type SqlState, textsOf } from './sql-state.ts'

type Saved = Schemas['SavedQuery']

const LIST_LIMIT = 200
const HISTORY_TITLE_LENGTH_MAX = 80

interface QueryMenuProps {
  readonly sql: SqlState
  readonly examples: Catalogue['examples']
}

/** Examples, saved queries and the history; saving, and a link to the query. */
export function QueryMenu({ sql, examples }: QueryMenuProps) {
  const { api } = useSession()
  const saved = useLoad((signal) => api.get<Listed<Saved>>('/api/v1/queries', { limit: LIST_LIMIT }, signal), [])
  const [isSaving, setSaving] = useState(false)
  const items = saved.data?.items ?? []
  const shown = items.find(({ query }) => query === sql.text)
  const remove = async (id: string) => {
    await api.delete(`/api/v1/queries/${id}`).catch(failureOf)
    saved.reload()
  }
  return (
    <div class="view-tools">
      <PickMenu
        label="Examples"
        entries={examples.map(({ title, query, params }) => ({ title, open: () => sql.show(query, textsOf(params)) }))}
      />
      <PickMenu
        label="Saved queries"
        entries={items.map(({ name, query, params }) => ({
          title: name,
          open: () => sql.show(query, textsOf(params as never)),
        }))}
      />
      <PickMenu
        label="History"
        entries={readHistory().map((query) => ({ title: titleOf(query), open: () => sql.show(query) }))}
      />
      {shown === undefined ? (
        <Button class="small" disabled={sql.text.trim() === ''} onClick={() => setSaving(true)} text="Save" />
      ) : (
        <button type="button" class="small" onClick={() => void remove(shown.query_id)}>
          Delete "{shown.name}"
        </button>
      )}
      <CopyButton text={() => location.href} label="Copy link" isLabelled />
      {isSaving && (
        <SaveDialog
          sql={sql}
          close={() => {
            setSaving(false)
            saved.reload()
          }}
        />
      )}
    </div>
  )
}

interface PickMenuProps {
  readonly label: string
  readonly entries: readonly { readonly title: string; readonly open: () => void }[]
}

/** A select whose first entry is its label. */
function PickMenu({ label, entries }: PickMenuProps) {
  return (
    <select
      aria-label={label}
      value=""
      disabled={entries.length === 0}
      onChange={({ currentTarget }) => {
        const chosen = entries[Number(currentTarget.value)]
        currentTarget.value = ''
        chosen?.open()
      }}
    >
      <option value="">{label}…</option>
      {entries.map(({ title }, index) => (
        <option key={index} value={index}>
          {title}
        </option>
      ))}
    </select>
  )
}

function SaveDialog({ sql, close }: { readonly sql: SqlState; readonly close: () => void }) {
  const { api } = useSession()
  const [name, setName] = useState('')
  const { problem, submit } = useAttempt()
  const save = submit(async () => {
    await api.post('/api/v1/queries', { name: name.trim(), query: sql.text, params: paramsOf(sql.text, sql.values) })
    close()
  })
  return (
    <Dialog title="Save this query" close={close}>
      <form onSubmit={save}>
        <Field label="Name" hint="Everyone with a workspace key sees it." problem={problem}>
          <input required value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
        </Field>
        <div class="actions">
          <Button type="submit" class="primary" text="Save" />
        </div>
      </form>
    </Dialog>
  )
}

function titleOf(query: string): string {
  const line = query.replace(/\s+/g, ' ').trim()
  return line.length > HISTORY_TITLE_LENGTH_MAX ? `${line.slice(0, HISTORY_TITLE_LENGTH_MAX)}…` : line
}
