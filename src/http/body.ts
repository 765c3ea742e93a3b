import { isUtf8 } from 'node:buffer'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import type { Limits } from '../config.ts'
import { BodyBudget, type BodyHold } from './body-budget.ts'
import { ApiError, invalid } from './errors.ts'
import { parseJson } from './json-reader.ts'
import { shown } from './validation-message.ts'

/** What a client sent, as it came: unchecked, perhaps compressed. */
export class RawBody {
  constructor(
    readonly bytes: Uint8Array,
    /** Counts it as in flight; whoever answers the call releases it. */
    readonly hold: BodyHold,
  ) {}
}

/** An error after which the rest of the request is not worth reading: the answer closes the connection. */
export class HangUp extends ApiError {
  override readonly name = 'HangUp'
}

export interface BodyReaderOptions {
  readonly limits: Pick<Limits, 'body_bytes' | 'json_depth'>
  /** Longest a body may take to arrive, however busily it drips. */
  readonly bodyTimeoutMs: number
  /** Bytes of all bodies that may be in flight. */
  readonly bodyBytesInFlight: number
}

/** Reads request bodies, each step bounded (docs/specification.md#request-limits: limits, compression). */
export interface BodyReader {
  /** All that the headers tell of a body's size, before the key is judged. @throws ApiError PAYLOAD_TOO_LARGE */
  checkLength(request: Request): void
  /**
   * The body as sent; empty if there is none. Only to be called once the key has been accepted: what strangers send is
   * never held in memory.
   *
   * @param owner the workspace that the bytes in flight count for
   * @throws ApiError PAYLOAD_TOO_LARGE past the limit, UNAVAILABLE past that of all bodies in flight, VALIDATION_ERROR if it
   *   does not arrive in time or not whole
   */
  read(request: Request, owner: string): Promise<RawBody>
  /** The body without its `Content-Encoding`, within the limit. @throws ApiError PAYLOAD_TOO_LARGE, UNAVAILABLE, VALIDATION_ERROR */
  inflate(request: Request, body: RawBody): Uint8Array
  /**
   * What JSON is parsed from: Content-Type checked, inflated, valid UTF-8.
   * @throws ApiError PAYLOAD_TOO_LARGE, UNAVAILABLE, VALIDATION_ERROR
   */
  open(request: Request, body: RawBody): Uint8Array
  /**
   * For `onTransform`: puts the parsed object into `context.body` and the bytes it came from into `context.bodyBytes`.
   * An absent body counts as `{}`; the route's schema names what is missing.
   */
  transform(context: BodyContext): void
}

interface BodyContext {
  readonly request: Request
  body: unknown
  bodyBytes: Uint8Array
}

const NO_BODY = Promise.resolve(new RawBody(new Uint8Array(0), { grow() {}, release() {} }))

export function bodyReader({ limits, bodyTimeoutMs, bodyBytesInFlight }: BodyReaderOptions): BodyReader {
  const deadlines = new Deadlines(bodyTimeoutMs)
  const budget = new BodyBudget(bodyBytesInFlight)

  const checkLength = (request: Request): void => {
    if (Number(request.headers.get('content-length')) > limits.body_bytes) throw tooLarge(limits.body_bytes)
  }

  /** Counts what is read from the start, or, when its length is not announced, as it comes. */
  const read = (request: Request, owner: string): Promise<RawBody> => {
    const declared = request.headers.get('content-length')
    // Looked at last, because looking makes Bun create a stream.
    const stream = declared === null ? request.body : null
    if (declared === '0' || (declared === null && stream === null)) return NO_BODY
    const hold = budget.hold(owner, Number(declared) || 0)
    const arriving = stream === null ? request.bytes() : readStream(stream, limits.body_bytes, hold)
    return deadlines.race(arriving).then(
      (bytes) => new RawBody(bytes, hold),
      (error) => {
        hold.release()
        throw error
      },
    )
  }

  const inflateBody = (request: Request, { bytes, hold }: RawBody): Uint8Array => {
    const inflated = inflate(bytes, request.headers.get('content-encoding'), limits.body_bytes)
    if (inflated !== bytes) hold.grow(inflated.length)
    return inflated
  }

  const open = (request: Request, body: RawBody): Uint8Array => {
    checkContentType(request.headers.get('content-type'))
    const text = inflateBody(request, body)
    checkUtf8(text)
    return text
  }

  return {
    checkLength,
    read,
    inflate: inflateBody,
    open,
    transform(context) {
      const raw = context.body
      if (!(raw instanceof RawBody)) return
      context.body = {}
      if (raw.bytes.length === 0) return
      const text = open(context.request, raw)
      const value = parseJson(text, limits.json_depth)
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        throw invalid('body', `expected a JSON object; got ${shown(value)}`)
      context.body = value
      context.bodyBytes = text
    },
  }
}

