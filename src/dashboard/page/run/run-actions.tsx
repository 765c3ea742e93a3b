import { useState } from 'preact/hooks'
import { placeholdersOf } from '../../../base/placeholders.ts'
import { saveFile } from '../context/browser.ts'
import { hrefOfRun, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { pretty } from '../data/json.ts'
import { useAttempt } from '../data/loading.ts'
import { isLive, type Run } from '../data/records.ts'
import { CopyButton, Dialog, Icon } from '../parts/controls.tsx'
import { Field } from '../parts/fields.tsx'
import type { RunModel } from './run-model.ts'

/** What can be done with a run. */
export function RunActions({ model, run }: { readonly model: RunModel; readonly run: Run }) {
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
      {isLive(run) && (
        <button type="button" class="small" onClick={() => setOpen('cancel')}>
          <Icon name="stop" />
          <span>Cancel</span>
        </button>
      )}
      {agent?.runtime_type === 'hosted' && (
        <button type="button" class="small" onClick={() => setOpen('again')}>
          <Icon name="retry" />
          <span>Invoke again</span>
        </button>
      )}
      <CopyButton text={() => curlOf(run)} label="Copy as curl" icon="terminal" isLabelled />
      <button type="button" class="small" onClick={download}>
        <Icon name="download" />
        <span>Download</span>
      </button>
      {open === 'cancel' && <CancelDialog run={run} model={model} close={() => setOpen(null)} />}
      {open === 'again' && <AgainDialog run={run} prompt={agent?.prompt ?? ''} close={() => setOpen(null)} />}
    </div>
  )
}

/** The key is a variable: it must not get into shell histories. */
function curlOf({ run_id }: Run): string {
  return `curl -sS ${location.origin}/api/v1/runs/${run_id} -H "Authorization: Bearer $AGENT_RUN_KEY"`
}

interface CancelDialogProps {
  readonly run: Run
  readonly model: RunModel
  readonly close: () => void
}

function CancelDialog({ run, model, close }: CancelDialogProps) {
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
          <button type="submit" class="danger">
            Cancel the run
          </button>
          <button type="button" onClick={close}>
            Keep it
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface AgainDialogProps {
  readonly run: Run
  readonly prompt: string
  readonly close: () => void
}

/** The same input again; the values of the prompt's placeholders are not stored with a run. */
function AgainDialog({ run, prompt, close }: AgainDialogProps) {
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
          <button type="submit" class="primary">
            Invoke
          </button>
          <button type="button" onClick={close}>
            Close
          </button>
        </div>
      </form>
    </Dialog>
  )
}
