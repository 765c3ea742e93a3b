import { useState } from 'preact/hooks'
import { placeholdersOf } from '../../../base/placeholders.ts'
import { hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { parseIntact, pretty } from '../data/json.ts'
import { failureOf } from '../data/loading.ts'
import type { Agent, Schemas } from '../data/records.ts'
import { Field } from '../parts/fields.tsx'

type Fields = Omit<Schemas['CreateAgent'], 'status' | 'metadata'>

/** The fields as they are edited: numbers and JSON as texts. */
type Draft = {
  readonly [Name in keyof Fields]-?: Name extends 'runtime_type' | 'allow_input_requests'
    ? NonNullable<Fields[Name]>
    : string
}
type SetField = <Name extends keyof Draft>(name: Name) => (value: Draft[Name]) => void

const NUMBERS = [
  ['temperature', 'Temperature'],
  ['max_output_tokens', 'Output tokens at most'],
  ['max_steps', 'Steps at most'],
  ['timeout_seconds', 'Timeout (seconds)'],
  ['budget_usd', 'Budget (USD)'],
] as const

/** Creates an agent, or edits one: each edit that changes something is a new version. */
export function AgentEditor({ agent }: { readonly agent: Agent | null }) {
  const { api, directory } = useSession()
  const [draft, setDraft] = useState<Draft>(() => draftOf(agent))
  const [message, setMessage] = useState({ text: '', isProblem: false })
  const isHosted = draft.runtime_type === 'hosted'
  const set: SetField = (name) => (value) => setDraft({ ...draft, [name]: value })
  const problems = { tools: jsonProblem(draft.tools, '['), output_schema: jsonProblem(draft.output_schema, '{') }
  const isBroken = isHosted && Object.values(problems).some((problem) => problem !== '')
  const save = async (event: Event) => {
    event.preventDefault()
    const body = bodyOf(draft, agent)
    try {
      const saved =
        agent === null
          ? await api.post<Agent>('/api/v1/agents', body)
          : await api.patch<Agent>(`/api/v1/agents/${agent.agent_id}`, body)
      directory.put(saved)
      setMessage({ text: `Saved as version ${saved.version}.`, isProblem: false })
      if (agent === null) navigate(hrefOf('agents', [saved.agent_id], { tab: isHosted ? 'try' : 'keys' }))
    } catch (error) {
      setMessage({ text: failureOf(error).message, isProblem: true })
    }
  }
  return (
    <form class="agent-editor" onSubmit={save}>
      <TextField label="Name" value={draft.name} set={set('name')} isRequired />
      <TextField label="Description" value={draft.description} set={set('description')} />
      {agent === null && (
        <Field
          label="Runs"
          hint="An external agent reports what it does; a hosted one is run by this service. It cannot be changed later."
        >
          <select
            value={draft.runtime_type}
            onChange={({ currentTarget }) => set('runtime_type')(currentTarget.value as Draft['runtime_type'])}
          >
            <option value="external">elsewhere, and reports here (external)</option>
            <option value="hosted">in this service (hosted)</option>
          </select>
        </Field>
      )}
      {isHosted ? (
        <HostedFields draft={draft} set={set} problems={problems} />
      ) : (
        <TextField
          label="Timed out after (seconds of silence)"
          value={draft.stale_after_seconds}
          set={set('stale_after_seconds')}
        />
      )}
      <div class="actions">
        <button type="submit" class="primary" disabled={isBroken}>
          {agent === null ? 'Create' : 'Save a new version'}
        </button>
        <span class={message.isProblem ? 'bad-text' : 'hint'} role="status">
          {message.text}
        </span>
      </div>
    </form>
  )
}

interface HostedFieldsProps {
  readonly draft: Draft
  readonly set: SetField
  readonly problems: { readonly tools: string; readonly output_schema: string }
}

function HostedFields({ draft, set, problems }: HostedFieldsProps) {
  const found = placeholdersOf(draft.prompt)
  return (
    <>
      <TextField label="Model" value={draft.model} set={set('model')} isRequired />
      <Field
        label="Prompt"
        hint={
          found.length === 0 ? (
            <>
              Write <code>{'{{NAME}}'}</code> for a value that each call gives.
            </>
          ) : (
            `Placeholders: ${found.join(', ')}`
          )
        }
      >
        <textarea
          rows={8}
          required
          value={draft.prompt}
          onInput={({ currentTarget }) => set('prompt')(currentTarget.value)}
        />
      </Field>
      <JsonField
        label="Tools"
        hint="A JSON array; see the API reference."
        value={draft.tools}
        set={set('tools')}
        problem={problems.tools}
      />
      <JsonField
        label="Output schema"
        hint="A JSON Schema; empty for plain text."
        value={draft.output_schema}
        set={set('output_schema')}
        problem={problems.output_schema}
      />
      <div class="field-grid">
        {NUMBERS.map(([name, label]) => (
          <TextField key={name} label={label} value={draft[name]} set={set(name)} />
        ))}
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={draft.allow_input_requests}
          onChange={({ currentTarget }) => set('allow_input_requests')(currentTarget.checked)}
        />
        The model may ask its caller a question
      </label>
    </>
  )
}

interface TextFieldProps {
  readonly label: string
  readonly value: string
  readonly set: (value: string) => void
  readonly isRequired?: boolean
}

function TextField({ label, value, set, isRequired = false }: TextFieldProps) {
  return (
    <Field label={label}>
      <input
        required={isRequired}
        value={value}
        onInput={({ currentTarget }) => set(currentTarget.value)}
        autocomplete="off"
      />
    </Field>
  )
}

function JsonField({
  label,
  hint,
  value,
  set,
  problem,
}: TextFieldProps & { readonly hint: string; readonly problem: string }) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      <textarea
        class="mono"
        rows={Math.min(16, value.split('\n').length + 1)}
        spellcheck={false}
        aria-invalid={problem !== ''}
        value={value}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    </Field>
  )
}

