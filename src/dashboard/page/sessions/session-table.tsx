import { compact, count, counted, dollars } from '../../../base/format.ts'
import { address, hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Session } from '../data/records.ts'
import { sessionName, UserLink } from '../parts/links.tsx'
import { Status } from '../parts/states.tsx'
import { Ago } from '../parts/time.tsx'

interface SessionTableProps {
  readonly sessions: readonly Session[]
  readonly selected?: string | null
  /** Whether the page is about one user, so that the table needs no column for it. */
  readonly isOfUser?: boolean
}

/** Sessions with their first and last message. The first message is the link, and the row follows it. */
export function SessionTable({ sessions, selected = null, isOfUser = false }: SessionTableProps) {
  return (
    <div class={`panel table-scroll session-table ${isOfUser ? 'of-user' : ''}`}>
      <table class="run-list">
        <thead>
          <tr>
            <th scope="col">Conversation</th>
            <th scope="col" class="col-status">
              Status
            </th>
            <th scope="col" class="col-who">
              Agent
            </th>
            <th scope="col" class="col-user">
              User
            </th>
            <th scope="col" class="col-runs number">
              Runs
            </th>
            <th scope="col" class="col-tokens number">
              Tokens
            </th>
            <th scope="col" class="col-cost number">
              Cost
            </th>
            <th scope="col" class="col-last">
              Last activity
            </th>
          </tr>
        </thead>
        <tbody>
          {sessions.map((session) => (
            <SessionRow key={session.session_id} session={session} isSelected={session.session_id === selected} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function SessionRow({ session, isSelected }: { readonly session: Session; readonly isSelected: boolean }) {
  const { session_id: id, first_message, last_message, usage, cost_usd, external_user_ids: users } = session
  const { view, query } = address.value
  const current = isSelected ? 'true' : undefined
  return (
    <tr aria-current={current}>
      <td class="session-said">
        <a
          class="row-link"
          href={hrefOf('sessions', [id], view === 'sessions' ? query : {})}
          aria-current={current}
          title={id}
        >
          {first_message === null ? `Session ${sessionName(id)}` : plainText(first_message)}
        </a>
        {last_message !== null && <p class="hint">{plainText(last_message)}</p>}
      </td>
      <td class="col-status">
        <SessionStatus session={session} />
      </td>
      <td class="col-who">
        <Agents session={session} />
      </td>
      <td class="col-user">
        {users[0] !== undefined && <UserLink id={session.external_user_id ?? users[0]} />}
        {users.length > 1 && <span class="hint"> and {users.length - 1} more</span>}
      </td>
      <td class="col-runs number">{runCount(session)}</td>
      <td class="col-tokens number">{usage.total_tokens > 0 && compact(usage.total_tokens)}</td>
      <td class="col-cost number">{cost_usd > 0 && dollars(cost_usd)}</td>
      <td class="col-last">
        <Ago at={session.last_activity_at} />
      </td>
    </tr>
  )
}

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
