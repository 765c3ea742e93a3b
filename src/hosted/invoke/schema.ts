import type { TProperties } from '@sinclair/typebox'
import { t } from 'elysia'
import { RunStatus } from '../../activity/runs/schema.ts'
import { Usage } from '../../activity/runs/usage-schema.ts'
import { Body, Described, FreeForm, Named, Nullable, OneOf, Text, Uuid } from '../../base/http/schema.ts'
import { ApprovalWait, InputWait } from '../output/schema.ts'

/** The wire format of invocations (docs/hosted-agents.md#invoke). */

const HISTORY_MAX = 2_000
const MESSAGE_LENGTH_MAX = 1_000_000
const VARIABLES_MAX = 500

const HistoryMessage = Named(
  'HistoryMessage',
  Body({
    role: OneOf(['user', 'assistant'], 'Author of the message.'),
    content: Text({ maxLength: MESSAGE_LENGTH_MAX, description: 'Text of the message.' }),
  }),
)

/** Members of every request that starts or resumes a run. */
export const answering = {
  stream: t.Optional(t.Boolean({ description: 'Responds with an event stream.' })),
  background: t.Optional(t.Boolean({ description: 'Responds 202 at once; the run continues in the background.' })),
}

/** Body of `POST /api/v1/agents/:agent_id/invoke`. */
const invokeAgent = Body({
  input: t.Optional(
    Described(FreeForm, 'The user message: `message` if it is a string, else the whole object as JSON.'),
  ),
  prompt_variables: t.Optional(
    t.Record(t.String(), Text({ maxLength: MESSAGE_LENGTH_MAX }), {
      maxProperties: VARIABLES_MAX,
      description: 'Fills `{{KEY}}` placeholders in the prompt of the agent.',
    }),
  ),
  session_id: t.Optional(Described(Uuid, 'Continues this session. Cannot be combined with start_session or history.')),
  start_session: t.Optional(t.Boolean({ description: 'Starts a session; the response has its id.' })),
  external_user_id: t.Optional(t.String({ description: 'Only together with session_id or start_session.' })),
  history: t.Optional(
    t.Array(HistoryMessage, { maxItems: HISTORY_MAX, description: 'Earlier messages, oldest first.' }),
  ),
  parent_run_id: t.Optional(Described(Uuid, 'The run of the same workspace that started this one.')),
  ...answering,
})
export const InvokeAgent = Named('InvokeAgent', invokeAgent)
export type InvokeAgent = typeof InvokeAgent.static

/** A response about a run. @param details what follows the session */
function answerOf<T extends TProperties, D extends TProperties>(
  name: string,
  description: string,
  members: T,
  details = {} as D,
) {
  const session_id = Described(Nullable(Uuid), 'The session in use; null without one.')
  const run_id = Described(Uuid, 'The run.')
  return Named(name, t.Object({ run_id, ...members, session_id, ...details }, { description }))
}

const NoOutput = t.Null({ description: 'There is no output.' })

const RunCompleted = answerOf(
  'RunCompleted',
  'The run is over.',
  {
    status: t.Literal('completed', { description: 'The run has completed.' }),
    output: Described(FreeForm, '`{ text }`, or what the `output_schema` of the agent asks for.'),
  },
  { usage: Usage },
)

/** A run that ended in another way while its caller waited. */
const RunFailed = answerOf(
  'RunFailed',
  'The run ended without an output.',
  { status: Described(RunStatus, '`failed`, `cancelled` or `timed_out`.'), output: NoOutput },
  {
    error_message: Described(Nullable(t.String()), 'What went wrong.'),
    error_detail: Described(Nullable(FreeForm), 'Details; `reason` names the cause.'),
    usage: Usage,
  },
)

const AwaitingApproval = answerOf('AwaitingApproval', 'The run waits for a person to approve a call.', {
  status: t.Literal('awaiting_approval', { description: 'The run waits for an approval.' }),
  awaiting_approval: t.Object(ApprovalWait, { description: 'What it waits for.' }),
  output: NoOutput,
})

const AwaitingInput = answerOf('AwaitingInput', 'The run waits for an answer to its question.', {
  status: t.Literal('awaiting_input', { description: 'The run waits for an answer.' }),
  awaiting_input: t.Object(InputWait, { description: 'What it waits for.' }),
  output: NoOutput,
})

/** A run that continues without its caller. */
const RunContinues = answerOf('RunContinues', 'The run continues without its caller.', {
  status: RunStatus,
  output: NoOutput,
})

/** The responses to a request that starts or resumes a run, by HTTP status. */
export const RunResponses = {
  200: t.Union([RunCompleted, RunFailed], { description: 'The run is over.' }),
  202: t.Union([AwaitingApproval, AwaitingInput, RunContinues], {
    description: 'The run waits for a person, or continues in the background.',
  }),
}

export type RunResponse =
  | typeof RunCompleted.static
  | typeof RunFailed.static
  | typeof AwaitingApproval.static
  | typeof AwaitingInput.static
  | typeof RunContinues.static

/**
 * Query of `GET /api/v1/runs/:run_id/output-stream`; `after` is for clients that cannot send the header `Last-Event-ID`.
 */
export const OutputStreamQuery = t.Object(
  {
    after: t.Optional(t.String({ maxLength: 100, description: 'The `id` of the last frame received.' })),
    token: t.Optional(t.String({ description: 'A feed token, for browsers; instead of the Authorization header.' })),
  },
  { additionalProperties: false },
)
