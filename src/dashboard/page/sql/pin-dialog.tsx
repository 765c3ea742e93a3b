import { useState } from 'preact/hooks'
import { hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { BOARD_CHARTS_MAX, type Board, listBoards, pin, type SavedQuery } from '../data/boards.ts'
import { useAttempt, useLoad } from '../data/loading.ts'
import { Button, Dialog } from '../parts/controls.tsx'
import { Field } from '../parts/fields.tsx'
import { ProblemText, Skeleton } from '../parts/states.tsx'

const NEW = 'new'

/** Chooses the board that a saved query is pinned to, or makes one. Then the board is shown. */
export function PinDialog({ query, close }: { readonly query: SavedQuery; readonly close: () => void }) {
  const { api } = useSession()
  const boards = useLoad((signal) => listBoards(api, signal), [])
  const [chosen, setChosen] = useState<string>()
  const [name, setName] = useState('')
  const { problem, submit } = useAttempt()
  const items = boards.data
  const boardId = chosen ?? items?.at(-1)?.board_id ?? NEW
  const save = submit(async () => {
    const charts = [{ query_id: query.query_id }]
    const target =
      boardId === NEW ? (await api.post<Board>('/api/v1/boards', { name: name.trim(), charts })).board_id : boardId
    if (boardId !== NEW) await pin(api, boardId, query.query_id)
    close()
    navigate(hrefOf('boards', [target]))
  })
  return (
    <Dialog title={`Pin "${query.name}"`} close={close}>
      {items === undefined ? (
        <Skeleton />
      ) : (
        <form onSubmit={save}>
          <Field
            label="Board"
            hint={`Everyone in the workspace sees boards. A board has at most ${BOARD_CHARTS_MAX} charts.`}
          >
            <select value={boardId} onChange={({ currentTarget }) => setChosen(currentTarget.value)}>
              {items.map((board) => (
                <option key={board.board_id} value={board.board_id}>
                  {board.name}
                </option>
              ))}
              <option value={NEW}>A new board</option>
            </select>
          </Field>
          {boardId === NEW && (
            <Field label="Name of the board">
              <input required value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
            </Field>
          )}
          <ProblemText text={problem} />
          <div class="actions">
            <Button type="submit" class="primary" text="Pin" />
          </div>
        </form>
      )}
    </Dialog>
  )
}
