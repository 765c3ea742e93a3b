import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { parseIntact } from '../../../base/intact-json.ts'
import { placeholdersOf } from '../../../base/placeholders.ts'
import { hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { ApiFailure } from '../data/api.ts'
import { pretty } from '../data/json.ts'
import { failureOf } from '../data/loading.ts'
import { problemAt } from '../data/problems.ts'
import type { Agent, Schemas } from '../data/records.ts'
import { Button } from '../parts/controls.tsx'
import { Field } from '../parts/fields.tsx'
import { ToolsEditor } from './tools-editor.tsx'

type Fields = Omit<Schemas['CreateAgent'], 'status' | 'metadata' | 'runtime_type' | 'allow_input_requests' | 'expose'>
type TextName = keyof Fields

/** A field that is edited as a text, also if its value is a number or JSON. */
interface TextField {
  readonly name: TextName
  readonly label: string
  readonly hint?: string
  readonly isRequired?: boolean
  readonly isNumber?: boolean
  /** Lines of a longer text. */
  readonly rows?: number
  /** The value is JSON, which begins with this. */
  readonly json?: '[' | '{'
}

const COMMON: readonly TextField[] = [
  { name: 'name', label: 'Name', isRequired: true },
  { name: 'description', label: 'Description' },
]
const STALE: TextField = {
  name: 'stale_after_seconds',
  label: 'Timed out after (seconds of silence)',
  isNumber: true,
}
const TOOLS: TextField = { name: 'tools', label: 'Tools', hint: 'A JSON array; see the API reference.', json: '[' }
const HOSTED: readonly TextField[] = [
  { name: 'model', label: 'Model', isRequired: true },
  { name: 'prompt', label: 'Prompt', isRequired: true, rows: 8 },
  TOOLS,
  { name: 'input_schema', label: 'Input schema', hint: 'A JSON Schema; empty for any input.', json: '{' },
  { name: 'output_schema', label: 'Output schema', hint: 'A JSON Schema; empty for plain text.', json: '{' },
]
const NUMBERS: readonly TextField[] = [
  { name: 'temperature', label: 'Temperature', isNumber: true },
  { name: 'max_output_tokens', label: 'Output tokens at most', isNumber: true },
  { name: 'max_steps', label: 'Steps at most', isNumber: true },
  { name: 'timeout_seconds', label: 'Timeout (seconds)', isNumber: true },
  { name: 'budget_usd', label: 'Budget (USD)', isNumber: true },
]

/** The fields as they are edited. */
interface Draft {
  readonly runtime_type: 'external' | 'hosted'
  readonly allow_input_requests: boolean
  readonly isMcpTool: boolean
  readonly texts: Readonly<Record<TextName, string>>
}

/** Creates an agent, or edits one: each edit that changes something is a new version. */
export function AgentEditor({ agent }: { readonly agent: Agent | null }) {
  const { api, directory } = useSession()
  const [draft, setDraft] = useState<Draft>(() => draftOf(agent))
  const [saved, setSaved] = useState('')
  const [problem, setProblem] = useState<ApiFailure | null>(null)
  const form = useRef<HTMLFormElement>(null)
  const isHosted = draft.runtime_type === 'hosted'
  const set = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes })
  // Moves the focus to the first field that was refused.
  useEffect(() => form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus(), [problem])
  const save = async (event: Event) => {
    event.preventDefault()
    const body = bodyOf(draft, agent)
    setSaved('')
    setProblem(null)
    try {
      const stored =
        agent === null
          ? await api.post<Agent>('/api/v1/agents', body)
          : await api.patch<Agent>(`/api/v1/agents/${agent.agent_id}`, body)
      directory.put(stored)
      setSaved(`Saved as version ${stored.version}.`)
      if (agent === null) navigate(hrefOf('agents', [stored.agent_id], { tab: isHosted ? 'try' : 'keys' }))
    } catch (error) {
      setProblem(failureOf(error))
    }
  }
  const show = (field: TextField) => (
    <Text
      key={field.name}
      field={field}
      value={draft.texts[field.name]}
      refused={problemAt(problem, field.name)}
      set={(text) => set({ texts: { ...draft.texts, [field.name]: text } })}
    />
  )
  const showTools = () => (
    <ToolsEditor
      key={TOOLS.name}
      value={draft.texts.tools}
      set={(text) => set({ texts: { ...draft.texts, tools: text } })}
      problem={problem}
      raw={show(TOOLS)}
    />
  )
  return (
    <form ref={form} class="agent-editor" onSubmit={save}>
      {COMMON.map(show)}
      {agent === null && (
        <Field
          label="Runs"
          hint="An external agent reports what it does; a hosted one is run by this service. It cannot be changed later."
        >
          <select
            value={draft.runtime_type}
            onChange={({ currentTarget }) => set({ runtime_type: currentTarget.value as Draft['runtime_type'] })}
          >
            <option value="external">elsewhere, and reports here (external)</option>
            <option value="hosted">in this service (hosted)</option>
          </select>
        </Field>
      )}
      {!isHosted && show(STALE)}
      {isHosted && (
        <>
          {HOSTED.map((field) => (field === TOOLS ? showTools() : show(field)))}
          <div class="field-grid">{NUMBERS.map(show)}</div>
          <label class="check">
            <input
              type="checkbox"
              checked={draft.allow_input_requests}
              onChange={({ currentTarget }) => set({ allow_input_requests: currentTarget.checked })}
            />
            The model may ask its caller a question
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={draft.isMcpTool}
              onChange={({ currentTarget }) => set({ isMcpTool: currentTarget.checked })}
            />
            MCP clients may call it as a tool
          </label>
        </>
      )}
      <div class="actions">
        <Button
          needs="admin"
          type="submit"
          class="primary"
          disabled={isHosted && HOSTED.some((field) => jsonProblem(field, draft.texts[field.name]) !== '')}
          text={agent === null ? 'Create' : 'Save a new version'}
        />
        <span class={problem === null ? 'hint' : 'bad-text'} role="status">
          {problem === null ? saved : messageOf(problem)}
        </span>
      </div>
    </form>
  )
}

