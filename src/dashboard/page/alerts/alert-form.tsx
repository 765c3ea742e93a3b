import { useState } from 'preact/hooks'
import { address } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { ALERTS_PATH, type Alert, type AlertTemplate, type AlertTest, pathOfAlert } from '../data/alerts.ts'
import { ApiFailure, type Params, type Result } from '../data/api.ts'
import { listQueries } from '../data/boards.ts'
import { useLoad } from '../data/loading.ts'
import { listWebhooks, namesById } from '../data/webhooks.ts'
import { CheckList } from '../parts/choices.tsx'
import { SelectField, TextField } from '../parts/fields.tsx'
import { Form, type FormState, useForm, useVersion } from '../parts/form.tsx'
import { Loaded } from '../parts/states.tsx'
import { valuesOf } from '../sql/placeholders.ts'
import { SQL } from '../sql/sql-address.ts'
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
  const form = useForm<AlertDraft>(() => (alert === null ? draftOfAddress() : draftOfAlert(alert)))
  const { draft } = form
  const { version, began } = useVersion(alert, draftOfAlert)
  const [shown, setShown] = useState({ text: draft.query })
  const [tried, setTried] = useState<Result | null>(null)
  const savedQuery = queries.data?.find(({ query_id }) => query_id === draft.queryId)
  const text = draft.queryId === '' ? draft.query : (savedQuery?.query ?? '')
  const save = async () => {
    const store = async () => {
      if (alert === null) return api.post<Alert>(ALERTS_PATH, newBody(draft, text))
      const changes = editBody(draft, text, alert)
      return Object.keys(changes).length === 0 ? alert : api.patch<Alert>(pathOfAlert(alert), changes, version)
    }
    const stored = await store()
    began(stored)
    saved(stored)
    form.say('Saved.')
  }
  const test = async (range: TestRange) => {
    if (!form.element.current?.reportValidity()) throw new ApiFailure('PAGE', 'Fill in the marked field first.', 0)
    return form.attempt(async () => api.post<AlertTest>(`${ALERTS_PATH}/test`, { ...newBody(draft, text), ...range }))
  }
  const tryQuery = async () => {
    const params = paramsAt(newBody(draft, text), text, Date.now()) as Params
    setTried(await api.post<Result>('/api/v1/query', { query: text, params }))
  }
  const begin = ({ definition }: AlertTemplate) => {
    setTried(null)
    setShown({ text: definition.query ?? '' })
    form.set({ ...draftOfAlert(definition), notify: draft.notify })
  }
  return (
    <Form form={form} class="alert-form" submit={save} needs="admin" action={alert === null ? 'Create' : 'Save'}>
      {alert === null && <TemplateChoice begin={begin} />}
      <TextField {...form.field('name')} label="Name" required />
      <AlertQuery
        form={form}
        text={text}
        shown={shown}
        queries={queries.data ?? []}
        tried={tried}
        tryQuery={tryQuery}
      />
      <ConditionFields form={form} columns={tried?.columns.map(({ name }) => name) ?? []} />
      <TimingFields form={form} />
      <NotifyList form={form} />
      <DryRun every={draft.every} test={test} />
    </Form>
  )
}

/** A new alert on the query that the address names, if it names one. */
function draftOfAddress(): AlertDraft {
  const { query } = address.peek()
  const { q, saved } = SQL.of(query)
  const draft = { ...draftOfAlert(null), query: q, queryId: saved, params: valuesOf(query) }
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
    <SelectField
      label="Begin with"
      hint={template?.description ?? 'A template is a complete alert, which you can change.'}
      name="template"
      value={chosen}
      set={(name) => {
        setChosen(name)
        const found = data?.items.find((each) => each.template === name)
        if (found !== undefined) begin(found)
      }}
      options={[
        ['', 'a query of your own'],
        ...(data?.items ?? []).map((each) => [each.template, each.definition.name] as const),
      ]}
    />
  )
}

/** The webhooks to notify. */
function NotifyList({ form }: { readonly form: FormState<AlertDraft> }) {
  const { api } = useSession()
  const read = useLoad((signal) => listWebhooks(api, signal), [])
  // One of them may have been deleted: while it is chosen, the service refuses another choice.
  const [given] = useState(form.draft.notify)
  return (
    <Loaded read={read} lines={1}>
      {(webhooks) => {
        const names = namesById(webhooks, given)
        if (names.size === 0)
          return <p class="hint">There is no webhook to notify yet. The alert shows here and in SQL.</p>
        return <CheckList {...form.field('notify')} label="Notify these webhooks" options={[...names]} />
      }}
    </Loaded>
  )
}
