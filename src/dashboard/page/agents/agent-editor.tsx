import type { ComponentChildren } from 'preact'
import { parseIntact } from '../../../base/intact-json.ts'
import { placeholdersOf } from '../../../base/placeholders.ts'
import { hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { pretty } from '../data/json.ts'
import type { Agent, Schemas } from '../data/records.ts'
import { type Bound, CheckField, SelectField, TextField } from '../parts/fields.tsx'
import { Form, useForm, useVersion } from '../parts/form.tsx'
import { type Tools, textOf, toolsOf } from './tool-draft.ts'
import { ToolsEditor } from './tools-editor.tsx'

type Fields = Omit<Schemas['CreateAgent'], 'status' | 'metadata' | 'runtime_type' | 'allow_input_requests' | 'expose'>
type TextName = Exclude<keyof Fields, 'tools'>

/** A field that is edited as a text, also if its value is a number or JSON. */
interface AgentField<Name extends string = TextName> {
  readonly name: Name
  readonly label: string
  readonly hint?: string
  readonly isRequired?: boolean
  readonly isNumber?: boolean
  /** Lines of a longer text. */
  readonly rows?: number
  /** The value is JSON, which begins with this. */
  readonly json?: '[' | '{'
}

const COMMON: readonly AgentField[] = [
  { name: 'name', label: 'Name', isRequired: true },
  { name: 'description', label: 'Description' },
]
const STALE: AgentField = {
  name: 'stale_after_seconds',
  label: 'Timed out after (seconds of silence)',
  isNumber: true,
}
const TOOLS: AgentField<'tools'> = {
  name: 'tools',
  label: 'Tools',
  hint: 'A JSON array; see the API reference.',
  json: '[',
}
const MODEL: readonly AgentField[] = [
  { name: 'model', label: 'Model', isRequired: true },
  { name: 'prompt', label: 'Prompt', isRequired: true, rows: 8 },
]
const SCHEMAS: readonly AgentField[] = [
  { name: 'input_schema', label: 'Input schema', hint: 'A JSON Schema; empty for any input.', json: '{' },
  { name: 'output_schema', label: 'Output schema', hint: 'A JSON Schema; empty for plain text.', json: '{' },
]
const NUMBERS: readonly AgentField[] = [
  { name: 'temperature', label: 'Temperature', isNumber: true },
  { name: 'max_output_tokens', label: 'Output tokens at most', isNumber: true },
  { name: 'max_steps', label: 'Steps at most', isNumber: true },
  { name: 'timeout_seconds', label: 'Timeout (seconds)', isNumber: true },
  { name: 'budget_usd', label: 'Budget (USD)', isNumber: true },
]

const HOSTED = [...MODEL, ...SCHEMAS, ...NUMBERS]

/** The fields as they are edited. */
interface Draft extends Readonly<Record<TextName, string>> {
  readonly runtime_type: 'external' | 'hosted'
  readonly tools: Tools
  readonly allow_input_requests: boolean
  readonly isMcpTool: boolean
}

const RUNTIMES = [
  ['external', 'elsewhere, and reports here (external)'],
  ['hosted', 'in this service (hosted)'],
] as const

/** Creates an agent, or edits one: each edit that changes something is a new version. */
export function AgentEditor({ agent }: { readonly agent: Agent | null }) {
  const { api, directory } = useSession()
  const form = useForm<Draft>(() => draftOf(agent))
  const { draft } = form
  const isHosted = draft.runtime_type === 'hosted'
  const { version, began } = useVersion(agent, draftOf)
  const save = async () => {
    const body = bodyOf(draft, agent)
    const stored =
      agent === null
        ? await api.post<Agent>('/api/v1/agents', body)
        : await api.patch<Agent>(`/api/v1/agents/${agent.agent_id}`, body, version)
    began(stored)
    directory.put(stored)
    form.say(`Saved as version ${stored.version}.`)
    if (agent === null) navigate(hrefOf('agents', [stored.agent_id], { tab: isHosted ? 'try' : 'keys' }))
  }
  const show = (field: AgentField) => <AgentText key={field.name} field={field} {...form.field(field.name)} />
  return (
    <Form
      form={form}
      class="agent-editor"
      submit={save}
      needs="admin"
      action={agent === null ? 'Create' : 'Save a new version'}
      disabled={isHosted && !isAllJson(draft)}
    >
      {COMMON.map(show)}
      {agent === null && (
        <SelectField
          {...form.field('runtime_type')}
          label="Runs"
          hint="An external agent reports what it does; a hosted one is run by this service. It cannot be changed later."
          options={RUNTIMES}
        />
      )}
      {!isHosted && show(STALE)}
      {isHosted && (
        <>
          {MODEL.map(show)}
          <ToolsEditor
            {...form.field('tools')}
            failure={form.failure}
            json={(field) => <AgentText field={TOOLS} {...field} />}
          />
          {SCHEMAS.map(show)}
          <div class="field-grid">{NUMBERS.map(show)}</div>
          <CheckField {...form.field('allow_input_requests')}>The model may ask its caller a question</CheckField>
          <CheckField {...form.field('isMcpTool', 'expose')}>MCP clients may call it as a tool</CheckField>
        </>
      )}
    </Form>
  )
}

function AgentText({ field, problem, ...bound }: Bound<string> & { readonly field: AgentField<string> }) {
  const { name, label, hint, rows, json, isRequired = false } = field
  return (
    <TextField
      {...bound}
      label={label}
      hint={name === 'prompt' ? promptHint(bound.value) : hint}
      problem={jsonProblem(field, bound.value) || problem}
      required={isRequired}
      isCode={json !== undefined}
      rows={rows}
      rowsMax={json && 16}
    />
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
  const text = ({ name, json }: AgentField) => {
    const value = agent?.[name]
    return [name, value === null || value === undefined ? '' : json ? pretty(value) : String(value)]
  }
  return {
    runtime_type: agent?.runtime_type ?? 'external',
    allow_input_requests: agent?.allow_input_requests ?? false,
    isMcpTool: agent?.expose?.includes('mcp') ?? false,
    tools: toolsOf(pretty(agent?.tools ?? [])),
    ...Object.fromEntries([...COMMON, STALE, ...HOSTED].map(text)),
  }
}

/** What the API takes: a field that is left empty is cleared, or takes its default when the agent is new. */
function bodyOf(
  { runtime_type, allow_input_requests, isMcpTool, tools, ...texts }: Draft,
  agent: Agent | null,
): object {
  const isHosted = runtime_type === 'hosted'
  const fields = [...COMMON, ...(isHosted ? HOSTED : [STALE])]
  const values = fields.map(({ name, ...field }) => [name, parsed(field, texts[name])] as const)
  return {
    ...Object.fromEntries(
      values.filter(([name, value]) => value !== null || (agent !== null && !ALWAYS_SET.has(name))),
    ),
    ...(isHosted && {
      ...{ tools: parseIntact(textOf(tools)), allow_input_requests, expose: isMcpTool ? ['mcp'] : [] },
    }),
    ...(isHosted && agent === null && { runtime_type }),
  }
}

/** These always have a value. */
const ALWAYS_SET: ReadonlySet<TextName> = new Set(['max_steps', 'timeout_seconds'])

function parsed({ isRequired, isNumber, json }: Omit<AgentField, 'name'>, text: string): unknown {
  if (text.trim() === '' && !isRequired) return null
  if (isNumber) return Number(text)
  return json ? parseIntact(text) : text
}

function isAllJson(draft: Draft): boolean {
  const isJson = (field: AgentField<string>, text: string) => jsonProblem(field, text) === ''
  return isJson(TOOLS, textOf(draft.tools)) && SCHEMAS.every((field) => isJson(field, draft[field.name]))
}

/** Why a text is not the JSON that a field needs; empty if it is, or if there is none. */
function jsonProblem({ json }: AgentField<string>, text: string): string {
  if (json === undefined || text.trim() === '') return ''
  try {
    parseIntact(text)
    return text.trim().startsWith(json) ? '' : `expected JSON that begins with ${json}`
  } catch (error) {
    return (error as Error).message
  }
}
