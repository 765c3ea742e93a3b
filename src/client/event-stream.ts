import { backoff, sleep } from './backoff.ts'
import { type Http, isTemporary, retryAfterOf } from './http.ts'

/** An event of an event stream. Those without data only move the position from which the stream is resumed. */
export interface SseEvent {
  readonly id: string | undefined
  readonly event: string
  readonly data: string | undefined
}

interface StreamOptions {
  /** Without the query that says where to start. */
  readonly path: string
  /** Start after the event with this id. */
  readonly after: string | undefined
  readonly signal: AbortSignal | undefined
  /** Whether a stream that ended after this event is over; otherwise it is opened again. */
  readonly isOver: (last: SseEvent | undefined) => boolean | Promise<boolean>
}

/** The service sends something at least every 10 s, so a longer silence is a lost connection. */
const SILENCE_MAX_MS = 30_000
const BACKOFF_MAX_MS = 10_000

/**
 * The events with data of an event stream. After a lost connection it continues after the last event received; nothing is
 * missed or repeated.
 *
 * @throws ServiceError when the service refuses the stream
 */
export async function* sseEvents(
  http: Http,
  options: StreamOptions,
): AsyncGenerator<SseEvent & { readonly data: string }> {
  let { after } = options
  let last: SseEvent | undefined
  for (let failures = 0; ; failures++) {
    const connection = new SseConnection(http, options.signal)
    let delayMs = backoff(failures, BACKOFF_MAX_MS)
    try {
      for await (const event of connection.open(options.path, after)) {
        failures = 0
        after = event.id ?? after
        if (event.data === undefined) continue
        last = event
        yield { ...event, data: event.data }
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
class SseConnection {
  /** Whether the service has answered that there is nothing left to send. */
  isOver = false
  private readonly abort = new AbortController()
  private readonly onAbort = () => this.abort.abort()
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly http: Http,
    private readonly signal: AbortSignal | undefined,
  ) {
    signal?.addEventListener('abort', this.onAbort)
    if (signal?.aborted === true) this.onAbort()
  }

  async *open(path: string, after: string | undefined): AsyncGenerator<SseEvent> {
    this.restartTimer()
    const headers = { accept: 'text/event-stream', ...(after !== undefined && { 'last-event-id': after }) }
    const response = await this.http.send({ path, headers, signal: this.abort.signal })
    if (response.status === NO_CONTENT || response.body === null) {
      this.isOver = true
      return
    }
    const reader = response.body.getReader()
    const decoder = new TextDecoder()
    const parser = new SseParser()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      this.restartTimer()
      yield* parser.push(decoder.decode(value, { stream: true }))
    }
  }

  close(): void {
    clearTimeout(this.timer)
    this.signal?.removeEventListener('abort', this.onAbort)
    this.abort.abort()
  }

  private restartTimer(): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.abort.abort(), SILENCE_MAX_MS)
  }
}

const NO_CONTENT = 204

/** Splits the text of an event stream into events. */
export class SseParser {
  private rest = ''
  private id: string | undefined
  private event = ''
  private data: string | undefined;

  *push(text: string): Generator<SseEvent> {
    const lines = (this.rest + text).split('\n')
    this.rest = lines.pop() ?? ''
    for (const line of lines) {
      const event = this.line(line.endsWith('\r') ? line.slice(0, -1) : line)
      if (event !== undefined) yield event
    }
  }

  private line(line: string): SseEvent | undefined {
    if (line === '') return this.end()
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (name === 'id') this.id = value
    else if (name === 'event') this.event = value
    else if (name === 'data') this.data = this.data === undefined ? value : `${this.data}\n${value}`
    return undefined
  }

  private end(): SseEvent | undefined {
    const { id, event, data } = this
    this.id = undefined
    this.event = ''
    this.data = undefined
    return id === undefined && data === undefined ? undefined : { id, event: event || 'message', data }
  }
}
