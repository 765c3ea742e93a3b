import type { Guards } from '../../tenants/keys/guards.ts'
import { resourceRoutes } from '../../tenants/keys/resource-routes.ts'
import { Board, BoardPage, BoardParams, CreateBoard, DeletedBoard, EditBoard } from './board-schema.ts'
import type { Boards } from './board-store.ts'

/** Pages of saved queries, which the people of a workspace share (docs/sql.md#boards). */
export function boardRoutes({ guards, boards }: { readonly guards: Guards; readonly boards: Boards }) {
  return resourceRoutes(guards, {
    path: '/api/v1/boards',
    tag: 'Boards',
    one: 'a board',
    many: 'boards',
    params: BoardParams,
    item: Board,
    page: BoardPage,
    get: { description: 'Its name and the saved queries on it.' },
    create: {
      body: CreateBoard,
      description: 'A name that is already taken is a CONFLICT. Charts are saved queries, by their ids.',
    },
    edit: {
      body: EditBoard,
      description:
        'Changes the fields that are given; `charts` are replaced as a whole. `version` is the one that was read: if ' +
        'the board has changed since, the edit is a CONFLICT, and so is a name that is already taken.',
    },
    delete: { answer: DeletedBoard, description: 'Deletes the page, not the saved queries on it.' },
    store: boards,
  })
}
