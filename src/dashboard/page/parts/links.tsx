import { type ComponentChildren, Fragment } from 'preact'
import { hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'

/** Longer names are cut; the title has all of it. */
const SHOWN_MAX = 40

interface LinkProps {
  readonly id: string
}

/** Links to agents, by their names. */
export function AgentLinks({ ids }: { readonly ids: readonly string[] }) {
  const { directory } = useSession()
  return withCommas(ids, (id) => <a href={hrefOf('agents', [id])}>{directory.nameOf(id)}</a>)
}

/** What each id stands for, with commas between. */
export function withCommas(ids: readonly string[], shown: (id: string) => ComponentChildren) {
  return ids.map((id, at) => (
    <Fragment key={id}>
      {at > 0 && ', '}
      {shown(id)}
    </Fragment>
  ))
}

/** A link to a user whom runs name. */
export function UserLink({ id }: LinkProps) {
  return (
    <a class="name-link" href={hrefOf('users', [id])} title={id}>
      {shortened(id)}
    </a>
  )
}

/** A link to a session; of a long id, such as a UUID, only the end is shown. */
export function SessionLink({ id }: LinkProps) {
  return (
    <a class="name-link" href={hrefOf('sessions', [id])} title={id}>
      {sessionName(id)}
    </a>
  )
}

/** How a session without a message is shown. */
export function sessionName(id: string): string {
  return /^[\da-f-]{32,36}$/i.test(id) ? `…${id.slice(-8)}` : shortened(id)
}

function shortened(text: string): string {
  const points = [...text]
  return points.length <= SHOWN_MAX ? text : `${points.slice(0, SHOWN_MAX - 1).join('')}…`
}
