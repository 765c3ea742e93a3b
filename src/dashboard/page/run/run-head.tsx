import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { dollars } from '../../../base/format.ts'
import { placeholdersOf } from '../../../base/placeholders.ts'
import { saveFile } from '../context/browser.ts'
import { hrefOf, hrefOfRun, navigate, runsHref } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { pretty } from '../data/json.ts'
import { type Agent, isLive, type Run } from '../data/records.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { BackLink, Button, CopyButton, Dialog, Id } from '../parts/controls.tsx'
import { TextField } from '../parts/fields.tsx'
import { Form, useForm } from '../parts/form.tsx'
import { SessionLink, UserLink } from '../parts/links.tsx'
import { PromptFields } from '../parts/prompt-fields.tsx'
import { Facts, Status } from '../parts/states.tsx'
import { Moment } from '../parts/time.tsx'
import { Tag, Took } from '../runs/run-table.tsx'
import { Thumbs } from '../scores/thumbs.tsx'
import { readArguments } from '../waiting/decision.tsx'
import { areUncounted } from './bars.ts'
import type { RunModel } from './run-model.ts'
import { tokensText } from './summary.ts'

/** Who ran, how it went and what it cost. */
export function RunHead({ model, run }: { readonly model: RunModel; readonly run: Run }) {
  const { directory } = useSession()
  return (
    <header class="run-head">
      <div class="view-head">
        <BackLink href={runsHref.value} label="All runs" title="All runs (Esc)" />
        <h1 tabIndex={-1}>
          <a href={hrefOf('agents', [run.agent_id])}>{directory.nameOf(run.agent_id)}</a>
        </h1>
        <Status name={run.status} />
        <Id id={run.run_id} what="run id" />
        <RunActions model={model} run={run} />
      </div>
      <RunFacts model={model} run={run} />
    </header>
  )
}

function RunFacts({ model, run }: { readonly model: RunModel; readonly run: Run }) {
  const tokens = tokensOfRun(run)
  const unknown = tokens === '' && run.cost_usd === 0 && areUncounted(model.rows.value) && 'unknown'
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ['Duration', <Took key="took" run={run} soFar=" so far" />],
    ['Created', <Moment key="created" at={run.created_at} />],
    ['Tokens', tokens || unknown],
    ['Cost', run.cost_usd > 0 ? dollars(run.cost_usd) : unknown],
    [
      'Agent version',
      <a key="version" href={hrefOf('agents', [run.agent_id], { tab: 'versions', version: String(run.agent_version) })}>
        {run.agent_version}
      </a>,
    ],
    ['Session', run.session_id && <SessionLink key="session" id={run.session_id} />],
    ['User', run.external_user_id && <UserLink key="user" id={run.external_user_id} />],
    ['Parent', run.parent_run_id && <a href={hrefOfRun(run.parent_run_id)}>run …{run.parent_run_id.slice(-8)}</a>],
    ['Feedback', <Thumbs key="feedback" of="run" noun="run" />],
    ['Tags', run.tags.length > 0 && run.tags.map((tag) => <Tag key={tag} tag={tag} />)],
  ]
  return <Facts facts={facts} />
}

function tokensOfRun({ usage, cost_usd }: Run): string {
  return tokensText({
    model: null,
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    costUsd: cost_usd,
    cacheReadTokens: usage.cache_read_tokens,
    reasoningTokens: usage.reasoning_tokens,
  })
}

/** What can be done with a run. */
function RunActions({ model, run }: { readonly model: RunModel; readonly run: Run }) {
  const { api, directory } = useSession()
  const [isInvoking, setInvoking] = useState(false)
  const agent = directory.find(run.agent_id)
  const download = () => {
    const tasks = [...model.tasks.value.values()]
    const events = model.log.events.value.map((event) => ({ ...event, payload: model.log.payloadOf(event) }))
    saveFile(`run-${run.run_id}.json`, 'application/json', pretty({ run, tasks, events }))
  }
  const remove = async () => {
    await api.delete(`/api/v1/runs/${run.run_id}`)
    navigate(runsHref.value)
  }
  return (
    <div class="head-actions">
      {isLive(run) && <CancelButton run={run} model={model} />}
      {agent?.runtime_type === 'hosted' && (
        <Button needs="admin" class="small" icon="retry" text="Invoke again" onClick={() => setInvoking(true)} />
      )}
      <CopyButton text={() => curlOf(run)} label="Copy as curl" icon="terminal" isLabelled />
      <Button class="small" icon="download" text="Download" onClick={download} />
      {!isLive(run) && (
        <ConfirmButton text="Delete" title="Delete this run?" action="Delete the run" act={remove}>
          <p>Its tasks, events and scores are deleted from every store, for good, and its cost leaves all sums.</p>
        </ConfirmButton>
      )}
      {isInvoking && agent && <AgainDialog run={run} agent={agent} close={() => setInvoking(false)} />}
    </div>
  )
}

/** The key is a variable: it must not get into shell histories. */
function curlOf({ run_id }: Run): string {
  return `curl -sS ${location.origin}/api/v1/runs/${run_id} -H "Authorization: Bearer $AGENT_RUN_KEY"`
}

function CancelButton({ run, model }: { readonly run: Run; readonly model: RunModel }) {
  const { api } = useSession()
  const [text, setText] = useState('')
  const cancel = async () => {
    const reason = text.trim()
    await api.post(`/api/v1/runs/${run.run_id}/cancel`, reason === '' ? {} : { reason })
    await model.reload()
  }
  return (
    <ConfirmButton
      needs="approver"
      icon="stop"
      text="Cancel"
      title="Cancel this run?"
      action="Cancel the run"
      act={cancel}
    >
      <TextField label="Reason" hint="Optional; it becomes the error message of the run." value={text} set={setText} />
    </ConfirmButton>
  )
}

interface AgainProps {
  readonly run: Run
  readonly agent: Agent
  readonly close: () => void
}

/** The same input again, or a changed one; the values of the prompt's placeholders are not stored with a run. */
function AgainDialog({ run, agent, close }: AgainProps) {
  const { api } = useSession()
  const form = useForm(() => ({ input: pretty(run.input), values: {} as Readonly<Record<string, string>> }))
  const { values } = form.draft
  const names = placeholdersOf(agent.prompt ?? '')
  const input = readArguments(form.draft.input)
  const field = form.field('input')
  const invoke = async () => {
    const { run_id } = await api.post<{ run_id: string }>(`/api/v1/agents/${run.agent_id}/invoke`, {
      input: 'value' in input ? input.value : run.input,
      prompt_variables: Object.fromEntries(names.map((name) => [name, values[name] ?? ''])),
      background: true,
    })
    navigate(hrefOfRun(run_id))
  }
  return (
    <Dialog title="Invoke again" close={close}>
      <Form
        form={form}
        submit={invoke}
        action="Invoke"
        disabled={'problem' in input}
        foot={<Button text="Close" onClick={close} />}
      >
        <TextField
          {...field}
          label="Input"
          isCode
          rowsMax={16}
          problem={'problem' in input ? input.problem : field.problem}
        />
        <PromptFields {...form.field('values')} names={names} refusedAt={form.refusedAt} />
        {agent.version !== run.agent_version && (
          <p class="hint">
            It runs version {agent.version} of the agent; this run had version {run.agent_version}.
          </p>
        )}
      </Form>
    </Dialog>
  )
}
