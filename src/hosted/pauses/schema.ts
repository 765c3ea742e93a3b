import { t } from 'elysia'
import { PauseExpiry, QuestionOptions } from '../../activity/runs/schema.ts'
import {
  Body,
  Described,
  FreeForm,
  ListQuery,
  Named,
  Nullable,
  OneOf,
  Page,
  Text,
  Timestamp,
  Uuid,
} from '../../base/http/schema.ts'
import type { RawJson } from '../../base/raw-json.ts'
import { withIsoTimes } from '../../base/timestamp.ts'
import { answering } from '../invoke/schema.ts'
import type { PauseStatus } from '../run/state.ts'

/** The wire format of approvals and input requests (docs/hosted-agents.md#pauses). */

export const COMMENT_LENGTH_MAX = 10_000
export const ANSWER_LENGTH_MAX = 100_000

const ApprovalStatus = Named(
  'ApprovalStatus',
  OneOf(['pending', 'approved', 'rejected', 'expired', 'cancelled'], 'Only a pending one can be decided.'),
)
const InputRequestStatus = Named(
  'InputRequestStatus',
  OneOf(['pending', 'answered', 'expired', 'cancelled'], 'Only a pending one can be answered.'),
)
const Comment = t.Optional(
  Nullable(
    Text({
      maxLength: COMMENT_LENGTH_MAX,
      description: 'The reason; stored, and passed to the model after a rejection.',
    }),
  ),
)

/** Body of `POST /api/v1/approvals/:approval_id/approve`. */
export const Approve = Named(
  'Approve',
  Body({
    comment: Comment,
    edited_input: t.Optional(Described(FreeForm, 'Arguments to call the tool with instead of those shown.')),
    ...answering,
  }),
)
export type Approve = typeof Approve.static

/** Body of `POST /api/v1/approvals/:approval_id/reject`. */
export const Reject = Named('Reject', Body({ comment: Comment, ...answering }))
export type Reject = typeof Reject.static

/** Body of `POST /api/v1/input-requests/:request_id/answer`. */
export const AnswerInput = Named(
  'AnswerInput',
  Body({
    answer: Text({ minLength: 1, maxLength: ANSWER_LENGTH_MAX, description: 'The answer for the model.' }),
    ...answering,
  }),
)
export type AnswerInput = typeof AnswerInput.static

/** Fields of a decision: who decided, and when. */
export const decided = {
  decided_at: Described(Nullable(Timestamp), 'When it was decided, expired or was cancelled.'),
  decided_by: Described(Nullable(Uuid), 'The key that decided, or the person who was signed in.'),
  decided_by_person: Described(
    Nullable(t.String()),
    'The e-mail address of the person who was signed in, or else their name; null for a key.',
  ),
}

const common = {
  run_id: Described(Uuid, 'The run that waits.'),
  root_run_id: Described(Uuid, 'The run that was invoked: the same, or an ancestor.'),
  agent_id: Described(Uuid, 'The agent of the run that waits.'),
  created_at: Described(Timestamp, 'When the run began to wait.'),
  expires_at: PauseExpiry,
  ...decided,
}

const ApprovalRecord = Named(
  'Approval',
  t.Object(
    {
      approval_id: Described(Uuid, 'The approval.'),
      ...common,
      status: ApprovalStatus,
      tool: t.String({ description: 'The tool to be called.' }),
      input: Described(FreeForm, 'The arguments of the call.'),
      edited_input: Described(Nullable(FreeForm), 'The arguments that it was approved with instead.'),
      comment: Described(Nullable(t.String()), 'The comment of the person who decided.'),
    },
    { description: 'A tool call that needs a person to approve it.' },
  ),
)
type ApprovalRecord = typeof ApprovalRecord.static

const InputRequestRecord = Named(
  'InputRequest',
  t.Object(
    {
      request_id: Described(Uuid, 'The input request.'),
      ...common,
      status: InputRequestStatus,
      question: t.String({ description: 'What the model asks.' }),
      options: QuestionOptions,
      answer: Described(Nullable(t.String()), 'The answer that the model received.'),
    },
    { description: 'A question of a model to its caller.' },
  ),
)
type InputRequestRecord = typeof InputRequestRecord.static

