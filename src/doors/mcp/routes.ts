import { Elysia } from 'elysia'
import { ApiError } from '../../base/errors.ts'
import { bearerToken } from '../../base/http/bearer.ts'
import { type BodyReader, checkUtf8 } from '../../base/http/body.ts'
import type { Budget } from '../../base/http/rate-limit.ts'
import type { SharedSlice } from '../../base/http/shared-slice.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { DOOR_STATE, type DoorContext, headersOf, refuse } from '../kit.ts'
import { errorResponse, errorText, INVALID_REQUEST, PARSE_ERROR, RpcError, rpcErrorOf } from './errors.ts'
import { readMessages } from './message.ts'
import type { FoundMessage } from './methods.ts'
import type { OpenCall, OpenCalls } from './open-calls.ts'
import type { McpFeature } from './provider.ts'
import { isEventStream, type McpServer } from './server.ts'

interface McpRoutesDeps {
  readonly guards: Pick<Guards, 'receive'>
  readonly reader: BodyReader
  /** Levels of nesting of a body. */
  readonly maxDepth: number
  readonly features: readonly McpFeature[]
  readonly server: Pick<McpServer, 'answer'>
  readonly openCalls: Pick<OpenCalls, 'open'>
  /** @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller, budget: Budget) => void
  /** The address under which browsers reach the service; undefined: not configured. */
  readonly publicUrl: string | undefined
  /** Shared by all calls with large bodies. */
  readonly slice: SharedSlice
}

interface Context extends DoorContext {
  readonly server: { timeout(request: Request, seconds: number): void } | null
}

const ACCESS = { audience: 'keys', budget: 'reads' } as const
/** The steps of answering a larger request take turns with other requests. */
const LARGE_BYTES = 256 * 1024
/** For logs and metrics: nobody receives it. */
const CLIENT_HAS_LEFT = 499
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/**
 * The server for clients of the Model Context Protocol (docs/mcp.md), over streamable HTTP without sessions.
 */
export function mcpRoutes(deps: McpRoutesDeps) {
  const { guards, reader, maxDepth, server, openCalls, takeBudget } = deps
  const tools = deps.features.flatMap((feature) => feature.tools ?? [])

  const receive = async (context: Context): Promise<Response> => {
    const { request } = context
    let id: unknown = null
    try {
      checkOrigin(request, deps.publicUrl)
      const key = bearerToken(request)
      if (key === undefined)
        throw new ApiError('UNAUTHENTICATED', 'send a key: Authorization: Bearer <key>', { reason: 'key_missing' })
      const { caller, body: raw } = await guards.receive(request, headersOf(context), ACCESS, { token: key })
      context.bodyHold = raw.hold
      if (!isJson(request.headers.get('content-type')))
        return errorResponse(new RpcError(INVALID_REQUEST, 'header Content-Type: expected application/json'), id, 415)
      const bytes = await reader.inflateAsync(request, raw)
      const slice = bytes.length > LARGE_BYTES ? deps.slice.of(caller.workspaceId) : undefined
      checkUtf8(bytes)
      const { body, messages } = await readMessages(bytes, maxDepth, slice)
      if (!Array.isArray(body)) id = echoable(messages[0].id)
      // Before the tools are found: each message costs a query.
      for (let rest = messages.length; rest > 1; rest--) takeBudget(caller, 'reads')
      const found = await findTools(caller, messages)
      for (const { tool } of found) if (tool?.budget !== undefined) takeBudget(caller, tool.budget)
      context.server?.timeout(request, 0)
      const call = await openCalls.open(caller, key, request.signal)
      return await untilAnswered(call, id, () =>
        server.answer({ request, body, messages: found, caller, key, signal: call.signal, slice }),
      )
    } catch (error) {
      return answerError(error, request, id)
    }
  }

  const findTools = (caller: Caller, messages: readonly Omit<FoundMessage, 'tool'>[]): Promise<FoundMessage[]> =>
    Promise.all(
      messages.map(async (message) => {
        const { method, name } = message
        if (method !== 'tools/call' || typeof name !== 'string') return Object.assign(message, { tool: undefined })
        for (const provider of tools) {
          const tool = await provider.find(caller, name)
          if (tool !== undefined) return Object.assign(message, { tool })
        }
        return Object.assign(message, { tool: undefined })
      }),
    )

  const answerError = (error: unknown, request: Request, id: unknown): Response => {
    if (error instanceof RpcError) return errorResponse(error, id)
    return refuse(error, request, {
      challenge: 'Bearer',
      errorOf: (refused) =>
        errorResponse(refused.reason === 'body_unreadable' ? new RpcError(PARSE_ERROR, refused.message) : refused, id),
    })
  }

  const noSessions = ({ request }: Context) => {
    try {
      checkOrigin(request, deps.publicUrl)
    } catch (error) {
      return answerError(error, request, null)
    }
    const response = errorResponse(new ApiError('METHOD_NOT_ALLOWED', 'this server has no sessions; send a POST'), null)
    response.headers.set('allow', 'POST')
    return response
  }

  return new Elysia({ detail: { hide: true } })
    .decorate(DOOR_STATE)
    .post('/mcp', (context) => receive(context), { parse: 'none' })
    .get('/mcp', (context) => noSessions(context))
    .delete('/mcp', (context) => noSessions(context), { parse: 'none' })
}

