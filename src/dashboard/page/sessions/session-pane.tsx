import { useState } from 'preact/hooks'
import { compact, counted, dollars } from '../../../base/format.ts'
import { address, hrefOf, hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { useLoad } from '../data/loading.ts'
import { isLive, type Run, type Session } from '../data/records.ts'
import { BackLink, Button, Id } from '../parts/controls.tsx'
import { AgentLinks, sessionName, UserLink, withCommas } from '../parts/links.tsx'
import { Empty, Facts, Loaded, Status } from '../parts/states.tsx'
import { Ago, Moment } from '../parts/time.tsx'
import { Conversation } from '../run/conversation.tsx'
import { chatOf } from './chat.ts'
import { SessionReply } from './session-reply.tsx'
import { plainText, runCount, SessionStatus } from './session-table.tsx'

const REFRESH_MS = 15_000
const LIVE_REFRESH_MS = 4_000

/** One session: its totals, and the conversation across its runs. */
export function SessionPane({ sessionId }: { readonly sessionId: string }) {
  const { api } = useSession()
  const [everyMs, setEveryMs] = useState(LIVE_REFRESH_MS)
  const read = useLoad(
    async (signal) => {
      const session = await api.get<Session>(`/api/v1/sessions/${encodeURIComponent(sessionId)}`, {}, signal)
      setEveryMs(isLive(session) ? LIVE_REFRESH_MS : REFRESH_MS)
      return session
    },
    [sessionId],
    { everyMs },
  )
  const said = read.data?.first_message ?? null
  return (
    <section class="panel detail" aria-label="Session">
      <div class="detail-head">
        <BackLink href={hrefOf('sessions', [], address.value.query)} label="All sessions" />
        <h2>{said === null ? `Session ${sessionName(sessionId)}` : plainText(said)}</h2>
      </div>
      <Loaded read={read} lines={5} missing={<Empty title="No run names this session." icon="sessions" />}>
        {(session) => (
          <>
            <SessionFacts session={session} />
            <SessionRuns session={session} />
            {session.kind === 'hosted' && <SessionReply session={session} onSent={read.reload} />}
          </>
        )}
      </Loaded>
    </section>
  )
}

function SessionFacts({ session }: { readonly session: Session }) {
  const { session_id: id, agent_ids, external_user_ids: users, usage, kind, message_count } = session
  const runs = (
    <a href={hrefOf('runs', [], { session: id })} title="All runs of the session">
      {runCount(session)}
    </a>
  )
  return (
    <Facts
      facts={[
        ['Status', <SessionStatus key="status" session={session} />],
        ['Session', <Id key="id" id={id} what="session id" />],
        ['User', users.length > 0 && withCommas(users, (user) => <UserLink id={user} />)],
        [agent_ids.length > 1 ? 'Agents' : 'Agent', <AgentLinks key="agents" ids={agent_ids} />],
        ['Runs', runs],
        ['Failed', session.failed_count > 0 && String(session.failed_count)],
        ['Tokens', usage.total_tokens > 0 && `${compact(usage.input_tokens)} in, ${compact(usage.output_tokens)} out`],
        ['Cost', session.cost_usd > 0 && dollars(session.cost_usd)],
        ['Started', <Moment key="started" at={session.created_at} />],
        ['Last activity', <Ago key="last" at={session.last_activity_at} />],
        ['Memory', kind === 'hosted' && counted(message_count, 'message')],
      ]}
    />
  )
}

/** Of a longer conversation, the newest runs are shown first. */
const RUNS_SHOWN = 50
const PAGE_LIMIT = 50

function SessionRuns({ session }: { readonly session: Session }) {
  const { api } = useSession()
  const { session_id: sessionId, last_activity_at, run_count, status } = session
  const [max, setMax] = useState(RUNS_SHOWN)
  const read = useLoad(
    (signal) =>
      readRuns(
        (cursor) =>
          api.get(
            '/api/v1/runs',
            { session_id: sessionId, include: 'input,output', limit: PAGE_LIMIT, cursor },
            signal,
          ),
        max,
      ),
    [max, last_activity_at, run_count, status],
    { subject: sessionId },
  )
  return (
    <div class="session-runs">
      <Loaded read={read} lines={5}>
        {({ runs, isPartial }) => (
          <>
            {isPartial && (
              <div class="list-end">
                <Button class="small" text="Show earlier runs" onClick={() => setMax(max + RUNS_SHOWN)} />
              </div>
            )}
            {runs.map((run) => (
              <RunTurn key={run.run_id} run={run} session={session} />
            ))}
          </>
        )}
      </Loaded>
    </div>
  )
}

/** The newest runs, oldest first. */
async function readRuns(read: (cursor: string | null) => Promise<Listed<Run>>, max: number) {
  const runs: Run[] = []
  let cursor: string | null = null
  do {
    const page: Listed<Run> = await read(cursor)
    runs.push(...page.items)
    cursor = page.next_cursor
  } while (cursor !== null && runs.length < max)
  return { runs: runs.reverse(), isPartial: cursor !== null }
}

interface RunTurnProps {
  readonly run: Run
  readonly session: Session
}

/** What one run adds to the conversation, and a line about the run. */
function RunTurn({ run, session }: RunTurnProps) {
  const { directory } = useSession()
  const { run_id: id, usage, cost_usd, error_message } = run
  const messages = chatOf(run)
  return (
    <section class="session-run" aria-label={`Run ${id.slice(-8)}`}>
      {messages.length > 0 && <Conversation messages={messages} />}
      {error_message !== null && <p class="problem">{error_message}</p>}
      <p class="hint session-run-foot">
        <a href={hrefOfRun(id)}>Run …{id.slice(-8)}</a>
        <Status name={run.status} />
        {session.agent_ids.length > 1 && <span>{directory.nameOf(run.agent_id)}</span>}
        {session.external_user_ids.length > 1 && run.external_user_id && <UserLink id={run.external_user_id} />}
        {usage.total_tokens > 0 && <span>{compact(usage.total_tokens)} tokens</span>}
        {cost_usd > 0 && <span>{dollars(cost_usd)}</span>}
        <Moment at={run.created_at} />
      </p>
    </section>
  )
}
