import { type Api, ApiFailure, type Listed, listAll } from './api.ts'
import type { Schemas } from './records.ts'

export type SavedQuery = Schemas['SavedQuery']
export type Board = Schemas['Board']
type BoardEdit = Omit<Schemas['EditBoard'], 'version'>

/** The limits of the service. */
const BOARDS_MAX = 50
const SAVED_QUERIES_MAX = 1_000
/** Charts on a board. */
export const BOARD_CHARTS_MAX = 24
const PIN_TRIES = 3

/** The boards of the workspace, the oldest first, so that new ones move no other. @throws ApiFailure */
export async function listBoards(api: Api, signal?: AbortSignal): Promise<readonly Board[]> {
  const { items } = await api.get<Listed<Board>>('/api/v1/boards', { limit: BOARDS_MAX }, signal)
  return items.toReversed()
}

/** All saved queries, newest first. @throws ApiFailure */
export async function listQueries(api: Api, signal?: AbortSignal): Promise<readonly SavedQuery[]> {
  return (await listAll<SavedQuery>(api, '/api/v1/queries', SAVED_QUERIES_MAX, signal)).items
}

/** Changes a board, unless somebody else has changed it since it was read. @throws ApiFailure `CONFLICT` then */
export function editBoard(api: Api, { board_id, version }: Board, edit: BoardEdit): Promise<Board> {
  return api.patch(`/api/v1/boards/${board_id}`, { version, ...edit })
}

/**
 * Adds a saved query at the end of a board, once. What others change meanwhile stays.
 * @throws ApiFailure
 */
export async function pin(api: Api, boardId: string, queryId: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    const board = await api.get<Board>(`/api/v1/boards/${boardId}`)
    if (board.charts.some(({ query_id }) => query_id === queryId)) return
    try {
      await editBoard(api, board, { charts: [...board.charts, { query_id: queryId }] })
      return
    } catch (error) {
      const isChanged = error instanceof ApiFailure && error.about.reason === 'version_changed'
      if (!isChanged || tries === PIN_TRIES) throw error
    }
  }
}
