import { useEffect, useRef, useState } from 'preact/hooks'
import { words } from '../../../base/format.ts'
import { useSession } from '../context/session.ts'
import type { ApiFailure } from '../data/api.ts'
import { failureOf } from '../data/loading.ts'
import { problemAt } from '../data/problems.ts'
import { RUN_STATUSES } from '../data/records.ts'
import { type NewWebhook, pathOf, WEBHOOKS_PATH, type Webhook } from '../data/webhooks.ts'
import { CheckList, ChipList } from '../parts/choices.tsx'
import { Button } from '../parts/controls.tsx'
import { Field } from '../parts/fields.tsx'
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
const KINDS = [
  ['run', 'Runs'],
  ['task', 'Tasks'],
  ['event', 'Events'],
] as const
const STATUSES = [...RUN_STATUSES, 'pending', 'skipped'].map((name) => [name, words(name)] as const)

/** Creates a webhook, or edits one. */
export function WebhookForm({ webhook, saved }: FormProps) {
  const { api } = useSession()
  const [draft, setDraft] = useState(() => draftOf(webhook))
  const [note, setNote] = useState('')
  const [problem, setProblem] = useState<ApiFailure | null>(null)
  const form = useRef<HTMLFormElement>(null)
  const set = (changes: Partial<WebhookDraft>) => setDraft({ ...draft, ...changes })
  // Moves the focus to the first field that was refused.
  useEffect(() => form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus(), [problem])
  const save = async (event: Event) => {
    event.preventDefault()
    setNote('')
    setProblem(null)
    try {
      const body = bodyOf(draft, webhook === null)
      const stored = await (webhook === null
        ? api.post<NewWebhook>(WEBHOOKS_PATH, body)
        : api.patch<Webhook>(pathOf(webhook), body))
      setNote('Saved.')
      saved(stored)
    } catch (error) {
      setProblem(failureOf(error))
    }
  }
  const wrongUrl = problemAt(problem, 'url')
  const isAtField = wrongUrl !== '' || problemAt(problem, 'filter') !== ''
  return (
    <form ref={form} class="webhook-form" onSubmit={save}>
      <Field label="URL" hint="Receives a POST request for each delivery." problem={wrongUrl}>
        <input
          type="url"
          required
          placeholder="https://example.com/hooks/runs"
          autocomplete="off"
          aria-invalid={wrongUrl !== ''}
          value={draft.url}
          onInput={({ currentTarget }) => set({ url: currentTarget.value })}
        />
      </Field>
      <Field label="Description" hint="Optional; what the receiver is for.">
        <input
          autocomplete="off"
          value={draft.description}
          onInput={({ currentTarget }) => set({ description: currentTarget.value })}
        />
      </Field>
      <Field
        label="What to send"
        hint="Alerts that name this webhook are always sent."
        problem={problemAt(problem, 'filter')}
      >
        <select
          name="selection"
          value={draft.selection}
          onChange={({ currentTarget }) => set({ selection: currentTarget.value as Selection })}
        >
          {SELECTIONS.map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
      </Field>
      {draft.selection === 'filter' && (
        <FilterFields filter={draft.filter} set={(changes) => set({ filter: { ...draft.filter, ...changes } })} />
      )}
      <WireFields draft={draft} isNew={webhook === null} set={set} />
      <div class="actions">
        <Button needs="admin" type="submit" class="primary" text={webhook === null ? 'Create' : 'Save'} />
        <span class={problem === null ? 'hint' : 'bad-text'} role="status">
          {problem === null ? note : isAtField ? 'Not saved.' : problem.message}
        </span>
      </div>
    </form>
  )
}

interface FilterProps {
  readonly filter: FilterDraft
  readonly set: (changes: Partial<FilterDraft>) => void
}

/** The conditions of a filter, all of which must hold. */
function FilterFields({ filter, set }: FilterProps) {
  const { directory } = useSession()
  const agents = directory.agents.value.map(({ agent_id: id }) => [id, directory.nameOf(id)] as const)
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
      <Field label="Types of events" hint="For example llm.call or tool.*. When set, only events are sent.">
        <input
          class="mono"
          autocomplete="off"
          spellcheck={false}
          value={filter.types}
          onInput={({ currentTarget }) => set({ types: currentTarget.value })}
        />
      </Field>
      <ChipList
        label="Agents"
        options={agents}
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
  readonly draft: WebhookDraft
  readonly isNew: boolean
  readonly set: (changes: Partial<WebhookDraft>) => void
}

/** How deliveries are written, signed and ordered. */
function WireFields({ draft: { format, signing, order }, isNew, set }: WireProps) {
  return (
    <div class="field-grid wire-fields">
      <Field label="Format" hint={format === 'slack' ? 'For a Slack incoming webhook.' : 'JSON, for programs.'}>
        <select
          value={format}
          onChange={({ currentTarget }) => set({ format: currentTarget.value as WebhookDraft['format'] })}
        >
          <option value="standard">Standard</option>
          <option value="slack">Slack message</option>
        </select>
      </Field>
      <Field
        label="Signature"
        hint={`${signing === 'v1' ? 'A secret that both sides know.' : 'The receiver knows only a public key.'}${isNew ? ' It cannot be changed later.' : ''}`}
      >
        <select
          disabled={!isNew}
          value={signing}
          onChange={({ currentTarget }) => set({ signing: currentTarget.value as WebhookDraft['signing'] })}
        >
          <option value="v1">HMAC (v1)</option>
          <option value="v1a">Ed25519 (v1a)</option>
        </select>
      </Field>
      <Field
        label="Order"
        hint={
          order === 'run' ? 'Runs do not wait for each other.' : 'One delivery at a time; all wait while one fails.'
        }
      >
        <select
          value={order}
          onChange={({ currentTarget }) => set({ order: currentTarget.value as WebhookDraft['order'] })}
        >
          <option value="run">Within each run</option>
          <option value="strict">Strict, across all runs</option>
        </select>
      </Field>
    </div>
  )
}
