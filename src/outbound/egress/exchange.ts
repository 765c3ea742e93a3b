import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { EgressFailed } from './errors.ts'

/** One request, to one address. */
export interface Message {
  readonly isSecure: boolean
  /** An address, never a name: no further DNS lookup takes place. */
  readonly address: string
  readonly port: number
  /** The name that the certificate must match, also sent as SNI; empty for an address. */
  readonly serverName: string
  /** For error messages. */
  readonly host: string
  readonly path: string
  readonly method: string
  /** `Host` included. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | null
  /** Whether it may be sent again when it is unknown whether it arrived. */
  readonly isRepeatable: boolean
}

interface ExchangeOptions {
  /** Certificate authorities to trust in place of the usual ones, as PEM. */
  readonly ca: string | undefined
  readonly connectTimeoutMs: number
}

/** Shorter than the 5 s after which many servers close: a request on a connection that is being closed is lost. */
const IDLE_MS = 4_000
const HEADER_BYTES_MAX = 32 * 1024

/** The connection failed, so another address of the host may be tried. */
export class NotConnected extends Error {
  constructor(override readonly cause: unknown) {
    super('not connected', { cause })
  }
}

/**
 * HTTP/1.1 over `node:http`, which, unlike Bun's `fetch`, ignores the environment's proxy settings and pools
 * connections by a name of our choice: here the address, the port and the host. `NODE_TLS_REJECT_UNAUTHORIZED` has no
 * effect.
 */
export function createSend({ ca, connectTimeoutMs }: ExchangeOptions) {
  const agents = { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: 32 }
  const plain = Object.assign(new http.Agent(agents), { getName })
  const secure = Object.assign(new https.Agent(agents), { getName })

  function start(message: Message, isReusing: boolean): http.ClientRequest {
    const options: https.RequestOptions = {
      host: message.address,
      port: message.port,
      path: message.path,
      method: message.method,
      headers: message.headers,
      setHost: false,
      maxHeaderSize: HEADER_BYTES_MAX,
      servername: message.serverName,
      rejectUnauthorized: true,
      ca,
      agent: isReusing ? (message.isSecure ? secure : plain) : false,
    }
    return message.isSecure ? https.request(options) : http.request(options)
  }

  /** @throws NotConnected when nothing was sent; the signal's reason; any error of sockets, TLS or HTTP */
  async function send(message: Message, signal: AbortSignal): Promise<IncomingMessage> {
    const request = start(message, true)
    try {
      return await answerOf(request, message, { connectTimeoutMs, signal })
    } catch (error) {
      // The server has probably closed the idle connection, so the request is sent again on a new one.
      const isLost = request.reusedSocket && !signal.aborted && isReset(error)
      if (!isLost || !message.isRepeatable) throw error
      return answerOf(start(message, false), message, { connectTimeoutMs, signal })
    }
  }

  return send
}

/** Agents pool connections by name. The host is part of it, because the certificate was checked for that host. */
function getName(options: https.RequestOptions = {}): string {
  return `${options.host}|${options.port}|${options.servername}`
}

interface SendOptions {
  readonly connectTimeoutMs: number
  /** Ends the request and the response body. */
  readonly signal: AbortSignal
}

function answerOf(
  request: http.ClientRequest,
  message: Message,
  { connectTimeoutMs, signal }: SendOptions,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    let isConnected = false
    const connected = () => {
      isConnected = true
      clearTimeout(timer)
    }
    const timer = setTimeout(
      () => request.destroy(new EgressFailed(`${message.host} does not accept connections`)),
      connectTimeoutMs,
    )
    const abort = () => request.destroy(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    request.once('socket', (socket) => {
      if (socket.connecting) socket.once(message.isSecure ? 'secureConnect' : 'connect', connected)
      else connected()
    })
    request.once('response', resolve)
    request.on('error', (error) => {
      clearTimeout(timer)
      if (signal.aborted) reject(signal.reason)
      else reject(isConnected ? error : new NotConnected(error))
    })
    request.once('close', () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      reject(new EgressFailed(`${message.host} closed the connection without an answer`))
    })
    if (signal.aborted) abort()
    else request.end(message.body ?? undefined)
  })
}

function isReset(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === 'ECONNRESET' || code === 'EPIPE'
}
