import { batch, signal } from '@preact/signals'
import { createParser } from 'eventsource-parser'
import { parseIntact } from '../../../base/intact-json.ts'
import type { Api } from './api.ts'
import type { Schemas } from './records.ts'
import type { NamedPause } from './waiting.ts'

/** A part of what a hosted run says and does. */
export type TranscriptEntry =
  | { readonly type: 'text'; readonly key: string; readonly text: string }
  | ({ readonly type: 'call'; readonly key: string } & ToolFrame)

type ToolFrame = Omit<Schemas['OutputTool'], 'run_id'>

/** A frame of the output of a run (docs/hosted-agents.md#output-streams). */
interface OutputFrame {
  readonly run_id: string
  readonly session_id?: string | null
}

const EVENTS = ['chunk', 'tool', 'awaiting_approval', 'awaiting_input', 'done', 'error']
/** For runs that wait longer, the run's own page shows the output. */
const FOLLOWED_SECONDS_MAX = 3_600

/** The output of a hosted run as it is made: text, tool calls, what it waits for, and how it ends. */
export class Transcript {
  readonly entries = signal<readonly TranscriptEntry[]>([])
  readonly status = signal('queued')
  readonly wait = signal<NamedPause | null>(null)
  readonly output = signal<unknown>(undefined)
  readonly problem = signal<string | null>(null)
  readonly runId = signal<string | null>(null)
  readonly sessionId = signal<string | null>(null)
  /** The id of the last frame of a response. */
  private lastFrame = ''

  get isOver(): boolean {
    return this.output.value !== undefined || this.problem.value !== null
  }

  /** The server-sent events of a response; resolves when it ends. */
  async read(response: Response): Promise<void> {
    const parser = createParser({
      onEvent: ({ event = '', data, id = '' }) => {
        if (id !== '') this.lastFrame = id
        this.take(event, data)
      },
    })
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    for (let chunk = await reader?.read(); chunk?.done === false; chunk = await reader?.read()) parser.feed(chunk.value)
  }

  /**
   * Follows the output stream of a run from the last frame that was read, or from its beginning; the browser reconnects by
   * itself until the run is over or `signal` aborts. @throws ApiFailure
   */
  async follow(api: Api, runId: string, signal: AbortSignal): Promise<void> {
    this.runId.value = runId
    // Browsers cannot send headers with an event stream.
    const request = { run_id: runId, ttl_seconds: FOLLOWED_SECONDS_MAX }
    const { token } = await api.read<{ token: string }>('/api/v1/feed-tokens', request, signal)
    if (signal.aborted) return
    let source = this.open(runId, token)
    signal.addEventListener('abort', () => source.close())
    this.resume = () => {
      source.close()
      if (!signal.aborted) source = this.open(runId, token)
    }
  }

  /** Reads on at once after a decision: the stream ends at a pause, and the browser waits before it connects again. */
  resume: () => void = () => {}

  private open(runId: string, token: string): EventSource {
    const query = new URLSearchParams({ token, ...(this.lastFrame !== '' && { after: this.lastFrame }) })
    const source = new EventSource(`/api/v1/runs/${runId}/output-stream?${query}`)
    for (const name of EVENTS) {
      source.addEventListener(name, (message) => {
        // The browser also fires `error` for a broken connection; that event has no data.
        if (!(message instanceof MessageEvent)) return
        this.lastFrame = message.lastEventId
        this.take(name, message.data)
        if (name === 'done' || name === 'error') source.close()
      })
    }
    return source
  }

  private take(event: string, data: string): void {
    const frame = parseIntact(data) as OutputFrame
    batch(() => {
      this.runId.value = frame.run_id
      if (frame.session_id) this.sessionId.value = frame.session_id
      if (event !== 'awaiting_approval' && event !== 'awaiting_input') this.wait.value = null
      if (event === 'chunk' || event === 'tool') this.status.value = 'running'
      if (event === 'chunk') this.write(frame as Schemas['OutputChunk'])
      if (event === 'tool') this.showCall(frame as Schemas['OutputTool'])
      if (event === 'awaiting_approval') {
        const { approval_id: id } = frame as Schemas['OutputAwaitingApproval']
        this.pause(event, { kind: 'approvals', id })
      }
      if (event === 'awaiting_input') {
        const { request_id: id } = frame as Schemas['OutputAwaitingInput']
        this.pause(event, { kind: 'input-requests', id })
      }
      if (event === 'done') {
        this.status.value = 'completed'
        this.output.value = (frame as Schemas['OutputDone']).output ?? null
      }
      if (event === 'error') {
        const { status, message } = frame as Schemas['OutputError']
        this.status.value = status
        this.problem.value = message
      }
    })
  }

  private pause(status: string, wait: NamedPause): void {
    this.status.value = status
    this.wait.value = wait
  }

  /** A smaller offset retracts the text from there on: the model was asked again. */
  private write({ step, offset, delta }: Schemas['OutputChunk']): void {
    const key = `text ${step}`
    const at = this.entries.value.findIndex((entry) => entry.key === key)
    const known = this.entries.value[at]
    if (known?.type !== 'text') {
      this.entries.value = [...this.entries.value, { type: 'text', key, text: delta }]
      return
    }
    this.entries.value = this.entries.value.with(at, { ...known, text: known.text.slice(0, offset) + delta })
  }

  private showCall(frame: ToolFrame): void {
    // Models reuse the ids of calls: `started` always begins another one.
    const at =
      frame.phase === 'started'
        ? -1
        : this.entries.value.findLastIndex(
            (entry) => entry.type === 'call' && entry.tool_call_id === frame.tool_call_id,
          )
    const known = this.entries.value[at]
    if (known === undefined) {
      const key = `call ${this.entries.value.length}`
      this.entries.value = [...this.entries.value, { ...frame, type: 'call', key }]
    } else this.entries.value = this.entries.value.with(at, { ...known, ...frame, key: known.key } as TranscriptEntry)
  }
}

/** Whether the output repeats the streamed text: that of an agent without an output schema. */
export function isSaid(output: unknown): boolean {
  return typeof output === 'object' && output !== null && Object.keys(output).join() === 'text'
}
