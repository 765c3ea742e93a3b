import { useState } from 'preact/hooks'
import { addressState, oneOf } from '../context/address-state.ts'
import { hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { useLoad } from '../data/loading.ts'
import type { Schemas } from '../data/records.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { Select, TextField } from '../parts/fields.tsx'
import { Form, useForm } from '../parts/form.tsx'
import { Loaded } from '../parts/states.tsx'
import { ACTIONS, Table } from '../parts/table.tsx'
import { Ago, Ahead, Moment } from '../parts/time.tsx'
import { MadeKey, type NewKey } from './made-key.tsx'
import { PeoplePanel } from './people-list.tsx'

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
      <PeoplePanel />
    </section>
  )
}

type Key = Schemas['Key']
type Action = 'rotate' | 'revoke'

const LIST_LIMIT = 100
const DAY_MS = 86_400_000
const STATUSES = [
  ['active', 'Active keys'],
  ['revoked', 'Revoked keys'],
  ['expired', 'Expired keys'],
] as const
const TYPES = [
  ['', 'Any scope'],
  ['workspace', 'Of the workspace'],
  ['agent', 'Of an agent'],
] as const
const KEYS = addressState({ keys: oneOf(STATUSES.map(([name]) => name)), type: oneOf(TYPES.map(([name]) => name)) })

/**
 * The keys of an agent or of the whole workspace, filtered by status and scope: create, rotate and revoke them. A new key
 * is shown once.
 */
export function KeyList({ agentId }: { readonly agentId: string | null }) {
  const { api } = useSession()
  const { keys: status, type: chosen } = KEYS.value
  const type = agentId === null ? chosen : ''
  const where = { status, type, agent_id: agentId, limit: LIST_LIMIT }
  const read = useLoad((signal) => api.get<Listed<Key>>('/api/v1/keys', where, signal), [where])
  const [made, setMade] = useState<NewKey | null>(null)
  const create = async (scope: string | null, body: object) => {
    setMade(await api.post<NewKey>(scope === null ? '/api/v1/keys' : `/api/v1/agents/${scope}/keys`, body))
    read.reload()
  }
  const act = async (key: Key, action: Action) => {
    const answer = await api.post<NewKey>(`/api/v1/keys/${key.key_id}/${action}`, {})
    setMade(action === 'rotate' ? answer : null)
    read.reload()
  }
  return (
    <div class="keys">
      <NewKeyForm create={create} agentId={agentId} />
      <search class="filters" aria-label="Filter keys">
        {agentId === null && <Select label="Scope" {...KEYS.field('type')} options={TYPES} />}
        <Select label="Status" {...KEYS.field('keys')} options={STATUSES} />
      </search>
      {made !== null && <MadeKey made={made} close={() => setMade(null)} />}
      <Loaded
        read={read}
        empty={
          <p class="hint quiet-note">
            No {status} keys{type === '' ? '' : type === 'agent' ? ' of agents' : ' of the workspace'}.
          </p>
        }
      >
        {({ items, next_cursor }) => (
          <>
            <KeyTable keys={items} withScope={agentId === null} act={act} />
            {next_cursor && <p class="hint">Only the newest {LIST_LIMIT} are shown; GET /api/v1/keys lists more.</p>}
          </>
        )}
      </Loaded>
    </div>
  )
}

interface KeyTableProps {
  readonly keys: readonly Key[]
  readonly withScope: boolean
  readonly act: (key: Key, action: Action) => Promise<void>
}

