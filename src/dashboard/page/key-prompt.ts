import { type ApiFailure, createApi } from './api.ts'
import { h, setText } from './dom.ts'

/**
 * Asks for the workspace key and tests it before accepting it.
 *
 * @param problem why the previous key is no longer accepted
 */
export function keyPrompt(problem: string, accept: (key: string) => void): HTMLElement {
  // A field without a name is never submitted with the form, even if the script fails.
  const field = h('input', {
    id: 'key',
    type: 'password',
    autocomplete: 'off',
    spellcheck: 'false',
    required: true,
    placeholder: 'svc_ws_…',
    'aria-describedby': 'key-help key-problem',
  })
  const submit = h('button', { type: 'submit', class: 'primary' }, 'Open the dashboard')
  const message = h('p', { id: 'key-problem', class: 'problem', role: 'alert' }, problem)
  const form = h(
    'form',
    {},
    h('label', { for: 'key' }, 'Workspace key'),
    field,
    message,
    submit,
    h(
      'p',
      { id: 'key-help', class: 'hint' },
      'The service printed it in its terminal when it started for the first time. It begins with ',
      h('code', {}, 'svc_ws_'),
      ' and stays in this tab until you close it.',
    ),
  )
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const key = field.value.trim()
    submit.disabled = true
    setText(message, '')
    const refusal = await refusalOf(key)
    submit.disabled = false
    if (refusal === null) return accept(key)
    setText(message, refusal)
    field.select()
  })
  return h('main', { class: 'prompt' }, h('h1', {}, 'Agent Run Service'), form)
}

/** Null if the service accepts the key. */
async function refusalOf(key: string): Promise<string | null> {
  if (key.startsWith('svc_agent_'))
    return 'This is the key of one agent. The dashboard needs a workspace key, which begins with svc_ws_.'
  // A header allows no other characters, so the browser would refuse it before the service could.
  if (!/^[!-~]+$/.test(key)) return 'This is not a key: it contains characters that no key has.'
  try {
    await createApi(key, new AbortController().signal).get('/api/v1/agents', { limit: 1 })
    return null
  } catch (error) {
    const { code, message } = error as ApiFailure
    return code === 'UNREACHABLE' ? message : `The service refuses this key: ${message}.`
  }
}
