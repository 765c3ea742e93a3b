import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { compact, count, dollars } from '../../../base/format.ts'
import { placeholdersOf } from '../../../base/placeholders.ts'
import { hrefOf, hrefOfRun, navigate, runsHref } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { pretty } from '../data/json.ts'
import { isLive, type Run } from '../data/records.ts'
import { useAttempt } from '../data/use-attempt.ts'
import { Button } from '../parts/button.tsx'
import { CopyButton, Id } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Facts } from '../parts/facts.tsx'
import { Field } from '../parts/field.tsx'
import { Icon } from '../parts/icons.tsx'
import { saveFile } from '../parts/save-file.ts'
import { Status } from '../parts/status.tsx'
import { Moment } from '../parts/time.tsx'
import { Tag, Took } from '../runs/run-table.tsx'
import type { RunModel } from './run-model.ts'

/** Who ran, how it went and what it cost. */
export function RunHead({ model, run }: { readonly model: RunModel; readonly run: Run }) {
  const { directory } = useSession()
  return (
    <header class="run-head">
      <div class="view-head">
        <a class="icon-only back" href={runsHref.value} aria-label="All runs" title="All runs (Esc)">
          <Icon name="back" />
        </a>
        <h1 tabIndex={-1}>
          <a href={hrefOf('agents', [run.agent_id])}>{directory.nameOf(run.agent_id)}</a>
        </h1>
        <Status name={run.status} />
        <Id id={run.run_id} what="run id" />
        <RunActions model={model} run={run} />
      </div>
      <RunFacts run={run} />
      {run.error_message !== null && (
        <p class="problem" role="alert">
          {run.error_message}
        </p>
      )}
    </header>
  )
}

function RunFacts({ run }: { readonly run: Run }) {
  const { usage } = run
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ['Duration', <Took key="took" run={run} soFar=" so far" />],
    ['Created', <Moment key="created" at={run.created_at} />],
    ['Ended', run.completed_at && <Moment key="ended" at={run.completed_at} />],
    ['Events', count(run.event_count)],
    ['Tokens', usage.total_tokens > 0 && `${compact(usage.input_tokens)} in, ${compact(usage.output_tokens)} out`],
    ['Cost', run.cost_usd > 0 && dollars(run.cost_usd)],
    ['Trigger', run.trigger_type],
    ['Agent version', String(run.agent_version)],
    ['Session', run.session_id && <a href={hrefOf('sessions', [run.session_id])}>…{run.session_id.slice(-8)}</a>],
    ['User', run.external_user_id],
    ['External id', run.external_run_id && <code>{run.external_run_id}</code>],
    ['Parent', run.parent_run_id && <a href={hrefOfRun(run.parent_run_id)}>run …{run.parent_run_id.slice(-8)}</a>],
    ['Tags', run.tags.length > 0 && run.tags.map((tag) => <Tag key={tag} tag={tag} />)],
  ]
  return <Facts facts={facts} />
}

/** What can be done with a run. */
function RunActions({ model, run }: { readonly model: RunModel; readonly run: Run }) {
  const { directory } = useSession()
  const [open, setOpen] = useState<'cancel' | 'again' | null>(null)
  const agent = directory.find(run.agent_id)
  const download = () => {
    const tasks = [...model.tasks.value.values()]
    const events = model.log.events.value.map((event) => ({ ...event, payload: model.log.payloadOf(event) }))
    saveFile(`run-${run.run_id}.json`, 'application/json', pretty({ run, tasks, events }))
  }
  return (
    <div class="run-actions">
      {isLive(run) && <Button class="small" icon="stop" text="Cancel" onClick={() => setOpen('cancel')} />}
      {agent?.runtime_type === 'hosted' && (
        <Button class="small" icon="retry" text="Invoke again" onClick={() => setOpen('again')} />
      )}
      <CopyButton text={() => curlOf(run)} label="Copy as curl" icon="terminal" isLabelled />
      <Button class="small" icon="download" text="Download" onClick={download} />
      {open === 'cancel' && <CancelDialog run={run} model={model} close={() => setOpen(null)} />}
      {open === 'again' && <AgainDialog run={run} prompt={agent?.prompt ?? ''} close={() => setOpen(null)} />}
    </div>
  )
}

/** The key is a variable: it must not get into shell histories. */
function curlOf({ run_id }: Run): string {
  return `curl -sS ${location.origin}/api/v1/runs/${run_id} -H "Authorization: Bearer $AGENT_RUN_KEY"`
}

interface DialogProps {
  readonly run: Run
  readonly close: () => void
}

function CancelDialog({ run, model, close }: DialogProps & { readonly model: RunModel }) {
  const { api } = useSession()
  const [reason, setReason] = useState('')
  const { problem, submit } = useAttempt()
  const cancel = submit(async () => {
    await api.post(`/api/v1/runs/${run.run_id}/cancel`, reason.trim() === '' ? {} : { reason: reason.trim() })
    await model.reload()
    close()
  })
  return (
    <Dialog title="Cancel this run?" close={close}>
      <form onSubmit={cancel}>
        <Field label="Reason" hint="Optional; it becomes the error message of the run." problem={problem}>
          <input value={reason} onInput={({ currentTarget }) => setReason(currentTarget.value)} />
        </Field>
        <div class="actions">
          <Button type="submit" class="danger" text="Cancel the run" />
          <Button text="Keep it" onClick={close} />
        </div>
      </form>
    </Dialog>
  )
}

/** The same input again; the values of the prompt's placeholders are not stored with a run. */
function AgainDialog({ run, prompt, close }: DialogProps & { readonly prompt: string }) {
  const { api } = useSession()
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const { problem, submit } = useAttempt()
  const names = placeholdersOf(prompt)
  const invoke = submit(async () => {
    const { run_id } = await api.post<{ run_id: string }>(`/api/v1/agents/${run.agent_id}/invoke`, {
      input: run.input,
      prompt_variables: Object.fromEntries(names.map((name) => [name, values[name] ?? ''])),
      background: true,
    })
    navigate(hrefOfRun(run_id))
  })
  return (
    <Dialog title="Invoke again with the same input" close={close}>
      <form onSubmit={invoke}>
        {names.map((name) => (
          <Field key={name} label={name} hint="A placeholder of the prompt.">
            <input
              value={values[name] ?? ''}
              onInput={({ currentTarget }) => setValues({ ...values, [name]: currentTarget.value })}
            />
          </Field>
        ))}
        {problem !== '' && <p class="problem">{problem}</p>}
        <div class="actions">
          <Button type="submit" class="primary" text="Invoke" />
          <Button text="Close" onClick={close} />
        </div>
      </form>
    </Dialog>
  )
}
