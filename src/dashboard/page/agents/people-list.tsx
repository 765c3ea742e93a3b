import { useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { useAttempt, useLoad } from '../data/loading.ts'
import type { Schemas } from '../data/records.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { Button, Dialog } from '../parts/controls.tsx'
import { CheckField } from '../parts/fields.tsx'
import { Loaded, ProblemText, Status } from '../parts/states.tsx'
import { ACTIONS, Table } from '../parts/table.tsx'
import { Ago, Moment } from '../parts/time.tsx'

type Person = Schemas['Person']

const LIST_LIMIT = 200

/** Everyone who has signed in, for the admins of the workspace; nothing where nobody has. */
export function PeoplePanel() {
  const { api } = useSession()
  const read = useLoad((signal) => api.get<Listed<Person>>('/api/v1/people', { limit: LIST_LIMIT }, signal), [])
  if (read.data === undefined && read.problem === null) return null
  return (
    <Loaded read={read} empty={null}>
      {(people) => <People people={people} reload={read.reload} />}
    </Loaded>
  )
}

function People({ people, reload }: { readonly people: Listed<Person>; readonly reload: () => void }) {
  return (
    <section class="panel keys people" aria-label="People">
      <div class="detail-head">
        <h2>People</h2>
        <span class="hint">Everyone who has signed in. The identity provider decides their roles.</span>
      </div>
      <Table
        box="table-scroll"
        rows={people.items}
        keyOf={({ person_id }) => person_id}
        columns={[
          {
            title: 'Person',
            cell: (person) => (
              <>
                {nameOf(person)} {person.email !== null && <small class="key-id">{person.email}</small>}
              </>
            ),
          },
          { title: 'Role', cell: ({ role, status }) => (status === 'active' ? role : <Status name="suspended" />) },
          { title: 'Signed in', class: 'key-created', cell: ({ signed_in_at: at }) => <Ago at={at} /> },
          {
            ...ACTIONS,
            cell: (person) => <PersonActions person={person} reload={reload} />,
          },
        ]}
      />
      {people.next_cursor && <p class="hint">Only the newest {LIST_LIMIT} are shown; GET /api/v1/people lists more.</p>}
    </section>
  )
}

function nameOf({ name, subject }: Person): string {
  return name ?? subject
}

function pathOf({ person_id }: Person): string {
  return `/api/v1/people/${person_id}`
}

function PersonActions({ person, reload }: { readonly person: Person; readonly reload: () => void }) {
  const { api } = useSession()
  const [isOpen, setOpen] = useState(false)
  const [keepsKeys, setKeepsKeys] = useState(false)
  const { problem, attempt } = useAttempt()
  const set = async (change: object) => {
    await api.patch(pathOf(person), change)
    reload()
  }
  return (
    <>
      <Button needs="admin" class="small" text="Sign-ins" onClick={() => setOpen(true)} />
      {isOpen && <SignInsDialog person={person} close={() => setOpen(false)} />}
      {person.status === 'active' ? (
        <ConfirmButton
          text="Suspend"
          title={`Suspend ${nameOf(person)}?`}
          action="Suspend"
          keep="Close"
          act={() => set({ status: 'suspended', ...(keepsKeys && { keep_keys: true }) })}
        >
          <p>They are signed out everywhere at once, and cannot sign in until you reactivate them.</p>
          <CheckField value={keepsKeys} set={setKeepsKeys}>
            Keep the keys that they made. Otherwise these are revoked.
          </CheckField>
        </ConfirmButton>
      ) : (
        <Button
          needs="admin"
          class="small"
          text="Reactivate"
          onClick={() => void attempt(() => set({ status: 'active' }))}
        />
      )}
      <ProblemText text={problem} />
    </>
  )
}

/** The browsers in which somebody is signed in. */
function SignInsDialog({ person, close }: { readonly person: Person; readonly close: () => void }) {
  const { api, person: self } = useSession()
  const read = useLoad((signal) => api.get<Schemas['PersonDetail']>(pathOf(person), {}, signal), [])
  const { problem, attempt } = useAttempt()
  const end = (id: string) =>
    attempt(async () => {
      await api.post(`/api/v1/sign-ins/${id}/revoke`, {})
      read.reload()
    })
  return (
    <Dialog title={`Where ${nameOf(person)} is signed in`} close={close}>
      <ProblemText text={problem} />
      <Loaded read={{ ...read, data: read.data?.sign_ins }} empty={<p class="hint">Nowhere at the moment.</p>}>
        {(signIns) => (
          <ul class="sign-ins">
            {signIns.map(({ sign_in_id: id, created_at, last_used_at }) => (
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
        )}
      </Loaded>
    </Dialog>
  )
}
