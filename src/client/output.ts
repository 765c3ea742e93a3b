import { type SseEvent, sseEvents } from './event-stream.ts'
import type { components } from './generated/api.ts'
import type { Http } from './http.ts'

type Schemas = components['schemas']

/** A part of the output of a hosted run (docs/specification.md#output-streams). */
export type OutputFrame = { readonly id: string } & (
  | { readonly event: 'chunk'; readonly data: Schemas['OutputChunk'] }
  | { readonly event: 'tool'; readonly data: Schemas['OutputTool'] }
  | { readonly event: 'done'; readonly data: Schemas['OutputDone'] }
  | { readonly event: 'awaiting_approval'; readonly data: Schemas['OutputAwaitingApproval'] }
  | { readonly event: 'awaiting_input'; readonly data: Schemas['OutputAwaitingInput'] }
  | { readonly event: 'error'; readonly data: Schemas['OutputError'] }
)

export interface OutputOptions {
  /** The `id` of a frame. Default: from the beginning. */
  readonly after?: string | undefined
  /** Ends the stream. */
  readonly signal?: AbortSignal | undefined
}

/**
 * The output of a run, as it is produced. A pause is a frame. Reading on after it continues if the pause has been decided by
 * then, and otherwise ends the stream.
 */
export async function* output(
  http: Http,
  runId: string,
  { after, signal }: OutputOptions,
): AsyncGenerator<OutputFrame> {
  const path = `/api/v1/runs/${encodeURIComponent(runId)}`
  // A stream also ends when the service stops.
  const isOver = async (last: SseEvent | undefined) =>
    (last !== undefined && ['done', 'error'].includes(last.event)) || !(await isExecuting(http, path))
  let from = after
  let pause: string | undefined
  for (let isPaused = true; isPaused; ) {
    isPaused = false
    for await (const { id, event, data } of sseEvents(http, {
      path: `${path}/output-stream`,
      after: from,
      signal,
      isOver,
    })) {
      isPaused = event === 'awaiting_approval' || event === 'awaiting_input'
      // A pause is sent again for as long as it has not been decided.
      if (isPaused && data === pause) return
      if (isPaused) pause = data
      from = id ?? from
      yield { id: id ?? '', event, data: JSON.parse(data) } as OutputFrame
      if (isPaused) break
    }
  }
}

async function isExecuting(http: Http, path: string): Promise<boolean> {
  const { status } = (await http.call({ path })) as Schemas['Run']
  return status === 'queued' || status === 'running'
}
