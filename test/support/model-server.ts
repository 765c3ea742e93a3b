import type { Server } from 'bun'
import { atEnd } from './teardown.ts'

/**
 * A model server that answers what a test tells it to, over real HTTP, in the form of OpenAI's chat completions: in one
 * piece or streamed, as each request asks. It can be slow, fail, break off and misbehave as servers do.
 *
 * As a process of its own, for tests that kill the service or benchmarks:
 * `bun test/support/model-server.ts '[{"text": "Hello"}]'` prints its address and answers by {@link bySteps}.
 */
export interface ModelServer {
  /** For `OPENAI_BASE_URL`, as in `http://127.0.0.1:4711/v1`. */
  readonly url: string
  /** Requests for completions, the first first. */
  readonly requests: readonly ModelServerRequest[]
  /** Requests that the client gave up before their answer was complete. */
  readonly aborted: number
  /** Requests that are being answered. */
  readonly open: number
  /** Answers differently from the next request on. Queues start from their beginning. */
  script(script: Script): void
  stop(): Promise<void>
}

export interface ModelServerRequest {
  readonly body: RequestBody
  readonly headers: Readonly<Record<string, string>>
}

/** What a test wants to look at; the rest is there, too. */
export interface RequestBody {
  readonly model: string
  readonly messages: readonly RequestMessage[]
  readonly tools?: readonly { readonly function: { readonly name: string; readonly parameters?: unknown } }[]
  readonly stream?: boolean
  readonly stream_options?: { readonly include_usage?: boolean }
  readonly [field: string]: unknown
}

export interface RequestMessage {
  readonly role: string
  readonly content: string | null
  readonly tool_calls?: readonly { readonly id: string; readonly function: { name: string; arguments: string } }[]
  readonly tool_call_id?: string
}

/**
 * One turn for every request; a queue with a turn for each, in the order in which they come; or a function that chooses.
 * `count` is how many requests there were before. A queue that is used up answers 400, so that nobody tries again.
 */
export type Script = Turn | readonly Turn[] | ((request: ModelServerRequest, count: number) => Turn | Promise<Turn>)

/** One answer. Everything is optional: without anything it says `Hello`, and why it stopped. */
export interface Turn {
  /** An array is streamed as exactly these pieces. A text alone is cut at its spaces. */
  readonly text?: string | readonly string[]
  /** Arguments that are a text are sent as they are, malformed or not. Ids are made up unless they are given. */
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: unknown; readonly id?: string }[]
  readonly refusal?: string
  readonly finishReason?: string
  /** In tokens, input and output; null: the server never tells. Streams tell it only if asked to. Normal: 10 and 5. */
  readonly usage?: readonly [number, number] | null

  /** Milliseconds until anything is sent, and between the events of a stream. */
  readonly delayMs?: number
  readonly intervalMs?: number
  /** What a stream waits for once so many events have been sent; otherwise it goes on at its pace. */
  readonly after?: (sent: number) => Promise<unknown> | undefined
  /** Bytes of each piece in which a stream is written, wherever that cuts it. */
  readonly pieceBytes?: number

  /** Never answers. */
  readonly hangs?: boolean
  /** The connection breaks after so many events of a stream, or in the middle of an answer in one piece. */
  readonly cutAfter?: number
  /** When that is: what a client has not read by then is lost. Normal: a moment later. */
  readonly cutWhen?: Promise<unknown>
  /** The stream just stops after so many events, as if it were complete. */
  readonly stopAfter?: number
  /** Other than 200: an error in OpenAI's form, unless there is a `body`. */
  readonly status?: number
  readonly errorCode?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as it is, instead of everything else. */
  readonly body?: string
  /** The data of each event of a stream, instead of those made from the fields above; text is sent as it is. */
  readonly events?: readonly unknown[]
}

/** Of the requests, for tests that make very many. */
const REQUESTS_KEPT = 20_000

