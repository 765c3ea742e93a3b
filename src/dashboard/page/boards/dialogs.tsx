import { hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { BOARD_CHARTS_MAX, type Board, type SavedQuery } from '../data/boards.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { Dialog } from '../parts/controls.tsx'
import { SelectField } from '../parts/fields.tsx'
import { Form, useForm } from '../parts/form.tsx'

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
  const form = useForm({ chosen: others[0]?.query_id ?? '' })
  const add = async () => {
    await edit({ charts: [...board.charts, { query_id: form.draft.chosen }] })
    close()
  }
  const isFull = board.charts.length >= BOARD_CHARTS_MAX
  const write = (
    <a class="button" href={hrefOf('sql')}>
      Write a query
    </a>
  )
  return (
    <Dialog title="Add a chart" close={close}>
      {isFull || others.length === 0 ? (
        <>
          <p>
            {isFull
              ? `A board has at most ${BOARD_CHARTS_MAX} charts. Remove one, or make another board.`
              : 'Every saved query is on this board.'}
          </p>
          <div class="actions">{write}</div>
        </>
      ) : (
        <Form form={form} submit={add} action="Add" foot={write}>
          <SelectField
            {...form.field('chosen', 'charts')}
            label="Saved query"
            options={others.map(({ query_id, name }) => [query_id, name])}
          />
        </Form>
      )}
    </Dialog>
  )
}

interface DeleteBoardProps {
  readonly board: Board
  readonly reload: () => void
}

export function DeleteBoard({ board: { board_id, name, version }, reload }: DeleteBoardProps) {
  const { api } = useSession()
  const remove = async () => {
    await api.delete(`/api/v1/boards/${board_id}`, version)
    reload()
    navigate(hrefOf('boards'))
  }
  return (
    <ConfirmButton text="Delete board" title={`Delete "${name}"?`} action="Delete the board" act={remove}>
      <p>It will be deleted for everyone. Its saved queries stay.</p>
    </ConfirmButton>
  )
}
