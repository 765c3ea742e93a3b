import { useEffect, useRef, useState } from 'preact/hooks'
import { address, hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { type Board, editBoard, listBoards, listQueries } from '../data/boards.ts'
import { useAttempt, useLoad } from '../data/loading.ts'
import { Button } from '../parts/controls.tsx'
import { NameDialog } from '../parts/name-dialog.tsx'
import { LiveToggle, RangePicker, timeState, useMovingRange } from '../parts/range.tsx'
import { Loaded, ProblemText } from '../parts/states.tsx'
import { BoardCard } from './board-card.tsx'
import { AddChartDialog, DeleteBoard } from './dialogs.tsx'
import { EmptyBoard, NoBoards } from './starters.tsx'

/** What others have changed is seen within this time. */
const REFRESH_MS = 30_000
const TIME = timeState('24h')
const SHARED = 'Everyone in the workspace sees it.'

/** Boards: named pages of pinned charts, which the people of the workspace share. */
export function BoardsView() {
  const { api } = useSession()
  const [boardId] = address.value.path
  // Read again for another board: a link may lead to one that somebody has just made.
  const boards = useLoad((signal) => listBoards(api, signal), [boardId], { everyMs: REFRESH_MS, subject: 'boards' })
  const [isNaming, setNaming] = useState(false)
  const items = boards.data
  const board = items?.find(({ board_id }) => board_id === boardId?.toLowerCase()) ?? (boardId ? undefined : items?.[0])
  const create = async (name: string) => {
    const created = await api.post<Board>('/api/v1/boards', { name })
    boards.reload()
    navigate(hrefOf('boards', [created.board_id]))
  }
  return (
    <section class="view boards" aria-label="Boards">
      <div class="view-head">
        <h1>Boards</h1>
        <nav class="board-tabs" aria-label="Boards of the workspace">
          {items?.map(({ board_id, name }) => (
            <a
              key={board_id}
              class="button small"
              href={hrefOf('boards', [board_id], rangeMembers())}
              aria-current={board_id === board?.board_id ? 'page' : undefined}
            >
              {name}
            </a>
          ))}
          <Button needs="admin" class="small" icon="plus" text="New board" onClick={() => setNaming(true)} />
        </nav>
      </div>
      <Loaded read={boards} lines={6} empty={<NoBoards />}>
        {() => {
          if (board === undefined)
            return <p class="hint">{boards.isLoading ? 'Loading…' : 'This board was deleted.'}</p>
          return <BoardPage key={board.board_id} board={board} reload={boards.reload} />
        }}
      </Loaded>
      {isNaming && <NameDialog title="New board" hint={SHARED} save={create} close={() => setNaming(false)} />}
    </section>
  )
}

/** The time range is that of the page: another board shows the same. */
function rangeMembers() {
  return TIME.write(TIME.value)
}

type Dialog = 'add' | 'rename'

function BoardPage({ board: listed, reload }: { readonly board: Board; readonly reload: () => void }) {
  const { api } = useSession()
  // The next edit is of the version that the last one made, also before the list has it.
  const [edited, setEdited] = useState(listed)
  const board = edited.version > listed.version ? edited : listed
  const isSending = useRef(false)
  const shownRange = TIME.value
  const isStopped = shownRange.live === 'off'
  const range = useMovingRange(shownRange, isStopped)
  const queries = useQueriesOf(board.charts)
  const [reads, setReads] = useState(0)
  const [isEditing, setEditing] = useState(false)
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const { problem, attempt } = useAttempt()
  const { charts } = board
  const edit = async (change: Parameters<typeof editBoard>[2]) => {
    try {
      setEdited(await editBoard(api, board, change))
    } finally {
      // Also when somebody else has changed it.
      reload()
    }
  }
  const arrange = async (to: Board['charts']) => {
    if (isSending.current) return
    isSending.current = true
    await attempt(() => edit({ charts: to }))
    isSending.current = false
  }
  const byId = new Map(queries.data?.map((each) => [each.query_id, each]))
  const close = () => setDialog(null)
  return (
    <>
      <div class="filters">
        <RangePicker time={TIME} />
        {range.isMoving && <LiveToggle time={TIME} />}
        <Button class="small" icon="retry" text="Refresh" onClick={() => setReads(reads + 1)} />
        <div class="head-actions">
          <Button needs="admin" class="small" icon="plus" text="Add chart" onClick={() => setDialog('add')} />
          <Button
            needs="admin"
            class="small"
            icon="edit"
            text={isEditing ? 'Done' : 'Edit'}
            aria-pressed={isEditing}
            onClick={() => setEditing(!isEditing)}
          />
          {isEditing && (
            <>
              <Button class="small" text="Rename" onClick={() => setDialog('rename')} />
              <DeleteBoard board={board} reload={reload} />
            </>
          )}
        </div>
      </div>
      <ProblemText text={problem} />
      {charts.length === 0 && <EmptyBoard />}
      <Loaded read={queries}>
        {() => (
          <div class="board-grid">
            {charts.map(({ query_id }, at) => (
              <BoardCard
                key={`${query_id} ${charts.slice(0, at).filter((each) => each.query_id === query_id).length}`}
                query={byId.get(query_id)}
                range={range}
                shownRange={shownRange}
                moment={`${range.movedAtMs} ${reads}`}
                edit={
                  isEditing
                    ? {
                        earlier: at === 0 ? null : () => void arrange(moved(charts, at, at - 1)),
                        later: at === charts.length - 1 ? null : () => void arrange(moved(charts, at, at + 1)),
                        remove: () => void arrange(charts.toSpliced(at, 1)),
                      }
                    : null
                }
              />
            ))}
          </div>
        )}
      </Loaded>
      {dialog === 'add' && <AddChartDialog board={board} queries={queries.data ?? []} edit={edit} close={close} />}
      {dialog === 'rename' && (
        <NameDialog
          title="Rename board"
          name={board.name}
          hint={SHARED}
          save={(name) => edit({ name })}
          close={close}
        />
      )}
    </>
  )
}

/** The saved queries, read again when a chart is of one that was saved since. */
function useQueriesOf(charts: Board['charts']) {
  const { api } = useSession()
  const read = useLoad((signal) => listQueries(api, signal), [])
  // Each once: it may have been deleted.
  const [soughtIds] = useState(() => new Set<string>())
  useEffect(() => {
    if (read.data === undefined) return
    const known = new Set(read.data.map(({ query_id }) => query_id))
    const unknown = charts.filter(({ query_id }) => !known.has(query_id) && !soughtIds.has(query_id))
    if (unknown.length === 0) return
    for (const { query_id } of unknown) soughtIds.add(query_id)
    read.reload()
  }, [charts, read.data])
  return read
}

function moved<T>(list: readonly T[], from: number, to: number): T[] {
  const rest = list.toSpliced(from, 1)
  return rest.toSpliced(to, 0, list[from] as T)
}
