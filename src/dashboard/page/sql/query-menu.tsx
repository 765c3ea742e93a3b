import { useState } from 'preact/hooks'
import { address, hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { listQueries, type SavedQuery } from '../data/boards.ts'
import { useAttempt, useLoad } from '../data/loading.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { Button, CopyButton } from '../parts/controls.tsx'
import { NameDialog } from '../parts/name-dialog.tsx'
import { rangeOf } from '../parts/range.tsx'
import { ProblemText } from '../parts/states.tsx'
import { lookOf, writeChoice } from './chart-plan.ts'
import { PinDialog } from './pin-dialog.tsx'
import { addressOf, placeholdersOf, textsOf } from './placeholders.ts'
import { SQL } from './sql-address.ts'
import { allParams, type Catalogue, readHistory, type SqlState } from './sql-state.ts'
import { timeParams } from './time-params.ts'

const HISTORY_TITLE_LENGTH_MAX = 80

interface QueryMenuProps {
  readonly sql: SqlState
  readonly examples: Catalogue['examples']
}

/** Examples, saved queries and the history; saving, pinning, and a link to the query. */
export function QueryMenu({ sql, examples }: QueryMenuProps) {
  const { api } = useSession()
  const saved = useLoad((signal) => listQueries(api, signal), [])
  const [dialog, setDialog] = useState<'save' | 'pin' | null>(null)
  const { problem, attempt } = useAttempt()
  const items = saved.data ?? []
  const open = openQuery(items, sql)
  const close = () => {
    setDialog(null)
    saved.reload()
  }
  const update = (query: SavedQuery) =>
    attempt(async () => {
      await api.patch(`/api/v1/queries/${query.query_id}`, settingsOf(sql), query.version)
      saved.reload()
    })
  const remove = async (query: SavedQuery) => {
    await api.delete(`/api/v1/queries/${query.query_id}`, query.version)
    SQL.set({ saved: '' })
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
        entries={items.map((each) => ({ title: each.name, open: () => showSaved(sql, each) }))}
      />
      <PickMenu
        label="History"
        entries={readHistory().map((query) => ({ title: titleOf(query), open: () => sql.show(query) }))}
      />
      {open === undefined || isChanged(open, sql) ? (
        <>
          {open !== undefined && (
            <Button needs="admin" class="small" onClick={() => update(open)} text={`Save "${open.name}"`} />
          )}
          <Button
            needs="admin"
            class="small"
            disabled={sql.text.trim() === ''}
            onClick={() => setDialog('save')}
            text={open === undefined ? 'Save' : 'Save as…'}
          />
        </>
      ) : (
        <>
          <Button needs="admin" class="small" icon="pin" onClick={() => setDialog('pin')} text="Pin to a board" />
          <ConfirmButton
            key={open.query_id}
            text={`Delete "${open.name}"`}
            title={`Delete "${open.name}"?`}
            action="Delete it for everyone"
            act={() => remove(open)}
          >
            <p>Boards keep its place until it is removed there.</p>
          </ConfirmButton>
        </>
      )}
      {sql.text.trim() !== '' && (
        <a class="button small" href={hrefOfAlert(sql, open !== undefined && !isChanged(open, sql) ? open : undefined)}>
          Alert on this
        </a>
      )}
      <CopyButton text={() => location.href} label="Copy link" isLabelled />
      <ProblemText text={problem || (saved.problem?.message ?? '')} />
      {dialog === 'save' && <SaveDialog sql={sql} close={close} />}
      {dialog === 'pin' && open !== undefined && <PinDialog query={open} close={close} />}
    </div>
  )
}

/** The form for an alert on the query: on a saved one by its id, so that the alert follows its edits. */
function hrefOfAlert({ text, values }: SqlState, saved: SavedQuery | undefined): string {
  const params = saved === undefined ? addressOf(text, values) : { ...addressOf('', values), saved: saved.query_id }
  return hrefOf('alerts', [], { new: 'yes', ...params })
}

/** The saved query that the address names, or one with the same text. */
function openQuery(items: readonly SavedQuery[], { text }: SqlState): SavedQuery | undefined {
  const { saved } = SQL.value
  return items.find(({ query_id }) => query_id === saved) ?? items.find(({ query }) => query === text)
}

function showSaved(sql: SqlState, { query, params, chart, query_id }: SavedQuery): void {
  const followed = timeParams(query, rangeOf({}, 0))
  const values = Object.entries(textsOf(params as never)).filter(([name]) => !Object.hasOwn(followed, name))
  sql.show(query, Object.fromEntries(values), { saved: query_id, ...lookOf(chart) })
}

/** What is saved: the query, the values of its placeholders, and the chart if one is shown. */
function settingsOf({ text, values }: SqlState) {
  const { as, chart } = SQL.of(address.peek().query)
  return { query: text, params: allParams(text, values), chart: as === 'chart' ? chart : null }
}

/** Whether the view differs from what was saved. Another time range is not a change. */
function isChanged({ query, params, chart }: SavedQuery, sql: SqlState): boolean {
  const { as, chart: choice } = SQL.value
  const look = lookOf(chart)
  const followed = timeParams(sql.text, rangeOf({}, 0))
  const given = textsOf(params as never)
  const hasOtherValue = placeholdersOf(sql.text).some(
    ({ name }) => !Object.hasOwn(followed, name) && (sql.values[name] ?? '') !== (given[name] ?? ''),
  )
  return (
    query !== sql.text ||
    hasOtherValue ||
    look.as !== as ||
    (as === 'chart' && writeChoice(look.chart) !== writeChoice(choice))
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
  const save = async (name: string) => {
    const { query_id } = await api.post<SavedQuery>('/api/v1/queries', { name, ...settingsOf(sql) })
    SQL.set({ saved: query_id })
  }
  const hint = 'Everyone in the workspace sees it, with its chart.'
  return <NameDialog title="Save this query" hint={hint} save={save} close={close} />
}

function titleOf(query: string): string {
  const line = query.replace(/\s+/g, ' ').trim()
  return line.length > HISTORY_TITLE_LENGTH_MAX ? `${line.slice(0, HISTORY_TITLE_LENGTH_MAX)}…` : line
}
