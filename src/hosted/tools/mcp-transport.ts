import { AsyncLocalStorage } from 'node:async_hooks'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { TransportSendOptions } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  ErrorCode,
  isJSONRPCErrorResponse,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type RequestId,
} from '@modelcontextprotocol/sdk/types.js'
import { definedOf } from '../../base/defined.ts'
import type { Egress } from '../../outbound/egress/egress.ts'
import { EgressFailed } from '../../outbound/egress/errors.ts'

/** Limit of one HTTP response in bytes, images and progress included. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024
/** How long the last bytes of a response may take to be parsed, and a stream to end after its result. */
const GRACE_MS = 500
/** A broken stream is resumed if the server numbers its messages. */
const RESUMPTION = {
  maxRetries: 2,
  initialReconnectionDelay: 250,
  maxReconnectionDelay: 2_000,
  reconnectionDelayGrowFactor: 4,
}

/** A request to the server, from being sent until it is answered or abandoned. */
interface Exchange {
  readonly id: RequestId
  /** Ends every HTTP exchange that serves the request. */
  readonly over: AbortController
  isResumable: boolean
  failedResumptions: number
}

/**
 * The SDK's transport over streamable HTTP with bounds: whatever a request opens ends with the request, a response has
 * a maximum size, and a response that ends without a result fails at once, where the SDK would wait for the request to
 * time out. The stream for messages outside of requests, which the SDK would keep open, is not opened: an idle session
 * holds no connection.
 */
export class McpTransport extends StreamableHTTPClientTransport {
  private readonly exchanges = new Map<RequestId, Exchange>()
  /**
   * The SDK does not say which request a fetch belongs to, and requests run concurrently, so the async context carries
   * it.
   */
  private readonly current = new AsyncLocalStorage<Exchange | undefined>()

  /** @param headers sent along with everything */
  constructor(
    url: URL,
    headers: Readonly<Record<string, string>>,
    private readonly egress: Egress,
  ) {
    super(url, {
      requestInit: { headers: { ...headers } },
      reconnectionOptions: RESUMPTION,
      fetch: (input, init) => this.fetchFor(this.current.getStore(), input, init),
    })
    // The client calls this before its own handler.
    this.onmessage = (message) => this.noteMessage(message)
  }

  override async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (!isJSONRPCRequest(message)) {
      this.end(cancelledBy(message))
      return this.current.run(undefined, () => super.send(message, options && definedOf(options)))
    }
    const exchange: Exchange = {
      id: message.id,
      over: new AbortController(),
      isResumable: false,
      failedResumptions: 0,
    }
    this.exchanges.set(message.id, exchange)
    const onresumptiontoken = () => {
      exchange.isResumable = true
    }
    try {
      await this.current.run(exchange, () => super.send(message, definedOf({ ...options, onresumptiontoken })))
    } catch (error) {
      this.end(message.id)
      throw error
    }
  }

  override async close(): Promise<void> {
    for (const id of [...this.exchanges.keys()]) this.end(id)
    await super.close()
  }

  private async fetchFor(exchange: Exchange | undefined, input: string | URL, init: RequestInit = {}) {
    const isResumption = new Headers(init.headers).has('last-event-id')
    if (init.method === 'GET' && !isResumption) return new Response(null, { status: 405 })
    // Notifications, responses to the server and the closing of the session belong to no request; the egress limits
    // them.
    if (exchange === undefined) return this.egress.fetch(input, init)
    const { signal } = exchange.over
    try {
      const response = await this.egress.fetch(input, {
        ...init,
        signal,
        timeoutMs: Number.POSITIVE_INFINITY,
        maxBytes: ANSWER_BYTES_MAX,
      })
      if (isResumption && !response.ok) this.noteFailedResumption(exchange)
      return response.ok ? watched(response, (error) => this.noteEnd(exchange, error)) : response
    } catch (error) {
      if (isResumption) this.noteFailedResumption(exchange)
      throw error
    }
  }

  private noteMessage(message: JSONRPCMessage): void {
    if (!isJSONRPCResultResponse(message) && !isJSONRPCErrorResponse(message)) return
    const exchange = this.exchanges.get(message.id as RequestId)
    this.exchanges.delete(message.id as RequestId)
    // The server ends the stream after the result; aborting at once would cost the connection.
    if (exchange !== undefined) setTimeout(() => exchange.over.abort(), GRACE_MS).unref()
  }

  private noteEnd(exchange: Exchange, error: unknown): void {
    if (!this.exchanges.has(exchange.id)) return
    const message = error instanceof EgressFailed ? error.message : 'the answer ended before the result came'
    setTimeout(() => {
      if (!exchange.isResumable) this.fail(exchange, message)
    }, GRACE_MS).unref()
  }

  private noteFailedResumption(exchange: Exchange): void {
    exchange.failedResumptions += 1
    if (exchange.failedResumptions >= RESUMPTION.maxRetries)
      this.fail(exchange, 'the connection broke off and could not be resumed')
  }

  /** Fails a request that the server will no longer answer. */
  private fail(exchange: Exchange, message: string): void {
    if (this.exchanges.get(exchange.id) !== exchange) return
    this.end(exchange.id)
    this.onmessage?.({ jsonrpc: '2.0', id: exchange.id, error: { code: ErrorCode.ConnectionClosed, message } })
  }

  private end(id: RequestId | undefined): void {
    if (id === undefined) return
    const exchange = this.exchanges.get(id)
    this.exchanges.delete(id)
    exchange?.over.abort()
  }
}

/** @returns the request that the message cancels, if it is a cancellation */
function cancelledBy(message: JSONRPCMessage): RequestId | undefined {
  if (!('method' in message) || message.method !== 'notifications/cancelled') return undefined
  return message.params?.requestId as RequestId | undefined
}

/** The response, with a callback when its body ends: with the error, if one ended it. */
function watched(response: Response, ended: (error?: unknown) => void): Response {
  if (response.body === null) {
    ended()
    return response
  }
  const reader = response.body.getReader()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        controller.close()
        ended()
      } catch (error) {
        controller.error(error)
        ended(error)
      }
    },
    async cancel(reason) {
      ended()
      await reader.cancel(reason)
    },
  })
  return new Response(body, { status: response.status, statusText: response.statusText, headers: response.headers })
}
