import { useEffect, useMemo, useState } from 'preact/hooks'
import { KeyStore } from '../context/key-store.ts'
import { followAddress } from '../context/router.ts'
import { createSession, SessionContext } from '../context/session.ts'
import { Problem } from '../parts/states.tsx'
import { KeyPrompt } from './key-prompt.tsx'
import { Shell } from './shell.tsx'

type State =
  | { readonly name: 'starting' }
  | { readonly name: 'asking'; readonly problem: string }
  | { readonly name: 'open'; readonly key: string }

/** The page: the prompt for a key, or the dashboard of its workspace. */
export function App() {
  const [state, setState] = useState<State>({ name: 'starting' })
  const keys = useMemo(
    () => new KeyStore(() => setState({ name: 'asking', problem: 'The key was removed in another tab.' })),
    [],
  )
  useEffect(() => {
    const closing = new AbortController()
    followAddress(closing.signal)
    void keys.find().then((key) => setState(key === null ? { name: 'asking', problem: '' } : { name: 'open', key }))
    return () => closing.abort()
  }, [keys])

  if (state.name === 'starting') return null
  if (state.name === 'asking') {
    const accept = (key: string, remember: boolean) => {
      keys.keep(key, remember)
      setState({ name: 'open', key })
    }
    return <KeyPrompt key={state.problem} problem={state.problem} accept={accept} />
  }
  const leave = (problem = '') => {
    keys.forget()
    setState({ name: 'asking', problem })
  }
  return <Dashboard key={state.key} workspaceKey={state.key} leave={leave} />
}

interface DashboardProps {
  readonly workspaceKey: string
  readonly leave: (problem?: string) => void
}

function Dashboard({ workspaceKey, leave }: DashboardProps) {
  const [closing] = useState(() => new AbortController())
  const [session] = useState(() =>
    createSession(workspaceKey, closing.signal, (problem) => {
      closing.abort()
      leave(problem)
    }),
  )
  useEffect(() => () => closing.abort(), [closing])
  return (
    <SessionContext.Provider value={session}>
      {session.api.trouble.value !== null && (
        <div class="trouble">
          <Problem problem={session.api.trouble.value} />
        </div>
      )}
      <Shell />
    </SessionContext.Provider>
  )
}
