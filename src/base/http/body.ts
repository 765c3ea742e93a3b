import { isUtf8 } from 'node:buffer'
import { ApiError, invalid } from '../errors.ts'
import { isObject } from '../json-object.ts'
import type { Limits } from '../limits.ts'
import { RawJson } from '../raw-json.ts'
import { BodyBudget, type BodyHold } from './body-budget.ts'
import { inflate, inflateAsync, join, tooLarge } from './inflate.ts'
import { parseJson } from './json-reader.ts'
import { shown } from './validation-message.ts'

/** Memory that a chunk takes in addition to its bytes; a body may arrive in chunks of one byte. */
const CHUNK_OVERHEAD_BYTES = 128

/** A request body as received: unchecked, possibly compressed. */
export class RawBody {
  constructor(
    readonly bytes: Uint8Array,
    /** Counts the body as in flight; released when the request is answered. */
    readonly hold: BodyHold,
  ) {}
}

const UNREADABLE = { reason: 'body_unreadable' } as const
const NO_BODY = Promise.resolve(new RawBody(new Uint8Array(0), new BodyBudget(0).hold('', 0)))

/** An error after which the rest of the request is not read: the response closes the connection. */
export class HangUp extends ApiError {
  override readonly name = 'HangUp'
}

export interface BodyReaderOptions {
  readonly limits: Pick<Limits, 'body_bytes' | 'json_depth'>
  /** Longest time that a body may take to arrive, however it is spread over that time. */
  readonly bodyTimeoutMs: number
  /** Limit for all bodies in flight together. */
  readonly bodyBytesInFlight: number
}

interface BodyContext {
  readonly request: Request
  body: unknown
  bodyBytes: Uint8Array
}

export function bodyReader({ limits, bodyTimeoutMs, bodyBytesInFlight }: BodyReaderOptions): BodyReader {
  return new BodyReader(limits, new Deadlines(bodyTimeoutMs), new BodyBudget(bodyBytesInFlight))
}

/** Reads request bodies within limits of size, memory and time (docs/api.md#request-limits). */
export class BodyReader {
  constructor(
    private readonly limits: BodyReaderOptions['limits'],
    private readonly deadlines: Deadlines,
    private readonly budget: BodyBudget,
  ) {}

  /** A reader with another limit for a body, and the same budget for all of them. */
  withLimit(bodyBytes: number): BodyReader {
    return new BodyReader({ ...this.limits, body_bytes: bodyBytes }, this.deadlines, this.budget)
  }

  /** Checks Content-Length; called before the key is checked. @throws ApiError PAYLOAD_TOO_LARGE */
  checkLength(request: Request): void {
    if (Number(request.headers.get('content-length')) > this.limits.body_bytes) throw tooLarge(this.limits.body_bytes)
  }

  /**
   * The body as sent; empty if there is none. Call it only after the key has been accepted, so that unauthenticated
   * requests use no memory. Counts the declared length up front; a body without one is counted as it arrives.
   *
   * @param owner the workspace whose budget the bytes count against
   * @throws ApiError PAYLOAD_TOO_LARGE; UNAVAILABLE if too many bodies are in flight; VALIDATION_ERROR if it does not arrive
   *   in time or is incomplete
   */
  read(request: Request, owner: string): Promise<RawBody> {
    const declared = request.headers.get('content-length')
    // Accessed last, because accessing it makes Bun create a stream.
    const stream = declared === null ? request.body : null
    if (declared === '0' || (declared === null && stream === null)) return NO_BODY
    const hold = this.budget.hold(owner, Number(declared) || 0)
    const arriving = stream === null ? request.bytes() : readStream(stream, this.limits.body_bytes, hold)
    return this.deadlines.race(arriving).then(
      (bytes) => new RawBody(bytes, hold),
      (error) => {
        hold.release()
        throw error
      },
    )
  }

  /** The decompressed body, within the limit. @throws ApiError PAYLOAD_TOO_LARGE, UNAVAILABLE, VALIDATION_ERROR */
  inflate(request: Request, { bytes, hold }: RawBody): Uint8Array {
    const inflated = inflate(bytes, request.headers.get('content-encoding'), this.limits.body_bytes)
    if (inflated !== bytes) hold.grow(inflated.length)
    return inflated
  }

  /** Like {@link inflate}, without stopping the event loop. */
  inflateAsync(request: Request, { bytes, hold }: RawBody): Promise<Uint8Array> {
    const grow = (added: number) => hold.grow(added)
    return inflateAsync(bytes, request.headers.get('content-encoding'), { maxBytes: this.limits.body_bytes, grow })
  }

  /**
   * The text to parse as JSON: Content-Type checked, decompressed, valid UTF-8.
   * @throws ApiError PAYLOAD_TOO_LARGE, UNAVAILABLE, VALIDATION_ERROR
   */
  open(request: Request, body: RawBody): Uint8Array {
    checkContentType(request.headers.get('content-type'))
    const text = this.inflate(request, body)
    checkUtf8(text)
    return text
  }