/** The text beside the button. If a field of this form was refused, the reason is shown at that field. */
function messageOf(failure: ApiFailure): string {
  const fields = [...COMMON, STALE, ...HOSTED, ...NUMBERS].filter(({ name }) => problemAt(failure, name) !== '')
  return fields.length === 0 ? failure.message : `Not saved: see ${fields.map(({ label }) => label).join(', ')}.`
}

interface TextProps {
  readonly field: TextField
  readonly value: string
  readonly refused: string
  readonly set: (value: string) => void
}

function Text({ field, value, refused, set }: TextProps) {
  const { name, label, hint, rows, json, isRequired = false } = field
  const problem = jsonProblem(field, value) || refused
  const common = {
    value,
    required: isRequired,
    'aria-invalid': problem !== '',
    onInput: ({ currentTarget }: { currentTarget: { value: string } }) => set(currentTarget.value),
  }
  const lines = json === undefined ? rows : Math.min(16, value.split('\n').length + 1)
  return (
    <Field label={label} hint={name === 'prompt' ? promptHint(value) : hint} problem={problem}>
      {lines === undefined ? (
        <input {...common} autocomplete="off" />
      ) : (
        <textarea {...common} rows={lines} class={json && 'mono'} spellcheck={json === undefined} />
      )}
    </Field>
  )
}

function promptHint(prompt: string): ComponentChildren {
  const found = placeholdersOf(prompt)
  if (found.length > 0) return `Placeholders: ${found.join(', ')}`
  return (
    <>
      Write <code>{'{{NAME}}'}</code> for a value that each call gives.
    </>
  )
}

function draftOf(agent: Agent | null): Draft {
  const text = ({ name, json }: TextField) => {
    const value = agent === null ? (name === 'tools' ? [] : null) : agent[name]
    return [name, value === null || value === undefined ? '' : json ? pretty(value) : String(value)]
  }
  return {
    runtime_type: agent?.runtime_type ?? 'external',
    allow_input_requests: agent?.allow_input_requests ?? false,
    isMcpTool: agent?.expose?.includes('mcp') ?? false,
    texts: Object.fromEntries([...COMMON, STALE, ...HOSTED, ...NUMBERS].map(text)),
  }
}

/** What the API takes: a field that is left empty is cleared, or takes its default when the agent is new. */
function bodyOf({ runtime_type, allow_input_requests, isMcpTool, texts }: Draft, agent: Agent | null): object {
  const isHosted = runtime_type === 'hosted'
  const fields = [...COMMON, ...(isHosted ? [...HOSTED, ...NUMBERS] : [STALE])]
  const values = fields.map(({ name, ...field }) => [name, parsed(name, field, texts[name])] as const)
  return {
    ...Object.fromEntries(
      values.filter(([name, value]) => value !== null || (agent !== null && !ALWAYS_SET.has(name))),
    ),
    ...(isHosted && { allow_input_requests, expose: isMcpTool ? ['mcp'] : [] }),
    ...(isHosted && agent === null && { runtime_type }),
  }
}

/** These always have a value. */
const ALWAYS_SET: ReadonlySet<TextName> = new Set(['max_steps', 'timeout_seconds'])

function parsed(name: TextName, { isRequired, isNumber, json }: Omit<TextField, 'name'>, text: string): unknown {
  if (text === '' && !isRequired) return name === 'tools' ? [] : null
  if (isNumber) return Number(text)
  return json ? parseIntact(text) : text
}

/** Why a text is not the JSON that a field needs; empty if it is, or if there is none. */
function jsonProblem({ json }: TextField, text: string): string {
  if (json === undefined || text.trim() === '') return ''
  try {
    parseIntact(text)
    return text.trim().startsWith(json) ? '' : `expected JSON that begins with ${json}`
  } catch (error) {
    return (error as Error).message
  }
}