function KeyTable({ keys, withScope, act }: KeyTableProps) {
  return (
    <Table
      box="table-scroll"
      rows={keys}
      keyOf={({ key_id }) => key_id}
      columns={[
        {
          title: 'Key',
          cell: ({ name, prefix, last4 }) => (
            <>
              {name ?? 'No name'} <small class="key-id">{`${prefix}…${last4}`}</small>
            </>
          ),
        },
        withScope && { title: 'Scope', cell: ({ agent_id }) => <Scope agentId={agent_id} /> },
        {
          title: 'Created',
          class: 'key-created',
          cell: ({ created_at, created_by_name: by }) => (
            <>
              <Moment at={created_at} />
              {by !== null && <small class="key-id">by {by}</small>}
            </>
          ),
        },
        {
          title: 'Last used',
          class: 'key-used',
          cell: ({ last_used_at: at }) => (at === null ? 'never' : <Ago at={at} />),
        },
        { title: 'Expires', cell: (key) => <KeyExpiry keyRecord={key} /> },
        {
          ...ACTIONS,
          cell: (key) =>
            key.status === 'active' && (
              <KeyActions name={key.name ?? `${key.prefix}…${key.last4}`} act={(action) => act(key, action)} />
            ),
        },
      ]}
    />
  )
}

/** What a key gives access to. */
function Scope({ agentId }: { readonly agentId: string | null }) {
  const { directory } = useSession()
  if (agentId === null) return <>the workspace</>
  return <a href={hrefOf('agents', [agentId], { tab: 'keys' })}>{directory.nameOf(agentId)}</a>
}

/** When a key expires or has expired, or when it was revoked. */
function KeyExpiry({ keyRecord: { status, expires_at, revoked_at } }: { readonly keyRecord: Key }) {
  if (status === 'revoked' && revoked_at !== null) return <Ago at={revoked_at} prefix="revoked " />
  if (expires_at === null) return <span class="hint">never</span>
  return status === 'expired' ? <Ago at={expires_at} /> : <Ahead at={expires_at} />
}

interface KeyActionsProps {
  readonly name: string
  readonly act: (action: Action) => Promise<void>
}

function KeyActions({ name, act }: KeyActionsProps) {
  return (
    <>
      <ConfirmButton text="Rotate" title={`Rotate ${name}?`} action="Replace this key" act={() => act('rotate')}>
        <p>It stops working at once. The new key is shown once.</p>
      </ConfirmButton>
      <ConfirmButton text="Revoke" title={`Revoke ${name}?`} action="Revoke this key" act={() => act('revoke')}>
        <p>It stops working at once, for good.</p>
      </ConfirmButton>
    </>
  )
}

/** Days until a new key expires. */
const LIFETIMES = [
  ['', 'Never expires'],
  ['1', 'Expires in a day'],
  ['7', 'Expires in 7 days'],
  ['30', 'Expires in 30 days'],
  ['90', 'Expires in 90 days'],
  ['365', 'Expires in a year'],
] as const

interface NewKeyProps {
  /** @param scope the agent of an agent key; null for a workspace key */
  readonly create: (scope: string | null, body: object) => Promise<void>
  /** The agent whose keys are listed; null: the user chooses. */
  readonly agentId: string | null
}

function NewKeyForm({ create, agentId }: NewKeyProps) {
  const { directory } = useSession()
  const form = useForm({ name: '', days: '', chosen: '' })
  const { name, days, chosen } = form.draft
  const submit = async () => {
    const expires_at = days === '' ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString()
    await create(agentId ?? (chosen || null), { ...(name.trim() !== '' && { name: name.trim() }), expires_at })
    form.set({ name: '' })
  }
  return (
    <Form
      form={form}
      class="new-key filters"
      submit={submit}
      needs="admin"
      kind="primary small"
      icon="plus"
      action="New key"
    >
      <TextField
        {...form.field('name')}
        label="Name of the new key"
        placeholder="Name of the new key"
        isBare
        // The name of an agent key is optional.
        required={agentId === null && chosen === ''}
      />
      {agentId === null && (
        <Select
          {...form.field('chosen', 'path.agent_id')}
          label="Scope of the new key"
          options={[['', 'For the workspace'], ...directory.choices.value]}
        />
      )}
      <Select {...form.field('days', 'expires_at')} label="Expiry of the new key" options={LIFETIMES} />
    </Form>
  )
}
