import { counted } from '../../../base/format.ts'
import { address, hrefOf, hrefOfRun, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { type Listed, listAll } from '../data/api.ts'
import { type Loaded, useLoad } from '../data/loading.ts'
import { isUuid, type Schemas, type Session } from '../data/records.ts'
import { BackLink, Id } from '../parts/controls.tsx'
import { FilterField, Select } from '../parts/fields.tsx'
import { Markdown } from '../parts/markdown.tsx'
import { Empty, Problem, Skeleton } from '../parts/states.tsx'
import { Ago, ClockTime } from '../parts/time.tsx'
import { Message } from '../run/conversation.tsx'

const LIST_LIMIT = 100
const REFRESH_MS = 30_000

/** Conversations with hosted agents, and beside them the one that the address names. */
export function SessionsView() {
  const { api } = useSession()
  const { path, query } = address.value
  const [sessionId] = path
  const where = { agent_id: query.agent, external_user_id: query.user, limit: LIST_LIMIT }
  const sessions = useLoad((signal) => api.get<Listed<Session>>('/api/v1/sessions', where, signal), [where], {
    everyMs: REFRESH_MS,
  })
  return (
    <section class={`view sessions ${sessionId === undefined ? '' : 'with-detail'}`} aria-label="Sessions">
      <div class="view-head">
        <h1>Sessions</h1>
      </div>
      <SessionFilters />
      {sessions.problem !== undefined && <Problem problem={sessions.problem} />}
      <div class="split">
        <SessionList sessions={sessions} selected={sessionId ?? null} />
        {sessionId !== undefined && isUuid(sessionId) && <SessionPane key={sessionId} sessionId={sessionId} />}
      </div>
    </section>
  )
}

function SessionFilters() {
  const { directory } = useSession()
  const { query } = address.value
  const hosted = directory.agents.value.filter(({ runtime_type }) => runtime_type === 'hosted')
  return (
    <div class="filters" role="search" aria-label="Filter sessions">
      <Select
        label="Agent"
        value={query.agent ?? ''}
        options={[['', 'Any agent'], ...hosted.map(({ agent_id: id }) => [id, directory.nameOf(id)] as const)]}
        onChange={(agent) => setQuery({ agent })}
      />
      <FilterField
        icon="person"
        label="User"
        placeholder="User (exact id)"
        value={query.user ?? ''}
        onChange={(user) => setQuery({ user })}
      />
    </div>
  )
}

interface SessionListProps {
  readonly sessions: Loaded<Listed<Session>>
  readonly selected: string | null
}

function SessionList({ sessions: { data, problem }, selected }: SessionListProps) {
  const { directory } = useSession()
  const { query } = address.value
  if (data === undefined) return problem === undefined ? <Skeleton lines={6} /> : null
  if (data.items.length === 0) {
    return (
      <Empty title="No sessions." icon="sessions">
        <p>
          A session begins when a hosted agent is invoked with <code>start_session</code>.
        </p>
      </Empty>
    )
  }
  return (
    <ul class="cards list-pane">
      {data.items.map((session) => (
        <li key={session.session_id}>
          <a
            class="card"
            href={hrefOf('sessions', [session.session_id], query)}
            aria-current={session.session_id === selected ? 'true' : undefined}
          >
            <span class="card-title">{directory.nameOf(session.agent_id)}</span>
            <span class="hint">
              {session.external_user_id ?? `…${session.session_id.slice(-8)}`} ·{' '}
              {counted(session.message_count, 'message')}
            </span>
            <Ago at={session.updated_at} />
          </a>
        </li>
      ))}
      {data.next_cursor !== null && (
        <li class="hint">Only the newest {LIST_LIMIT} are shown; narrow the filters to see others.</li>
      )}
    </ul>
  )
}

function SessionPane({ sessionId }: { readonly sessionId: string }) {
  const { api, directory } = useSession()
  const { data, problem } = useLoad(
    (signal) => api.get<Session>(`/api/v1/sessions/${sessionId}`, {}, signal),
    [sessionId],
    {
      everyMs: REFRESH_MS,
    },
  )
  if (problem?.code === 'NOT_FOUND') return <Empty title="No such session" icon="sessions" />
  return (
    <section class="panel detail" aria-label="Conversation of the session">
      <div class="detail-head">
        <BackLink href={hrefOf('sessions', [], address.value.query)} label="All sessions" />
        <h2>{data === undefined ? 'Session' : directory.nameOf(data.agent_id)}</h2>
        <Id id={sessionId} what="session id" />
        <div class="view-tools">
          <a class="button small" href={hrefOf('runs', [], { session: sessionId })}>
            Its runs
          </a>
          {data?.active_run_id && (
            <a class="button small" href={hrefOfRun(data.active_run_id)}>
              Running now
            </a>
          )}
        </div>
      </div>
      <SessionMessages sessionId={sessionId} version={data?.message_count ?? 0} />
    </section>
  )
}

/** A longer conversation is shown in part. */
const MESSAGES_MAX = 2_000

interface SessionMessagesProps {
  readonly sessionId: string
  /** Read again when it changes. */
  readonly version: number
}

/** The messages of a session, oldest first, each with its run. */
function SessionMessages({ sessionId, version }: SessionMessagesProps) {
  const { api } = useSession()
  const { data, problem } = useLoad(
    (signal) => listAll<Schemas['Message']>(api, `/api/v1/sessions/${sessionId}/messages`, MESSAGES_MAX, signal),
    [sessionId, version],
  )
  if (problem !== undefined) return <Problem problem={problem} />
  if (data === undefined) return <Skeleton lines={5} />
  if (data.items.length === 0) return <Empty title="No messages yet." />
  return (
    <ol class="conversation" aria-label="Messages">
      {data.items.map(({ position, role, content, run_id, created_at }) => (
        <Message key={position} from={role}>
          <Markdown text={content} />
          <p class="hint message-foot">
            <ClockTime at={created_at} /> · <a href={hrefOfRun(run_id)}>run …{run_id.slice(-8)}</a>
          </p>
        </Message>
      ))}
    </ol>
  )
}
