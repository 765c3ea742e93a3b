import { words } from '../../../base/format.ts'
import { useSession } from '../context/session.ts'
import { RUN_STATUSES } from '../data/records.ts'
import { type NewWebhook, pathOf, WEBHOOKS_PATH, type Webhook } from '../data/webhooks.ts'
import { CheckList, ChipList } from '../parts/choices.tsx'
import { SelectField, TextField } from '../parts/fields.tsx'
import { Form, type FormState, useForm, useVersion } from '../parts/form.tsx'
import { bodyOf, draftOf, type FilterDraft, type Selection, type WebhookDraft } from './webhook-draft.ts'

interface FormProps {
  /** Null: creates one. */
  readonly webhook: Webhook | null
  /** A new one has its secret. */
  readonly saved: (webhook: Webhook | NewWebhook) => void
}

const SELECTIONS: readonly (readonly [Selection, string])[] = [
  ['default', 'Finished runs, approvals and questions'],
  ['filter', 'Activity that matches a filter'],
  ['all', 'All activity'],
]
const FORMATS = [
  ['standard', 'Standard'],
  ['slack', 'Slack message'],
] as const
const SIGNATURES = [
  ['v1', 'HMAC (v1)'],
  ['v1a', 'Ed25519 (v1a)'],
] as const
const ORDERS = [
  ['run', 'Within each run'],
  ['strict', 'Strict, across all runs'],
] as const
const KINDS = [
  ['run', 'Runs'],
  ['task', 'Tasks'],
  ['event', 'Events'],
] as const
const STATUSES = [...RUN_STATUSES, 'pending', 'skipped'].map((name) => [name, words(name)] as const)

/** Creates a webhook, or edits one. */
export function WebhookForm({ webhook, saved }: FormProps) {
  const { api } = useSession()
  const form = useForm(() => draftOf(webhook))
  const { draft, set } = form
  const { version, began } = useVersion(webhook, draftOf)
  const save = async () => {
    const body = bodyOf(draft, webhook === null)
    const stored = await (webhook === null
      ? api.post<NewWebhook>(WEBHOOKS_PATH, body)
      : api.patch<Webhook>(pathOf(webhook), body, version))
    began(stored)
    form.say('Saved.')
    saved(stored)
  }
  return (
    <Form form={form} class="webhook-form" submit={save} needs="admin" action={webhook === null ? 'Create' : 'Save'}>
      <TextField
        {...form.field('url')}
        label="URL"
        hint="Receives a POST request for each delivery."
        type="url"
        required
        placeholder="https://example.com/hooks/runs"
      />
      <TextField {...form.field('description')} label="Description" hint="Optional; what the receiver is for." />
      <SelectField
        {...form.field('selection', 'filter')}
        label="What to send"
        hint="Alerts that name this webhook are always sent."
        options={SELECTIONS}
      />
      {draft.selection === 'filter' && (
        <FilterFields filter={draft.filter} set={(changes) => set({ filter: { ...draft.filter, ...changes } })} />
      )}
      <WireFields form={form} isNew={webhook === null} />
    </Form>
  )
}

interface FilterProps {
  readonly filter: FilterDraft
  readonly set: (changes: Partial<FilterDraft>) => void
}

/** The conditions of a filter, all of which must hold. */
function FilterFields({ filter, set }: FilterProps) {
  const { directory } = useSession()
  const others = Object.keys(filter.others)
  return (
    <div class="filter-fields">
      <CheckList label="Kinds" options={KINDS} chosen={filter.kinds} onChange={(kinds) => set({ kinds })} />
      <CheckList
        label="Statuses of runs and tasks"
        options={STATUSES}
        chosen={filter.statuses}
        onChange={(statuses) => set({ statuses })}
      />
      <TextField
        label="Types of events"
        hint="For example llm.call or tool.*. When set, only events are sent."
        isCode
        value={filter.types}
        set={(types) => set({ types })}
      />
      <ChipList
        label="Agents"
        options={directory.choices.value}
        chosen={filter.agents}
        none="Any agent"
        more="Add an agent"
        onChange={(chosen) => set({ agents: chosen })}
      />
      {others.length > 0 && (
        <p class="hint">
          Also filters by <code>{others.join(', ')}</code>, which stays as it is.
        </p>
      )}
    </div>
  )
}

interface WireProps {
  readonly form: FormState<WebhookDraft>
  readonly isNew: boolean
}

/** How deliveries are written, signed and ordered. */
function WireFields({ form, isNew }: WireProps) {
  const { format, signing, order } = form.draft
  return (
    <div class="field-grid wire-fields">
      <SelectField
        {...form.field('format')}
        label="Format"
        hint={format === 'slack' ? 'For a Slack incoming webhook.' : 'JSON, for programs.'}
        options={FORMATS}
      />
      <SelectField
        {...form.field('signing')}
        label="Signature"
        hint={`${signing === 'v1' ? 'A secret that both sides know.' : 'The receiver knows only a public key.'}${isNew ? ' It cannot be changed later.' : ''}`}
        disabled={!isNew}
        options={SIGNATURES}
      />
      <SelectField
        {...form.field('order')}
        label="Order"
        hint={
          order === 'run' ? 'Runs do not wait for each other.' : 'One delivery at a time; all wait while one fails.'
        }
        options={ORDERS}
      />
    </div>
  )
}
