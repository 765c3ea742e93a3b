import { t } from 'elysia'
import { PauseExpiry, QuestionOptions, RunStatus } from '../../activity/runs/schema.ts'
import { Usage } from '../../activity/runs/usage-schema.ts'
import { Count, Described, FreeForm, Named, Nullable, OneOf, Uuid } from '../../base/http/schema.ts'

/** The `data` of the frames of an output stream (docs/hosted-agents.md#output-streams); for the documentation. */

export const ApprovalWait = {
  approval_id: Described(Uuid, 'The approval to decide.'),
  tool: t.String({ description: 'The tool to be called.' }),
  input: Described(FreeForm, 'The arguments of the call.'),
  expires_at: PauseExpiry,
}

export const InputWait = {
  request_id: Described(Uuid, 'The input request to answer.'),
  question: t.String({ description: 'What the model asks.' }),
  options: QuestionOptions,
  expires_at: PauseExpiry,
}

const run_id = Described(Uuid, 'The run.')

/** By `event`. */
const OUTPUT_FRAMES = {
  chunk: Named(
    'OutputChunk',
    t.Object(
      {
        run_id,
        delta: t.String({ description: 'The text that follows.' }),
        step: Count('The model call that it belongs to, from 1.'),
        offset: Count(
          'Characters of this step before `delta`. If it is smaller than expected, the text from there on is retracted.',
        ),
      },
      { description: 'Text that the model writes.' },
    ),
  ),
  tool: Named(
    'OutputTool',
    t.Object(
      {
        run_id,
        tool_call_id: t.String({ description: 'The call, as the model names it.' }),
        name: t.String({ description: 'The tool.' }),
        phase: OneOf(['started', 'finished', 'failed'], 'State of the call.'),
        input: t.Optional(Described(FreeForm, 'The arguments; with `started`.')),
        output: t.Optional(t.Unknown({ description: 'The result of the tool; with `finished` and `failed`.' })),
        duration_ms: t.Optional(Count('How long the call took.')),
      },
      { description: 'A call of a tool.' },
    ),
  ),
  done: Named(
    'OutputDone',
    t.Object(
      {
        run_id,
        output: Described(FreeForm, 'The output of the run.'),
        session_id: Described(Nullable(Uuid), 'The session in use; null without one.'),
        status: t.Literal('completed', { description: 'The run has completed.' }),
        usage: Usage,
      },
      { description: 'The run has completed; the stream ends.' },
    ),
  ),
  awaiting_approval: Named(
    'OutputAwaitingApproval',
    t.Object({ run_id, ...ApprovalWait }, { description: 'The run waits for an approval; the stream ends.' }),
  ),
  awaiting_input: Named(
    'OutputAwaitingInput',
    t.Object({ run_id, ...InputWait }, { description: 'The run waits for an answer; the stream ends.' }),
  ),
  error: Named(
    'OutputError',
    t.Object(
      {
        run_id,
        code: t.String({ description: 'The `reason` of `error_detail`, or the status.' }),
        message: t.String({ description: 'What went wrong, in one sentence.' }),
        status: Described(RunStatus, 'How the run ended.'),
        usage: Usage,
      },
      { description: 'The run ended without an output; the stream ends.' },
    ),
  ),
}

/** The 200 response of a route that returns an output stream. */
export const OUTPUT_STREAM = {
  description: 'Frames with `id`, `event` and `data`; `x-event-stream` has the schema of the data of each event.',
  content: { 'text/event-stream': { schema: { type: 'string' as const }, 'x-event-stream': OUTPUT_FRAMES } },
}
