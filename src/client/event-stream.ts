import { backoff, sleep } from './backoff.ts'
import { type Http, isTemporary, retryAfterOf } from './http.ts'

/** A frame of an event stream. Frames without data only say what position the stream has reached. */
export interface Frame {
  readonly id: string | undefined
  readonly event: string
  readonly data: string | undefined
}

export interface StreamOptions {
  /** Without the query that says where to start. */
  readonly path: string
  /** Start after the frame with this id. */
  readonly after: string | undefined
  readonly signal: AbortSignal | undefined
  /** Whether a stream that ended after this frame is over; otherwise it is opened again. */
  readonly isOver: (last: Frame | undefined) => boolean | Promise<boolean>
}

/** The service sends something at least every 10 s, so a longer silence is a lost connection. */
const SILENCE_MAX_MS = 30_000
const BACKOFF_MAX_MS = 10_000

/**
 * The frames with data of an event stream. After a lost connection it continues after the last frame received; nothing is
 * missed or repeated.
 *
 * @throws ServiceError when the service refuses the stream
 */
export async function* frames(http: Http, options: StreamOptions): AsyncGenerator<Frame & { readonly data: string }> {
  let { after } = options
  let last: Frame | undefined
  for (let failures = 0; ; failures++) {
    const connection = new Connection(http, options.signal)
    let delayMs = backoff(failures, BACKOFF_MAX_MS)
    try {
      for await (const frame of connection.open(options.path, after)) {
        failures = 0
        after = frame.id ?? after
        if (frame.data === undefined) continue
        last = frame
        yield { ...frame, data: frame.data }
      }
      if (connection.isOver || (await options.isOver(last))) return
    } catch (error) {
      if (options.signal?.aborted === true) return
      if (!isTemporary(error)) throw error
      delayMs = Math.max(delayMs, retryAfterOf(error))
    } finally {
      connection.close()
    }
    if (options.signal?.aborted === true) return
    await sleep(delayMs, options.signal)
  }
}

/** One response of a stream. */
class Connection {
  /** The service says that there is nothing left to send. */
  isOver = false
  private readonly abort = new AbortController()
  private readonly onAbort = () => this.abort.abort()
  private silence: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly http: Http,
    private readonly signal: AbortSignal | undefined,
  ) {
    signal?.addEventListener('abort', this.onAbort)
    if (signal?.aborted === true) this.onAbort()
  }

  async *open(path: string, after: string | undefined): AsyncGenerator<Frame> {
    this.heard()
    const headers = { accept: 'text/event-stream', ...(after !== undefined && { 'last-event-id': after }) }
    const response = await this.http.send({ path, headers, signal: this.abort.signal })
    if (response.status === NO_CONTENT || response.body === null) {
      this.isOver = true
      return
    }
    const reader = response.body.getReader()
    const decoder = new TextDecoder()
    const parser = new FrameParser()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      this.heard()
      yield* parser.push(decoder.decode(value, { stream: true }))
    }
  }

  close(): void {
    clearTimeout(this.silence)
    this.signal?.removeEventListener('abort', this.onAbort)
    this.abort.abort()
  }

  private heard(): void {
    clearTimeout(this.silence)
    this.silence = setTimeout(() => this.abort.abort(), SILENCE_MAX_MS)
  }
}

const NO_CONTENT = 204

/** Splits the text of an event stream into frames. */
export class FrameParser {
  private rest = ''
  private id: string | undefined
  private event = ''
  private data: string | undefined;

  *push(text: string): Generator<Frame> {
    const lines = (this.rest + text).split('\n')
    this.rest = lines.pop() ?? ''
    for (const line of lines) {
      const frame = this.line(line.endsWith('\r') ? line.slice(0, -1) : line)
      if (frame !== undefined) yield frame
    }
  }

  private line(line: string): Frame | undefined {
    if (line === '') return this.end()
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (name === 'id') this.id = value
    else if (name === 'event') this.event = value
    else if (name === 'data') this.data = this.data === undefined ? value : `${this.data}\n${value}`
    return undefined
  }

  private end(): Frame | undefined {
    const { id, event, data } = this
    this.id = undefined
    this.event = ''
    this.data = undefined
    return id === undefined && data === undefined ? undefined : { id, event: event || 'message', data }
  }
}
