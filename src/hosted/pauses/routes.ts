import { Elysia } from 'elysia'
import { dataOrStream } from '../../base/http/answer.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import type { ResponseMode } from '../invoke/respond.ts'
import { type RequestContext, responseModeOf } from '../invoke/routes.ts'
import { type RunResponse, RunResponses } from '../invoke/schema.ts'
import { OUTPUT_STREAM } from '../output/schema.ts'
import {
  AnswerInput,
  ApprovalDetails,
  ApprovalPage,
  ApprovalParams,
  Approve,
  InputRequestDetails,
  InputRequestPage,
  InputRequestParams,
  ListApprovals,
  ListInputRequests,
  type PauseRow,
  Reject,
  toApprovalRecord,
  toInputRequestRecord,
} from './schema.ts'
import type { Decision, Pauses } from './store.ts'
import { ListPauseSummaries, PauseSummaryPage } from './summary-schema.ts'

interface PauseRoutesDeps {
  readonly guards: Guards
  readonly pauses: Pick<Pauses, 'list' | 'listSummaries' | 'details'>
  /** Stores the decision and responds like invoke. */
  readonly resume: (
    caller: Caller,
    type: PauseRow['type'],
    pauseId: string,
    decision: Decision,
    mode: ResponseMode,
  ) => Promise<RunResponse | Response>
}

/** Approvals and input requests (docs/hosted-agents.md#pauses). */
export function pauseRoutes(deps: PauseRoutesDeps) {
  return new Elysia({ prefix: '/api/v1' })
    .use(summaryRoutes(deps))
    .use(approvalRoutes(deps))
    .use(inputRequestRoutes(deps))
}

function summaryRoutes({ guards, pauses }: PauseRoutesDeps) {
  return new Elysia({ detail: { security: SECURITY.anyKey } })
    .use(guards.anyKey('reads', 'approver'))
    .get('/pauses', ({ caller, query }) => pauses.listSummaries(caller, query), {
      query: ListPauseSummaries,
      response: PauseSummaryPage,
      detail: described(
        'Approvals',
        'listPauses',
        'List all pauses',
        'Approvals and input requests on one line each: those that wait, or those that were decided, and by whom. An ' +
          'agent key sees those of its own agent.',
      ),
    })
}

function approvalRoutes({ guards, pauses, resume }: PauseRoutesDeps) {
  const tag = 'Approvals'
  const decide = deciderWith(resume, 'approval')
  return new Elysia({ detail: { security: SECURITY.anyKey } })
    .use(guards.anyKey('reads', 'approver'))
    .get('/approvals', ({ caller, query }) => pauses.list(caller, 'approval', query, toApprovalRecord), {
      query: ListApprovals,
      response: ApprovalPage,
      detail: described(tag, 'listApprovals', 'List approvals', LISTED),
    })
    .get(
      '/approvals/:approval_id',
      ({ caller, params }) => pauses.details(caller, 'approval', params.approval_id, toApprovalRecord),
      {
        params: ApprovalParams,
        response: ApprovalDetails,
        detail: described(
          tag,
          'getApproval',
          'Read an approval',
          'The tool and arguments that wait for approval, who asked and what was said before, and the decision once ' +
            'there is one.',
        ),
      },
    )
    .post(
      '/approvals/:approval_id/approve',
      (context) => {
        const { comment = null, edited_input: editedInput = null, ...mode } = context.body
        return decide(context, context.params.approval_id, { status: 'approved', comment, editedInput }, mode)
      },
      {
        params: ApprovalParams,
        body: Approve,
        response: RunResponses,
        detail: deciding(
          tag,
          'approveCall',
          'Approve a call',
          'The call runs on exactly the arguments that were shown, or on `edited_input`. The run continues, and ' +
            'the response is that of invoke. A second decision is a CONFLICT.',
        ),
      },
    )
    .post(
      '/approvals/:approval_id/reject',
      (context) => {
        const { comment = null, ...mode } = context.body
        return decide(context, context.params.approval_id, { status: 'rejected', comment }, mode)
      },
      {
        params: ApprovalParams,
        body: Reject,
        response: RunResponses,
        detail: deciding(
          tag,
          'rejectCall',
          'Reject a call',
          'The call is not made, and the model receives the comment. The run continues, and the response is ' +
            'that of invoke. A second decision is a CONFLICT.',
        ),
      },
    )
}

function inputRequestRoutes({ guards, pauses, resume }: PauseRoutesDeps) {
  const tag = 'Input requests'
  const decide = deciderWith(resume, 'input')
  return new Elysia({ detail: { security: SECURITY.anyKey } })
    .use(guards.anyKey('reads', 'approver'))
    .get('/input-requests', ({ caller, query }) => pauses.list(caller, 'input', query, toInputRequestRecord), {
      query: ListInputRequests,
      response: InputRequestPage,
      detail: described(tag, 'listInputRequests', 'List input requests', LISTED),
    })
    .get(
      '/input-requests/:request_id',
      ({ caller, params }) => pauses.details(caller, 'input', params.request_id, toInputRequestRecord),
      {
        params: InputRequestParams,
        response: InputRequestDetails,
        detail: described(
          tag,
          'getInputRequest',
          'Read an input request',
          'The question, who asked for what and what was said before, and the answer once there is one.',
        ),
      },
    )
    .post(
      '/input-requests/:request_id/answer',
      (context) => {
        const { answer, ...mode } = context.body
        return decide(context, context.params.request_id, { status: 'answered', answer }, mode)
      },
      {
        params: InputRequestParams,
        body: AnswerInput,
        response: RunResponses,
        detail: deciding(
          tag,
          'answerInputRequest',
          'Answer an input request',
          'The run continues with the answer, and the response is that of invoke. A second answer is a CONFLICT.',
        ),
      },
    )
}

/** Answers a decision as an invocation is answered: with an outcome or a stream. */
function deciderWith(resume: PauseRoutesDeps['resume'], type: PauseRow['type']) {
  return (
    context: RequestContext & { readonly caller: Caller },
    pauseId: string,
    decision: Decision,
    mode: Pick<ResponseMode, 'stream' | 'background'>,
  ) => dataOrStream(resume(context.caller, type, pauseId, decision, responseModeOf(context, mode)))
}

const LISTED = 'Newest first. An agent key sees those of its own agent.'

function described(tag: string, operationId: string, summary: string, description: string) {
  return { tags: [tag], operationId, summary, description }
}

function deciding(...words: Parameters<typeof described>) {
  return { ...described(...words), media: { 200: OUTPUT_STREAM.content } }
}
