import { render } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { applyTheme, showAllText } from '../context/browser.ts'
import { KeyStore } from '../context/key-store.ts'
import { followAddress } from '../context/router.ts'
import { createSession, SessionContext } from '../context/session.ts'
import { Problem } from '../parts/states.tsx'
import { KeyPrompt } from './key-prompt.tsx'
import { Shell } from './shell.tsx'

/** The page: the prompt for a key, or the dashboard of its workspace. */
function App() {
  /** Undefined: still being looked up; null: there is none, so the user is asked for it. */
  const [key, setKey] = useState<string | null>()
  const [problem, setProblem] = useState('')
  const close = (why: string) => {
    setKey(null)
    setProblem(why)
  }
  const keys = useMemo(() => new KeyStore(() => close('The key was removed in another tab.')), [])
  useEffect(() => {
    const closing = new AbortController()
    followAddress(closing.signal)
    void keys.find().then(setKey)
    return () => closing.abort()
  }, [keys])

  if (key === undefined) return null
  if (key === null) {
    const accept = (accepted: string, remember: boolean) => {
      keys.keep(accepted, remember)
      setKey(accepted)
    }
    return <KeyPrompt key={problem} problem={problem} accept={accept} />
  }
  const leave = (why = '') => {
    keys.forget()
    close(why)
  }
  return <Dashboard key={key} workspaceKey={key} leave={leave} />
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

applyTheme()
showAllText()
render(<App />, document.body)
