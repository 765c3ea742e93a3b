import { useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { failureOf, useLoad } from '../data/loading.ts'
import type { Session } from '../data/records.ts'

const LIST_LIMIT = 50
const REFRESH_MS = 15_000
const TRIES_MAX = 10

/** What a list of sessions is filtered by, as the API names it. */
export type SessionQuery = Readonly<Record<'kind' | 'agent_id' | 'external_user_id' | 'from', string | undefined>>

/** The newest sessions, read again at intervals, and the older ones that the user asked for. Remount it for other conditions. */
export function useSessions(where: Partial<SessionQuery>, limit = LIST_LIMIT) {
  const { api } = useSession()
  const read = (cursor: string | null, signal?: AbortSignal) =>
    api.get<Listed<Session>>('/api/v1/sessions', { ...where, cursor, limit }, signal)
  const newest = useLoad((signal) => read(null, signal), [where], { everyMs: REFRESH_MS })
  const [older, setOlder] = useState<Listed<Session> | null>(null)
  const [problem, setProblem] = useState(newest.problem)
  const end = older ?? newest.data
  const showOlder = async () => {
    try {
      let page: Listed<Session> = { items: [], next_cursor: end?.next_cursor ?? null }
      // After a session with very many runs, pages may be empty.
      for (let tries = 0; page.items.length === 0 && page.next_cursor !== null && tries < TRIES_MAX; tries++)
        page = await read(page.next_cursor)
      setOlder({ items: [...(older?.items ?? []), ...page.items], next_cursor: page.next_cursor })
      setProblem(null)
    } catch (error) {
      setProblem(failureOf(error))
    }
  }
  // A session that got a new run while older ones were shown is in both lists: the newer record counts.
  const items = new Map(
    [...(newest.data?.items ?? []), ...(older?.items ?? [])].reverse().map((each) => [each.session_id, each]),
  )
  return {
    read: {
      ...newest,
      data: newest.data && [...items.values()].reverse(),
      problem: newest.problem ?? problem,
    },
    showOlder: (end?.next_cursor ?? null) === null ? undefined : showOlder,
  }
}
