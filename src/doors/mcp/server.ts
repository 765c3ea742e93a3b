import type { McpHttpHandler, Server, ServerContext } from '@modelcontextprotocol/server'
import { definedOf } from '../../base/defined.ts'
import { ApiError } from '../../base/errors.ts'
import type { Slice } from '../../base/http/shared-slice.ts'
import type { Log } from '../../base/log.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError, rpcErrorOf } from './errors.ts'
import { commonMethods, type FoundMessage } from './methods.ts'
import type { CallContext, McpFeature, MethodHandler } from './provider.ts'
import { loadSdk, type Sdk } from './sdk.ts'

interface McpServerDeps {
  readonly version: string
  readonly log: Log
  readonly features: readonly McpFeature[]
  /** The error for the client when a store is unavailable; null for any other error. */
  readonly unavailableOf: (error: unknown) => ApiError | null
}

/** A request of HTTP that is being answered. */
interface Exchange {
  readonly request: Request
  /** The parsed body. */
  readonly body: unknown
  /** Its messages; those that are requests have different ids. */
  readonly messages: readonly FoundMessage[]
  readonly caller: Caller
  readonly key: string
  /** See {@link CallContext.signal}. */
  readonly signal: AbortSignal
  /** For requests whose body is large; undefined for others. */
  readonly slice: Slice | undefined
}

type Era = CallContext['era']
type SchemaOf = Parameters<Server['setRequestHandler']>[1]

const INSTRUCTIONS =
  'Runs of agents in one workspace: what they did, as SQL (describe_tables, then query), and what waits for the decision of ' +
  'a person (list_waiting, decide). Decide only what that person has agreed to, on exactly the arguments shown.'

/** Accepts any parameters: the handlers check them. */
const ANY_PARAMS = {
  params: { '~standard': { version: 1, vendor: 'agent-run-service', validate: (value: unknown) => ({ value }) } },
} as unknown as SchemaOf
/** The package would otherwise build a validator for each request, for answers of clients that we never ask for. */
const NO_VALIDATOR = { getValidator: () => (input: unknown) => ({ valid: true, data: input, errorMessage: undefined }) }

/**
 * Answers clients of both eras of the protocol, without sessions. The package speaks the protocol: it checks headers and
 * versions, and answers `initialize`, `server/discover` and `ping`; every other method is answered here.
 */
export class McpServer {
  private readonly exchanges = new WeakMap<Request, Exchange>()
  private readonly common: ReturnType<typeof commonMethods>
  private readonly extensions: ReadonlyMap<string, MethodHandler>
  private readonly capabilities: object
  private modern: McpHttpHandler | undefined

  constructor(private readonly deps: McpServerDeps) {
    const { features } = deps
    this.common = commonMethods(features)
    this.extensions = new Map(features.flatMap(({ methods }) => [...(methods ?? [])]))
    const extensions = Object.assign({}, ...features.map((feature) => feature.extensions ?? {}))
    this.capabilities = {
      tools: {},
      resources: {},
      prompts: {},
      ...(Object.keys(extensions).length > 0 && { extensions }),
    }
  }

  /** Answers one request of HTTP. Its body has been read already. */
  async answer(exchange: Exchange): Promise<Response> {
    const { request, body, messages } = exchange
    const sdk = await loadSdk()
    const { kind } = sdk.classifyInboundRequest({
      httpMethod: request.method,
      ...definedOf({
        protocolVersionHeader: request.headers.get('mcp-protocol-version') ?? undefined,
        mcpMethodHeader: request.headers.get('mcp-method') ?? undefined,
        mcpNameHeader: request.headers.get('mcp-name') ?? undefined,
      }),
      body,
    })
    if (kind === 'legacy') return this.answerLegacy(sdk, exchange)
    if (messages.some(({ method }) => method === 'subscriptions/listen')) {
      // Changes of the lists are not announced, so a subscription would only hold a connection.
      return Response.json(rpcError(messages[0].id, METHOD_NOT_FOUND, 'Method not found'), { status: 404 })
    }
    this.exchanges.set(request, exchange)
    this.modern ??= sdk.createMcpHandler(({ requestInfo }) =>
      this.serverFor(sdk, this.exchanges.get(requestInfo!)!, 'modern'),
    )
    return this.modern.fetch(request, { parsedBody: body })
  }

