import { useEffect } from 'preact/hooks'
import { Api, ApiFailure } from '../data/api.ts'
import { CheckField, TextField } from '../parts/fields.tsx'
import { Form, useForm } from '../parts/form.tsx'
import { ProblemText } from '../parts/states.tsx'
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
      <ProblemText text={problem} />
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
  const form = useForm({ key: '', isRemembered: false })
  const { key, isRemembered } = form.draft
  useEffect(() => {
    if (isAlone) form.element.current?.querySelector('input')?.focus()
  }, [isAlone])
  const submit = async () => {
    await checkKey(key.trim())
    accept(key.trim(), isRemembered)
  }
  return (
    <Form
      form={form}
      class={isAlone ? 'prompt-box' : ''}
      submit={submit}
      kind={isAlone ? 'primary' : ''}
      action={form.isBusy ? 'Checking…' : 'Open the dashboard'}
    >
      {isAlone && <Mark />}
      {isAlone && <h1>Agent Run Service</h1>}
      {/* A field without a name is never submitted with the form, even if the script fails. */}
      <TextField
        {...form.field('key')}
        name=""
        label="Workspace key"
        hint={
          <>
            The service printed it in its terminal when it started for the first time. It begins with{' '}
            <code>svc_ws_</code>. Unless you let this page remember it, it is forgotten when you close the last tab.
          </>
        }
        problem={form.isBusy ? '' : form.refusedAt('key') || problem}
        isCode
        type="password"
        required
        placeholder="svc_ws_…"
      />
      <CheckField {...form.field('isRemembered')}>Remember it on this device</CheckField>
    </Form>
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

/** @throws ApiFailure unless the service accepts the key */
async function checkKey(key: string): Promise<void> {
  const refused = (why: string) => new ApiFailure('PAGE', why, 0, { param: 'key' })
  if (key.startsWith('svc_agent_'))
    throw refused('This is the key of one agent. The dashboard needs a workspace key, which begins with svc_ws_.')
  // A header allows no other characters, so the browser would refuse it before the service could.
  if (!/^[!-~]+$/.test(key)) throw refused('This is not a key: it contains characters that no key has.')
  try {
    await new Api(key, new AbortController().signal).once('GET', '/api/v1/agents?limit=1')
  } catch (error) {
    const { code, message } = error as ApiFailure
    throw refused(code === 'UNREACHABLE' ? message : `The service refuses this key: ${message}.`)
  }
}
