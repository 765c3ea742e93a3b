import { useState } from 'preact/hooks'
import { address, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { useAttempt, useLoad } from '../data/loading.ts'
import type { Schemas } from '../data/records.ts'
import { Button } from '../parts/controls.tsx'
import { Select } from '../parts/fields.tsx'
import { Command } from '../parts/hints.tsx'
import { Problem, Skeleton } from '../parts/states.tsx'
import { Ago, Moment } from '../parts/time.tsx'

/** All keys of the workspace. */
export function KeysView() {
  return (
    <section class="view keys-view" aria-label="Keys">
      <div class="view-head">
        <h1>Keys</h1>
        <span class="hint">A workspace key manages everything here; an agent key reports for one agent.</span>
      </div>
      <div class="panel">
        <KeyList agentId={null} />
      </div>
    </section>
  )
}

type Key = Schemas['Key']
type NewKey = Key & { readonly key: string }
type Action = 'rotate' | 'revoke'

const LIST_LIMIT = 100
const STATUSES = [
  ['', 'Active keys'],
  ['revoked', 'Revoked keys'],
  ['expired', 'Expired keys'],
] as const

/** The keys of an agent, or of the workspace, of one status: create, rotate and revoke. A new key is shown once. */
export function KeyList({ agentId }: { readonly agentId: string | null }) {
  const { api, directory } = useSession()
  const chosen = STATUSES.find(([name]) => name === address.value.query.keys)?.[0] ?? ''
  const status = chosen || 'active'
  const where = { status, agent_id: agentId, limit: LIST_LIMIT }
  const { data, problem, reload } = useLoad((signal) => api.get<Listed<Key>>('/api/v1/keys', where, signal), [where])
  const [made, setMade] = useState<NewKey | null>(null)
  const { problem: failure, attempt } = useAttempt()
  const change = (work: () => Promise<NewKey | null>) =>
    attempt(async () => {
      setMade(await work())
      reload()
    })
  const path = agentId === null ? '/api/v1/keys' : `/api/v1/agents/${agentId}/keys`
  const create = (name: string) => change(() => api.post<NewKey>(path, name === '' ? {} : { name }))
  const act = (key: Key, action: Action) =>
    change(async () => {
      const answer = await api.post<NewKey>(`/api/v1/keys/${key.key_id}/${action}`, {})
      return action === 'rotate' ? answer : null
    })
  return (
    <div class="keys">
      <div class="filters">
        <NewKeyForm create={create} isNameRequired={agentId === null} />
        <Select label="Status" value={chosen} options={STATUSES} onChange={(to) => setQuery({ keys: to })} />
      </div>
      {failure !== '' && <p class="problem">{failure}</p>}
      {made !== null && <MadeKey made={made} close={() => setMade(null)} />}
      {problem !== undefined && <Problem problem={problem} />}
      {data === undefined && problem === undefined && <Skeleton />}
      {data?.items.length === 0 && <p class="hint quiet-note">No {status} keys.</p>}
      {data !== undefined && data.items.length > 0 && (
        <div class="table-scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">Key</th>
                {agentId === null && <th scope="col">For</th>}
                <th scope="col" class="key-created">
                  Created
                </th>
                <th scope="col" class="key-used">
                  Last used
                </th>
                <th scope="col">
                  <span class="unseen">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.items.map((key) => (
                <tr key={key.key_id}>
                  <td>
                    {key.name ?? 'No name'} <small class="key-id">{`${key.prefix}…${key.last4}`}</small>
                  </td>
                  {agentId === null && (
                    <td>{key.agent_id === null ? 'the workspace' : directory.nameOf(key.agent_id)}</td>
                  )}
                  <td class="key-created">
                    <Moment at={key.created_at} />
                  </td>
                  <td class="key-used">{key.last_used_at === null ? 'never' : <Ago at={key.last_used_at} />}</td>
                  <td class="row-actions">
                    {key.status === 'active' && <KeyActions act={(action) => act(key, action)} />}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {data?.next_cursor && <p class="hint">Only the newest {LIST_LIMIT} are shown; GET /api/v1/keys lists more.</p>}
    </div>
  )
}

/** Both end the old key at once, so they ask once more. */
function KeyActions({ act }: { readonly act: (action: Action) => void }) {
  const [asked, setAsked] = useState<Action | null>(null)
  if (asked === null) {
    return (
      <>
        <Button class="small" text="Rotate" onClick={() => setAsked('rotate')} />
        <Button class="small" text="Revoke" onClick={() => setAsked('revoke')} />
      </>
    )
  }
  const confirm = () => {
    setAsked(null)
    act(asked)
  }
  return (
    <>
      <Button
        class="small danger"
        text={asked === 'rotate' ? 'Replace this key' : 'Revoke this key'}
        onClick={confirm}
      />
      <Button class="small" text="Keep" onClick={() => setAsked(null)} />
    </>
  )
}

interface NewKeyProps {
  readonly create: (name: string) => void
  readonly isNameRequired: boolean
}

function NewKeyForm({ create, isNameRequired }: NewKeyProps) {
  const [name, setName] = useState('')
  const submit = (event: Event) => {
    event.preventDefault()
    create(name.trim())
    setName('')
  }
  return (
    <form class="new-key" onSubmit={submit}>
      <input
        aria-label="Name of the new key"
        placeholder="Name of the new key"
        required={isNameRequired}
        value={name}
        onInput={({ currentTarget }) => setName(currentTarget.value)}
        autocomplete="off"
      />
      <Button type="submit" class="primary small" icon="plus" text="New key" />
    </form>
  )
}

function MadeKey({ made, close }: { readonly made: NewKey; readonly close: () => void }) {
  return (
    <section class="made-key" aria-label="New key">
      <div class="detail-head">
        <h3>Shown only now: copy it</h3>
        <Button icon="close" label="Close" onClick={close} />
      </div>
      <Command label="The key" text={made.key} />
      {made.agent_id !== null && <Command label="Start a run with it" text={startCommand(made)} />}
    </section>
  )
}

function startCommand({ agent_id }: NewKey): string {
  return `export AGENT_KEY=…   # the key above
curl ${location.origin}/api/ingest/v1/run/start \\
  -H "Authorization: Bearer $AGENT_KEY" -H 'Content-Type: application/json' \\
  -d '{"agent_id": "${agent_id}"}'`
}
