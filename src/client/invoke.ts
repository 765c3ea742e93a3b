import { type Frame, frames } from './event-stream.ts'
import type { components } from './generated/api.ts'
import type { Http } from './http.ts'
import { uuidv7 } from './ids.ts'
import type { JsonObject } from './json.ts'

type Schemas = components['schemas']

/** How a hosted run stands when the call returns: `status` says which it is. */
export type Outcome =
  | Schemas['RunCompleted']
  | Schemas['RunFailed']
  | Schemas['AwaitingApproval']
  | Schemas['AwaitingInput']
  | Schemas['RunContinues']

/** A part of the output of a hosted run (docs/specification.md#output-streams). */
export type OutputFrame = { readonly id: string } & (
  | { readonly event: 'chunk'; readonly data: Schemas['OutputChunk'] }
  | { readonly event: 'tool'; readonly data: Schemas['OutputTool'] }
  | { readonly event: 'done'; readonly data: Schemas['OutputDone'] }
  | { readonly event: 'awaiting_approval'; readonly data: Schemas['OutputAwaitingApproval'] }
  | { readonly event: 'awaiting_input'; readonly data: Schemas['OutputAwaitingInput'] }
  | { readonly event: 'error'; readonly data: Schemas['OutputError'] }
)

export interface InvokeOptions {
  readonly promptVariables?: Readonly<Record<string, string>> | undefined
  readonly sessionId?: string | undefined
  readonly startSession?: boolean | undefined
  readonly externalUserId?: string | undefined
  readonly history?: readonly Schemas['HistoryMessage'][] | undefined
  readonly parentRunId?: string | undefined
  /** Return at once; the run continues. */
  readonly background?: boolean | undefined
  /** Return the output while it is made. */
  readonly stream?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

export interface DecisionOptions {
  /** The reason; stored, and passed to the model after a rejection. */
  readonly comment?: string | undefined
  /** Arguments to call the tool with instead of those shown. */
  readonly editedInput?: JsonObject | undefined
  readonly background?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

export interface OutputOptions {
  /** The `id` of a frame. Default: from the beginning. */
  readonly after?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** Runs a hosted agent. A lost response is asked for again under the same key, so that the agent runs once. */
export async function invoke(http: Http, agentId: string, input: unknown, options: InvokeOptions): Promise<Outcome> {
  const body = {
    input,
    prompt_variables: options.promptVariables,
    session_id: options.sessionId,
    start_session: options.startSession,
    external_user_id: options.externalUserId,
    history: options.history,
    parent_run_id: options.parentRunId,
    background: options.background,
  }
  return outcomeOf(http, `/api/v1/agents/${encodeURIComponent(agentId)}/invoke`, body, options.signal)
}

/** A call that starts or resumes a run, and may take as long as the run. */
export async function outcomeOf(http: Http, path: string, body: object, signal?: AbortSignal): Promise<Outcome> {
  const call = { path, body, signal, idempotencyKey: uuidv7(), mayTakeLong: true }
  return (await http.call(call)) as Outcome
}

/**
 * The output of a run, as it is made. A pause is a frame; asked for more, it continues once the pause was decided, and ends
 * if it was not.
 */
export async function* output(
  http: Http,
  runId: string,
  { after, signal }: OutputOptions,
): AsyncGenerator<OutputFrame> {
  const path = `/api/v1/runs/${encodeURIComponent(runId)}`
  // A stream also ends when the service stops.
  const isOver = async (last: Frame | undefined) =>
    (last !== undefined && ['done', 'error'].includes(last.event)) || !(await isExecuting(http, path))
  let from = after
  let pause: string | undefined
  for (let isPaused = true; isPaused; ) {
    isPaused = false
    for await (const frame of frames(http, { path: `${path}/output-stream`, after: from, signal, isOver })) {
      isPaused = frame.event === 'awaiting_approval' || frame.event === 'awaiting_input'
      // A pause is sent again for as long as it has not been decided.
      if (isPaused && frame.data === pause) return
      if (isPaused) pause = frame.data
      from = frame.id ?? from
      yield { id: frame.id ?? '', event: frame.event, data: JSON.parse(frame.data) } as OutputFrame
      if (isPaused) break
    }
  }
}

async function isExecuting(http: Http, path: string): Promise<boolean> {
  const { status } = (await http.call({ path })) as Schemas['Run']
  return status === 'queued' || status === 'running'
}

/** Runs a hosted agent and returns its output as it is made. The run is started first, so that no lost connection starts two. */
export async function* invokeStream(
  http: Http,
  agentId: string,
  input: unknown,
  options: InvokeOptions,
): AsyncGenerator<OutputFrame> {
  const { run_id } = await invoke(http, agentId, input, { ...options, background: true })
  yield* output(http, run_id, { signal: options.signal })
}
