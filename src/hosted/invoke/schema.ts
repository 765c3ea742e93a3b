import { t } from 'elysia'
import { Body, FreeForm, Nullable, Text, Timestamp, Uuid } from '../../http/schema.ts'
import { RUN_STATUSES } from '../../runs/state.ts'

/** What of an invocation goes over the wire (docs/specification.md#invoke). */

const NO_DEFAULT = { default: undefined }
const HISTORY_MAX = 2_000
const MESSAGE_LENGTH_MAX = 1_000_000
const VARIABLES_MAX = 500

const HistoryMessage = Body({
  role: t.UnionEnum(['user', 'assistant'], NO_DEFAULT),
  content: Text({ maxLength: MESSAGE_LENGTH_MAX }),
})

/** How the answer to a call that drives a run is given. */
export const answering = {
  stream: t.Optional(t.Boolean({ description: 'Answers with an event stream.' })),
  background: t.Optional(t.Boolean({ description: 'Answers 202 at once; the run goes on by itself.' })),
}

/** Body of `POST /api/v1/agents/:agentId/invoke`. */
export const InvokeAgent = Body({
  input: t.Optional(FreeForm),
  prompt_variables: t.Optional(
    t.Record(t.String(), Text({ maxLength: MESSAGE_LENGTH_MAX }), {
      maxProperties: VARIABLES_MAX,
      description: 'Fills `{{KEY}}` placeholders in the prompt of the agent.',
    }),
  ),
  session_id: t.Optional(Uuid),
  start_session: t.Optional(t.Boolean()),
  external_user_id: t.Optional(t.String({ description: 'Only together with session_id or start_session.' })),
  history: t.Optional(t.Array(HistoryMessage, { maxItems: HISTORY_MAX })),
  parent_run_id: t.Optional(Uuid),
  ...answering,
})
export type InvokeAgent = typeof InvokeAgent.static

const RunStatusName = t.UnionEnum(RUN_STATUSES, NO_DEFAULT)
const Usage = t.Object({ input_tokens: t.Integer(), output_tokens: t.Integer(), total_tokens: t.Integer() })

export const RunCompleted = t.Object({
  run_id: Uuid,
  status: t.Literal('completed'),
  output: FreeForm,
  session_id: Nullable(Uuid),
  usage: Usage,
})

/** A run that ended otherwise while its caller waited. */
export const RunFailed = t.Object({
  run_id: Uuid,
  status: RunStatusName,
  output: t.Null(),
  session_id: Nullable(Uuid),
  error_message: Nullable(t.String()),
  error_detail: Nullable(FreeForm),
  usage: Usage,
})

export const AwaitingApproval = t.Object({
  run_id: Uuid,
  status: t.Literal('awaiting_approval'),
  awaiting_approval: t.Object({
    approval_id: Uuid,
    tool: t.String(),
    input: FreeForm,
    expires_at: Nullable(Timestamp),
  }),
  output: t.Null(),
  session_id: Nullable(Uuid),
})

export const AwaitingInput = t.Object({
  run_id: Uuid,
  status: t.Literal('awaiting_input'),
  awaiting_input: t.Object({
    request_id: Uuid,
    question: t.String(),
    options: t.Optional(t.Array(t.String())),
    expires_at: Nullable(Timestamp),
  }),
  output: t.Null(),
  session_id: Nullable(Uuid),
})

/** A run that goes on without its caller. */
export const RunGoesOn = t.Object({
  run_id: Uuid,
  status: RunStatusName,
  output: t.Null(),
  session_id: Nullable(Uuid),
})

const STREAM = { description: 'With `stream`: frames with `id`, `event` and JSON `data`, as a text/event-stream.' }

/** What a call that drives a run answers, by HTTP status. */
export const RunResponses = {
  200: t.Union([RunCompleted, RunFailed], STREAM),
  202: t.Union([AwaitingApproval, AwaitingInput, RunGoesOn]),
}

export type RunResponse =
  | typeof RunCompleted.static
  | typeof RunFailed.static
  | typeof AwaitingApproval.static
  | typeof AwaitingInput.static
  | typeof RunGoesOn.static

/** Query of `GET /api/v1/runs/:runId/output-stream`: the header `Last-Event-ID`, or `after`, where none can be sent. */
export const OutputStreamQuery = t.Object(
  {
    after: t.Optional(t.String({ maxLength: 100, description: 'The `id` of the last frame that was seen.' })),
    token: t.Optional(t.String({ description: 'A feed token, for browsers; instead of the Authorization header.' })),
  },
  { additionalProperties: false },
)
