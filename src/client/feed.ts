import { sseEvents } from './event-stream.ts'
import type { components } from './generated/api.ts'
import type { Http } from './http.ts'
import { queryString } from './request.ts'

/** An event, or the record of a task or run after a change. */
export type Activity = components['schemas']['Activity']

/** Activity between two positions is lost: retention has deleted it, or the service has lost a disk. */
export interface Gap {
  readonly kind: 'gap'
  readonly after: string
  readonly resumed_at: string
}

type OneOrMore<T> = T | readonly T[]

/** What a feed contains (docs/specification.md#filters). */
export interface FeedFilter {
  readonly agentId?: OneOrMore<string> | undefined
  readonly runId?: OneOrMore<string> | undefined
  readonly kind?: OneOrMore<components['schemas']['ActivityKind']> | undefined
  /** Types of events; a trailing `*` matches a prefix. */
  readonly type?: OneOrMore<string> | undefined
  /** Events of at least this level. */
  readonly level?: components['schemas']['EventLevel'] | undefined
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
