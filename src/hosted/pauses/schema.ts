import { t } from 'elysia'
import type { RawJson } from '../../http/raw-json.ts'
import { Body, FreeForm, Nullable, Page, PageQuery, Text, Timestamp, Uuid } from '../../http/schema.ts'
import { answering } from '../invoke/schema.ts'

/** What of approvals and input requests goes over the wire (docs/specification.md#pauses). */

const NO_DEFAULT = { default: undefined }
const COMMENT_LENGTH_MAX = 10_000
const ANSWER_LENGTH_MAX = 100_000

const ApprovalStatus = t.UnionEnum(['pending', 'approved', 'rejected', 'expired', 'cancelled'], NO_DEFAULT)
const InputRequestStatus = t.UnionEnum(['pending', 'answered', 'expired', 'cancelled'], NO_DEFAULT)
const Comment = t.Optional(Nullable(Text({ maxLength: COMMENT_LENGTH_MAX })))

/** Body of `POST /api/v1/approvals/:approvalId/approve`. */
export const Approve = Body({
  comment: Comment,
  edited_input: t.Optional(FreeForm),
  ...answering,
})
export type Approve = typeof Approve.static

/** Body of `POST /api/v1/approvals/:approvalId/reject`. */
export const Reject = Body({ comment: Comment, ...answering })
export type Reject = typeof Reject.static

/** Body of `POST /api/v1/input-requests/:requestId/answer`. */
export const AnswerInput = Body({ answer: Text({ minLength: 1, maxLength: ANSWER_LENGTH_MAX }), ...answering })
export type AnswerInput = typeof AnswerInput.static

const common = {
  run_id: t.String({ ...Uuid, description: 'The run that waits.' }),
  root_run_id: t.String({ ...Uuid, description: 'The run that was invoked: the same, or one above it.' }),
  agent_id: Uuid,
  created_at: Timestamp,
  expires_at: Nullable(Timestamp),
  decided_at: Nullable(Timestamp),
  decided_by: Nullable(t.String({ ...Uuid, description: 'The key that decided.' })),
}

export const ApprovalRecord = t.Object({
  approval_id: Uuid,
  ...common,
  status: ApprovalStatus,
  tool: t.String(),
  input: FreeForm,
  edited_input: Nullable(FreeForm),
  comment: Nullable(t.String()),
})
export type ApprovalRecord = typeof ApprovalRecord.static

export const InputRequestRecord = t.Object({
  request_id: Uuid,
  ...common,
  status: InputRequestStatus,
  question: t.String(),
  options: t.Optional(t.Array(t.String())),
  answer: Nullable(t.String()),
})
export type InputRequestRecord = typeof InputRequestRecord.static

const where = { run_id: t.Optional(Uuid), agent_id: t.Optional(Uuid) }

/** Query of `GET /api/v1/approvals`. */
export const ListApprovals = t.Object(
  { status: t.Optional(ApprovalStatus), ...where, ...PageQuery },
  { additionalProperties: false },
)

/** Query of `GET /api/v1/input-requests`. */
export const ListInputRequests = t.Object(
  { status: t.Optional(InputRequestStatus), ...where, ...PageQuery },
  { additionalProperties: false },
)
export type ListPauses = typeof ListApprovals.static | typeof ListInputRequests.static

export const ApprovalPage = Page(ApprovalRecord)
export const InputRequestPage = Page(InputRequestRecord)
export const ApprovalParams = t.Object({ approvalId: Uuid })
export const InputRequestParams = t.Object({ requestId: Uuid })

/** A row of `pauses`, with what is needed of its run. */
export interface PauseRow {
  readonly pause_id: string
  readonly run_id: string
  readonly root_run_id: string
  readonly root_agent_id: string
  readonly root_session_id: string | null
  readonly agent_id: string
  readonly call_id: string
  readonly type: 'approval' | 'input'
  readonly status: 'pending' | 'approved' | 'rejected' | 'answered' | 'expired' | 'cancelled'
  readonly tool: string | null
  readonly input: RawJson | null
  readonly edited_input: RawJson | null
  readonly question: string | null
  readonly options: RawJson | null
  readonly answer: string | null
  readonly comment: string | null
  readonly decided_by: string | null
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
  return {
    run_id: row.run_id,
    root_run_id: row.root_run_id,
    agent_id: row.agent_id,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at?.toISOString() ?? null,
    decided_at: row.decided_at?.toISOString() ?? null,
    decided_by: row.decided_by,
  }
}
