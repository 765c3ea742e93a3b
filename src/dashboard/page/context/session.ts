import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { Api, Queries } from '../data/api.ts'
import { Directory } from '../data/directory.ts'
import { Feed } from '../data/feed.ts'
import { Waiting } from '../data/waiting.ts'

/** What the page shares while one key is in use. */
export interface Session {
  readonly api: Api
  readonly feed: Feed
  readonly directory: Directory
  readonly waiting: Waiting
  readonly queries: Queries
  /** Aborted when the key is forgotten, to stop everything. */
  readonly signal: AbortSignal
  /** Forgets the key in all tabs. `problem` says why, unless the user requested it. */
  readonly leave: (problem?: string) => void
}

export const SessionContext = createContext<Session | null>(null)

/** @throws Error outside of a session */
export function useSession(): Session {
  const session = useContext(SessionContext)
  if (session === null) throw new Error('this component needs a session')
  return session
}

/** Starts what the page shares for one key. @param signal ends it */
export function createSession(key: string, signal: AbortSignal, leave: Session['leave']): Session {
  const api = new Api(key, signal, ({ message }) => leave(`The service no longer accepts this key: ${message}`))
  const feed = new Feed(api, signal)
  const directory = new Directory(api, signal)
  const stopRefreshing = feed.isConnected.subscribe((isConnected) => {
    // Also after an interruption, when agents may have changed.
    if (isConnected) void directory.refresh()
  })
  signal.addEventListener('abort', stopRefreshing)
  return {
    api,
    feed,
    directory,
    waiting: new Waiting(api, feed, signal),
    queries: new Queries(api),
    signal,
    leave,
  }
}
