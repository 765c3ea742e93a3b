import { t } from 'elysia'
import { Body, Deleted, Described, EDITED, Int, JsonText, Named, Page, Uuid } from '../../base/http/schema.ts'
import type { RowOf } from '../../base/timestamp.ts'
import { Name } from './saved-schema.ts'

/** Wire schemas of boards (docs/sql.md#boards). */

/** Maximum of charts per board: each runs a query whenever the board is refreshed. */
export const BOARD_CHARTS_MAX = 24
const VERSION_MAX = 2 ** 31 - 1

const BoardChart = Named(
  'BoardChart',
  Body(
    { query_id: Described(Uuid, 'The saved query, which has the text, the placeholders and the chart.') },
    { description: 'A saved query on a board. It stays there when the query is deleted, until it is removed.' },
  ),
)

const Charts = t.Array(BoardChart, {
  maxItems: BOARD_CHARTS_MAX,
  description: `In the order of the page; at most ${BOARD_CHARTS_MAX}.`,
})

/** Body of `POST /api/v1/boards`. */
export const CreateBoard = Named('CreateBoard', Body({ name: Name, charts: t.Optional(Charts) }))
export type CreateBoard = typeof CreateBoard.static

/** Body of `PATCH /api/v1/boards/:board_id`: given members change; `charts` are replaced as a whole. */
export const EditBoard = Named(
  'EditBoard',
  Body({
    version: t.Optional(
      Int({
        minimum: 1,
        maximum: VERSION_MAX,
        description:
          'The version that was read; required unless `If-Match` names it. Another one is a CONFLICT, so that no edit is ' +
          'overwritten unseen.',
      }),
    ),
    name: t.Optional(Name),
    charts: t.Optional(Charts),
  }),
)
export type EditBoard = typeof EditBoard.static

export const Board = Named(
  'Board',
  t.Object(
    {
      board_id: Described(Uuid, 'The board.'),
      name: t.String({ description: 'Unique in the workspace.' }),
      charts: Described(JsonText(Charts), 'In the order of the page.'),
      ...EDITED,
    },
    { description: 'A named page of charts of saved queries.' },
  ),
)
export type Board = typeof Board.static

export const BoardPage = Page('BoardPage', Board)

/** `:board_id` of a path. */
export const BoardParams = t.Object({ board_id: Described(Uuid, 'The board.') })

export const DeletedBoard = Deleted('DeletedBoard', { board_id: Described(Uuid, 'The board.') })
export type DeletedBoard = typeof DeletedBoard.static

/** A row of `boards`. */
export type BoardRow = RowOf<Board>
