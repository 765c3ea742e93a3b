import { useState } from 'preact/hooks'
import { hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { BOARD_CHARTS_MAX, type Board, type SavedQuery } from '../data/boards.ts'
import { useAttempt } from '../data/loading.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { Button, Dialog } from '../parts/controls.tsx'
import { Field } from '../parts/fields.tsx'

interface AddChartDialogProps {
  readonly board: Board
  readonly queries: readonly SavedQuery[]
  readonly edit: (change: { readonly charts: Board['charts'] }) => Promise<unknown>
  readonly close: () => void
}

/** Chooses a saved query that the board does not have yet. */
export function AddChartDialog({ board, queries, edit, close }: AddChartDialogProps) {
  const pinned = new Set(board.charts.map(({ query_id }) => query_id))
  const others = queries.filter(({ query_id }) => !pinned.has(query_id))
  const [chosen, setChosen] = useState(others[0]?.query_id)
  const { problem, submit } = useAttempt()
  const add = submit(async () => {
    if (chosen === undefined) return
    await edit({ charts: [...board.charts, { query_id: chosen }] })
    close()
  })
  const isFull = board.charts.length >= BOARD_CHARTS_MAX
  return (
    <Dialog title="Add a chart" close={close}>
      <form onSubmit={add}>
        {isFull && <p>A board has at most {BOARD_CHARTS_MAX} charts. Remove one, or make another board.</p>}
        {!isFull && others.length === 0 && <p>Every saved query is on this board.</p>}
        {!isFull && others.length > 0 && (
          <Field label="Saved query" problem={problem}>
            <select value={chosen} onChange={({ currentTarget }) => setChosen(currentTarget.value)}>
              {others.map(({ query_id, name }) => (
                <option key={query_id} value={query_id}>
                  {name}
                </option>
              ))}
            </select>
          </Field>
        )}
        <div class="actions">
          {!isFull && others.length > 0 && <Button type="submit" class="primary" text="Add" />}
          <a class="button" href={hrefOf('sql')}>
            Write a query
          </a>
        </div>
      </form>
    </Dialog>
  )
}

interface DeleteBoardProps {
  readonly board: Board
  readonly reload: () => void
}

export function DeleteBoard({ board: { board_id, name }, reload }: DeleteBoardProps) {
  const { api } = useSession()
  const remove = async () => {
    await api.delete(`/api/v1/boards/${board_id}`)
    reload()
    navigate(hrefOf('boards'))
  }
  return (
    <ConfirmButton text="Delete board" title={`Delete "${name}"?`} action="Delete the board" act={remove}>
      <p>It will be deleted for everyone. Its saved queries stay.</p>
    </ConfirmButton>
  )
}
