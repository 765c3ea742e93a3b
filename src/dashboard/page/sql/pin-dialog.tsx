import { hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { BOARD_CHARTS_MAX, type Board, listBoards, pin, type SavedQuery } from '../data/boards.ts'
import { useLoad } from '../data/loading.ts'
import { Dialog } from '../parts/controls.tsx'
import { SelectField, TextField } from '../parts/fields.tsx'
import { Form, useForm } from '../parts/form.tsx'
import { Loaded } from '../parts/states.tsx'

const NEW = 'new'

/** Chooses the board that a saved query is pinned to, or makes one. Then the board is shown. */
export function PinDialog({ query, close }: { readonly query: SavedQuery; readonly close: () => void }) {
  const { api } = useSession()
  const boards = useLoad((signal) => listBoards(api, signal), [])
  const form = useForm<{ chosen: string | null; name: string }>({ chosen: null, name: '' })
  const boardId = form.draft.chosen ?? boards.data?.at(-1)?.board_id ?? NEW
  const save = async () => {
    const name = form.draft.name.trim()
    const charts = [{ query_id: query.query_id }]
    const target = boardId === NEW ? (await api.post<Board>('/api/v1/boards', { name, charts })).board_id : boardId
    if (boardId !== NEW) await pin(api, boardId, query.query_id)
    close()
    navigate(hrefOf('boards', [target]))
  }
  return (
    <Dialog title={`Pin "${query.name}"`} close={close}>
      <Loaded read={boards}>
        {(items) => (
          <Form form={form} submit={save} action="Pin">
            <SelectField
              {...form.field('chosen', 'charts')}
              label="Board"
              hint={`Everyone in the workspace sees boards. A board has at most ${BOARD_CHARTS_MAX} charts.`}
              value={boardId}
              options={[...items.map(({ board_id, name }) => [board_id, name] as const), [NEW, 'A new board']]}
            />
            {boardId === NEW && <TextField {...form.field('name')} label="Name of the board" required />}
          </Form>
        )}
      </Loaded>
    </Dialog>
  )
}
