import { addressState, oneOf, texts } from '../context/address-state.ts'
import { address } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { Button } from '../parts/controls.tsx'
import { FilterField, Select } from '../parts/fields.tsx'
import { PRESETS } from '../parts/range.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { useRowKeys } from '../parts/table.tsx'
import { type SessionQuery, useSessions } from './session-list.ts'
import { SessionPane } from './session-pane.tsx'
import { SessionTable, sessionsListed } from './session-table.tsx'

const SESSIONS = addressState({
  ...texts('user', 'agent'),
  kind: oneOf(['', 'hosted', 'external']),
  range: oneOf(['', ...PRESETS.keys()]),
})
const MINUTE_MS = 60_000

/** Conversations with agents, hosted or reported, and beside them the one that the address names. */
export function SessionsView() {
  useRowKeys()
  const [sessionId] = address.value.path
  const where = queryOf(SESSIONS.value, Date.now())
  return (
    <section class={`view sessions ${sessionId === undefined ? '' : 'with-detail'}`} aria-label="Sessions">
      <div class="view-head">
        <h1>Sessions</h1>
      </div>
      <SessionFilters />
      <div class="split">
        <SessionList key={JSON.stringify(where)} where={where} selected={sessionId ?? null} />
        {sessionId !== undefined && <SessionPane key={sessionId} sessionId={sessionId} />}
      </div>
    </section>
  )
}

/** A time range begins at a full minute; otherwise every tick of the clock would request another list. */
function queryOf({ kind, agent, user, range }: typeof SESSIONS.value, nowMs: number): Partial<SessionQuery> {
  const seconds = PRESETS.get(range)?.seconds
  const fromMs = seconds === undefined ? undefined : Math.floor(nowMs / MINUTE_MS) * MINUTE_MS - seconds * 1_000
  return {
    ...(kind && { kind }),
    ...(agent && { agent_id: agent }),
    ...(user && { external_user_id: user }),
    ...(fromMs !== undefined && { from: new Date(fromMs).toISOString() }),
  }
}

function SessionFilters() {
  const { directory } = useSession()
  return (
    <search class="filters" aria-label="Filter sessions">
      <FilterField icon="person" label="User" placeholder="User (exact id)" {...SESSIONS.field('user')} />
      <Select label="Agent" {...SESSIONS.field('agent')} options={[['', 'Any agent'], ...directory.choices.value]} />
      <Select
        label="Kind"
        {...SESSIONS.field('kind')}
        options={[
          ['', 'Any kind'],
          ['hosted', 'Hosted agents'],
          ['external', 'Reported by programs'],
        ]}
      />
      <Select
        label="Active in"
        {...SESSIONS.field('range')}
        options={[['', 'Any time'], ...[...PRESETS].map(([name, { title }]) => [name, title] as const)]}
      />
    </search>
  )
}

interface SessionListProps {
  readonly where: Partial<SessionQuery>
  readonly selected: string | null
}

function SessionList({ where, selected }: SessionListProps) {
  const { read, showOlder } = useSessions(where)
  const items = read.data
  return (
    <div class="list-pane">
      <Loaded
        read={read}
        lines={6}
        empty={showOlder === undefined && <NoSessions isFiltered={Object.keys(where).length > 0} />}
      >
        {(sessions) => <SessionTable sessions={sessions} selected={selected} />}
      </Loaded>
      {items !== undefined && (items.length > 0 || showOlder !== undefined) && (
        <div class="list-end">
          {showOlder === undefined ? (
            <span class="hint">{sessionsListed(items)}</span>
          ) : (
            <Button class="small" text="Show older sessions" onClick={showOlder} />
          )}
        </div>
      )}
    </div>
  )
}

function NoSessions({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No session matches these filters." icon="sessions" />
  return (
    <Empty title="No sessions yet." icon="sessions">
      <p>
        A session is a conversation over several runs. It begins when a run is started with a <code>session_id</code>,
        or a hosted agent is invoked with <code>start_session</code>.
      </p>
    </Empty>
  )
}
