import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  type EventStore,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  type JSONRPCMessage,
  ListToolsRequestSchema,
  ResultSchema,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js'
import { atEnd } from './teardown.ts'

/** The input of a tool of the server. */
export interface McpCall {
  readonly name: string
  readonly input: Record<string, unknown>
  readonly meta: Record<string, unknown>
  /** Aborts when the client cancels the call. */
  readonly signal: AbortSignal
  /** Sends the client a request in the response stream. */
  readonly ask: (method: 'sampling/createMessage' | 'roots/list' | 'ping') => Promise<unknown>
  readonly progress: (done: number) => Promise<void>
  /** Breaks the response stream; a client can resume it if the server numbers its events. */
  readonly breakStream: () => void
}

export interface McpServerOptions {
  tools: readonly Tool[]
  call?: (call: McpCall) => Promise<CallToolResult> | CallToolResult
  /** Tools per page. Default: all. */
  pageSize?: number
  /** Plain JSON responses instead of streams. */
  isJson?: boolean
  /** No sessions: each request is independent. */
  isStateless?: boolean
  /** Numbers and stores events, so that a stream can be resumed. */
  isResumable?: boolean
  /** Called before the server: a response is sent, undefined lets the request through. `method` is the JSON-RPC method. */
  intercept?: (method: string | undefined, request: Request) => Promise<Response | undefined> | Response | undefined
}

interface Seen {
  readonly http: string
  readonly method: string | undefined
  readonly headers: Headers
  /** The body as received. */
  readonly text: string
}

/** A real MCP server from the SDK over streamable HTTP that records all requests. */
export interface TestMcpServer {
  readonly url: string
  readonly options: McpServerOptions
  readonly seen: readonly Seen[]
  /** The number of requests with this JSON-RPC method. */
  count(method: string): number
  /** Ids of the open sessions. */
  readonly sessions: ReadonlySet<string>
  /** Requests in flight, streams included. */
  open(): number
  /** Forgets all sessions, like a restart. */
  forgetSessions(): void
}

export function tool(name: string, more: Partial<Tool> = {}): Tool {
  return { name, inputSchema: { type: 'object' }, ...more }
}

export function textResult(text: string): CallToolResult {
  return { content: [{ type: 'text', text }] }
}

export function startMcpServer(options: McpServerOptions): TestMcpServer {
  const seen: Seen[] = []
  const transports = new Map<string, WebStandardStreamableHTTPServerTransport>()
  const sessions = new Set<string>()

  async function answer(request: Request): Promise<Response> {
    const text = await request.text()
    const method = text.startsWith('{') ? (JSON.parse(text).method as string | undefined) : undefined
    seen.push({ http: request.method, method, headers: request.headers, text })
    const intercepted = await options.intercept?.(method, request)
    if (intercepted !== undefined) return intercepted
    const again = new Request(request.url, {
      method: request.method,
      headers: request.headers,
      body: text === '' ? null : text,
    })
    const id = request.headers.get('mcp-session-id')
    if (id === null) return (await newTransport()).handleRequest(again)
    const transport = transports.get(id)
    if (transport === undefined) return Response.json({ error: 'session not found' }, { status: 404 })
    return transport.handleRequest(again)
  }

  async function newTransport(): Promise<WebStandardStreamableHTTPServerTransport> {
    const transport = new WebStandardStreamableHTTPServerTransport({
      ...(options.isStateless !== true && { sessionIdGenerator: () => crypto.randomUUID() }),
      enableJsonResponse: options.isJson ?? false,
      ...(options.isResumable === true && { eventStore: new MemoryEvents(), retryInterval: 20 }),
      onsessioninitialized: (id) => {
        sessions.add(id)
        transports.set(id, transport)
      },
      onsessionclosed: (id) => {
        sessions.delete(id)
        transports.delete(id)
      },
    })
    await protocolServer(options).connect(transport)
    return transport
  }

  const http = Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 0, fetch: answer })
  atEnd(() => http.stop(true))
  return {
    url: `http://127.0.0.1:${http.port}/mcp`,
    options,
    seen,
    sessions,
    count: (method) => seen.filter((each) => each.method === method).length,
    open: () => http.pendingRequests,
    forgetSessions() {
      transports.clear()
      sessions.clear()
    },
  }
}

function protocolServer(options: McpServerOptions): Server {
  const server = new Server({ name: 'test', version: '1' }, { capabilities: { tools: { listChanged: true } } })
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const { tools, pageSize = tools.length } = options
    const start = Number(params?.cursor ?? 0)
    const end = start + pageSize
    return { tools: tools.slice(start, end), nextCursor: end < tools.length ? String(end) : undefined }
  })
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => {
    const meta = params._meta ?? {}
    const call = options.call ?? (({ name }) => textResult(`called ${name}`))
    return call({
      name: params.name,
      input: params.arguments ?? {},
      meta,
      signal: extra.signal,
      ask: (method) => extra.sendRequest({ method, params: { messages: [], maxTokens: 1 } }, ResultSchema),
      breakStream: () => extra.closeSSEStream?.(),
      progress: (progress) => {
        const progressToken = meta.progressToken as number
        return extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress } })
      },
    })
  })
  return server
}

class MemoryEvents implements EventStore {
  private readonly events: { stream: string; message: JSONRPCMessage }[] = []

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    return String(this.events.push({ stream, message }) - 1)
  }

  async replayEventsAfter(
    lastId: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const { stream } = this.events[Number(lastId)]!
    for (const [id, event] of this.events.entries())
      if (id > Number(lastId) && event.stream === stream) await send(String(id), event.message)
    return stream
  }
}
