import { useState } from 'preact/hooks'
import { address, hrefOf, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { type Api, listAll } from '../data/api.ts'
import { useAttempt, useLoad } from '../data/loading.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { Button } from '../parts/controls.tsx'
import { NameDialog } from '../parts/name-dialog.tsx'
import { ProblemText } from '../parts/states.tsx'
import { RUNS } from './filters.ts'
import { COMMON_VIEWS, commonView, isSameQuery, queryOfView, type RunView, savedQuery } from './saved-views.ts'

/** The limit of the service. */
const VIEWS_MAX = 100

const pathOf = (name: string) => `/api/v1/views/${encodeURIComponent(name)}`

/** The common views and those of the workspace, with buttons for the one that is open. */
export function ViewBar() {
  const { api } = useSession()
  const saved = useLoad((signal) => listAll<RunView>(api, '/api/v1/views', VIEWS_MAX, signal), [])
  const [dialog, setDialog] = useState<'save' | 'rename' | null>(null)
  const { problem, attempt } = useAttempt()
  const { query } = address.value
  // The oldest first, so that new ones move no other.
  const views = saved.data?.items.toReversed() ?? []
  const open = views.find(({ name }) => name === RUNS.value.view)
  const common = commonView(query)
  const close = () => {
    setDialog(null)
    saved.reload()
  }
  const update = ({ name, version }: RunView) =>
    attempt(async () => {
      await saveAs(api, name, version)
      saved.reload()
    })
  const remove = async ({ name, version }: RunView) => {
    await api.delete(pathOf(name), version)
    RUNS.set({ view: '' })
    saved.reload()
  }
  const isChanged = open !== undefined && !isSameQuery(queryOfView(open), query)
  return (
    <div class="view-bar">
      <nav class="view-links" aria-label="Views of the list">
        {COMMON_VIEWS.map(([name, each]) => (
          <a key={name} href={hrefOf('runs', [], each)} aria-current={name === common ? 'page' : undefined}>
            {name}
          </a>
        ))}
        {views.map((view) => (
          <a
            key={`saved ${view.name}`}
            href={hrefOf('runs', [], queryOfView(view))}
            aria-current={view === open ? 'page' : undefined}
            title={view.name}
          >
            {view.name}
          </a>
        ))}
      </nav>
      {isChanged && <Button needs="admin" class="small" text={`Save "${open.name}"`} onClick={() => update(open)} />}
      {(isChanged || (open === undefined && common !== 'All')) && (
        <Button
          needs="admin"
          class="small"
          icon="plus"
          text={isChanged ? 'Save as…' : 'Save view'}
          onClick={() => setDialog('save')}
        />
      )}
      {open !== undefined && !isChanged && (
        <>
          <Button needs="admin" class="small quiet" text="Rename" onClick={() => setDialog('rename')} />
          <ConfirmButton
            class="small quiet"
            text="Delete"
            title={`Delete the view "${open.name}"?`}
            action="Delete the view"
            act={() => remove(open)}
          >
            <p>It will be deleted for everyone. The runs stay.</p>
          </ConfirmButton>
        </>
      )}
      <ProblemText text={problem || (saved.problem?.message ?? '')} />
      {dialog === 'save' && <SaveDialog views={views} close={close} />}
      {dialog === 'rename' && open !== undefined && <RenameDialog view={open} close={close} />}
    </div>
  )
}

/** Saves what the list shows, and opens it as that view. @param version of the view that it replaces */
async function saveAs(api: Api, name: string, version: number | undefined): Promise<void> {
  const query = savedQuery(address.peek().query)
  setQuery(queryOfView(await api.put<RunView>(pathOf(name), { query }, version)))
}

interface SaveDialogProps {
  readonly views: readonly RunView[]
  readonly close: () => void
}

function SaveDialog({ views, close }: SaveDialogProps) {
  const { api } = useSession()
  const versionOf = (name: string) => views.find((view) => view.name === name)?.version
  const [isTaken, setTaken] = useState(false)
  return (
    <NameDialog
      title="Save this view"
      hint={
        isTaken
          ? 'A view with this name exists. It will be replaced for everyone.'
          : 'Everyone in the workspace sees it.'
      }
      action={isTaken ? 'Replace' : 'Save'}
      onType={(name) => setTaken(versionOf(name) !== undefined)}
      save={(name) => saveAs(api, name, versionOf(name))}
      close={close}
    >
      <p class="hint">Keeps the filters, the columns and the order of the list.</p>
    </NameDialog>
  )
}

interface RenameProps {
  readonly view: RunView
  readonly close: () => void
}

function RenameDialog({ view: { name: present, version }, close }: RenameProps) {
  const { api } = useSession()
  const rename = async (name: string) => {
    const { name: view } = await api.patch<RunView>(pathOf(present), { name }, version)
    RUNS.set({ view })
  }
  return <NameDialog title={`Rename "${present}"`} name={present} action="Rename" save={rename} close={close} />
}
