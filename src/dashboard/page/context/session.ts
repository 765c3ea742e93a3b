import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { Api, Queries } from '../data/api.ts'
import { Directory } from '../data/directory.ts'
import { Feed } from '../data/feed.ts'
import type { Role, SignedIn } from '../data/records.ts'
import { Waiting } from '../data/waiting.ts'

/** What opens the page: a workspace key, or the person who is signed in. */
export type Entry = { readonly key: string } | { readonly person: SignedIn }

/** What the page shares while one key or sign-in is in use. */
export interface Session {
  readonly api: Api
  readonly feed: Feed
  readonly directory: Directory
  readonly waiting: Waiting
  readonly queries: Queries
  /** Who is signed in; null with a key, which may do everything. */
  readonly person: SignedIn | null
  /** Aborted when the key is forgotten or the person has left, to stop everything. */
  readonly signal: AbortSignal
  /** Forgets the key in all tabs, or shows that the sign-in has ended. `problem` says why, unless the user requested it. */
  readonly leave: (problem?: string) => void
}

export const SessionContext = createContext<Session | null>(null)

/** @throws Error outside of a session */
export function useSession(): Session {
  const session = useContext(SessionContext)
  if (session === null) throw new Error('this component needs a session')
  return session
}

/** What a view keeps as long as the session lasts, so that it is there when the user comes back. */
export function perSession<T>(create: (session: Session) => T): (session: Session) => T {
  const kept = new WeakMap<Session, T>()
  return (session) => {
    const known = kept.get(session) ?? create(session)
    kept.set(session, known)
    return known
  }
}

const ROLES: readonly Role[] = ['viewer', 'approver', 'admin']

/** Why the person who is signed in may not do what needs this role; undefined if they may. A key may do everything. */
export function useRefusal(needs: Role | undefined): string | undefined {
  const person = useContext(SessionContext)?.person
  if (needs === undefined || !person || ROLES.indexOf(person.role) >= ROLES.indexOf(needs)) return undefined
  return `This needs the role ${needs}. You are signed in as ${person.role}.`
}

/** Starts what the page shares. @param signal ends it */
export function createSession(entry: Entry, signal: AbortSignal, leave: Session['leave']): Session {
  const isPerson = 'person' in entry
  const api = new Api(isPerson ? null : entry.key, signal, ({ code, message }) => {
    if (!isPerson) leave(`The service no longer accepts this key: ${message}`)
    else leave(code === 'FORBIDDEN' ? `You can no longer enter: ${message}.` : 'Your sign-in has ended.')
  })
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
    person: isPerson ? entry.person : null,
    signal,
    leave,
  }
}
