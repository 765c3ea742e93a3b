import type { Api } from './api.ts'
import { h, setText, textBlock } from './dom.ts'
import { duration, shortId, words } from './format.ts'
import { parseIntact, plain, pretty } from './json.ts'
import { hrefOf, type PauseKind } from './pause.ts'

export interface RunOutputDeps {
  readonly api: Api
  readonly runId: string
  readonly signal: AbortSignal
}

interface Chunk {
  readonly delta: string
  readonly step: number
  readonly offset: number
}

interface ToolFrame {
  readonly tool_call_id: string
  readonly name: string
  readonly phase: string
  readonly input?: unknown
  readonly output?: unknown
  readonly duration_ms?: number
}

/** For runs that wait longer, the run's own page shows the output. */
const FOLLOWED_SECONDS_MAX = 3_600

/** The live output of a hosted run: text, tool calls, what it waits for, and how it ends. */
export function runOutput({ api, runId, signal }: RunOutputDeps): HTMLElement {
  const status = h('span')
  const waits = h('p', { class: 'waits', hidden: true })
  const problem = h('p', { class: 'problem', role: 'alert' })
  const output = textBlock('Output')
  const transcript = createTranscript()
  const say = (state: string) => {
    setText(status, words(state))
    status.className = `status ${state}`
    waits.hidden = true
  }
  output.element.hidden = true
  say('queued')

  function wait(state: 'awaiting_approval' | 'awaiting_input', kind: PauseKind, id: string, what: string): void {
    say(state)
    waits.hidden = false
    waits.replaceChildren(`${what} `, h('a', { href: hrefOf(kind, id) }, 'Review'))
  }

  const take: Readonly<Record<string, (data: never) => void>> = {
    chunk(data: Chunk) {
      say('running')
      transcript.write(data)
    },
    tool(data: ToolFrame) {
      say('running')
      transcript.showCall(data)
    },
    // The stream ends here; the browser reconnects every few seconds, and receives the rest after the decision.
    awaiting_approval({ approval_id, tool }: { approval_id: string; tool: string }) {
      wait('awaiting_approval', 'approvals', approval_id, `Waiting for approval to call ${tool}.`)
    },
    awaiting_input({ request_id, question }: { request_id: string; question: string }) {
      wait('awaiting_input', 'input-requests', request_id, question)
    },
    done({ output: value }: { output: unknown }) {
      say('completed')
      output.element.hidden = isSaid(value)
      output.show(pretty(value))
    },
    error({ message, status: ending }: { message: string; status: string }) {
      say(ending)
      setText(problem, message)
    },
  }
  const onLost = () => setText(problem, 'The live output has stopped; open the run to see the rest.')
  void follow({ api, runId, signal }, take, onLost).catch((error: Error) => setText(problem, error.message))
  const run = h('a', { href: `#/runs/${runId}` }, `run ${shortId(runId)}`)
  return h(
    'div',
    { class: 'output' },
    h('div', { class: 'title' }, status, run),
    transcript.element,
    output.element,
    waits,
    problem,
  )
}

/**
 * Follows the output stream, which reconnects and resumes by itself until the run is over or `signal` aborts. `onLost`
 * is called if it cannot reconnect.
 */
async function follow(
  { api, runId, signal }: RunOutputDeps,
  take: Readonly<Record<string, (data: never) => void>>,
  onLost: () => void,
): Promise<void> {
  // Browsers cannot send headers with an event stream.
  const request = { run_id: runId, ttl_seconds: FOLLOWED_SECONDS_MAX }
  const { token } = await api.post<{ token: string }>('/api/v1/feed-tokens', request)
  if (signal.aborted) return
  const source = new EventSource(`/api/v1/runs/${runId}/output-stream?token=${token}`)
  signal.addEventListener('abort', () => source.close())
  const tellIfLost = () => {
    if (source.readyState === EventSource.CLOSED) onLost()
  }
  for (const [event, handle] of Object.entries(take)) {
    source.addEventListener(event, (message) => {
      // The browser also fires `error` for a broken connection; that event has no data.
      if (!(message instanceof MessageEvent)) return tellIfLost()
      handle(parseIntact(message.data) as never)
      if (event === 'done' || event === 'error') source.close()
    })
  }
}

/** Whether the output has already been shown: the streamed text of an agent without an output schema. */
function isSaid(output: unknown): boolean {
  return Object.keys(output as object).join() === 'text'
}

function createTranscript() {
  const element = h('ol', { class: 'transcript', 'aria-live': 'polite' })
  const texts = new Map<number, Text>()
  const calls = new Map<string, ReturnType<typeof callItem>>()
  return {
    element,
    /** A smaller offset retracts the text from there on: the model was asked again. */
    write({ step, offset, delta }: Chunk): void {
      let text = texts.get(step)
      if (text === undefined) {
        text = new Text()
        texts.set(step, text)
        element.append(h('li', { class: 'said' }, text))
      }
      text.replaceData(offset, text.length - offset, delta)
    },
    showCall(frame: ToolFrame): void {
      // Models reuse call ids: `started` always begins another call.
      let call = frame.phase === 'started' ? undefined : calls.get(frame.tool_call_id)
      if (call === undefined) {
        call = callItem(frame.name)
        calls.set(frame.tool_call_id, call)
        element.append(call.element)
      }
      call.show(frame)
    },
  }
}

function callItem(tool: string) {
  const status = h('span')
  const took = h('span', { class: 'hint' })
  const input = textBlock('Arguments')
  const output = textBlock('Answer')
  const bodies = h('div', { class: 'bodies' }, input.element, output.element)
  input.element.hidden = output.element.hidden = true
  return {
    element: h('li', {}, h('details', {}, h('summary', {}, h('span', { class: 'name' }, tool), status, took), bodies)),
    show({ phase, input: given, output: result, duration_ms }: ToolFrame): void {
      setText(status, words(phase))
      status.className = `status ${CLASS_OF[phase] ?? ''}`
      setText(took, duration_ms === undefined ? '' : duration(duration_ms))
      if (given !== undefined) input.show(plain(given))
      if (result !== undefined) output.show(pretty(result))
      input.element.hidden &&= given === undefined
      output.element.hidden &&= result === undefined
    },
  }
}

const CLASS_OF: Readonly<Record<string, string>> = { started: 'running', finished: 'completed', failed: 'failed' }
