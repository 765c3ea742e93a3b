import { answerOutside } from './answer.ts'

export interface ServerOptionsInput {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  readonly bodyTimeoutMs: number
}

/** A connection silent for longer is cut, unless a route asks for more with `server.timeout`. Bun takes 255 at most. */
const IDLE_SECONDS_MIN = 30
const IDLE_SECONDS_MAX = 255
/** How long after a body's deadline Bun may step in: late enough that our answer comes first. */
const IDLE_GRACE_SECONDS = 5

/**
 * Options of `Bun.serve`, given to Elysia's `listen`, such that answers are ours wherever Bun lets us give them.
 *
 * Bun itself answers what it cannot read as a request, before any of our code runs, with an empty body and a closed
 * connection: 400 (request line, header, length, chunk, or no Host in HTTP/1.1), 431 (over 16 KiB or 200 headers), 505
 * (version); an unknown method just closes. A client that dawdles over its headers is cut off without an answer.
 */
export function serverOptions({ host, port, bodyTimeoutMs }: ServerOptionsInput) {
  const idleSeconds = Math.ceil(bodyTimeoutMs / 1000) + IDLE_GRACE_SECONDS
  return {
    hostname: host,
    port,
    // Its error pages would show our source.
    development: false,
    // A second process on a port in use must fail, not share it.
    reusePort: false,
    // The readers of bodies hold the limit, in the envelope. Bun's own limit would answer with an empty page.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    idleTimeout: Math.min(IDLE_SECONDS_MAX, Math.max(IDLE_SECONDS_MIN, idleSeconds)),
    error: answerOutside,
    websocket: WEBSOCKET_OPTIONS,
  }
}

/** Clients send little: subscriptions and pings. */
const MESSAGE_BYTES_MAX = 64 * 1024

const WEBSOCKET_OPTIONS = {
  maxPayloadLength: MESSAGE_BYTES_MAX,
  // Bun pings within it, and so finds connections whose client is gone without a word.
  idleTimeout: 60,
  sendPings: true,
  // At its limit Bun would drop messages in silence. The bounds of feeds, which come long before, close them instead.
  backpressureLimit: 1024 * 1024 * 1024,
  closeOnBackpressureLimit: false,
  perMessageDeflate: false,
}
