import { useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import { type ApiFailure, listAll } from '../data/api.ts'
import { failureOf, useLoad } from '../data/loading.ts'
import { problemAt } from '../data/problems.ts'
import type { Schemas } from '../data/records.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { Button, CopyButton } from '../parts/controls.tsx'
import { Field } from '../parts/fields.tsx'
import { Problem, Skeleton } from '../parts/states.tsx'
import { ACTIONS, Table } from '../parts/table.tsx'
import { Ago, Moment } from '../parts/time.tsx'

type Secret = Schemas['Secret']

const PATH = '/api/v1/secrets'
const SECRETS_MAX = 1_000

/** The secrets of the workspace: set, replace and delete them. No value is ever shown, not even the one just typed. */
export function SecretList() {
  const { api } = useSession()
  const { data, problem, reload } = useLoad((signal) => listAll<Secret>(api, PATH, SECRETS_MAX, signal), [])
  /** The name of the secret whose value is being replaced; empty for a new one. */
  const [replaced, setReplaced] = useState('')
  const done = () => {
    setReplaced('')
    reload()
  }
  return (
    <section class="panel secrets" aria-label="Secrets">
      <p class="hint">
        Values for headers of tools, where <code>{'{{secret:NAME}}'}</code> stands for one. They are stored encrypted,
        and neither this page nor the API shows them again.
      </p>
      <SecretForm key={replaced} replaced={replaced} known={data?.items.map(({ name }) => name) ?? []} done={done} />
      {problem !== undefined && <Problem problem={problem} />}
      {data === undefined && problem === undefined && <Skeleton />}
      {data?.items.length === 0 && <p class="hint quiet-note">No secrets yet.</p>}
      {data !== undefined && data.items.length > 0 && (
        <Table
          box="table-scroll"
          rows={data.items}
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
              cell: ({ name }) => <SecretActions name={name} replace={() => setReplaced(name)} reload={reload} />,
            },
          ]}
        />
      )}
    </section>
  )
}

interface FormProps {
  readonly replaced: string
  /** Names of the secrets. */
  readonly known: readonly string[]
  readonly done: () => void
}

function SecretForm({ replaced, known, done }: FormProps) {
  const { api } = useSession()
  const [name, setName] = useState(replaced)
  const [value, setValue] = useState('')
  const [problem, setProblem] = useState<ApiFailure | null>(null)
  const isNew = replaced === ''
  const save = async (event: Event) => {
    event.preventDefault()
    try {
      await api.put(`${PATH}/${encodeURIComponent(name)}`, { value })
      setName('')
      setValue('')
      setProblem(null)
      done()
    } catch (error) {
      setProblem(failureOf(error))
    }
  }
  const wrongName = problemAt(problem, 'path.name')
  const wrongValue = problemAt(problem, 'value')
  return (
    <form class="secret-form" onSubmit={save}>
      <Field label="Name" hint="Capital letters, digits and _." problem={wrongName}>
        <input
          class="mono"
          required
          readOnly={!isNew}
          placeholder="API_TOKEN"
          autocomplete="off"
          spellcheck={false}
          aria-invalid={wrongName !== ''}
          value={name}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </Field>
      <Field label={isNew ? 'Value' : 'New value'} problem={wrongValue}>
        <input
          type="password"
          required
          autocomplete="new-password"
          aria-invalid={wrongValue !== ''}
          value={value}
          onInput={({ currentTarget }) => setValue(currentTarget.value)}
        />
      </Field>
      <div class="actions">
        <Button
          needs="admin"
          type="submit"
          class="primary"
          text={known.includes(name) ? `Replace ${name}` : 'Set the secret'}
        />
        {!isNew && <Button text="Keep it" onClick={done} />}
        {problem !== null && wrongName === '' && wrongValue === '' && <span class="bad-text">{problem.message}</span>}
      </div>
    </form>
  )
}

interface ActionsProps {
  readonly name: string
  readonly replace: () => void
  readonly reload: () => void
}

function SecretActions({ name, replace, reload }: ActionsProps) {
  const { api } = useSession()
  const remove = async () => {
    await api.delete(`${PATH}/${name}`)
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
