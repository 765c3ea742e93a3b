import { answerOutside } from './answer.ts'

interface ServerOptionsInput {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  readonly bodyTimeoutMs: number
  /** Idle connections are closed after this time, unless a route raises it with `server.timeout`. */
  readonly idleSeconds?: number
}

/** Seconds; Bun allows at most 255. */
const IDLE_SECONDS = 30
const IDLE_SECONDS_MAX = 255
/** Bun's timeout comes this long after the deadline of a body, so that our error response is sent first. */
const IDLE_GRACE_SECONDS = 5

/** Clients send little: subscriptions and pings. */
const MESSAGE_BYTES_MAX = 64 * 1024

const WEBSOCKET_OPTIONS = {
  maxPayloadLength: MESSAGE_BYTES_MAX,
  // Bun sends pings within the idle timeout, which detects clients that have disappeared.
  sendPings: true,
  // At this limit Bun silently drops messages. The much lower limits of feeds close the connection instead.
  backpressureLimit: 1024 * 1024 * 1024,
  closeOnBackpressureLimit: false,
  perMessageDeflate: false,
}

/**
 * Options of `Bun.serve`, passed to Elysia's `listen`. They let the service answer wherever Bun allows it.
 *
 * Bun itself answers malformed requests, before any of our code runs, with an empty body and a closed connection: 400
 * (request line, header, length, chunk, or no Host in HTTP/1.1), 431 (over 16 KiB or 200 headers), 505 (version). After an
 * unknown method, and for a client that is too slow to send its headers, it closes the connection without an answer.
 */
export function serverOptions({ host, port, bodyTimeoutMs, idleSeconds = IDLE_SECONDS }: ServerOptionsInput) {
  const bodySeconds = Math.ceil(bodyTimeoutMs / 1000) + IDLE_GRACE_SECONDS
  return {
    hostname: host,
    port,
    // Its error pages would show source code.
    development: false,
    // A second process on a port in use must fail, not share it.
    reusePort: false,
    // `BodyReader` enforces the limit and answers in the envelope. Bun's own limit answers with an empty body.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    idleTimeout: Math.min(IDLE_SECONDS_MAX, Math.max(idleSeconds, bodySeconds)),
    error: answerOutside,
    websocket: { ...WEBSOCKET_OPTIONS, idleTimeout: 2 * idleSeconds },
  }
}
