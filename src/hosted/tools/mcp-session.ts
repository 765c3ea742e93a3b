import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { AnySchema, SchemaOutput } from '@modelcontextprotocol/sdk/server/zod-compat.js'
import { type ClientRequest, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import packageJson from '../../../package.json' with { type: 'json' }
import { orAborted } from '../../base/abort.ts'
import { isObject, parsedJson } from '../../base/json-object.ts'
import type { Egress } from '../../outbound/egress/egress.ts'
import { McpTransport } from './mcp-transport.ts'

export interface McpTimeouts {
  /** Longest the handshake may take. */
  readonly openMs: number
  /** How long a server may be silent about a request; progress notifications count as a sign of life. */
  readonly silenceMs: number
  /** How long a request may take in total, however much progress is reported. */
  readonly requestMs: number
  /** How long closing the session may take. */
  readonly closeMs: number
  /** A session that has not been used for this long is closed. */
  readonly idleMs: number
}

export const MCP_TIMEOUTS: McpTimeouts = {
  openMs: 15_000,
  silenceMs: 60_000,
  requestMs: 600_000,
  closeMs: 5_000,
  idleMs: 60_000,
}

/** By default the SDK compiles a validator for every client; nothing here is validated with it. */
const NO_VALIDATION = {
  jsonSchemaValidator: {
    getValidator: () => {
      throw new Error('outputs are not validated')
    },
  },
}

/** Address and settings of a server. */
export interface McpServer {
  readonly url: string
  /** Sent with every request, secrets filled in. */
  readonly headers: Readonly<Record<string, string>>
  readonly egress: Egress
  readonly timeouts: McpTimeouts
  /** Called when the server says that its list of tools has changed. */
  readonly toolsChanged: () => void
}

/**
 * The sessions of one run with one server. The first request opens a session and all others share it, concurrently too,
 * because servers keep state in it (a browser page, a working directory). It is closed after a while without use or
 * when `life` ends, and opened again when needed; an idle session holds no connection. What a server requests of the
 * client (sampling, elicitation, roots) is refused.
 */
export class McpSessions {
  private session: Promise<Client> | undefined
  private requests = 0
  private idle: ReturnType<typeof setTimeout> | undefined

  /** @param life when it aborts, everything is closed, and requests throw its reason */
  constructor(
    private readonly server: McpServer,
    private readonly life: AbortSignal,
  ) {}

  /**
   * @param schema of the result
   * @throws the reason of `signal` or `life` as soon as one of them aborts; the server is notified, but not waited for.
   *   Otherwise what the SDK or the egress throws; `failureText` puts it into words.
   */
  async request<T extends AnySchema>(request: ClientRequest, schema: T, signal: AbortSignal): Promise<SchemaOutput<T>> {
    // Not `AbortSignal.any`: the SDK would send a cancellation even if the signal aborts after the answer.
    const stop = new AbortController()
    const causes = [signal, this.life]
    for (const cause of causes) cause.throwIfAborted()
    const abort = () => stop.abort(causes.find(({ aborted }) => aborted)?.reason)
    for (const cause of causes) cause.addEventListener('abort', abort, { once: true })
    this.requests += 1
    clearTimeout(this.idle)
    try {
      return await this.send(request, schema, stop.signal)
    } catch (error) {
      stop.signal.throwIfAborted()
      throw error
    } finally {
      for (const cause of causes) cause.removeEventListener('abort', abort)
      this.requests -= 1
      if (this.requests === 0) this.closeWhenIdle()
    }
  }

  /** Closes the session, if there is one, in the background. */
  private readonly close = (): void => {
    this.life.removeEventListener('abort', this.close)
    clearTimeout(this.idle)
    const { session } = this
    this.session = undefined
    session?.then((opened) => closeSession(opened, this.server.timeouts)).catch(() => {})
  }

  private closeWhenIdle(): void {
    this.idle = setTimeout(this.close, this.server.timeouts.idleMs)
    this.idle.unref()
  }

  private async send<T extends AnySchema>(request: ClientRequest, schema: T, signal: AbortSignal) {
    const isOld = this.session !== undefined
    const opened = this.opened()
    const client = await orAborted(opened, signal)
    const { silenceMs, requestMs } = this.server.timeouts
    const options = {
      signal,
      timeout: silenceMs,
      maxTotalTimeout: requestMs,
      resetTimeoutOnProgress: true,
      onprogress: () => {},
    }
    try {
      return await client.request(request, schema, options)
    } catch (error) {
      if (!isOld || !isSessionUnknown(error)) throw error
      // The server has restarted or dropped the session.
      if (this.session === opened) this.session = undefined
      if (!isUnprocessed(error)) throw error
    }
    return (await orAborted(this.opened(), signal)).request(request, schema, options)
  }

  private opened(): Promise<Client> {
    if (this.session !== undefined) return this.session
    const opening = openSession(this.server)
    this.life.addEventListener('abort', this.close, { once: true })
    this.session = opening
    opening.catch(() => {
      if (this.session === opening) this.session = undefined
    })
    return opening
  }
}

async function openSession(server: McpServer): Promise<Client> {
  const client = new Client({ name: packageJson.name, version: packageJson.version }, NO_VALIDATION)
  client.setNotificationHandler(ToolListChangedNotificationSchema, server.toolsChanged)
  const transport = new McpTransport(new URL(server.url), server.headers, server.egress)
  await client.connect(transport, { timeout: server.timeouts.openMs })
  return client
}

async function closeSession(client: Client, { closeMs }: McpTimeouts): Promise<void> {
  const patience = setTimeout(() => client.close(), closeMs)
  // A server that is gone has lost the session anyway.
  if (client.transport instanceof McpTransport) await client.transport.terminateSession().catch(() => {})
  clearTimeout(patience)
  await client.close()
}

/** Whether the server seems not to know the session any more. It should answer 404; many answer 400. */
function isSessionUnknown(error: unknown): error is StreamableHTTPError {
  if (!(error instanceof StreamableHTTPError)) return false
  return error.code === 404 || (error.code === 400 && /session/i.test(error.message))
}

/**
 * Whether the request may be sent again, because the server has not processed it. A tool may speak of sessions, too, in an
 * answer with 400; but the answer to a request that was read as one has its id.
 */
function isUnprocessed({ code, message }: StreamableHTTPError): boolean {
  if (code === 404) return true
  const answer = parsedJson(message.slice(message.indexOf('{')))
  return isObject(answer) && answer.jsonrpc === '2.0' && (answer.id ?? null) === null
}
