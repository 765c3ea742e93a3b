import { count, counted } from '../../../base/format.ts'
import { address, hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Session } from '../data/records.ts'
import { sessionName, UserLink } from '../parts/links.tsx'
import { Status } from '../parts/states.tsx'
import { type Column, Table, USAGE } from '../parts/table.tsx'
import { Ago } from '../parts/time.tsx'

interface SessionTableProps {
  readonly sessions: readonly Session[]
  readonly selected?: string | null
  /** Whether the page is about one user, so that the table needs no column for it. */
  readonly isOfUser?: boolean
}

/** Sessions with their first and last message. The first message is the link, and the row follows it. */
export function SessionTable({ sessions, selected = null, isOfUser = false }: SessionTableProps) {
  const { view, query } = address.value
  const kept = view === 'sessions' ? query : {}
  return (
    <Table
      box={`panel table-scroll session-table ${isOfUser ? 'of-user' : ''}`}
      rows={sessions}
      keyOf={({ session_id }) => session_id}
      link={({ session_id: id, first_message: said }) => ({
        href: hrefOf('sessions', [id], kept),
        title: id,
        children: said === null ? `Session ${sessionName(id)}` : plainText(said),
      })}
      isSelected={({ session_id }) => session_id === selected}
      columns={COLUMNS}
    />
  )
}

const COLUMNS: readonly Column<Session>[] = [
  {
    title: 'Conversation',
    class: 'session-said',
    cell: ({ last_message: said }) => said !== null && <p class="hint">{plainText(said)}</p>,
  },
  { title: 'Status', class: 'col-status', cell: (session) => <SessionStatus session={session} /> },
  { title: 'Agent', class: 'col-who', cell: (session) => <Agents session={session} /> },
  {
    title: 'User',
    class: 'col-user',
    cell: ({ external_user_id, external_user_ids: users }) => (
      <>
        {users[0] !== undefined && <UserLink id={external_user_id ?? users[0]} />}
        {users.length > 1 && <span class="hint"> and {users.length - 1} more</span>}
      </>
    ),
  },
  { title: 'Runs', isNumber: true, class: 'col-runs', cell: runCount },
  ...USAGE,
  { title: 'Last activity', class: 'col-last', cell: ({ last_activity_at }) => <Ago at={last_activity_at} /> },
]

/** A line of Markdown without the marks for emphasis and code. */
export function plainText(text: string): string {
  return text.replace(/\*\*(.+?)\*\*/g, '$1').replace(/`([^`]+)`/g, '$1')
}

/** The status of the newest run, and whether others wait or have failed. */
export function SessionStatus({ session: { status, failed_count, waiting_count } }: { readonly session: Session }) {
  const waiting = status.startsWith('awaiting') ? waiting_count - 1 : waiting_count
  const failed = status === 'failed' || status === 'timed_out' ? failed_count - 1 : failed_count
  return (
    <>
      <Status name={status} />
      {waiting > 0 && <p class="hint">{waiting} more waiting</p>}
      {failed > 0 && <p class="hint">{failed} failed before</p>}
    </>
  )
}

function Agents({ session: { agent_id, agent_ids, kind } }: { readonly session: Session }) {
  const { directory } = useSession()
  return (
    <>
      {directory.nameOf(agent_id)}
      {agent_ids.length > 1 && <span class="hint"> and {agent_ids.length - 1} more</span>}
      {kind === 'hosted' && <p class="hint">hosted</p>}
    </>
  )
}

/** `3`, or `2,000+` where the service counts no further. */
export function runCount({ run_count, is_partial }: { readonly run_count: number; readonly is_partial: boolean }) {
  return `${count(run_count)}${is_partial ? '+' : ''}`
}

/** How many sessions are listed, for the end of a list. */
export function sessionsListed(sessions: readonly Session[]): string {
  return counted(sessions.length, 'session')
}