  /** Without a session: one server for each request, and an event stream only where the client wants progress. */
  private async answerLegacy(sdk: Sdk, exchange: Exchange): Promise<Response> {
    const { request, body, messages, signal } = exchange
    const server = this.serverFor(sdk, exchange, 'legacy')
    const transport = new sdk.WebStandardStreamableHTTPServerTransport({
      enableJsonResponse: !messages.some(({ wantsProgress }) => wantsProgress),
    })
    const close = () => void server.close().catch(() => {})
    signal.addEventListener('abort', close, { once: true })
    await server.connect(transport)
    const response = await transport.handleRequest(request, { parsedBody: body })
    if (!isEventStream(response)) close()
    return response
  }

  private serverFor(sdk: Sdk, exchange: Exchange, era: Era): Server {
    const { version } = this.deps
    const server = new sdk.Server(
      { name: 'agent-run-service', title: 'Agent Run Service', version },
      { capabilities: this.capabilities, instructions: INSTRUCTIONS, jsonSchemaValidator: NO_VALIDATOR as never },
    )
    const messages = new Map(exchange.messages.map((message) => [message.id, message]))
    const answer = async (method: string, context: ServerContext): Promise<Record<string, unknown>> => {
      const message = messages.get(context.mcpReq.id)!
      await exchange.slice?.yield()
      try {
        return { ...(await this.carryOut(method, this.contextOf(exchange, era, context), message)) }
      } catch (error) {
        throw this.clientsError(error, method, exchange.signal)
      }
    }
    for (const { method } of exchange.messages) {
      if (typeof method !== 'string') continue
      if (this.common.has(method))
        server.fallbackRequestHandler = (request, context) => answer(request.method, context as ServerContext)
      // Some names of extensions are taken in earlier revisions, so that the package wants them registered.
      else if (this.extensions.has(method)) {
        server.setRequestHandler(
          method as never,
          ANY_PARAMS as never,
          ((_params: unknown, context: ServerContext) => answer(method, context)) as never,
        )
      }
    }
    return server
  }

  private carryOut(method: string, context: CallContext, message: FoundMessage): Promise<object> | object {
    const common = this.common.get(method)
    if (common !== undefined) return common(context, message)
    const extension = this.extensions.get(method)
    if (extension === undefined) throw new RpcError(METHOD_NOT_FOUND, 'Method not found')
    return extension(context, message.params)
  }

  private contextOf({ caller, key, signal }: Exchange, era: Era, { mcpReq }: ServerContext): CallContext {
    const envelope = (mcpReq.envelope ?? {}) as Record<string, unknown>
    const progressToken = mcpReq._meta?.progressToken
    return {
      caller,
      key,
      signal,
      era,
      clientCapabilities: (envelope['io.modelcontextprotocol/clientCapabilities'] ?? {}) as Record<string, unknown>,
      inputResponses: mcpReq.inputResponses,
      progress: async (progress) => {
        if (progressToken === undefined || signal.aborted) return
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...progress } })
      },
    }
  }

  /** What the client gets for an error: with a code of JSON-RPC, because the package would call any other internal. */
  private clientsError(error: unknown, method: string, signal: AbortSignal): RpcError {
    if (error instanceof RpcError) return error
    // Its work was cancelled, and nobody waits for the answer.
    if (signal.aborted) return new RpcError(INTERNAL_ERROR, 'the call was ended')
    const refused = error instanceof ApiError ? error : this.deps.unavailableOf(error)
    if (refused !== null) return rpcErrorOf(refused)
    this.deps.log.error('mcp: a request failed', { method, error })
    return new RpcError(INTERNAL_ERROR, 'internal error')
  }
}

export function isEventStream(response: Response): boolean {
  return response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
}

function rpcError(id: unknown, code: number, message: string) {
  return { jsonrpc: '2.0', id, error: { code, message } }
}
