import { PageQuery } from '../../base/http/schema.ts'
import { ifMatch } from '../../base/http/version.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { versionedRoutes } from '../../tenants/keys/versioned-routes.ts'
import { Board, BoardPage, BoardParams, CreateBoard, DeletedBoard, EditBoard } from './board-schema.ts'
import type { Boards } from './board-store.ts'

/** Pages of saved queries, which the people of a workspace share (docs/sql.md#boards). */
export function boardRoutes({ guards, boards }: { readonly guards: Guards; readonly boards: Boards }) {
  return versionedRoutes(guards, '/api/v1/boards', 'Boards')
    .post('', ({ caller, body, mint }) => boards.create(caller, body, mint), {
      body: CreateBoard,
      response: Board,
      detail: {
        operationId: 'createBoard',
        summary: 'Create a board',
        description: 'A name that is already taken is a CONFLICT. Charts are saved queries, by their ids.',
      },
    })
    .get('', ({ caller, query }) => boards.list(caller, query), {
      query: PageQuery,
      response: BoardPage,
      detail: { operationId: 'listBoards', summary: 'List boards', description: 'Newest first.' },
    })
    .get('/:board_id', ({ caller, params }) => boards.get(caller, params.board_id), {
      params: BoardParams,
      response: Board,
      detail: {
        operationId: 'getBoard',
        summary: 'Read a board',
        description: 'Its name and the saved queries on it.',
      },
    })
    .patch(
      '/:board_id',
      ({ caller, params, body, request }) => boards.edit(caller, params.board_id, body, ifMatch(request)),
      {
        params: BoardParams,
        body: EditBoard,
        response: Board,
        detail: {
          operationId: 'editBoard',
          summary: 'Edit a board',
          description:
            'Changes the fields that are given; `charts` are replaced as a whole. `version` is the one that was read: if ' +
            'the board has changed since, the edit is a CONFLICT, and so is a name that is already taken.',
        },
      },
    )
    .delete('/:board_id', ({ caller, params, request }) => boards.delete(caller, params.board_id, ifMatch(request)), {
      params: BoardParams,
      response: DeletedBoard,
      detail: {
        operationId: 'deleteBoard',
        summary: 'Delete a board',
        description: 'Deletes the page, not the saved queries on it.',
      },
    })
}
