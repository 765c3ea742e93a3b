import type { components } from './generated/api.ts'
import { type Http, isTemporary, retryAfterOf } from './http.ts'
import { queryString } from './request.ts'
import { backoff, Deadline, sleep } from './timing.ts'

type Schemas = components['schemas']

/** An event, or the record of a task or run after a change. */
export type Activity = Schemas['Activity']

/** Activity between two positions is lost: retention has deleted it, or the service has lost a disk. */
export interface Gap {
  readonly kind: 'gap'
  readonly after: string
  readonly resumed_at: string
}

type OneOrMore<T> = T | readonly T[]

/** What a feed contains (docs/feeds.md#filters). */
export interface FeedFilter {
  readonly agentId?: OneOrMore<string> | undefined
  readonly runId?: OneOrMore<string> | undefined
  readonly kind?: OneOrMore<Schemas['ActivityKind']> | undefined
  /** Types of events; a trailing `*` matches a prefix. */
  readonly type?: OneOrMore<string> | undefined
  /** Events of at least this level. */
  readonly level?: Schemas['EventLevel'] | undefined
  readonly status?: OneOrMore<string> | undefined
  readonly tag?: OneOrMore<string> | undefined
}

export interface FeedOptions {
  /** The `cursor` of an activity; `0` is the oldest retained one. Default: new activity only. */
  readonly after?: string | undefined
  /** Ends the feed. */
  readonly signal?: AbortSignal | undefined
}

/** The activity of a workspace, without an end. */
export function feed(http: Http, filter: FeedFilter, options: FeedOptions): AsyncGenerator<Activity | Gap> {
  const { agentId, runId, kind, type, level, status, tag } = filter
  const query = { agent_id: agentId, run_id: runId, kind, type, level, status, tag }
  return activities(http, `/api/v1/stream${queryString(query)}`, options)
}

/** The activity of one run, until the run has ended. */
export function follow(http: Http, runId: string, options: FeedOptions): AsyncGenerator<Activity | Gap> {
  return activities(http, `/api/v1/runs/${encodeURIComponent(runId)}/stream`, options)
}

async function* activities(http: Http, path: string, { after, signal }: FeedOptions): AsyncGenerator<Activity | Gap> {
  // The service answers 204 when a run has ended and everything was received.
  for await (const { event, data } of sseEvents(http, { path, after, signal, isOver: () => false })) {
    const parsed = JSON.parse(data) as Activity | Omit<Gap, 'kind'>
    yield event === 'gap' ? { ...(parsed as Omit<Gap, 'kind'>), kind: 'gap' } : (parsed as Activity)
  }
}

/** A part of the output of a hosted run (docs/hosted-agents.md#output-streams). */
export type OutputFrame = { readonly id: string } & (
  | { readonly event: 'chunk'; readonly data: Schemas['OutputChunk'] }
  | { readonly event: 'tool'; readonly data: Schemas['OutputTool'] }
  | { readonly event: 'done'; readonly data: Schemas['OutputDone'] }
  | { readonly event: 'awaiting_approval'; readonly data: Schemas['OutputAwaitingApproval'] }
  | { readonly event: 'awaiting_input'; readonly data: Schemas['OutputAwaitingInput'] }
  | { readonly event: 'error'; readonly data: Schemas['OutputError'] }
)

export interface OutputOptions {
  /** The `id` of a frame. Default: from the beginning. */
  readonly after?: string | undefined
  /** Ends the stream. */
  readonly signal?: AbortSignal | undefined
}

/**
 * The output of a run, as it is produced. A pause is a frame, too: reading on after it ends the stream, unless the pause has
 * been decided by then.
 */
export async function* output(
  http: Http,
  runId: string,
  { after, signal }: OutputOptions,
): AsyncGenerator<OutputFrame> {
  const path = `/api/v1/runs/${encodeURIComponent(runId)}`
  // A stream also ends when the service stops.
  const isOver = async (last: SseEvent | undefined) =>
    (last !== undefined && ['done', 'error'].includes(last.event)) || !(await isExecuting(http, path))
  let from = after
  let pause: string | undefined
  for (let isPaused = true; isPaused; ) {
    isPaused = false
    for await (const { id, event, data } of sseEvents(http, {
      path: `${path}/output-stream`,
      after: from,
      signal,
      isOver,
    })) {
      isPaused = event === 'awaiting_approval' || event === 'awaiting_input'
      // A pause is sent again for as long as it has not been decided.
      if (isPaused && data === pause) return
      if (isPaused) pause = data
      from = id ?? from
      yield { id: id ?? '', event, data: JSON.parse(data) } as OutputFrame
      if (isPaused) break
    }
  }
}

async function isExecuting(http: Http, path: string): Promise<boolean> {
  const { status } = (await http.call({ path })) as Schemas['Run']
  return status === 'queued' || status === 'running'
}

/** An event of an event stream. Those without data only move the position from which the stream is resumed. */
interface SseEvent {
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
async function* sseEvents(http: Http, options: StreamOptions): AsyncGenerator<SseEvent & { readonly data: string }> {
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
