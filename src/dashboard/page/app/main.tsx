import { render } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { applyTheme, keepFocus, showAllText } from '../context/browser.ts'
import { KeyStore } from '../context/key-store.ts'
import { followAddress } from '../context/router.ts'
import { createSession, type Entry, SessionContext } from '../context/session.ts'
import { Problem } from '../parts/states.tsx'
import { EntryPrompt } from './entry-prompt.tsx'
import { Shell } from './shell.tsx'
import { readSignIn, type SignInWays, takeSignInProblem } from './sign-in.tsx'

/** The page: the prompt for a key or a sign-in, or the dashboard of its workspace. */
function App() {
  /** Undefined: still being looked up; null: there is none, so the user is asked. */
  const [entry, setEntry] = useState<Entry | null>()
  const [ways, setWays] = useState<SignInWays>({ openid: false, keys: true })
  const [problem, setProblem] = useState(takeSignInProblem)
  const close = (why: string) => {
    setEntry(null)
    setProblem(why)
    void readSignIn().then(setWays)
  }
  const takeLate = (key: string) =>
    setEntry((now) => {
      if (now) return now
      keys.keep(key, keys.isRemembered)
      return { key }
    })
  const keys = useMemo(() => new KeyStore(() => close('The key was removed in another tab.'), takeLate), [])
  useEffect(() => {
    const closing = new AbortController()
    followAddress(closing.signal)
    void findEntry(keys, setWays).then((found) => setEntry((now) => now ?? found))
    return () => closing.abort()
  }, [keys])

  if (entry === undefined) return null
  if (entry === null) {
    const accept = (key: string, remember: boolean) => {
      keys.keep(key, remember)
      setEntry({ key })
    }
    return <EntryPrompt key={problem} problem={problem} ways={ways} accept={accept} />
  }
  const leave = (why = '') => {
    if ('key' in entry) keys.forget()
    close(why)
  }
  return <Dashboard key={'key' in entry ? entry.key : entry.person.sign_in_id} entry={entry} leave={leave} />
}

/** A key that the browser keeps, or else the person who is signed in. */
async function findEntry(keys: KeyStore, setWays: (ways: SignInWays) => void): Promise<Entry | null> {
  const key = await keys.find()
  if (key !== null) return { key }
  const state = await readSignIn()
  setWays(state)
  return state.person === null ? null : { person: state.person }
}

interface DashboardProps {
  readonly entry: Entry
  readonly leave: (problem?: string) => void
}

function Dashboard({ entry, leave }: DashboardProps) {
  const [closing] = useState(() => new AbortController())
  const [session] = useState(() =>
    createSession(entry, closing.signal, (problem) => {
      closing.abort()
      leave(problem)
    }),
  )
  useEffect(() => {
    keepFocus(closing.signal)
    return () => closing.abort()
  }, [closing])
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