/** Session and user of the run that was invoked. */
export const asker = {
  session_id: Described(Nullable(t.String()), 'The session of the run that was invoked.'),
  external_user_id: Described(Nullable(t.String()), "The caller's own name for the user of that run."),
}

const PauseContext = Named(
  'PauseContext',
  t.Object(
    {
      ...asker,
      user_message: Described(
        Nullable(t.String()),
        'What the run was asked: the message of its user, or of the agent above it. A long one is shortened.',
      ),
      assistant_message: Described(
        Nullable(t.String()),
        'What the model said last: with this call, or before it. A long text is shortened.',
      ),
    },
    { description: 'Who asked, and what was said before.' },
  ),
)
export type PauseContext = typeof PauseContext.static

const context = { context: PauseContext }

/** Answer of `GET /api/v1/approvals/:approval_id`. */
export const ApprovalDetails = Named('ApprovalDetails', t.Object({ ...ApprovalRecord.properties, ...context }))
/** Answer of `GET /api/v1/input-requests/:request_id`. */
export const InputRequestDetails = Named(
  'InputRequestDetails',
  t.Object({ ...InputRequestRecord.properties, ...context }),
)

const where = {
  run_id: t.Optional(Described(Uuid, 'Only those that this run waits for.')),
  agent_id: t.Optional(Described(Uuid, 'Only those of this agent.')),
}

/** Query of `GET /api/v1/approvals`. */
export const ListApprovals = ListQuery({
  status: t.Optional(Described(ApprovalStatus, 'Only those with this status.')),
  ...where,
})

/** Query of `GET /api/v1/input-requests`. */
export const ListInputRequests = ListQuery({
  status: t.Optional(Described(InputRequestStatus, 'Only those with this status.')),
  ...where,
})
export type ListPauses = typeof ListApprovals.static | typeof ListInputRequests.static

export const ApprovalPage = Page('ApprovalPage', ApprovalRecord)
export const InputRequestPage = Page('InputRequestPage', InputRequestRecord)
export const ApprovalParams = t.Object({ approval_id: Described(Uuid, 'The approval.') })
export const InputRequestParams = t.Object({ request_id: Described(Uuid, 'The input request.') })

/** A row of `pauses`, with the columns needed of its run. */
export interface PauseRow {
  readonly pause_id: string
  readonly run_id: string
  readonly root_run_id: string
  /** Null once the invoked run was deleted. */
  readonly root_agent_id: string | null
  readonly root_session_id: string | null
  /** The call of its parent that the run carries out. */
  readonly parent_call_id: string | null
  readonly agent_id: string
  readonly call_id: string
  readonly type: 'approval' | 'input'
  readonly status: PauseStatus
  readonly tool: string | null
  readonly input: RawJson | null
  readonly edited_input: RawJson | null
  readonly question: string | null
  readonly options: RawJson | null
  readonly answer: string | null
  readonly comment: string | null
  readonly decided_by: string | null
  readonly decided_by_person: string | null
  readonly decided_at: Date | null
  readonly created_at: Date
  readonly expires_at: Date | null
}

export function toApprovalRecord(row: PauseRow): ApprovalRecord {
  const { pause_id: approval_id, edited_input, comment } = row
  const status = row.status as ApprovalRecord['status']
  return { approval_id, ...commonOf(row), status, tool: row.tool!, input: row.input!, edited_input, comment }
}

export function toInputRequestRecord(row: PauseRow): InputRequestRecord {
  const { pause_id: request_id, question, answer } = row
  const status = row.status as InputRequestRecord['status']
  const options = row.options === null ? {} : { options: row.options.parse() as string[] }
  return { request_id, ...commonOf(row), status, question: question!, ...options, answer }
}

function commonOf(row: PauseRow) {
  const { run_id, root_run_id, agent_id, created_at, expires_at, decided_at, decided_by, decided_by_person } = row
  return withIsoTimes({
    run_id,
    root_run_id,
    agent_id,
    created_at,
    expires_at,
    decided_at,
    decided_by,
    decided_by_person,
  })
}
