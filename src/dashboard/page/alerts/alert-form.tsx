import { useEffect, useRef, useState } from 'preact/hooks'
import { address } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { ALERTS_PATH, type Alert, type AlertTemplate, type AlertTest, pathOfAlert } from '../data/alerts.ts'
import { ApiFailure, type Params, type Result } from '../data/api.ts'
import { listQueries } from '../data/boards.ts'
import { failureOf, useLoad } from '../data/loading.ts'
import { problemAt } from '../data/problems.ts'
import { listWebhooks, nameOf } from '../data/webhooks.ts'
import { CheckList } from '../parts/choices.tsx'
import { Button } from '../parts/controls.tsx'
import { Field } from '../parts/fields.tsx'
import { valuesOf } from '../sql/placeholders.ts'
import { usesRange } from '../sql/time-params.ts'
import { type AlertDraft, draftOfAlert, editBody, newBody, paramsAt } from './alert-draft.ts'
import { ConditionFields, TimingFields } from './alert-fields.tsx'
import { AlertQuery } from './alert-query.tsx'
import { DryRun, type TestRange } from './dry-run.tsx'

interface FormProps {
  /** Null: creates one. */
  readonly alert: Alert | null
  readonly saved: (alert: Alert) => void
}

/** Creates an alert, from a template or a query, or edits one. A dry run shows when it would have fired. */
export function AlertForm({ alert, saved }: FormProps) {
  const { api } = useSession()
  const queries = useLoad((signal) => listQueries(api, signal), [])
  const [draft, setDraft] = useState<AlertDraft>(() => (alert === null ? draftOfAddress() : draftOfAlert(alert)))
  const [shown, setShown] = useState({ text: draft.query })
  const [tried, setTried] = useState<Result | null>(null)
  const [note, setNote] = useState('')
  const [problem, setProblem] = useState<ApiFailure | null>(null)
  const form = useRef<HTMLFormElement>(null)
  const set = (changes: Partial<AlertDraft>) => setDraft((before) => ({ ...before, ...changes }))
  // Moves the focus to the first field that was refused.
  useEffect(() => form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus(), [problem])
  const savedQuery = queries.data?.find(({ query_id }) => query_id === draft.queryId)
  const text = draft.queryId === '' ? draft.query : (savedQuery?.query ?? '')
  /** Does something with the definition; the field that is wrong is marked. */
  const attempt = async <T,>(work: () => Promise<T>): Promise<T> => {
    setNote('')
    setProblem(null)
    try {
      return await work()
    } catch (error) {
      setProblem(failureOf(error))
      throw error
    }
  }
  const save = (event: Event) => {
    event.preventDefault()
    const store = async () => {
      if (alert === null) return api.post<Alert>(ALERTS_PATH, newBody(draft, text))
      const changes = editBody(draft, text, alert)
      return Object.keys(changes).length === 0 ? alert : api.patch<Alert>(pathOfAlert(alert), changes)
    }
    attempt(store).then(
      (stored) => {
        setNote('Saved.')
        saved(stored)
      },
      (error) => setNote(failureOf(error).message),
    )
  }
  const test = async (range: TestRange) => {
    if (!form.current?.reportValidity()) throw new ApiFailure('PAGE', 'Fill in the marked field first.', 0)
    return attempt(async () => api.post<AlertTest>(`${ALERTS_PATH}/test`, { ...newBody(draft, text), ...range }))
  }
  const tryQuery = () =>
    attempt(async () => {
      const params = paramsAt(newBody(draft, text), text, Date.now()) as Params
      setTried(await api.post<Result>('/api/v1/query', { query: text, params }))
    })
  const begin = ({ definition }: AlertTemplate) => {
    setTried(null)
    setShown({ text: definition.query ?? '' })
    setDraft({ ...draftOfAlert(definition), notify: draft.notify })
  }
  const fields = { draft, set, problem, columns: tried?.columns.map(({ name }) => name) ?? [] }
  return (
    <form ref={form} class="alert-form" onSubmit={save}>
      {alert === null && <TemplateChoice begin={begin} />}
      <Field label="Name" problem={problemAt(problem, 'name')}>
        <input
          name="name"
          required
          autocomplete="off"
          aria-invalid={problemAt(problem, 'name') !== ''}
          value={draft.name}
          onInput={({ currentTarget }) => set({ name: currentTarget.value })}
        />
      </Field>
      <AlertQuery
        {...fields}
        text={text}
        shown={shown}
        queries={queries.data ?? []}
        tried={tried}
        tryQuery={tryQuery}
      />
      <ConditionFields {...fields} />
      <TimingFields {...fields} />
      <NotifyList draft={draft} set={set} />
      <DryRun every={draft.every} test={test} />
      <div class="actions">
        <Button needs="admin" type="submit" class="primary" text={alert === null ? 'Create' : 'Save'} />
        <span class={problem === null ? 'hint' : 'bad-text'} role="status">
          {note}
        </span>
      </div>
    </form>
  )
}

/** A new alert on the query that the address names, if it names one. */
function draftOfAddress(): AlertDraft {
  const { q = '', saved = '', ...others } = address.peek().query
  const draft = { ...draftOfAlert(null), query: q, queryId: saved, params: valuesOf(others) }
  return q === '' || usesRange(q) ? draft : { ...draft, window: '' }
}

function TemplateChoice({ begin }: { readonly begin: (template: AlertTemplate) => void }) {
  const { api } = useSession()
  const { data } = useLoad(
    (signal) => api.get<{ readonly items: readonly AlertTemplate[] }>(`${ALERTS_PATH}/templates`, {}, signal),
    [],
  )
  const [chosen, setChosen] = useState('')
  const template = data?.items.find((each) => each.template === chosen)
  return (
    <Field label="Begin with" hint={template?.description ?? 'A template is a complete alert, which you can change.'}>
      <select
        name="template"
        value={chosen}
        onChange={({ currentTarget: { value } }) => {
          setChosen(value)
          const found = data?.items.find((each) => each.template === value)
          if (found !== undefined) begin(found)
        }}
      >
        <option value="">a query of your own</option>
        {data?.items.map((each) => (
          <option key={each.template} value={each.template}>
            {each.definition.name}
          </option>
        ))}
      </select>
    </Field>
  )
}

/** The webhooks to notify. */
function NotifyList({
  draft,
  set,
}: {
  readonly draft: AlertDraft
  readonly set: (changes: Partial<AlertDraft>) => void
}) {
  const { api } = useSession()
  const { data } = useLoad((signal) => listWebhooks(api, signal), [])
  if (data === undefined) return null
  if (data.length === 0) {
    return <p class="hint">There is no webhook to notify yet. The alert shows here and in SQL.</p>
  }
  return (
    <CheckList
      label="Notify these webhooks"
      options={data.map((webhook) => [webhook.webhook_id, nameOf(webhook)] as const)}
      chosen={draft.notify}
      onChange={(notify) => set({ notify })}
    />
  )
}
