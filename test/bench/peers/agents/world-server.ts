import { TOOL_NAMES } from './agent-peer.ts'

/*
 * What every agent of the comparison calls, in a process that is never killed: a model that follows a script, with
 * OpenAI's chat completions, and the two tools, which count their calls. Prints its port.
 *
 * The script: call `charge`; then `ship`, which needs a person's approval; then answer. The user's message names the
 * order: it identifies the run, and so each of its tool calls.
 */

interface Message {
  readonly role: string
  readonly content: string | null
}

/** What a tool received for an order: the Idempotency-Key of each call, oldest first. */
type Received = Readonly<Record<string, readonly string[]>>

const USAGE = { prompt_tokens: 42, completion_tokens: 12, total_tokens: 54 }

const orders = new Map<string, Received>()
const delays = { modelMs: 0, toolMs: 0 }

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  development: false,
  routes: {
    '/v1/chat/completions': async (request) => {
      const { messages, model } = (await request.json()) as { messages: Message[]; model: string }
      if (delays.modelMs > 0) await Bun.sleep(delays.modelMs)
      return Response.json(completion(messages, model))
    },
    '/tools/:name': async (request) => {
      const { order } = (await request.json()) as { order: string }
      // A call counts when it arrives: that is when the world is changed.
      const { [request.params.name]: keys = [], ...others } = orders.get(order) ?? {}
      const key = request.headers.get('idempotency-key') ?? ''
      orders.set(order, { ...others, [request.params.name]: [...keys, key] })
      if (delays.toolMs > 0) await Bun.sleep(delays.toolMs)
      return Response.json({ done: true })
    },
    '/delays': async (request) => {
      Object.assign(delays, await request.json())
      return Response.json(delays)
    },
    '/orders': () => Response.json(Object.fromEntries(orders)),
  },
})
process.stdout.write(`${server.port}\n`)

function completion(messages: readonly Message[], model: string) {
  const order = messages.find(({ role }) => role === 'user')!.content
  const tool = TOOL_NAMES[messages.filter(({ role }) => role === 'tool').length]
  const answer = { role: 'assistant', content: 'The order is on its way.', refusal: null }
  // As with real models, a repeated request gets a call with another id.
  const call = { id: `call_${Bun.randomUUIDv7()}`, type: 'function' }
  const choice =
    tool === undefined
      ? { message: answer, finish_reason: 'stop' }
      : {
          message: {
            ...answer,
            content: null,
            tool_calls: [{ ...call, function: { name: tool, arguments: JSON.stringify({ order }) } }],
          },
          finish_reason: 'tool_calls',
        }
  const head = { id: 'chatcmpl-peers', object: 'chat.completion', created: 1_767_225_600, model }
  return { ...head, choices: [{ index: 0, ...choice }], usage: USAGE }
}
