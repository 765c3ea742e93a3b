import { atEnd } from './teardown.ts'

/** A call that reached the tool server. */
export interface ToolServerCall {
  /** Of the tool: the last part of its address. */
  readonly tool: string
  readonly key: string
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects there is the test.
  readonly input: any
  /** The arguments as they came over the wire. */
  readonly text: string
  /** It has been answered. */
  isAnswered: boolean
}

/** What `http` tools call, over real HTTP. It keeps every call, and answers when and what the test says. */
export interface ToolServer {
  /** The first first. */
  readonly calls: readonly ToolServerCall[]
  /** The definition of a tool that is called here, for the settings of an agent. */
  tool(name: string, settings?: object): object
  /** Calls that the service gave up before they were answered. */
  readonly aborted: number
  of(tool: string): readonly ToolServerCall[]
  /** Calls as others would count them: those with the same Idempotency-Key are one. */
  effects(tool: string): number
}

const PARAMETERS = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }

/** @param answer the JSON that a call is answered with; a Response is sent as it is */
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
      const said = await answer(call)
      call.isAnswered = true
      return said instanceof Response ? said : Response.json(said ?? null)
    },
  })
  atEnd(() => server.stop(true))
  const of = (tool: string) => calls.filter((call) => call.tool === tool)
  return {
    calls,
    get aborted() {
      return aborted
    },
    of,
    tool: (name, settings = {}) => ({
      type: 'http',
      name,
      description: `does ${name}`,
      method: 'POST',
      url: `http://127.0.0.1:${server.port}/${name}`,
      parameters: PARAMETERS,
      ...settings,
    }),
    effects: (tool) => new Set(of(tool).map(({ key }) => key)).size,
  }
}
