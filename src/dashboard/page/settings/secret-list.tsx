import { useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import { listAll } from '../data/api.ts'
import { useLoad } from '../data/loading.ts'
import type { Schemas } from '../data/records.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { Button, CopyButton } from '../parts/controls.tsx'
import { TextField } from '../parts/fields.tsx'
import { Form, useForm } from '../parts/form.tsx'
import { Loaded } from '../parts/states.tsx'
import { ACTIONS, Table } from '../parts/table.tsx'
import { Ago, Moment } from '../parts/time.tsx'

type Secret = Schemas['Secret']

const PATH = '/api/v1/secrets'
const SECRETS_MAX = 1_000

const pathOf = (name: string) => `${PATH}/${encodeURIComponent(name)}`

/** The secrets of the workspace: set, replace and delete them. No value is ever shown, not even the one just typed. */
export function SecretList() {
  const { api } = useSession()
  const read = useLoad((signal) => listAll<Secret>(api, PATH, SECRETS_MAX, signal), [])
  /** The name of the secret whose value is being replaced; empty for a new one. */
  const [replaced, setReplaced] = useState('')
  const done = () => {
    setReplaced('')
    read.reload()
  }
  return (
    <section class="panel secrets" aria-label="Secrets">
      <p class="hint">
        Values for headers of tools, where <code>{'{{secret:NAME}}'}</code> stands for one. They are stored encrypted,
        and neither this page nor the API shows them again.
      </p>
      <SecretForm key={replaced} replaced={replaced} known={read.data?.items ?? []} done={done} />
      <Loaded read={read} empty={<p class="hint quiet-note">No secrets yet.</p>}>
        {({ items }) => (
          <Table
            box="table-scroll"
            rows={items}
            keyOf={({ name }) => name}
            columns={[
              {
                title: 'Name',
                cell: ({ name }) => (
                  <>
                    <code>{name}</code>
                    <CopyButton text={() => `{{secret:${name}}}`} label={`Copy the placeholder of ${name}`} />
                  </>
                ),
              },
              { title: 'Created', class: 'key-created', cell: ({ created_at }) => <Moment at={created_at} /> },
              { title: 'Set', cell: ({ updated_at }) => <Ago at={updated_at} /> },
              {
                ...ACTIONS,
                cell: (secret) => (
                  <SecretActions secret={secret} replace={() => setReplaced(secret.name)} reload={read.reload} />
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </section>
  )
}

interface FormProps {
  readonly replaced: string
  /** The secrets of the workspace. */
  readonly known: readonly Secret[]
  readonly done: () => void
}

function SecretForm({ replaced, known, done }: FormProps) {
  const { api } = useSession()
  const form = useForm({ name: replaced, value: '' })
  const { name, value } = form.draft
  const isNew = replaced === ''
  const present = known.find((each) => each.name === name)
  const save = async () => {
    await api.put(pathOf(name), { value }, present?.version)
    form.set({ name: '', value: '' })
    done()
  }
  return (
    <Form
      form={form}
      class="secret-form"
      submit={save}
      needs="admin"
      action={present ? `Replace ${name}` : 'Set the secret'}
      foot={!isNew && <Button text="Keep it" onClick={done} />}
    >
      <TextField
        {...form.field('name', 'path.name')}
        label="Name"
        hint="Capital letters, digits and _."
        isCode
        required
        readOnly={!isNew}
        placeholder="API_TOKEN"
      />
      <TextField
        {...form.field('value')}
        label={isNew ? 'Value' : 'New value'}
        type="password"
        required
        autocomplete="new-password"
      />
    </Form>
  )
}

interface ActionsProps {
  readonly secret: Secret
  readonly replace: () => void
  readonly reload: () => void
}

function SecretActions({ secret: { name, version }, replace, reload }: ActionsProps) {
  const { api } = useSession()
  const remove = async () => {
    await api.delete(pathOf(name), version)
    reload()
  }
  return (
    <>
      <Button needs="admin" class="small" text="Replace" onClick={replace} />
      <ConfirmButton text="Delete" title={`Delete the secret ${name}?`} action="Delete" act={remove}>
        <p>Agents whose tools refer to it can no longer be invoked.</p>
      </ConfirmButton>
    </>
  )
}