/** Starts a server on a port of its own; it ends with the last test file, at the latest. */
export function startModelServer(script: Script = {}): ModelServer {
  const state = { choose: chooser(script), requests: [] as ModelServerRequest[], count: 0, aborted: 0, open: 0 }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      if (!request.url.endsWith('/chat/completions')) return failure(404, `there is nothing at ${request.url}`)
      const body = (await request.json()) as RequestBody
      const seen = { body, headers: request.headers.toJSON() }
      if (state.requests.length < REQUESTS_KEPT) state.requests.push(seen)
      state.open += 1
      const close = once(() => {
        state.open -= 1
      })
      request.signal.addEventListener('abort', () => {
        state.aborted += 1
        close()
      })
      return answer(await state.choose(seen, state.count++), body, request.signal, close)
    },
  })
  const stop = once(() => server.stop(true))
  atEnd(stop)
  return {
    url: urlOf(server),
    requests: state.requests,
    get aborted() {
      return state.aborted
    },
    get open() {
      return state.open
    },
    script(next) {
      state.choose = chooser(next)
    },
    stop,
  }
}

/**
 * A turn for each step of an agent's run, told from the conversation: how often the model has spoken since the user did. So
 * it does not matter how often a step is asked for, in which process, or how many runs there are at once. The last turn
 * stays.
 */
export function bySteps(turns: readonly Turn[]): Script {
  return ({ body: { messages } }) => {
    const asked = messages.findLastIndex(({ role }) => role === 'user')
    const step = messages.slice(asked + 1).filter(({ role }) => role === 'assistant').length
    return turns[Math.min(step, turns.length - 1)] ?? {}
  }
}

function chooser(script: Script): (request: ModelServerRequest, count: number) => Turn | Promise<Turn> {
  if (typeof script === 'function') return script
  if (!Array.isArray(script)) return () => script as Turn
  const queue = [...script]
  return () => queue.shift() ?? { status: 400, body: errorBody('the script of the test has no more turns') }
}

async function answer(turn: Turn, asked: RequestBody, signal: AbortSignal, close: () => void): Promise<Response> {
  if (turn.hangs) return new Promise(() => {})
  if (turn.delayMs !== undefined) await Bun.sleep(turn.delayMs)
  const { status = 200, headers } = turn
  const isStream = asked.stream === true && status === 200 && turn.body === undefined
  if (isStream) return stream(turn, asked, signal, close)
  const text = turn.body ?? (status === 200 ? JSON.stringify(completion(turn, asked)) : errorBody(undefined, turn))
  if (turn.cutAfter !== undefined)
    return broken(turn, text.slice(0, text.length / 2), { 'content-type': 'application/json' }, close)
  close()
  return new Response(text, { status, headers: { 'content-type': 'application/json', ...headers } })
}

function completion(turn: Turn, asked: RequestBody): object {
  const calls = turn.toolCalls ?? []
  const text = typeof turn.text === 'object' ? turn.text.join('') : turn.text
  const content = text ?? (calls.length > 0 || turn.refusal !== undefined ? null : 'Hello')
  const message = {
    role: 'assistant',
    content,
    refusal: turn.refusal ?? null,
    ...(calls.length > 0 && { tool_calls: calls.map((call, index) => wireCall(call, index)) }),
  }
  return {
    ...head(asked, 'chat.completion'),
    choices: [{ index: 0, message, finish_reason: finishReason(turn) }],
    ...usage(turn),
  }
}

function stream(turn: Turn, asked: RequestBody, signal: AbortSignal, close: () => void): Response {
  const data = turn.events ?? chunks(turn, asked)
  const events = data.map((each) => `data: ${typeof each === 'string' ? each : JSON.stringify(each)}\n\n`)
  const headers = { 'content-type': 'text/event-stream', ...turn.headers }
  if (turn.stopAfter !== undefined) events.length = Math.min(events.length, turn.stopAfter)
  if (turn.cutAfter !== undefined) return broken(turn, events.slice(0, turn.cutAfter).join(''), headers, close)
  if (turn.intervalMs === undefined && turn.pieceBytes === undefined && turn.after === undefined) {
    close()
    return new Response(events.join(''), { headers })
  }
  const bytes = new TextEncoder().encode(events.join(''))
  const size = turn.pieceBytes
  const pieces =
    size === undefined
      ? events
      : Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
  const body = new ReadableStream({
    type: 'direct',
    async pull(controller: ReadableStreamDirectController) {
      let sent = 0
      for (const piece of pieces) {
        if (signal.aborted) return
        controller.write(piece)
        await controller.flush()
        await (turn.after?.(++sent) ?? Bun.sleep(turn.intervalMs ?? 0))
      }
      close()
      controller.close()
    },
  } as unknown as UnderlyingSource)
  return new Response(body, { headers })
}

