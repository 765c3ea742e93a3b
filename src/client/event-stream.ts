import { backoff, sleep } from './backoff.ts'
import { Deadline } from './deadline.ts'
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
const NO_CONTENT = 204

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
    const deadline = new Deadline(options.signal, SILENCE_MAX_MS)
    let delayMs = backoff(failures, BACKOFF_MAX_MS)
    try {
      const headers = { accept: 'text/event-stream', ...(after !== undefined && { 'last-event-id': after }) }
      const response = await http.send({ path: options.path, headers, signal: deadline.controller.signal })
      // The service has nothing left to send.
      if (response.status === NO_CONTENT || response.body === null) return
      for await (const event of read(response.body, deadline)) {
        failures = 0
        after = event.id ?? after
        if (event.data === undefined) continue
        last = event
        yield { ...event, data: event.data }
      }
      if (await options.isOver(last)) return
    } catch (error) {
      if (options.signal?.aborted === true) return
      if (!isTemporary(error)) throw error
      delayMs = Math.max(delayMs, retryAfterOf(error))
    } finally {
      deadline.close()
      deadline.controller.abort()
    }
    if (options.signal?.aborted === true) return
    await sleep(delayMs, options.signal)
  }
}

async function* read(body: ReadableStream<Uint8Array>, deadline: Deadline): AsyncGenerator<SseEvent> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const parser = new SseParser()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    deadline.restart()
    yield* parser.push(decoder.decode(value, { stream: true }))
  }
}

/** Splits the text of an event stream into events. */
class SseParser {
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
