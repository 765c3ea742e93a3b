import { atEnd } from './teardown.ts'

/** A call that the tool server received. */
export interface ToolServerCall {
  /** The tool's name: the last part of its URL. */
  readonly tool: string
  readonly key: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
  readonly input: any
  /** The arguments as received. */
  readonly text: string
  /** Whether it has been answered. */
  isAnswered: boolean
}

/** The server of `http` tools, over real HTTP. It records every call, and answers as the test says. */
export interface ToolServer {
  /** Oldest first. */
  readonly calls: readonly ToolServerCall[]
  /** The definition of a tool of this server, for the settings of an agent. */
  tool(name: string, settings?: object): object
  /** The URL of the tool with this name. */
  urlOf(name: string): string
  /** Calls that the service aborted before they were answered. */
  readonly aborted: number
  of(tool: string): readonly ToolServerCall[]
  /** Distinct calls: those with the same Idempotency-Key count once. */
  effects(tool: string): number
}

const PARAMETERS = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }

/** @param answer returns the JSON response to a call; a Response is sent unchanged */
export function startToolServer(
  answer: (call: ToolServerCall) => unknown = ({ input }) => ({ took: input }),
): ToolServer {
  const calls: ToolServerCall[] = []
  let aborted = 0
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      const tool = new URL(request.url).pathname.slice(1)
      const key = request.headers.get('idempotency-key') ?? ''
      const text = await request.text()
      const call: ToolServerCall = { tool, key, input: JSON.parse(text), text, isAnswered: false }
      calls.push(call)
      request.signal.addEventListener('abort', () => {
        if (!call.isAnswered) aborted += 1
      })
      const reply = await answer(call)
      call.isAnswered = true
      return reply instanceof Response ? reply : Response.json(reply ?? null)
    },
  })
  atEnd(() => server.stop(true))
  const urlOf = (name: string) => `http://127.0.0.1:${server.port}/${name}`
  const of = (tool: string) => calls.filter((call) => call.tool === tool)
  return {
    calls,
    get aborted() {
      return aborted
    },
    of,
    urlOf,
    tool: (name, settings = {}) => ({
      type: 'http',
      name,
      description: `does ${name}`,
      method: 'POST',
      url: urlOf(name),
      parameters: PARAMETERS,
      ...settings,
    }),
    effects: (tool) => new Set(of(tool).map(({ key }) => key)).size,
  }
}
