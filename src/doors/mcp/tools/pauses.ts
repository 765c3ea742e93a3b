import { t } from 'elysia'
import { invalid } from '../../../base/errors.ts'
import { Body, Described, Int, Text, Uuid } from '../../../base/http/schema.ts'
import type { Hosted } from '../../../hosted/hosted.ts'
import { AnswerInput, Approve, toApprovalRecord, toInputRequestRecord } from '../../../hosted/pauses/schema.ts'
import type { Decision } from '../../../hosted/pauses/store.ts'
import type { PauseSummary } from '../../../hosted/pauses/summary-schema.ts'
import type { CallContext } from '../provider.ts'
import { withoutLongMembers } from './runs.ts'
import { type OwnTool, ownTool } from './tool.ts'

const LIMIT_DEFAULT = 10
const LIMIT_MAX = 20

const ListInput = Body({
  agent_id: t.Optional(Described(Uuid, 'Only runs of this agent.')),
  limit: t.Optional(Int({ minimum: 1, maximum: LIMIT_MAX, description: `Default ${LIMIT_DEFAULT}.` })),
  cursor: t.Optional(Text({ maxLength: 500, description: '`next_cursor` of the previous page.' })),
})

const ListOutput = t.Object({
  waiting: t.Array(t.Object({ run_id: t.String() }, { additionalProperties: true })),
  next_cursor: t.Union([t.String(), t.Null()]),
})

const DecideInput = Body({
  approval_id: t.Optional(Described(Uuid, 'The call to approve or to reject, with `approve`.')),
  input_request_id: t.Optional(Described(Uuid, 'The question to answer, with `answer`.')),
  approve: t.Optional(
    t.Boolean({ description: 'true: the call is made. false: it is not, and the model reads `comment`.' }),
  ),
  answer: t.Optional(AnswerInput.properties.answer),
  comment: Approve.properties.comment,
  edited_input: Approve.properties.edited_input,
})
type DecideInput = typeof DecideInput.static

const DecideOutput = t.Object(
  { run_id: t.String(), status: t.String({ description: 'Of the run, which continues.' }) },
  { additionalProperties: true },
)

interface PauseToolsDeps {
  readonly pauses: Pick<Hosted['pauses'], 'listSummaries' | 'details'>
  readonly resume: Hosted['resume']
}

/** What waits for a person, and its decision, as `/api/v1/approvals` and `/api/v1/input-requests` have them. */
export function pauseTools(deps: PauseToolsDeps): OwnTool[] {
  const { pauses } = deps
  return [
    ownTool({
      name: 'list_waiting',
      title: 'List what waits for a person',
      description:
        'Runs that wait for a person, newest first: calls of tools to approve (approval_id, with the tool and its exact ' +
        'arguments), and questions to answer (input_request_id).',
      input: ListInput,
      outputSchema: ListOutput,
      annotations: { readOnlyHint: true, openWorldHint: false },
      audience: 'any',
      run: async ({ caller }, { limit = LIMIT_DEFAULT, ...query }) => {
        const page = await pauses.listSummaries(caller, { ...query, limit, state: 'pending' })
        const detailed = async ({ type, pause_id }: PauseSummary) =>
          type === 'approval'
            ? withoutLongMembers(await pauses.details(caller, type, pause_id, toApprovalRecord))
            : renamed(withoutLongMembers(await pauses.details(caller, type, pause_id, toInputRequestRecord)))
        return { waiting: await Promise.all(page.items.map(detailed)), next_cursor: page.next_cursor }
      },
    }),
    ownTool({
      name: 'decide',
      title: 'Decide what waits',
      description:
        'Approves or rejects a call (approval_id and approve), or answers a question (input_request_id and answer). The ' +
        'decision is final and the run continues at once: an approved call is made on exactly the arguments that ' +
        'list_waiting shows, or on edited_input. Ask the person first.',
      input: DecideInput,
      outputSchema: DecideOutput,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
      audience: 'any',
      run: (context, input) => decide(deps, context, input),
    }),
  ]
}

/** An input request has the name that `decide` takes. */
function renamed<T extends { readonly request_id: string }>({ request_id, ...request }: T) {
  return { input_request_id: request_id, ...request }
}

function decide({ resume }: PauseToolsDeps, { caller, key }: CallContext, input: DecideInput): Promise<object> {
  const { approval_id, input_request_id, approve, answer, comment = null, edited_input: editedInput = null } = input
  // The run continues without this call, which would otherwise wait for its end.
  const mode = { background: true, key, keepOpen: () => {}, setStatus: () => {} }
  if (approval_id !== undefined && input_request_id !== undefined)
    throw invalid('input_request_id', 'cannot be combined with approval_id')
  if (approval_id !== undefined) {
    if (approve === undefined) throw invalid('approve', 'required with approval_id')
    if (answer !== undefined) throw invalid('answer', 'cannot be combined with approval_id')
    if (!approve && editedInput !== null) throw invalid('edited_input', 'cannot be combined with approve: false')
    const decision: Decision = approve ? { status: 'approved', comment, editedInput } : { status: 'rejected', comment }
    return resume(caller, 'approval', approval_id, decision, mode)
  }
  if (input_request_id === undefined) throw invalid('approval_id', 'required, or input_request_id')
  if (answer === undefined) throw invalid('answer', 'required with input_request_id')
  for (const name of ['approve', 'comment', 'edited_input'] as const)
    if (input[name] !== undefined) throw invalid(name, 'cannot be combined with input_request_id')
  return resume(caller, 'input', input_request_id, { status: 'answered', answer }, mode)
}