/** What a real server would stream: the role, the text, the calls with their arguments in halves, the end, the usage. */
function chunks(turn: Turn, asked: RequestBody): unknown[] {
  const base = head(asked, 'chat.completion.chunk')
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...base,
    choices: [{ index: 0, delta, finish_reason }],
  })
  const calls = turn.toolCalls ?? []
  const isSilent = calls.length > 0 || turn.refusal !== undefined
  const text = turn.text ?? (isSilent ? [] : 'Hello')
  const pieces = typeof text === 'string' ? text.split(/(?<= )/) : text
  return [
    chunk({ role: 'assistant', content: '' }),
    ...pieces.map((content) => chunk({ content })),
    ...(turn.refusal === undefined ? [] : [chunk({ refusal: turn.refusal })]),
    ...calls.flatMap((call, index) => {
      const { function: called, ...rest } = wireCall(call, index)
      const half = called.arguments.length >> 1
      const part = (text: string, more: object = {}) =>
        chunk({
          tool_calls: [{ index, ...more, function: { ...('id' in more && { name: called.name }), arguments: text } }],
        })
      return [part('', rest), part(called.arguments.slice(0, half)), part(called.arguments.slice(half))]
    }),
    chunk({}, finishReason(turn)),
    ...(asked.stream_options?.include_usage && turn.usage !== null ? [{ ...base, choices: [], ...usage(turn) }] : []),
    '[DONE]',
  ]
}

function head(asked: RequestBody, object: string) {
  return { id: `chatcmpl-${crypto.randomUUID()}`, object, created: Math.floor(Date.now() / 1000), model: asked.model }
}

function wireCall({ name, id, arguments: given }: NonNullable<Turn['toolCalls']>[number], index: number) {
  const text = typeof given === 'string' ? given : JSON.stringify(given)
  return {
    id: id ?? `call_${crypto.randomUUID().slice(0, 8)}_${index}`,
    type: 'function',
    function: { name, arguments: text },
  }
}

function finishReason({ finishReason, toolCalls = [] }: Turn): string {
  return finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop')
}

function usage({ usage: counts = [10, 5] }: Turn): object {
  if (counts === null) return {}
  const [input, output] = counts
  return { usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output } }
}

function failure(status: number, message: string): Response {
  return new Response(errorBody(message), { status, headers: { 'content-type': 'application/json' } })
}

function errorBody(
  message = 'The script of the test wants this error',
  { errorCode = null }: { errorCode?: string | null } = {},
) {
  return JSON.stringify({ error: { message, type: 'scripted_error', param: null, code: errorCode } })
}

/** Sends a beginning and then breaks the connection. */
function broken({ cutWhen }: Turn, beginning: string, headers: Record<string, string>, close: () => void): Response {
  const body = new ReadableStream({
    async pull(controller) {
      controller.enqueue(new TextEncoder().encode(beginning))
      // So that the beginning arrives.
      await (cutWhen ?? Bun.sleep(50))
      close()
      controller.error(new Error('cut'))
    },
  })
  return new Response(body, { headers })
}

function urlOf(server: Server<undefined>): string {
  return `http://127.0.0.1:${server.port}/v1`
}

function once<T>(run: () => T): () => T {
  let result: { readonly of: T } | undefined
  return () => {
    result ??= { of: run() }
    return result.of
  }
}

if (import.meta.main) {
  const { url } = startModelServer(bySteps(JSON.parse(process.argv[2] ?? '[{}]')))
  process.stdout.write(`model server at ${url}\n`)
}
