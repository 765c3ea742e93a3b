import { compact, count, counted, dollars, percent } from '../../../base/format.ts'
import { hrefOf, hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { useLoad } from '../data/loading.ts'
import type { RunSummary, Schemas } from '../data/records.ts'
import { BackLink, Button, CopyButton } from '../parts/controls.tsx'
import { AgentLinks, SessionLink } from '../parts/links.tsx'
import { useMovingRange } from '../parts/range.tsx'
import { Sparkline } from '../parts/sparkline.tsx'
import { Empty, Facts, Loaded, Status } from '../parts/states.tsx'
import { Table, USAGE } from '../parts/table.tsx'
import { Ago, Moment } from '../parts/time.tsx'
import { readRunFigures } from '../runs/run-figures.ts'
import { useSessions } from '../sessions/session-list.ts'
import { runCount, SessionTable } from '../sessions/session-table.tsx'

type User = Schemas['User']

const REFRESH_MS = 15_000
const SESSIONS_SHOWN = 10
const RUNS_SHOWN = 20
const RANGE = '30d'

/** One user: totals, sessions, and the newest runs. */
export function UserPage({ user }: { readonly user: string }) {
  const { api } = useSession()
  const read = useLoad((signal) => api.get<User>(`/api/v1/users/${encodeURIComponent(user)}`, {}, signal), [user], {
    everyMs: REFRESH_MS,
  })
  return (
    <section class="view user" aria-label="User">
      <div class="view-head">
        <BackLink href={hrefOf('users')} label="All users" />
        <h1>{user}</h1>
        <CopyButton text={() => user} label="Copy the user's id" />
      </div>
      <Loaded read={read} lines={6} missing={<Empty title="No run names this user." icon="users" />}>
        {(found) => <UserDetail user={found} />}
      </Loaded>
    </section>
  )
}

function UserDetail({ user }: { readonly user: User }) {
  return (
    <>
      <div class="panel user-head">
        <UserFacts user={user} />
        <UserActivity user={user.external_user_id} />
      </div>
      <UserSessions user={user} />
      <UserRuns user={user} />
    </>
  )
}

function UserFacts({ user }: { readonly user: User }) {
  const { agent_ids, usage, failed_count, failure_rate, cost_usd } = user
  return (
    <Facts
      facts={[
        ['Sessions', count(user.session_count)],
        ['Runs', runCount(user)],
        ['Failed', failure_rate !== null && `${count(failed_count)} (${percent(failure_rate)})`],
        ['Waiting', user.waiting_count > 0 && <Status name="awaiting_input" text={count(user.waiting_count)} />],
        ['Tokens', usage.total_tokens > 0 && `${compact(usage.input_tokens)} in, ${compact(usage.output_tokens)} out`],
        ['Cost', cost_usd > 0 && dollars(cost_usd)],
        [agent_ids.length > 1 ? 'Agents' : 'Agent', <AgentLinks key="agents" ids={agent_ids} />],
        ['First seen', <Moment key="first" at={user.first_seen_at} />],
        ['Last seen', <Ago key="last" at={user.last_seen_at} />],
      ]}
    />
  )
}

/** The runs of the last month as bars, like those of the lists. */
function UserActivity({ user }: { readonly user: string }) {
  const { queries } = useSession()
  const range = useMovingRange({ range: RANGE })
  const { data } = useLoad(
    (signal) => readRunFigures(queries, 'user', range, signal, user),
    [range.fromMs, range.toMs, user],
  )
  const [figures] = data ?? []
  if (figures === undefined) return null
  const { runs, failed, counts, failures } = figures
  return (
    <figure class="user-activity">
      <figcaption class="hint">
        Last 30 days: {counted(runs, 'run')}, {count(failed)} failed
      </figcaption>
      <Sparkline label={`${counted(runs, 'run')}, ${failed} failed`} values={counts} bad={failures} />
    </figure>
  )
}

function UserSessions({ user }: { readonly user: User }) {
  const { read, showOlder } = useSessions({ external_user_id: user.external_user_id }, SESSIONS_SHOWN)
  return (
    <section class="user-part" aria-label="Sessions">
      <h2>Sessions</h2>
      <Loaded read={read} empty={<p class="hint">None of the user's runs belongs to a session.</p>}>
        {(sessions) => <SessionTable sessions={sessions} isOfUser />}
      </Loaded>
      {showOlder !== undefined && (
        <div class="list-end">
          <Button class="small" text="Show older sessions" onClick={showOlder} />
        </div>
      )}
    </section>
  )
}

function UserRuns({ user: { external_user_id, run_count } }: { readonly user: User }) {
  const { api, directory } = useSession()
  const where = { external_user_id, limit: RUNS_SHOWN }
  const read = useLoad((signal) => api.get<Listed<RunSummary>>('/api/v1/runs', where, signal), [where, run_count], {
    everyMs: REFRESH_MS,
    subject: external_user_id,
  })
  return (
    <section class="user-part" aria-label="Newest runs">
      <div class="view-head">
        <h2>Newest runs</h2>
        <a class="button small" href={hrefOf('runs', [], { user: external_user_id })}>
          All runs
        </a>
      </div>
      <Loaded read={read} lines={4}>
        {({ items }) => (
          <Table
            box="panel table-scroll user-runs"
            rows={items}
            keyOf={({ run_id }) => run_id}
            link={({ run_id, agent_id }) => ({ href: hrefOfRun(run_id), children: directory.nameOf(agent_id) })}
            columns={[
              { title: 'Agent', cell: () => null },
              { title: 'Status', cell: ({ status }) => <Status name={status} /> },
              { title: 'Session', class: 'col-session', cell: ({ session_id: id }) => id && <SessionLink id={id} /> },
              ...USAGE,
              { title: 'Started', cell: ({ created_at }) => <Ago at={created_at} /> },
            ]}
          />
        )}
      </Loaded>
    </section>
  )
}
