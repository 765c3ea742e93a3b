import { useState } from 'preact/hooks'
import { compact, count, counted, dollars, percent } from '../../../base/format.ts'
import { address } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import { SearchField } from '../parts/fields.tsx'
import { UserLink } from '../parts/links.tsx'
import { RangePicker, timeState, useMovingRange } from '../parts/range.tsx'
import { Sparkline } from '../parts/sparkline.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Ago } from '../parts/time.tsx'
import { type RunFigures, readRunFigures, USERS_MAX } from '../runs/run-figures.ts'
import { UserPage } from './user-page.tsx'

/** Long enough for users who come once a week. */
const TIME = timeState('30d')

/** The users that runs name, or the one that the address names. */
export function UsersView() {
  const [user] = address.value.path
  return user === undefined ? <UserList /> : <UserPage key={user} user={user} />
}

function UserList() {
  const { queries } = useSession()
  const [text, setText] = useState('')
  const range = useMovingRange(TIME.value)
  const read = useLoad((signal) => readRunFigures(queries, 'user', range, signal), [range.fromMs, range.toMs])
  const all = read.data?.length ?? 0
  const wanted = text.trim().toLowerCase()
  const users = read.data?.filter(({ id }) => id.toLowerCase().includes(wanted))
  return (
    <section class="view users" aria-label="Users">
      <div class="view-head">
        <h1>Users</h1>
        <div class="view-tools">
          <RangePicker time={TIME} />
        </div>
      </div>
      <SearchField icon="search" label="Search users" placeholder="Id of a user" value={text} onType={setText} />
      <Loaded read={{ ...read, data: users }} lines={6} empty={<NoUsers wanted={text.trim()} />}>
        {(found) => <UserTable users={found} />}
      </Loaded>
      {all > 0 && (
        <p class="hint">
          {all === USERS_MAX ? `The ${USERS_MAX} users who were active last` : counted(all, 'user')};{' '}
          <code>GET /api/v1/users/:external_user_id</code> reads any.
        </p>
      )}
    </section>
  )
}

function UserTable({ users }: { readonly users: readonly RunFigures[] }) {
  return (
    <Table
      box="panel table-scroll user-table"
      rows={users}
      keyOf={({ id }) => id}
      columns={[
        { title: 'User', cell: ({ id }) => <UserLink id={id} /> },
        { title: 'Last run', cell: ({ lastMs }) => <Ago at={new Date(lastMs).toISOString()} /> },
        {
          title: 'Runs',
          cell: (figures) => (
            <span class="activity">
              <Activity figures={figures} />
              {count(figures.runs)}
            </span>
          ),
        },
        {
          title: 'Sessions',
          isNumber: true,
          class: 'col-sessions',
          cell: ({ sessions }) => sessions > 0 && count(sessions),
        },
        {
          title: 'Failure rate',
          isNumber: true,
          class: 'col-failed',
          cell: ({ failed, ended }) =>
            ended > 0 && <span class={failed > 0 ? 'bad-text' : ''}>{percent(failed / ended)}</span>,
        },
        { title: 'Tokens', isNumber: true, class: 'col-tokens', cell: ({ tokens }) => tokens > 0 && compact(tokens) },
        { title: 'Cost', isNumber: true, class: 'col-cost', cell: ({ cost }) => cost > 0 && dollars(cost) },
      ]}
    />
  )
}

function Activity({ figures: { runs, failed, counts, failures } }: { readonly figures: RunFigures }) {
  return <Sparkline label={`${counted(runs, 'run')}, ${failed} failed`} values={counts} bad={failures} />
}

function NoUsers({ wanted }: { readonly wanted: string }) {
  if (wanted !== '') {
    return (
      <Empty title="No user with this id has runs in this period." icon="users">
        <p>
          Look for <UserLink id={wanted} /> in all runs.
        </p>
      </Empty>
    )
  }
  return (
    <Empty title="No user has runs in this period." icon="users">
      <p>
        Runs name their user in <code>external_user_id</code>; OpenTelemetry calls it <code>user.id</code>.
      </p>
    </Empty>
  )
}