/** Closes the call once its response is complete, or when its client or the validity of its key has gone. */
async function untilAnswered(call: OpenCall, id: unknown, answer: () => Promise<Response>): Promise<Response> {
  let isStreaming = false
  try {
    const answered = answer()
    // Once the call has ended, nobody waits for it.
    answered.catch(() => {})
    const response = await Promise.race([
      answered,
      call.ended.then((error) => {
        if (error !== null) throw error
        return new Response(null, { status: CLIENT_HAS_LEFT })
      }),
    ])
    if (response.body === null || !isEventStream(response)) return response
    isStreaming = true
    return new Response(endWith(response.body, call, id), { status: response.status, headers: response.headers })
  } finally {
    if (!isStreaming) call.close()
  }
}

/** The event stream of a call: as it is, or up to the moment at which the key becomes invalid, and then that error. */
function endWith(body: ReadableStream<Uint8Array>, call: OpenCall, id: unknown): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const stop = () => {
    call.close()
    reader.cancel().catch(() => {})
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const next = await Promise.race([reader.read(), call.ended.then(() => undefined)])
        if (next?.done === false && !call.signal.aborted) {
          controller.enqueue(next.value)
          return
        }
        // The package closes the stream of a call that was ended, without a word.
        const error = call.signal.aborted ? await call.ended : null
        if (error !== null) {
          const text = errorText(rpcErrorOf(error), id)
          controller.enqueue(new TextEncoder().encode(`event: message\ndata: ${text}\n\n`))
        }
        controller.close()
      } catch (error) {
        controller.error(error)
      }
      stop()
    },
    cancel: stop,
  })
}

/**
 * Pages of other origins are refused, because a page may reach a service on the user's own machine under a name of its own.
 * @throws ApiError FORBIDDEN
 */
function checkOrigin(request: Request, publicUrl: string | undefined): void {
  const origin = request.headers.get('origin')
  if (origin === null) return
  const { host, hostname } = URL.parse(origin) ?? {}
  if (publicUrl !== undefined && origin === new URL(publicUrl).origin) return
  if (hostname !== undefined && LOOPBACK.test(hostname) && host === request.headers.get('host')) return
  throw new ApiError('FORBIDDEN', 'pages of this origin may not use the MCP server', { reason: 'origin_refused' })
}

function isJson(contentType: string | null): boolean {
  return (contentType ?? '').split(';')[0].trim().toLowerCase() === 'application/json'
}

/** The id of a request, for an error that is sent instead of its answer. */
function echoable(id: unknown): string | number | null {
  return typeof id === 'string' || typeof id === 'number' ? id : null
}
