import { words } from '../../../base/format.ts'
import { useSession } from '../context/session.ts'
import { RUN_STATUSES } from '../data/records.ts'
import { type NewWebhook, pathOf, WEBHOOKS_PATH, type Webhook } from '../data/webhooks.ts'
import { CheckList, ChipList } from '../parts/choices.tsx'
import { SelectField, TextField } from '../parts/fields.tsx'
import { Form, type FormState, useForm, useVersion } from '../parts/form.tsx'
import { bodyOf, draftOf, type Selection, type WebhookDraft } from './webhook-draft.ts'

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
  const { draft } = form
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
        {...form.field('selection', draft.selection === 'filter' ? 'selection' : 'filter')}
        label="What to send"
        hint="Alerts that name this webhook are always sent."
        options={SELECTIONS}
      />
      {draft.selection === 'filter' && <FilterFields form={form} />}
      <WireFields form={form} isNew={webhook === null} />
    </Form>
  )
}

/** The conditions of a filter, all of which must hold. */
function FilterFields({ form }: { readonly form: FormState<WebhookDraft> }) {
  const { directory } = useSession()
  const others = Object.keys(form.draft.others)
  return (
    <div class="filter-fields">
      <CheckList {...form.field('kinds', 'filter.kind')} label="Kinds" options={KINDS} />
      <CheckList {...form.field('statuses', 'filter.status')} label="Statuses of runs and tasks" options={STATUSES} />
      <TextField
        {...form.field('types', 'filter.type')}
        label="Types of events"
        hint="For example llm.call or tool.*. When set, only events are sent."
        isCode
      />
      <ChipList
        {...form.field('agents', 'filter.agent_id')}
        label="Agents"
        options={directory.choices.value}
        none="Any agent"
        more="Add an agent"
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
