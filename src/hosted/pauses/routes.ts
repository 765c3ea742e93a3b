import { Elysia } from 'elysia'
import { dataOrStream } from '../../http/answer.ts'
import type { Guards } from '../../keys/guards.ts'
import type { Caller } from '../../keys/schema.ts'
import { SECURITY } from '../../keys/security.ts'
import type { ResponseMode } from '../invoke/respond.ts'
import { responseModeOf } from '../invoke/routes.ts'
import { type RunResponse, RunResponses } from '../invoke/schema.ts'
import { OUTPUT_STREAM } from '../output/schema.ts'
import {
  AnswerInput,
  ApprovalPage,
  ApprovalParams,
  ApprovalRecord,
  Approve,
  InputRequestPage,
  InputRequestParams,
  InputRequestRecord,
  ListApprovals,
  ListInputRequests,
  type PauseRow,
  Reject,
  toApprovalRecord,
  toInputRequestRecord,
} from './schema.ts'
import type { Decision } from './store.ts'

export interface PauseRoutesDeps {
  readonly guards: Guards
  readonly pauses: Pick<import('./store.ts').Pauses, 'list' | 'get'>
  /** Stores the decision and responds like invoke. */
  readonly resume: (
    caller: Caller,
    type: PauseRow['type'],
    pauseId: string,
    decision: Decision,
    mode: ResponseMode,
  ) => Promise<RunResponse | Response>
}

/** Approvals and input requests (docs/specification.md#pauses). */
export function pauseRoutes(deps: PauseRoutesDeps) {
  return new Elysia({ prefix: '/api/v1' }).use(approvalRoutes(deps)).use(inputRequestRoutes(deps))
}

function approvalRoutes({ guards, pauses, resume }: PauseRoutesDeps) {
  const tags = ['Approvals']
  return new Elysia({ detail: { security: SECURITY.anyKey } })
    .use(guards.anyKey('reads'))
    .get(
      '/approvals',
      async ({ caller, query }) => {
        const { items, next_cursor } = await pauses.list(caller, 'approval', query)
        return { items: items.map(toApprovalRecord), next_cursor }
      },
      {
        query: ListApprovals,
        response: ApprovalPage,
        detail: {
          tags,
          operationId: 'listApprovals',
          summary: 'List approvals',
          description: 'Newest first. An agent key sees those of its own agent.',
        },
      },
    )
    .get(
      '/approvals/:approval_id',
      async ({ caller, params }) => toApprovalRecord(await pauses.get(caller, 'approval', params.approval_id)),
      {
        params: ApprovalParams,
        response: ApprovalRecord,
        detail: {
          tags,
          operationId: 'getApproval',
          summary: 'Read an approval',
          description: 'The tool and arguments that wait for approval, and the decision once there is one.',
        },
      },
    )
    .post(
      '/approvals/:approval_id/approve',
      (context) => {
        const { comment = null, edited_input: editedInput = null, ...mode } = context.body
        const decision = { status: 'approved', comment, editedInput } as const
        return dataOrStream(
          resume(context.caller, 'approval', context.params.approval_id, decision, responseModeOf(context, mode)),
        )
      },
      {
        params: ApprovalParams,
        body: Approve,
        response: RunResponses,
        detail: {
          tags,
          media: { 200: OUTPUT_STREAM.content },
          operationId: 'approveCall',
          summary: 'Approve a call',
          description:
            'The call runs on exactly the arguments that were shown, or on `edited_input`. The run continues, and ' +
            'the response is that of invoke. A second decision is a CONFLICT.',
        },
      },
    )
    .post(
      '/approvals/:approval_id/reject',
      (context) => {
        const { comment = null, ...mode } = context.body
        const decision = { status: 'rejected', comment } as const
        return dataOrStream(
          resume(context.caller, 'approval', context.params.approval_id, decision, responseModeOf(context, mode)),
        )
      },
      {
        params: ApprovalParams,
        body: Reject,
        response: RunResponses,
        detail: {
          tags,
          media: { 200: OUTPUT_STREAM.content },
          operationId: 'rejectCall',
          summary: 'Reject a call',
          description:
            'The call is not made, and the model receives the comment. The run continues, and the response is ' +
            'that of invoke. A second decision is a CONFLICT.',
        },
      },
    )
}

function inputRequestRoutes({ guards, pauses, resume }: PauseRoutesDeps) {
  const tags = ['Input requests']
  return new Elysia({ detail: { security: SECURITY.anyKey } })
    .use(guards.anyKey('reads'))
    .get(
      '/input-requests',
      async ({ caller, query }) => {
        const { items, next_cursor } = await pauses.list(caller, 'input', query)
        return { items: items.map(toInputRequestRecord), next_cursor }
      },
      {
        query: ListInputRequests,
        response: InputRequestPage,
        detail: {
          tags,
          operationId: 'listInputRequests',
          summary: 'List input requests',
          description: 'Newest first. An agent key sees those of its own agent.',
        },
      },
    )
    .get(
      '/input-requests/:request_id',
      async ({ caller, params }) => toInputRequestRecord(await pauses.get(caller, 'input', params.request_id)),
      {
        params: InputRequestParams,
        response: InputRequestRecord,
        detail: {
          tags,
          operationId: 'getInputRequest',
          summary: 'Read an input request',
          description: 'The question, and the answer once there is one.',
        },
      },
    )
    .post(
      '/input-requests/:request_id/answer',
      (context) => {
        const { answer, ...mode } = context.body
        const decision = { status: 'answered', answer } as const
        return dataOrStream(
          resume(context.caller, 'input', context.params.request_id, decision, responseModeOf(context, mode)),
        )
      },
      {
        params: InputRequestParams,
        body: AnswerInput,
        response: RunResponses,
        detail: {
          tags,
          media: { 200: OUTPUT_STREAM.content },
          operationId: 'answerInputRequest',
          summary: 'Answer an input request',
          description:
            'The run continues with the answer, and the response is that of invoke. A second answer is a ' +
            'CONFLICT.',
        },
      },
    )
}
