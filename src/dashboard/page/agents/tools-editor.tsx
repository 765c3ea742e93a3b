import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { ApiFailure } from '../data/api.ts'
import { problemAt } from '../data/problems.ts'
import { Button, Icon } from '../parts/controls.tsx'
import { CheckField, Field, SelectField, TextField, useProblem } from '../parts/fields.tsx'
import { Status } from '../parts/states.tsx'
import {
  draftsOf,
  jsonOf,
  newDraft,
  objectProblem,
  type ToolDraft,
  type ToolType,
  textOf,
  withJson,
  withMember,
} from './tool-draft.ts'

const TITLES: Readonly<Record<ToolType, string>> = { http: 'HTTP', mcp: 'MCP server', agent: 'Agent' }
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

interface ToolsEditorProps {
  /** The tools as JSON. */
  readonly value: string
  readonly set: (value: string) => void
  /** What the service refused. */
  readonly problem: ApiFailure | null
  /** The JSON, for everything that the form cannot show. */
  readonly raw: ComponentChildren
}

/** The tools of an agent: a form for each, or all of them as JSON. */
export function ToolsEditor({ value, set, problem, raw }: ToolsEditorProps) {
  const [drafts, setDrafts] = useState(() => draftsOf(value))
  const [isNew, setNew] = useState(false)
  const asForm = () => setDrafts(draftsOf(value))
  const change = (next: readonly ToolDraft[]) => {
    setDrafts(next)
    set(textOf(next))
  }
  if (drafts === null) {
    return (
      <div class="tools">
        {raw}
        <div class="actions">
          <Button class="small" text="Edit as a form" disabled={draftsOf(value) === null} onClick={asForm} />
        </div>
      </div>
    )
  }
  const add = (type: ToolType) => {
    setNew(true)
    change([...drafts, newDraft(type)])
  }
  return (
    <fieldset class="tools">
      <legend class="field-label">Tools</legend>
      {drafts.length === 0 && <p class="hint">None: the model can only answer.</p>}
      {drafts.map((draft, index) => (
        <ToolForm
          key={index}
          draft={draft}
          path={`tools[${index}]`}
          problem={problem}
          isOpen={isNew && index === drafts.length - 1}
          set={(next) => change(drafts.with(index, next))}
          remove={() => change(drafts.toSpliced(index, 1))}
        />
      ))}
      <div class="actions">
        {(Object.keys(TITLES) as ToolType[]).map((type) => (
          <Button key={type} class="small" icon="plus" text={TITLES[type]} onClick={() => add(type)} />
        ))}
        <Button class="small quiet" text="Edit as JSON" onClick={() => setDrafts(null)} />
      </div>
    </fieldset>
  )
}

interface ToolFormProps {
  readonly draft: ToolDraft
  /** The path of the tool in the request, as error messages name it. */
  readonly path: string
  readonly problem: ApiFailure | null
  readonly isOpen: boolean
  readonly set: (draft: ToolDraft) => void
  readonly remove: () => void
}

function ToolForm({ draft, path, problem, isOpen, set, remove }: ToolFormProps) {
  const { tool } = draft
  const type = tool.type as ToolType
  const refused = problemAt(problem, path)
  const isShownBelow = FORM_MEMBERS.some((name) => problemAt(problem, `${path}.${name}`) !== '')
  const { said } = useProblem(isShownBelow ? '' : refused)
  const common = { draft, set, problem, path }
  return (
    <details class="tool" open={isOpen || refused !== ''}>
      <summary>
        <Icon name={type === 'agent' ? 'agents' : 'tool'} />
        <b>{String(tool.name) || 'New tool'}</b>
        <span class="hint">{TITLES[type]}</span>
        {tool.requires_approval === true && <Status name="awaiting_approval" text="needs approval" />}
      </summary>
      <div class="tool-fields">
        <TextMember {...common} name="name" label="Tool name" hint="Letters, digits, _ and -." />
        <TextMember
          {...common}
          name="description"
          label="What it is for"
          hint="The model reads this to decide when to call the tool."
        />
        {type === 'http' && <HttpMembers {...common} />}
        {type === 'mcp' && <McpMembers {...common} />}
        {type === 'agent' && <AgentMember {...common} />}
        <CheckField
          value={tool.requires_approval === true}
          set={(isNeeded) => set(withMember(draft, 'requires_approval', isNeeded))}
        >
          A person must approve each call
        </CheckField>
        {said}
        <div class="actions">
          <Button class="small" text="Remove this tool" onClick={remove} />
        </div>
      </div>
    </details>
  )
}

