import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { ApiFailure } from '../data/api.ts'
import { problemAt } from '../data/problems.ts'
import { Button, Icon } from '../parts/controls.tsx'
import { type Bound, CheckField, Field, SelectField, TextField } from '../parts/fields.tsx'
import { ProblemText, Status } from '../parts/states.tsx'
import {
  jsonOf,
  newDraft,
  objectProblem,
  type ToolDraft,
  type Tools,
  type ToolType,
  textOf,
  toolsOf,
  withJson,
  withMember,
} from './tool-draft.ts'

const TITLES: Readonly<Record<ToolType, string>> = { http: 'HTTP', mcp: 'MCP server', agent: 'Agent' }
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const JSON_ROWS_MAX = 12

interface ToolsEditorProps extends Bound<Tools> {
  /** What the service refused. */
  readonly failure: ApiFailure | null
  /** Edits the JSON, for everything that the form cannot show. */
  readonly json: (field: Bound<string>) => ComponentChildren
}

/** The tools of an agent: a form for each, or all of them as JSON. */
export function ToolsEditor({ value: tools, set, failure, json, ...field }: ToolsEditorProps) {
  const [isNew, setNew] = useState(false)
  if (typeof tools === 'string') {
    const asForms = toolsOf(tools)
    return (
      <div class="tools">
        {json({ ...field, value: tools, set })}
        <div class="actions">
          <Button
            class="small"
            text="Edit as a form"
            disabled={typeof asForms === 'string'}
            onClick={() => set(asForms)}
          />
        </div>
      </div>
    )
  }
  const add = (type: ToolType) => {
    setNew(true)
    set([...tools, newDraft(type)])
  }
  return (
    <fieldset class="tools">
      <legend class="field-label">Tools</legend>
      {tools.length === 0 && <p class="hint">None: the model can only answer.</p>}
      {tools.map((draft, index) => (
        <ToolForm
          key={index}
          draft={draft}
          path={`tools[${index}]`}
          failure={failure}
          isOpen={isNew && index === tools.length - 1}
          set={(next) => set(tools.with(index, next))}
          remove={() => set(tools.toSpliced(index, 1))}
        />
      ))}
      <div class="actions">
        {(Object.keys(TITLES) as ToolType[]).map((type) => (
          <Button key={type} class="small" icon="plus" text={TITLES[type]} onClick={() => add(type)} />
        ))}
        <Button class="small quiet" text="Edit as JSON" onClick={() => set(textOf(tools))} />
      </div>
    </fieldset>
  )
}

interface ToolFormProps {
  readonly draft: ToolDraft
  /** The path of the tool in the request, as error messages name it. */
  readonly path: string
  readonly failure: ApiFailure | null
  readonly isOpen: boolean
  readonly set: (draft: ToolDraft) => void
  readonly remove: () => void
}

function ToolForm({ draft, path, failure, isOpen, set, remove }: ToolFormProps) {
  const { tool } = draft
  const type = tool.type as ToolType
  const refused = problemAt(failure, path)
  const members = membersOf({ draft, path, failure, set })
  return (
    <details class="tool" open={isOpen || refused !== ''}>
      <summary>
        <Icon name={type === 'agent' ? 'agents' : 'tool'} />
        <b>{String(tool.name) || 'New tool'}</b>
        <span class="hint">{TITLES[type]}</span>
        {tool.requires_approval === true && <Status name="awaiting_approval" text="needs approval" />}
      </summary>
      <div class="tool-fields">
        <TextField {...members.text('name')} label="Tool name" hint="Letters, digits, _ and -." spellcheck={false} />
        <TextField
          {...members.text('description')}
          label="What it is for"
          hint="The model reads this to decide when to call the tool."
        />
        {type === 'http' && httpFields(members)}
        {type === 'mcp' && mcpFields(members)}
        {type === 'agent' && <AgentField {...members.text('agent_id')} />}
        <CheckField {...members.member('requires_approval', tool.requires_approval === true)}>
          A person must approve each call
        </CheckField>
        <ProblemText text={members.isSaid() ? '' : refused} />
        <div class="actions">
          <Button class="small" text="Remove this tool" onClick={remove} />
        </div>
      </div>
    </details>
  )
}

type Members = ReturnType<typeof membersOf>

/** The members of a tool, for the fields that edit them. */
function membersOf({ draft, path, failure, set }: Pick<ToolFormProps, 'draft' | 'path' | 'failure' | 'set'>) {
  const { tool } = draft
  const places: string[] = []
  const member = <Value,>(name: string, value: Value): Bound<Value> => {
    const place = `${path}.${name}`
    places.push(place)
    const problem = problemAt(failure, place)
    return { name: place, value, set: (next) => set(withMember(draft, name, next)), problem }
  }
  const text = (name: string) => member(name, String(tool[name] ?? ''))
  const json = (name: string): Bound<string> => {
    const { problem, ...bound } = member(name, jsonOf(draft, name))
    return {
      ...bound,
      set: (typed) => set(withJson(draft, name, typed)),
      problem: objectProblem(bound.value) || problem,
    }
  }
  /** Whether one of the fields says what was refused; if none does, the tool has to. */
  const isSaid = () => places.some((place) => problemAt(failure, place) !== '')
  return { tool, member, text, json, isSaid }
}

function httpFields(members: Members) {
  const { tool, text, json } = members
  return (
    <>
      <div class="method-and-url">
        <SelectField {...text('method')} label="Method" options={METHODS.map((method) => [method, method])} />
        <TextField {...text('url')} label="URL" spellcheck={false} />
      </div>
      <TextField
        {...json('parameters')}
        label="Parameters"
        hint={`A JSON Schema of the arguments, which go into the ${tool.method === 'GET' ? 'query string' : 'JSON body'}.`}
        isCode
        rowsMax={JSON_ROWS_MAX}
      />
      {headersField(members)}
    </>
  )
}

function mcpFields(members: Members) {
  const { name, value, set, problem } = members.member('allowed_tools', members.tool.allowed_tools)
  const read = (text: string) => {
    const names = text.split('\n').filter((line, at, lines) => line !== '' || at < lines.length - 1)
    set(text === '' ? undefined : names)
  }
  return (
    <>
      <TextField {...members.text('server_url')} label="Server URL" hint="Streamable HTTP." spellcheck={false} />
      <Field label="Allowed tools" hint="One name per line. Empty: all tools of the server." problem={problem}>
        <textarea
          class="mono"
          name={name}
          rows={2}
          spellcheck={false}
          value={Array.isArray(value) ? value.join('\n') : ''}
          onChange={({ currentTarget }) => read(currentTarget.value)}
        />
      </Field>
      {headersField(members)}
    </>
  )
}

function headersField({ json }: Members) {
  const hint = (
    <>
      A JSON object. <code>{'{{secret:NAME}}'}</code> in a value stands for a{' '}
      <a href={hrefOf('settings', [], { tab: 'secrets' })}>secret</a>.
    </>
  )
  return <TextField {...json('headers')} label="Headers" hint={hint} isCode rowsMax={JSON_ROWS_MAX} />
}

function AgentField(field: Bound<string>) {
  const { directory } = useSession()
  const hosted = directory.agents.value.filter(({ runtime_type }) => runtime_type === 'hosted')
  const ids = hosted.map(({ agent_id }) => agent_id)
  const known = field.value === '' || ids.includes(field.value) ? ids : [...ids, field.value]
  return (
    <SelectField
      {...field}
      label="Agent"
      hint="Each call is a run of this agent."
      options={[['', 'Choose a hosted agent'], ...known.map((id) => [id, directory.nameOf(id)] as const)]}
    />
  )
}
