import { useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { useAttempt, useLoad } from '../data/loading.ts'
import type { Schemas } from '../data/records.ts'
import { Button, Dialog } from '../parts/controls.tsx'
import { Problem, Skeleton, Status } from '../parts/states.tsx'
import { Ago, Moment } from '../parts/time.tsx'

type Person = Schemas['Person']

const LIST_LIMIT = 200

/** Everyone who has signed in, for the admins of the workspace; nothing where nobody has. */
export function PeoplePanel() {
  const { api } = useSession()
  const { data, problem, reload } = useLoad(
    (signal) => api.get<Listed<Person>>('/api/v1/people', { limit: LIST_LIMIT }, signal),
    [],
  )
  if (problem !== undefined) return <Problem problem={problem} />
  if (data === undefined || data.items.length === 0) return null
  return (
    <section class="panel keys people" aria-label="People">
      <div class="detail-head">
        <h2>People</h2>
        <span class="hint">Everyone who has signed in. The identity provider decides their roles.</span>
      </div>
      <div class="table-scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Person</th>
              <th scope="col">Role</th>
              <th scope="col" class="key-created">
                Signed in
              </th>
              <th scope="col">
                <span class="unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.items.map((person) => (
              <PersonRow key={person.person_id} person={person} reload={reload} />
            ))}
          </tbody>
        </table>
      </div>
      {data.next_cursor && <p class="hint">Only the newest {LIST_LIMIT} are shown; GET /api/v1/people lists more.</p>}
    </section>
  )
}

function PersonRow({ person, reload }: { readonly person: Person; readonly reload: () => void }) {
  const { api } = useSession()
  const [open, setOpen] = useState<'sign-ins' | 'suspend' | null>(null)
  const [keepsKeys, setKeepsKeys] = useState(false)
  const { problem, attempt } = useAttempt()
  const isActive = person.status === 'active'
  const set = (status: Person['status']) =>
    attempt(async () => {
      const kept = status === 'suspended' && keepsKeys && { keep_keys: true }
      await api.patch(`/api/v1/people/${person.person_id}`, { status, ...kept })
      setOpen(null)
      reload()
    })
  const name = person.name ?? person.subject
  return (
    <tr>
      <td>
        {name} {person.email !== null && <small class="key-id">{person.email}</small>}
        {problem !== '' && <p class="problem">{problem}</p>}
        {open === 'sign-ins' && <SignInsDialog person={person} name={name} close={() => setOpen(null)} />}
        {open === 'suspend' && (
          <Dialog title={`Suspend ${name}?`} close={() => setOpen(null)}>
            <p>They are signed out everywhere at once, and cannot sign in until you reactivate them.</p>
            <label class="check">
              <input
                type="checkbox"
                checked={keepsKeys}
                onChange={({ currentTarget }) => setKeepsKeys(currentTarget.checked)}
              />
              Keep the keys that they made. Otherwise these are revoked.
            </label>
            <div class="actions">
              <Button class="danger" text="Suspend" onClick={() => void set('suspended')} />
              <Button text="Close" onClick={() => setOpen(null)} />
            </div>
          </Dialog>
        )}
      </td>
      <td>{isActive ? person.role : <Status name="suspended" />}</td>
      <td class="key-created">
        <Ago at={person.signed_in_at} />
      </td>
      <td class="row-actions">
        <Button needs="admin" class="small" text="Sign-ins" onClick={() => setOpen('sign-ins')} />
        {isActive ? (
          <Button needs="admin" class="small" text="Suspend" onClick={() => setOpen('suspend')} />
        ) : (
          <Button needs="admin" class="small" text="Reactivate" onClick={() => void set('active')} />
        )}
      </td>
    </tr>
  )
}

interface SignInsProps {
  readonly person: Person
  readonly name: string
  readonly close: () => void
}

/** The browsers in which somebody is signed in. */
function SignInsDialog({ person, name, close }: SignInsProps) {
  const { api, person: self } = useSession()
  const { data, problem, reload } = useLoad(
    (signal) => api.get<Schemas['PersonDetail']>(`/api/v1/people/${person.person_id}`, {}, signal),
    [],
  )
  const { problem: failure, attempt } = useAttempt()
  const end = (id: string) =>
    attempt(async () => {
      await api.post(`/api/v1/sign-ins/${id}/revoke`, {})
      reload()
    })
  return (
    <Dialog title={`Where ${name} is signed in`} close={close}>
      {problem !== undefined && <Problem problem={problem} />}
      {failure !== '' && <p class="problem">{failure}</p>}
      {data === undefined && problem === undefined && <Skeleton />}
      {data?.sign_ins.length === 0 && <p class="hint">Nowhere at the moment.</p>}
      <ul class="sign-ins">
        {data?.sign_ins.map(({ sign_in_id: id, created_at, last_used_at }) => (
          <li key={id}>
            <span>
              since <Moment at={created_at} />
              {id === self?.sign_in_id && ', this browser'}
            </span>
            <Ago at={last_used_at} prefix="used " />
            <Button class="small" text="Sign out" onClick={() => void end(id)} />
          </li>
        ))}
      </ul>
    </Dialog>
  )
}