  /**
   * For `onTransform`: sets `context.body` to the parsed object and `context.bodyBytes` to its bytes. A missing body counts
   * as `{}`, so that the route's schema names the missing fields.
   */
  readonly transform = (context: BodyContext): void => {
    const raw = context.body
    if (!(raw instanceof RawBody)) return
    context.body = {}
    if (raw.bytes.length === 0) return
    const text = this.open(context.request, raw)
    const value = parseJson(text, this.limits.json_depth, SentJson)
    if (!isObject(value)) throw invalid('body', `expected a JSON object; got ${shown(value)}`)
    context.body = value
    context.bodyBytes = text
  }
}

/** A free-form object of a body. */
class SentJson extends RawJson {
  /**
   * The framework stringifies every body that it refuses, for a message that nobody reads. To parse 10 MiB for it would stop
   * the event loop for seconds.
   */
  override toJSON(): string {
    return `${this.text.length} characters`
  }
}

/** Reads a body of unknown length and counts its bytes as they arrive. */
async function readStream(stream: ReadableStream<Uint8Array>, maxBytes: number, hold: BodyHold): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = stream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return join(chunks, length)
    length += value.length
    try {
      if (length > maxBytes) throw tooLarge(maxBytes)
      hold.grow(value.length + CHUNK_OVERHEAD_BYTES)
    } catch (error) {
      // Not awaited: it may never settle, and the connection is about to be closed.
      reader.cancel().catch(() => {})
      const { code, message, reason, param } = error as ApiError
      throw new HangUp(code as 'PAYLOAD_TOO_LARGE', message, { reason, param })
    }
    chunks.push(value)
  }
}

/**
 * Accepts `application/json` or no Content-Type. Anything else is usually curl's form default, so an error helps more
 * than a guess.
 */
function checkContentType(contentType: string | null): void {
  if (contentType === null || contentType === '' || contentType === 'application/json') return
  const [type, ...parameters] = contentType.toLowerCase().split(';')
  const charset = parameters.map((parameter) => parameter.trim()).find((parameter) => parameter.startsWith('charset='))
  const isUtf8Charset = charset === undefined || /^charset="?(utf-?8|us-ascii)"?$/.test(charset)
  if (type.trim() === 'application/json' && isUtf8Charset) return
  throw invalid(
    'header Content-Type',
    `expected application/json in UTF-8; got ${JSON.stringify(contentType.slice(0, 80))}`,
  )
}

/** @throws ApiError VALIDATION_ERROR */
export function checkUtf8(bytes: Uint8Array): void {
  const [first, second, third] = bytes
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff) || first === 0 || second === 0)
    throw invalid('body', 'expected UTF-8; this looks like UTF-16 or UTF-32', UNREADABLE)
  if (first === 0xef && second === 0xbb && third === 0xbf)
    throw invalid('body', 'expected JSON without a byte order mark (EF BB BF) before it', UNREADABLE)
  if (!isUtf8(bytes)) throw invalid('body', `not valid UTF-8 at byte ${firstBadByte(bytes)}`, UNREADABLE)
}

/** Position of the first byte that makes the text invalid UTF-8. */
function firstBadByte(bytes: Uint8Array): number {
  let good = 0
  let bad = bytes.length
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    if (validLength(bytes, middle) === -1) bad = middle
    else good = middle
  }
  return validLength(bytes, good)
}

/**
 * How many of the first `length` bytes are valid, ignoring an incomplete sequence at the end; -1 if they are invalid.
 */
function validLength(bytes: Uint8Array, length: number): number {
  for (let end = length; end >= Math.max(0, length - 3); end--) if (isUtf8(bytes.subarray(0, end))) return end
  return -1
}

/**
 * One timer for all bodies being read, because a timer for each would cost more than reading most of them. All have the
 * same timeout, so the order of the map is the order of the deadlines.
 */
class Deadlines {
  /** When each body is due, by what rejects its promise. */
  private readonly waiting = new Map<(error: ApiError) => void, number>()
  private armed = false

  constructor(private readonly timeoutMs: number) {}

  race(body: Promise<Uint8Array>): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.waiting.set(reject, performance.now() + this.timeoutMs)
      if (!this.armed) this.arm(this.timeoutMs)
      body.then(
        (bytes) => {
          this.waiting.delete(reject)
          resolve(bytes)
        },
        (error) => {
          this.waiting.delete(reject)
          reject(error instanceof ApiError ? error : brokenOff(error))
        },
      )
    })
  }

  private arm(delayMs: number): void {
    this.armed = true
    setTimeout(() => this.sweep(), delayMs).unref()
  }

  private sweep(): void {
    this.armed = false
    const now = performance.now()
    for (const [reject, dueMs] of this.waiting) {
      // Timers may fire up to a millisecond early.
      if (dueMs > now + 1) {
        this.arm(dueMs - now)
        return
      }
      this.waiting.delete(reject)
      reject(new HangUp('VALIDATION_ERROR', `body: did not arrive within ${this.timeoutMs} ms`, { param: 'body' }))
    }
  }
}

function brokenOff(cause: unknown): ApiError {
  return new HangUp('VALIDATION_ERROR', 'body: the connection ended before the body did', { param: 'body', cause })
}
