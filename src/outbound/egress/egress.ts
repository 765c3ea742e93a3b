import type { IncomingMessage } from 'node:http'
import { orAborted } from '../../base/abort.ts'
import { readAddress } from './addresses.ts'
import { withoutRoot } from './allow-list.ts'
import { ACCEPT_ENCODING, type BodyOptions, bodyOf } from './body.ts'
import { EgressFailed, EgressRefused, egressFailureOf } from './errors.ts'
import { createSend, type Message, NotConnected } from './exchange.ts'
import { addressesOf, type GuardOptions, type Target, targetOf } from './guard.ts'

/** A fetch for URLs that tenants choose. */
export interface Egress {
  /**
   * Like `fetch`, but connects only to public or allowed addresses, and does not follow redirects.
   *
   * @throws EgressRefused for a forbidden address or a redirect; EgressFailed if the host does not respond properly, in
   *   time and within `maxBytes` (the last two also to the reader of the body); the signal's reason once it aborts
   */
  fetch(input: string | URL, init?: EgressInit): Promise<Response>
}

/** Of `RequestInit`, only `method`, `headers`, `body` (text, bytes or a form) and `signal` are used. */
interface EgressInit extends RequestInit {
  /** From the call to the end of the response body; Infinity for streams that only their signal ends. */
  readonly timeoutMs?: number
  /** Limit of the decompressed response body. */
  readonly maxBytes?: number
  /** Whether it may arrive twice, although its method says otherwise. */
  readonly isRepeatable?: boolean
}

export interface EgressOptions extends GuardOptions {
  /** Certificate authorities to trust in place of the usual ones, as PEM. */
  readonly ca?: string
  readonly connectTimeoutMs?: number
  /** Defaults for requests. */
  readonly timeoutMs?: number
  readonly maxBytes?: number
}

const CONNECT_TIMEOUT_MS = 10_000
const TIMEOUT_MS = 30_000
const BYTES_MAX = 1024 * 1024
/** Addresses of one host that are tried. */
const ADDRESSES_MAX = 4
const LOCATION_LENGTH_MAX = 300

/** Headers of the connection, which callers cannot set. */
const CONNECTION_HEADERS = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]
/** Methods that may be sent again when it is unknown whether they arrived (RFC 9110, 9.2.2). */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])
const REDIRECTS = new Set([301, 302, 303, 307, 308])
const BODILESS = new Set([204, 205, 304])

/**
 * Guards outgoing requests (docs/security.md#egress). Each call resolves the host once, checks every address, and
 * connects to a permitted one, so a name that resolves differently a moment later (DNS rebinding) has no effect.
 */
export function createEgress(options: EgressOptions): Egress {
  const { ca, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options
  const send = createSend({ ca, connectTimeoutMs })

  async function answer(target: Target, message: Omit<Message, 'address'>, signal: AbortSignal) {
    // A DNS lookup cannot be cancelled, but it need not be awaited.
    const addresses = await orAborted(addressesOf(target, options), signal)
    let failure: unknown
    for (const address of addresses.slice(0, ADDRESSES_MAX)) {
      try {
        return await send({ ...message, address }, signal)
      } catch (error) {
        if (!(error instanceof NotConnected)) throw error
        failure = error.cause
      }
    }
    throw failure
  }

  async function fetch(input: string | URL, init: EgressInit = {}): Promise<Response> {
    const target = targetOf(input)
    const message = messageOf(target, init)
    const { timeoutMs = options.timeoutMs ?? TIMEOUT_MS, maxBytes = options.maxBytes ?? BYTES_MAX } = init
    const { signal, release } = deadline(init.signal, timeoutMs, target.host)
    try {
      const incoming = await answer(target, message, signal)
      return toResponse(incoming, message.method, { host: target.host, maxBytes, signal, onEnd: release })
    } catch (error) {
      release()
      throw signal.aborted ? signal.reason : egressFailureOf(error, target.host)
    }
  }

  return { fetch }
}

function messageOf({ url, isSecure, port, host }: Target, init: EgressInit): Omit<Message, 'address'> {
  const { method = 'GET', body = null } = init
  const headers = new Headers(init.headers)
  for (const name of CONNECTION_HEADERS) headers.delete(name)
  if (body instanceof URLSearchParams && !headers.has('content-type'))
    headers.set('content-type', 'application/x-www-form-urlencoded;charset=UTF-8')
  if (!headers.has('accept-encoding')) headers.set('accept-encoding', ACCEPT_ENCODING)
  headers.set('host', url.host)
  const bytes = bytesOf(body)
  if (bytes !== null || method !== 'GET') headers.set('content-length', String(bytes?.byteLength ?? 0))
  return {
    isSecure,
    port,
    host,
    serverName: readAddress(host) === null ? withoutRoot(host) : '',
    path: url.pathname + url.search,
    method: method.toUpperCase(),
    headers: Object.fromEntries(headers),
    body: bytes,
    // Not because of an Idempotency-Key among the headers that a tenant has chosen: it is the same for every call.
    isRepeatable: init.isRepeatable ?? REPEATABLE.has(method.toUpperCase()),
  }
}

function bytesOf(body: RequestInit['body']): Uint8Array | null {
  if (body === null || body === undefined) return null
  if (typeof body === 'string' || body instanceof URLSearchParams) return Buffer.from(String(body))
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
  throw new TypeError('body: expected text, bytes or a form')
}

/** A signal that aborts with the error that `fetch` throws. */
function deadline(given: AbortSignal | null | undefined, timeoutMs: number, host: string) {
  const late = new AbortController()
  const onTimeout = () => late.abort(new EgressFailed(`${host} did not answer within ${timeoutMs / 1000} s`))
  const timer = Number.isFinite(timeoutMs) ? setTimeout(onTimeout, timeoutMs) : undefined
  const signal = given ? AbortSignal.any([given, late.signal]) : late.signal
  return { signal, release: () => clearTimeout(timer) }
}

function toResponse(incoming: IncomingMessage, method: string, options: BodyOptions): Response {
  try {
    const status = incoming.statusCode ?? 0
    if (REDIRECTS.has(status)) throw redirected(incoming, options.host)
    const headers = headersOf(incoming)
    const init = { status, statusText: incoming.statusMessage ?? '', headers }
    if (!BODILESS.has(status) && method !== 'HEAD') return new Response(bodyOf(incoming, options), init)
    incoming.resume()
    options.onEnd()
    return new Response(null, init)
  } catch (error) {
    incoming.destroy()
    throw error
  }
}

/** Headers for the decompressed body. */
function headersOf(incoming: IncomingMessage): Headers {
  const headers = new Headers()
  const { rawHeaders } = incoming
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i], rawHeaders[i + 1])
  if (headers.has('content-encoding')) headers.delete('content-length')
  headers.delete('content-encoding')
  return headers
}

function redirected(incoming: IncomingMessage, host: string): EgressRefused {
  const location = (incoming.headers.location ?? 'nowhere').replaceAll(/[^\x20-\x7e]/g, '?')
  return new EgressRefused(
    `${host} redirects to ${location.slice(0, LOCATION_LENGTH_MAX)}, and redirects are not followed; change the URL`,
    incoming.statusCode,
  )
}