/** A refusal of any other member is shown at the tool. */
const FORM_MEMBERS: readonly string[] = [
  ...['name', 'description', 'method', 'url', 'parameters', 'headers'],
  ...['server_url', 'allowed_tools', 'agent_id'],
]

type MembersProps = Pick<ToolFormProps, 'draft' | 'path' | 'problem' | 'set'>

function HttpMembers(props: MembersProps) {
  const { draft, set } = props
  return (
    <>
      <div class="method-and-url">
        <SelectField
          label="Method"
          value={String(draft.tool.method)}
          set={(method) => set(withMember(draft, 'method', method))}
          options={METHODS.map((method) => [method, method])}
        />
        <TextMember {...props} name="url" label="URL" />
      </div>
      <JsonMember
        {...props}
        name="parameters"
        label="Parameters"
        hint={`A JSON Schema of the arguments, which go into the ${draft.tool.method === 'GET' ? 'query string' : 'JSON body'}.`}
      />
      <Headers {...props} />
    </>
  )
}

function McpMembers(props: MembersProps) {
  const { draft, set, path, problem } = props
  const allowed = draft.tool.allowed_tools
  const read = (text: string) => {
    const names = text.split('\n').filter((line, at, lines) => line !== '' || at < lines.length - 1)
    set(withMember(draft, 'allowed_tools', text === '' ? undefined : names))
  }
  const refused = problemAt(problem, `${path}.allowed_tools`)
  return (
    <>
      <TextMember {...props} name="server_url" label="Server URL" hint="Streamable HTTP." />
      <Field label="Allowed tools" hint="One name per line. Empty: all tools of the server." problem={refused}>
        <textarea
          class="mono"
          rows={2}
          spellcheck={false}
          value={Array.isArray(allowed) ? allowed.join('\n') : ''}
          onChange={({ currentTarget }) => read(currentTarget.value)}
        />
      </Field>
      <Headers {...props} />
    </>
  )
}

function AgentMember({ draft, set, path, problem }: MembersProps) {
  const { directory } = useSession()
  const chosen = String(draft.tool.agent_id)
  const hosted = directory.agents.value.filter(({ runtime_type }) => runtime_type === 'hosted')
  const ids = hosted.map(({ agent_id }) => agent_id)
  return (
    <SelectField
      label="Agent"
      hint="Each call is a run of this agent."
      problem={problemAt(problem, `${path}.agent_id`)}
      value={chosen}
      set={(id) => set(withMember(draft, 'agent_id', id))}
      options={[
        ['', 'Choose a hosted agent'],
        ...[...ids, ...(chosen !== '' && !ids.includes(chosen) ? [chosen] : [])].map(
          (id) => [id, directory.nameOf(id)] as const,
        ),
      ]}
    />
  )
}

function Headers(props: MembersProps) {
  const hint = (
    <>
      A JSON object. <code>{'{{secret:NAME}}'}</code> in a value stands for a{' '}
      <a href={hrefOf('settings', [], { tab: 'secrets' })}>secret</a>.
    </>
  )
  return <JsonMember {...props} name="headers" label="Headers" hint={hint} />
}

interface MemberProps extends MembersProps {
  readonly name: string
  readonly label: string
  readonly hint?: ComponentChildren
}

function TextMember({ draft, set, path, problem, name, label, hint }: MemberProps) {
  return (
    <TextField
      label={label}
      hint={hint}
      problem={problemAt(problem, `${path}.${name}`)}
      spellcheck={name === 'description'}
      value={String(draft.tool[name] ?? '')}
      set={(text) => set(withMember(draft, name, text))}
    />
  )
}

function JsonMember({ draft, set, path, problem, name, label, hint }: MemberProps) {
  const text = jsonOf(draft, name)
  return (
    <TextField
      label={label}
      hint={hint}
      problem={objectProblem(text) || problemAt(problem, `${path}.${name}`)}
      isCode
      rowsMax={12}
      value={text}
      set={(json) => set(withJson(draft, name, json))}
    />
  )
}
