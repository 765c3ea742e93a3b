import { type Http, isTemporary, retryAfterOf } from './http.ts'
import { backoff, Deadline, sleep } from './timing.ts'

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
/** A line of an event stream: a name and a value. */
const FIELD = /^([^:\r]*)(?:: ?(.*?))?\r?$/s

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
  let rest = ''
  /** The fields of the event whose end has not arrived yet. */
  let fields: { id?: string; event?: string; data?: string } = {}
  for (;;) {
    const { done, value: bytes } = await reader.read()
    if (done) return
    deadline.restart()
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [text, name, value = ''] = FIELD.exec(line) ?? []
      if (text === '' || text === '\r') {
        const { id, event, data } = fields
        fields = {}
        if (id !== undefined || data !== undefined) yield { id, event: event || 'message', data }
      } else if (name === 'id' || name === 'event') fields[name] = value
      else if (name === 'data') fields.data = fields.data === undefined ? value : `${fields.data}\n${value}`
    }
  }
}
