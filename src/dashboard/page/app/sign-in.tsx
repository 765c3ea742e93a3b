import { useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import { Api, type ApiFailure } from '../data/api.ts'
import { useAttempt } from '../data/loading.ts'
import type { Schemas } from '../data/records.ts'
import { Button, Icon } from '../parts/controls.tsx'
import { ProblemText } from '../parts/states.tsx'

type SignInState = Schemas['SignInState']
/** How people can open the page. */
export type SignInWays = Pick<SignInState, 'openid' | 'keys'>

/** How people sign in here, and who has. Only by key, if the service does not say. */
export async function readSignIn(): Promise<SignInState> {
  const api = new Api(null, new AbortController().signal)
  const fallback = { openid: false, keys: true, person: null }
  return api.once<SignInState>('GET', '/api/v1/sign-in').catch(() => fallback)
}

const PROBLEMS = new Map([
  ['unavailable', 'The identity provider does not respond as it should. Try again in a moment.'],
  ['refused', 'The identity provider did not sign you in.'],
  ['expired', 'This attempt to sign in is no longer valid. Try again.'],
  ['failed', 'The answer from the identity provider is not valid. The log of the service says why.'],
  ['no_role', 'You are known to the identity provider, but have no role here. Ask whoever manages access.'],
  ['no_workspace', 'There is no active workspace that you may enter. Ask whoever manages access.'],
  ['suspended', 'Your access has been suspended. Ask whoever manages access.'],
  ['too_many', 'Too many people sign in at this moment. Try again.'],
])

/** Why the last attempt to sign in failed; empty if it did not. The reason is removed from the address. */
export function takeSignInProblem(): string {
  const problem = new URLSearchParams(location.search).get('sign-in')
  if (problem === null) return ''
  history.replaceState(history.state, '', location.pathname + location.hash)
  return PROBLEMS.get(problem) ?? 'Nobody was signed in. Try again.'
}

/** The address that starts a sign-in and then leads back to the present view. */
export function signInHref(): string {
  return `/auth/sign-in?to=${encodeURIComponent(location.hash)}`
}

/** Who is signed in, with which role, and in which workspace, if there are several. */
export function SignedInPerson() {
  const { person } = useSession()
  if (person === null) return null
  const { name, email, role, workspace, workspaces } = person
  const shown = name ?? email ?? 'Signed in'
  return (
    <div class="signed-in">
      <p title={[name, email].filter(Boolean).join(', ')}>
        <Icon name="person" />
        <span class="who">{shown}</span>
        <span class="role">{role}</span>
      </p>
      {workspaces.length > 1 && <WorkspaceChoice current={workspace.workspace_id} workspaces={workspaces} />}
    </div>
  )
}

function WorkspaceChoice({
  current,
  workspaces,
}: {
  readonly current: string
  readonly workspaces: Schemas['SignedIn']['workspaces']
}) {
  const { api } = useSession()
  const { problem, attempt } = useAttempt()
  const enter = (workspace_id: string) =>
    attempt(async () => {
      await api.post('/api/v1/sign-in/workspace', { workspace_id })
      location.reload()
    })
  return (
    <>
      <select aria-label="Workspace" value={current} onChange={({ currentTarget }) => void enter(currentTarget.value)}>
        {workspaces.map(({ workspace_id, name }) => (
          <option key={workspace_id} value={workspace_id}>
            {name}
          </option>
        ))}
      </select>
      <ProblemText text={problem} />
    </>
  )
}

/** Signs the person out, or forgets the key. */
export function LeaveButton() {
  const { api, person, leave } = useSession()
  const [isBusy, setBusy] = useState(false)
  if (person === null) return <Button icon="leave" label="Forget key" title="Forget key" onClick={() => leave()} />
  const signOut = async () => {
    setBusy(true)
    const problem = await api.post('/api/v1/sign-out', {}).then(
      () => '',
      (failure: ApiFailure) => (failure.code === 'UNAUTHENTICATED' ? '' : failure.message),
    )
    setBusy(false)
    leave(problem === '' ? undefined : `You are still signed in: ${problem}`)
  }
  return <Button icon="leave" label="Sign out" title="Sign out" disabled={isBusy} onClick={() => void signOut()} />
}