function draftOf(agent: Agent | null): Draft {
  const text = (value: unknown) => (value === null || value === undefined ? '' : String(value))
  const json = (value: unknown) => (value === null || value === undefined ? '' : pretty(value))
  return {
    name: text(agent?.name),
    description: text(agent?.description),
    runtime_type: agent?.runtime_type ?? 'external',
    model: text(agent?.model),
    prompt: text(agent?.prompt),
    tools: agent === null ? '[]' : json(agent.tools),
    output_schema: json(agent?.output_schema),
    allow_input_requests: agent?.allow_input_requests ?? false,
    stale_after_seconds: text(agent?.stale_after_seconds),
    temperature: text(agent?.temperature),
    max_output_tokens: text(agent?.max_output_tokens),
    max_steps: text(agent?.max_steps),
    timeout_seconds: text(agent?.timeout_seconds),
    budget_usd: text(agent?.budget_usd),
  }
}

/** What the API takes: a field that is left empty is cleared, or takes its default when the agent is new. */
function bodyOf(draft: Draft, agent: Agent | null): object {
  const number = (text: string) => (text === '' ? null : Number(text))
  const clearable = <T extends Partial<Fields>>(fields: T) =>
    agent !== null ? fields : Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
  const common = { name: draft.name, ...clearable({ description: draft.description || null }) }
  if (draft.runtime_type !== 'hosted')
    return { ...common, ...clearable({ stale_after_seconds: number(draft.stale_after_seconds) }) }
  return {
    ...common,
    ...(agent === null && { runtime_type: 'hosted' }),
    model: draft.model,
    prompt: draft.prompt,
    tools: draft.tools === '' ? [] : parseIntact(draft.tools),
    allow_input_requests: draft.allow_input_requests,
    ...clearable({
      output_schema: draft.output_schema === '' ? null : (parseIntact(draft.output_schema) as Fields['output_schema']),
      temperature: number(draft.temperature),
      max_output_tokens: number(draft.max_output_tokens),
      budget_usd: number(draft.budget_usd),
    }),
    // These two always have a value.
    ...(draft.max_steps !== '' && { max_steps: Number(draft.max_steps) }),
    ...(draft.timeout_seconds !== '' && { timeout_seconds: Number(draft.timeout_seconds) }),
  }
}

/** Why a text is not JSON that begins with `start`; empty if it is, or if there is none. */
function jsonProblem(text: string, start: '[' | '{'): string {
  if (text.trim() === '') return ''
  try {
    parseIntact(text)
    return text.trim().startsWith(start) ? '' : `expected JSON that begins with ${start}`
  } catch (error) {
    return (error as Error).message
  }
}
