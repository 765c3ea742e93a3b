import { placeholdersOf } from '../../hosted/invoke/prompt.ts'
import type { Api } from './api.ts'
import type { Agent } from './directory.ts'
import { h, labelled, setText } from './dom.ts'
import { runOutput } from './output.ts'

export interface InvokeDeps {
  readonly api: Api
  readonly signal: AbortSignal
}

/** A form to invoke one hosted agent, and the output of its run. */
export function invokePanel({ api, signal }: InvokeDeps) {
  const element = h('div', { class: 'panel invoke', hidden: true })
  let opened = new AbortController()

  function close(): void {
    opened.abort()
    element.hidden = true
    element.replaceChildren()
  }

  return {
    element,
    open(agent: Agent): void {
      close()
      opened = new AbortController()
      const form = invokeForm(agent, { api, signal: AbortSignal.any([signal, opened.signal]) }, close)
      element.hidden = false
      element.append(form.element)
      form.focus()
    },
  }
}

function invokeForm({ agent_id, name, prompt }: Agent, { api, signal }: InvokeDeps, close: () => void) {
  const message = h('textarea', { rows: '3', required: true })
  const variables = placeholdersOf(prompt ?? '').map((key) => ({ key, field: h('textarea', { rows: '1' }) }))
  const submit = h('button', { type: 'submit', class: 'primary' }, 'Invoke')
  const cancel = h('button', { type: 'button', class: 'quiet' }, 'Close')
  const problem = h('p', { class: 'problem', role: 'alert' })
  const result = h('div')
  let shown = new AbortController()

  async function invoke(): Promise<void> {
    if (submit.disabled) return
    submit.disabled = true
    setText(problem, '')
    try {
      // In the background: the output has its own stream, which reconnects by itself.
      const { run_id: runId } = await api.post<{ run_id: string }>(`/api/v1/agents/${agent_id}/invoke`, {
        input: { message: message.value },
        prompt_variables: Object.fromEntries(variables.map(({ key, field }) => [key, field.value])),
        background: true,
      })
      shown.abort()
      shown = new AbortController()
      result.replaceChildren(runOutput({ api, runId, signal: AbortSignal.any([signal, shown.signal]) }))
    } catch (error) {
      setText(problem, (error as Error).message)
    } finally {
      submit.disabled = false
    }
  }

  const fields = [labelled('Message', message), ...variables.map(({ key, field }) => labelled(key, field))]
  const actions = [submit, h('span', { class: 'hint' }, 'or Ctrl+Enter'), cancel]
  const form = h('form', {}, h('h2', {}, `Invoke ${name}`), ...fields, h('div', { class: 'actions' }, ...actions))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void invoke()
  })
  form.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    form.requestSubmit()
  })
  cancel.addEventListener('click', close)
  return { element: h('div', {}, form, problem, result), focus: () => message.focus() }
}
