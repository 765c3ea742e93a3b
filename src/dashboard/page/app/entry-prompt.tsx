import { useEffect, useRef, useState } from 'preact/hooks'
import { Api, type ApiFailure } from '../data/api.ts'
import { Button } from '../parts/controls.tsx'
import { type SignInWays, signInHref } from './sign-in.tsx'

interface KeyPromptProps {
  /** Why the previous key or sign-in is no longer accepted. */
  readonly problem: string
  readonly accept: (key: string, remember: boolean) => void
}

/** Asks the user to sign in, or for the workspace key. */
export function EntryPrompt({ ways, ...props }: KeyPromptProps & { readonly ways: SignInWays }) {
  useEffect(() => {
    document.title = 'Agent Run Service'
  }, [])
  return (
    <main class="prompt">
      {ways.openid ? <SignInPrompt {...props} takesKeys={ways.keys} /> : <KeyPrompt {...props} isAlone />}
    </main>
  )
}

function SignInPrompt({ takesKeys, problem, accept }: KeyPromptProps & { readonly takesKeys: boolean }) {
  return (
    <section class="prompt-box" aria-label="Sign in">
      <Mark />
      <h1>Agent Run Service</h1>
      <p class="problem" role="alert">
        {problem}
      </p>
      <a class="button primary" href={signInHref()}>
        Sign in
      </a>
      {takesKeys && (
        <details>
          <summary>Use a workspace key instead</summary>
          <KeyPrompt problem="" accept={accept} isAlone={false} />
        </details>
      )}
    </section>
  )
}

/** Asks for the workspace key, and tests it before accepting it. @param isAlone it is the only way in */
function KeyPrompt({ problem, accept, isAlone }: KeyPromptProps & { readonly isAlone: boolean }) {
  const [message, setMessage] = useState(problem)
  const [isBusy, setBusy] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  const remember = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (isAlone) field.current?.focus()
  }, [isAlone])
  const submit = async (event: Event) => {
    event.preventDefault()
    const key = field.current?.value.trim() ?? ''
    setBusy(true)
    setMessage('')
    const refusal = await refusalOf(key)
    setBusy(false)
    if (refusal === null) return accept(key, remember.current?.checked ?? false)
    setMessage(refusal)
    field.current?.select()
  }
  return (
    <form class={isAlone ? 'prompt-box' : undefined} onSubmit={submit}>
      {isAlone && <Mark />}
      {isAlone && <h1>Agent Run Service</h1>}
      <label for="key">Workspace key</label>
      {/* A field without a name is never submitted with the form, even if the script fails. */}
      <input
        id="key"
        class="mono"
        ref={field}
        type="password"
        autocomplete="off"
        spellcheck={false}
        required
        placeholder="svc_ws_…"
        aria-describedby="key-help key-problem"
      />
      <p id="key-problem" class="problem" role="alert">
        {message}
      </p>
      <label class="check">
        <input ref={remember} type="checkbox" /> Remember it on this device
      </label>
      <Button
        type="submit"
        class={isAlone ? 'primary' : undefined}
        disabled={isBusy}
        text={isBusy ? 'Checking…' : 'Open the dashboard'}
      />
      <p id="key-help" class="hint">
        The service printed it in its terminal when it started for the first time. It begins with <code>svc_ws_</code>.
        Unless you let this page remember it, it is forgotten when you close the last tab.
      </p>
    </form>
  )
}

/** The logo of the service. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" />
      <path d="M7 10h11M7 16h18M7 22h7" />
    </svg>
  )
}

/** Null if the service accepts the key. */
async function refusalOf(key: string): Promise<string | null> {
  if (key.startsWith('svc_agent_'))
    return 'This is the key of one agent. The dashboard needs a workspace key, which begins with svc_ws_.'
  // A header allows no other characters, so the browser would refuse it before the service could.
  if (!/^[!-~]+$/.test(key)) return 'This is not a key: it contains characters that no key has.'
  try {
    await new Api(key, new AbortController().signal).once('GET', '/api/v1/agents?limit=1')
    return null
  } catch (error) {
    const { code, message } = error as ApiFailure
    return code === 'UNREACHABLE' ? message : `The service refuses this key: ${message}.`
  }
}