/**
 * Undoes a `Content-Encoding`, never holding more than `maxBytes` of the result: a bomb ends at the bound.
 * @throws ApiError PAYLOAD_TOO_LARGE, VALIDATION_ERROR
 */
export function inflate(bytes: Uint8Array, encoding: string | null, maxBytes: number): Uint8Array {
  if (encoding === null) return bytes
  const name = encoding.trim().toLowerCase()
  if (name === '' || name === 'identity') return bytes
  const decompress =
    name === 'gzip' || name === 'x-gzip' ? gunzipSync : name === 'zstd' ? zstdDecompressSync : undefined
  if (decompress === undefined)
    throw invalid(
      'header Content-Encoding',
      `expected gzip, zstd or identity; got ${JSON.stringify(encoding.slice(0, 80))}`,
    )
  try {
    return decompress(bytes, { maxOutputLength: maxBytes })
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge(maxBytes)
    throw new ApiError('VALIDATION_ERROR', `body: not valid ${name} data`, { cause: error })
  }
}

export function tooLarge(maxBytes: number): ApiError {
  return new ApiError('PAYLOAD_TOO_LARGE', `body: expected at most ${maxBytes} bytes, also when inflated`)
}

/** What a chunk takes besides its bytes: a body may come in chunks of one byte. */
const CHUNK_OVERHEAD_BYTES = 128

/** A body of unknown length: counted while it comes, because nothing else bounds it. */
async function readStream(stream: ReadableStream<Uint8Array>, maxBytes: number, hold: BodyHold): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = stream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, length)
    length += value.length
    try {
      if (length > maxBytes) throw tooLarge(maxBytes)
      hold.grow(value.length + CHUNK_OVERHEAD_BYTES)
    } catch (error) {
      // Not awaited: the source may never settle, and the connection is about to be closed.
      reader.cancel().catch(() => {})
      const { code, message } = error as ApiError
      throw new HangUp(code, message)
    }
    chunks.push(value)
  }
}

/** `application/json`, or nothing said. Anything else is most often curl's form default: better told than guessed. */
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

function checkUtf8(bytes: Uint8Array): void {
  const [first, second, third] = bytes
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff) || first === 0 || second === 0)
    throw invalid('body', 'expected UTF-8; this looks like UTF-16 or UTF-32')
  if (first === 0xef && second === 0xbb && third === 0xbf)
    throw invalid('body', 'expected JSON without a byte order mark (EF BB BF) before it')
  if (!isUtf8(bytes)) throw invalid('body', `not valid UTF-8 at byte ${firstBadByte(bytes)}`)
}

/** Where the first byte stands that no UTF-8 text continues with. */
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

/** How much of the first `length` bytes is valid, at most one sequence left out at their end; -1 if more is wrong. */
function validLength(bytes: Uint8Array, length: number): number {
  for (let end = length; end >= Math.max(0, length - 3); end--) if (isUtf8(bytes.subarray(0, end))) return end
  return -1
}

interface Waiting {
  readonly dueMs: number
  expire(): void
}

/**
 * One timer for all bodies on their way, because a timer for each would cost more than reading most of them. All wait
 * equally long, so the set's order is the order in which they fall due.
 */
class Deadlines {
  private readonly waiting = new Set<Waiting>()
  private armed = false

  constructor(private readonly timeoutMs: number) {}

  race(body: Promise<Uint8Array>): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const entry: Waiting = { dueMs: performance.now() + this.timeoutMs, expire: () => reject(this.late()) }
      this.waiting.add(entry)
      if (!this.armed) this.arm(this.timeoutMs)
      body.then(
        (bytes) => {
          this.waiting.delete(entry)
          resolve(bytes)
        },
        (error) => {
          this.waiting.delete(entry)
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
    for (const entry of this.waiting) {
      // Timers fire up to a millisecond early.
      if (entry.dueMs > now + 1) {
        this.arm(entry.dueMs - now)
        return
      }
      this.waiting.delete(entry)
      entry.expire()
    }
  }

  private late(): ApiError {
    return new HangUp('VALIDATION_ERROR', `body: did not arrive within ${this.timeoutMs} ms`)
  }
}

function brokenOff(cause: unknown): ApiError {
  return new HangUp('VALIDATION_ERROR', 'body: the connection ended before the body did', { cause })
}
