import { t } from 'elysia'
import { PauseExpiry } from '../../activity/runs/schema.ts'
import {
  Described,
  ListQuery,
  Named,
  Nullable,
  OneOf,
  Page,
  QueryList,
  Text,
  Timestamp,
  Uuid,
} from '../../base/http/schema.ts'
import { withIsoTimes } from '../../base/timestamp.ts'
import { PAUSE_STATUSES } from '../run/state.ts'
import { asker, decided } from './schema.ts'

/** The wire format of the list of all pauses, approvals and input requests together (docs/hosted-agents.md#pauses). */

/** Maximum characters of `preview` and of `reply`. */
export const PREVIEW_LENGTH_MAX = 300

const PauseType = Named('PauseType', OneOf(['approval', 'input'], 'An approval, or an input request.'))
const PauseStatus = Named(
  'PauseStatus',
  OneOf(
    PAUSE_STATUSES,
    'Approvals are `approved` or `rejected`, input requests `answered`; both may expire, or be cancelled with their run.',
  ),
)

export const PauseSummary = Named(
  'PauseSummary',
  t.Object(
    {
      pause_id: Described(Uuid, 'The `approval_id` or `request_id`.'),
      type: PauseType,
      status: PauseStatus,
      run_id: Described(Uuid, 'The run that waits.'),
      root_run_id: Described(Uuid, 'The run that was invoked: the same, or an ancestor.'),
      agent_id: Described(Uuid, 'The agent of the run that waits.'),
      ...asker,
      tool: Described(Nullable(t.String()), 'The tool to be called; null for a question.'),
      preview: t.String({
        description: `The arguments or the question: the first ${PREVIEW_LENGTH_MAX} characters.`,
      }),
      created_at: Described(Timestamp, 'When the run began to wait.'),
      expires_at: PauseExpiry,
      ...decided,
      reply: Described(
        Nullable(t.String()),
        `The comment of the person who decided, or the answer: the first ${PREVIEW_LENGTH_MAX} characters.`,
      ),
      is_edited: t.Boolean({ description: 'Whether the call was approved with other arguments.' }),
    },
    { description: 'An approval or an input request, on one line.' },
  ),
)
export type PauseSummary = typeof PauseSummary.static

/** Query of `GET /api/v1/pauses`. */
export const ListPauseSummaries = ListQuery({
  state: t.Optional(
    OneOf(
      ['pending', 'decided'],
      '`pending`: those that wait (the default). `decided`: those that were decided, expired or were cancelled, by ' +
        'the time of that.',
    ),
  ),
  order: t.Optional(OneOf(['newest', 'oldest'], 'Which come first; default newest.')),
  status: t.Optional(QueryList(PauseStatus, 'Only those with one of these statuses.')),
  type: t.Optional(Described(PauseType, 'Only approvals, or only input requests.')),
  agent_id: t.Optional(Described(Uuid, 'Only those of this agent.')),
  session_id: t.Optional(Text({ maxLength: 2_000, description: 'Only those of this session.' })),
  external_user_id: t.Optional(Text({ maxLength: 2_000, description: 'Only those of this user.' })),
  tool: t.Optional(Text({ maxLength: 200, description: 'Only calls of this tool.' })),
})
export type ListPauseSummaries = typeof ListPauseSummaries.static

export const PauseSummaryPage = Page(
  'PauseSummaryPage',
  PauseSummary,
  'newest first unless `order` is `oldest`; with a filter, a page may be shorter than `limit`, even empty, while `next_cursor` is not null',
)

/** A row of the list of all pauses. */
export interface SummaryRow extends Omit<PauseSummary, 'created_at' | 'expires_at' | 'decided_at'> {
  readonly created_at: Date
  readonly expires_at: Date | null
  readonly decided_at: Date | null
}

export function toPauseSummary(row: SummaryRow): PauseSummary {
  return withIsoTimes(row)
}
