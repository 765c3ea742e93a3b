import { useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import { type Listed, nextNonEmptyPage } from '../data/api.ts'
import { failureOf, useLoad } from '../data/loading.ts'
import type { Session } from '../data/records.ts'

const LIST_LIMIT = 50
const REFRESH_MS = 15_000

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
      // After a session with very many runs, pages may be empty.
      const { items, next_cursor } = await nextNonEmptyPage(read, end?.next_cursor ?? null)
      // The answer to a second click has the same page.
      setOlder((before) => (before === older ? { items: [...(older?.items ?? []), ...items], next_cursor } : before))
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
