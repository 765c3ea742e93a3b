import { Elysia } from 'elysia'
import { RunParams } from '../../activity/runs/schema.ts'
import { isTerminal } from '../../activity/runs/state.ts'
import type { RunStore } from '../../activity/runs/store.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import { eventStreamResponse } from '../../base/http/event-stream.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import type { FeedCaller } from '../../tenants/keys/schema.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import type { Feeds, Partitions } from '../../tenants/partitions/partition.ts'
import { EventStream, type EventStreamDeps, type EventStreamOptions } from './event-stream.ts'
import { type FeedSource, startOf } from './feed-source.ts'
import { FILTER_FIELDS, type FilterInput, parseFilter } from './filter.ts'
import { WEBSOCKET } from './message-schema.ts'
import { ACTIVITY_STREAM, LiveQuery, RunStreamQuery, StreamQuery } from './schema.ts'
import { WebSocketConnection, type WebSocketDeps } from './websocket.ts'

export interface LiveDeps extends Omit<EventStreamDeps & WebSocketDeps, 'source'> {
  readonly feeds: Feeds<FeedSource>
  readonly partitions: Pick<Partitions, 'of'>
  readonly runs: Pick<RunStore, 'status'>
}

interface LiveRoutesDeps {
  readonly guards: Guards
  readonly live: LiveDeps
}

/** A token and FEED_ORIGINS decide who may open a feed; no cookie is involved. */
const ANY_ORIGIN = { 'access-control-allow-origin': '*' }
const STREAM_DETAIL = {
  operationId: 'streamActivity',
  summary: 'Follow activity (server-sent events)',
  description:
    'Conditions are combined with AND. A condition on a field that a kind of activity does not have excludes that kind: ' +
    '`level=warn` returns events only.',
  query: StreamQuery,
  responses: { 200: ACTIVITY_STREAM },
}
const RUN_STREAM_DETAIL = {
  operationId: 'streamRun',
  summary: 'Follow one run (server-sent events)',
  description: 'Returns 204 if the run has ended and the client has received all of it, so that an EventSource stops.',
  query: RunStreamQuery,
  responses: {
    200: ACTIVITY_STREAM,
    204: { description: 'The run has ended and the client has received all of it.' },
  },
}

const LIVE_DETAIL = {
  operationId: 'openLive',
  summary: 'Follow activity (WebSocket)',
  description:
    'One connection carries many subscriptions, each with a filter and a position of its own. `x-websocket` ' +
    'has the schemas of the messages and the close codes.',
  'x-websocket': WEBSOCKET,
  responses: { 101: { description: 'The connection is a WebSocket now.' } },
}

/** Live feeds: event streams and the WebSocket (docs/feeds.md). */
export function liveRoutes({ guards, live }: LiveRoutesDeps) {
  return new Elysia({ prefix: '/api/v1', detail: { security: SECURITY.feed, tags: ['Feeds'] } })
    .use(guards.feed)
    .get('/stream', ({ feed, request, server }) => streamAll(live, feed, request, () => server?.timeout(request, 0)), {
      detail: STREAM_DETAIL,
    })
    .get(
      '/runs/:run_id/stream',
      ({ feed, request, params, server }) =>
        streamRun(live, feed, request, params.run_id.toLowerCase(), () => server?.timeout(request, 0)),
      { params: RunParams, detail: RUN_STREAM_DETAIL },
    )
    .get(
      '/live',
      async ({ feed, request, server }) => {
        if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket')
          throw new ApiError('VALIDATION_ERROR', 'connect to this URL with a WebSocket client')
        if (server === null) throw new Error('no server')
        const source = await live.feeds.of(feed.caller)
        const data = new WebSocketConnection({ ...live, source }, feed, server)
        // Bun opens the connection before `upgrade` returns.
        if (await live.connections.admit(feed, () => server.upgrade(request, { data: data as never }))) return
        throw new ApiError('VALIDATION_ERROR', 'the WebSocket handshake is incomplete: Sec-WebSocket-Key, version 13')
      },
      { query: LiveQuery, detail: LIVE_DETAIL },
    )
}

async function streamAll(live: LiveDeps, feed: FeedCaller, request: Request, keepOpen: () => void): Promise<Response> {
  const { fields, after, path } = readQuery(request, FILTER_FIELDS)
  const filter = parseFilter(fields, 'query', feed)
  const source = await live.feeds.of(feed.caller, after)
  const start = startOf(source, feed.caller.workspaceId, after, path)
  return respond({ ...live, source }, { caller: feed, filter, after, start, until: 'closed' }, keepOpen)
}

async function streamRun(
  live: LiveDeps,
  feed: FeedCaller,
  request: Request,
  runId: string,
  keepOpen: () => void,
): Promise<Response> {
  const { after, path } = readQuery(request, [])
  const source = await live.feeds.of(feed.caller, after)
  // Taken before the status is read: a run that ends later does so after this position.
  const start = startOf(source, feed.caller.workspaceId, after, path)
  const isOver = isTerminal(await live.runs.status(feed.caller, runId))
  const filter = parseFilter({ run_id: runId }, 'path', feed)
  if (isOver) await live.partitions.of(feed.caller).flushChanges()
  const options = { caller: feed, filter, after, start, until: isOver ? 'caught-up' : 'run-end' } as const
  return respond({ ...live, source }, options, keepOpen)
}

async function respond(deps: EventStreamDeps, asked: EventStreamOptions, keepOpen: () => void): Promise<Response> {
  const stream = await deps.connections.admit(asked.caller, () => new EventStream(deps, asked))
  keepOpen()
  // Without a 204, an EventSource that has received everything would reconnect forever. From 0 there is always something, or
  // the client reconnects with the cursor that this response begins with.
  const isResumed = asked.after !== undefined && asked.after !== '0'
  const isDone = asked.until === 'caught-up' && isResumed && !(await stream.hasContent)
  if (isDone) return new Response(null, { status: 204, headers: ANY_ORIGIN })
  return eventStreamResponse(stream.body, ANY_ORIGIN)
}

interface StreamRequest {
  readonly fields: FilterInput
  readonly after: string | undefined
  /** Where `after` was given, for error messages. */
  readonly path: string
}

/** Parses the raw query: Elysia would split values at commas and keep only one of several. */
function readQuery(request: Request, known: readonly string[]): StreamRequest {
  const { searchParams } = new URL(request.url)
  const fields: Record<string, string[]> = {}
  for (const name of new Set(searchParams.keys())) {
    if (name === 'token' || name === 'after') continue
    if (!known.includes(name))
      throw invalid(`query.${name}`, `unknown parameter; expected one of ${[...known, 'after', 'token'].join(', ')}`)
    fields[name] = searchParams.getAll(name)
  }
  const lastEventId = request.headers.get('last-event-id')
  if (lastEventId !== null) return { fields, after: lastEventId, path: 'header Last-Event-ID' }
  return { fields, after: searchParams.get('after') ?? undefined, path: 'query.after' }
}
