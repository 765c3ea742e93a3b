import type { JsonObject } from '../../../client/json.ts'
import { CliError } from '../../shared/error.ts'
import type { Random } from '../random.ts'
import { type ChatMessage, type Reply, replyTo } from './script.ts'

/**
 * A model for the hosted agents of the demo, behind OpenAI's chat completions, and the web services that their tools call. It
 * listens on this machine only.
 */
export interface ModelServer {
  /** For `OPENAI_BASE_URL`. */
  readonly modelUrl: string
  readonly toolsUrl: string
  /** For `EGRESS_ALLOW`. */
  readonly host: string
  /** How many answers the model has given. */
  readonly answers: number
  stop(): Promise<void>
}

interface ModelServerOptions {
  readonly port: number
  readonly random: Random
  /** Waits while the model thinks. For runs of the past, the demo moves its clock instead. */
  readonly pass: (ms: number) => Promise<void>
}

interface Asked {
  readonly messages: readonly ChatMessage[]
  readonly stream?: boolean
  readonly stream_options?: { readonly include_usage?: boolean }
}

/** The model that answers, as providers name the one behind an alias. It has a list price. */
const ANSWERING = 'gpt-5-mini'
const TYPICAL_MS = 900
const WORD_MS = 35
const CHARACTERS_PER_TOKEN = 4
/** Providers cache prefixes in steps of this many tokens. */
const CACHE_STEP = 128
const BODY_BYTES_MAX = 2 ** 20
const HOSTNAME = '127.0.0.1'

/** @throws CliError when the port is in use */
export function startModelServer(options: ModelServerOptions): ModelServer {
  let answers = 0
  const fetch = async (request: Request): Promise<Response> => {
    const url = new URL(request.url)
    if (url.pathname.startsWith('/tools/')) return Response.json(toolResult(url, options.random))
    if (url.pathname !== '/v1/chat/completions')
      return Response.json({ error: { message: 'not found' } }, { status: 404 })
    const asked = (await request.json()) as Asked
    answers++
    await options.pass(options.random.latencyMs(TYPICAL_MS))
    return answer(asked, options)
  }
  const server = serve(options.port, fetch)
  const host = `${HOSTNAME}:${server.port}`
  return {
    modelUrl: `http://${host}/v1`,
    toolsUrl: `http://${host}/tools`,
    host,
    get answers() {
      return answers
    },
    stop: () => server.stop(true),
  }
}

function serve(port: number, fetch: (request: Request) => Promise<Response>) {
  try {
    return Bun.serve({ hostname: HOSTNAME, port, development: false, maxRequestBodySize: BODY_BYTES_MAX, fetch })
  } catch (error) {
    if ((error as { code?: string }).code !== 'EADDRINUSE') throw error
    throw new CliError(`port ${port} is in use, perhaps by another demo: choose another --model-port`)
  }
}

function answer({ messages, stream = false, stream_options }: Asked, options: ModelServerOptions): Response {
  const { text, calls = [] } = replyTo(messages)
  const id = `chatcmpl-${options.random.int(1e9, 9e9).toString(36)}`
  const tool_calls = calls.map((call, index) => ({
    index,
    id: `${id.replace('chatcmpl', 'call')}_${index}`,
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
  }))
  const finish_reason = calls.length > 0 ? 'tool_calls' : 'stop'
  const usage = usageOf(messages, { text: text ?? '', calls })
  const head = { id, created: 1, model: ANSWERING }
  const message = { role: 'assistant', content: text ?? null, ...(calls.length > 0 && { tool_calls }) }
  if (!stream)
    return Response.json({ ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage })
  const chunk = (delta: JsonObject, reason: string | null = null) => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason: reason }],
  })
  const words = (text ?? '').split(/(?<= )/).map((content) => chunk({ content }))
  const rest = [
    ...(calls.length > 0 ? [chunk({ tool_calls })] : []),
    chunk({}, finish_reason),
    ...(stream_options?.include_usage === true ? [{ ...head, choices: [], usage }] : []),
  ]
  return streamOf([chunk({ role: 'assistant', content: '' }), ...words, ...rest], options.pass)
}

function usageOf(messages: readonly ChatMessage[], reply: Reply) {
  const prompt_tokens = Math.ceil(JSON.stringify(messages).length / CHARACTERS_PER_TOKEN) + 420
  const completion_tokens = Math.ceil(JSON.stringify(reply).length / CHARACTERS_PER_TOKEN) + 8
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: { cached_tokens: Math.floor(prompt_tokens / CACHE_STEP / 2) * CACHE_STEP },
  }
}

function streamOf(chunks: readonly object[], pass: ModelServerOptions['pass']): Response {
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      for (const chunk of chunks) {
        controller.enqueue(encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`))
        await pass(WORD_MS)
      }
      controller.enqueue(encoder.encode('data: [DONE]\n\n'))
      controller.close()
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

const CITIES = ['Leipzig', 'Rotterdam', 'Lyon', 'Malmö', 'Graz']

/** The web services of the shop. */
function toolResult({ pathname, searchParams }: URL, random: Random): JsonObject {
  switch (pathname) {
    case '/tools/orders':
      return {
        order: searchParams.get('order'),
        state: 'delivered',
        city: random.pick(CITIES),
        paid_with: 'card',
        refunds: [],
      }
    case '/tools/customers':
      return {
        email: searchParams.get('email'),
        since: 2000 + random.int(16, 25),
        orders: random.int(1, 14),
        open_orders: 0,
      }
    case '/tools/geometry':
      return {
        frame: searchParams.get('frame'),
        sizes: { S: { reach: 372 }, M: { reach: 384 }, L: { reach: 396 }, XL: { reach: 408 } },
      }
    case '/tools/refunds':
      return { refund: `RF-${random.int(10_000, 99_999)}`, state: 'paid out' }
    default:
      return { done: true, register: `D-${random.int(1_000, 9_999)}` }
  }
}
