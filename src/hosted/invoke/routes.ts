import { Elysia } from 'elysia'
import { RunParams } from '../../activity/runs/schema.ts'
import type { RunStore } from '../../activity/runs/store.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import { dataOrStream } from '../../base/http/answer.ts'
import { callerToken } from '../../base/http/bearer.ts'
import { AgentParams } from '../../base/http/schema.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { type OutputPosition, parseOutputId } from '../output/output-log.ts'
import { OUTPUT_STREAM } from '../output/schema.ts'
import type { Invocations } from './invocations.ts'
import type { Responder, ResponseMode } from './respond.ts'
import { InvokeAgent, OutputStreamQuery, type RunResponse, RunResponses } from './schema.ts'

interface InvokeRoutesDeps {
  readonly guards: Guards
  readonly invocations: Pick<Invocations, 'invoke'>
  readonly responder: Responder
  readonly runs: Pick<RunStore, 'find' | 'get'>
}

/** Invoking hosted agents and following their output (docs/hosted-agents.md#invoke). */
export function invokeRoutes({ guards, invocations, responder, runs }: InvokeRoutesDeps) {
  const tags = ['Invoke']
  const invoking = new Elysia({ prefix: '/api/v1/agents', detail: { security: SECURITY.anyKey } })
    .use(guards.keyOfAgent('invokes', 'admin'))
    .post(
      '/:agent_id/invoke',
      async (context) => {
        const { caller, params, body, mint } = context
        const invoke = () => invocations.invoke(caller, params.agent_id.toLowerCase(), body, mint)
        return dataOrStream<RunResponse>(responder.respond(caller.workspaceId, responseModeOf(context, body), invoke))
      },
      {
        params: AgentParams,
        body: InvokeAgent,
        response: RunResponses,
        detail: {
          tags,
          media: { 200: OUTPUT_STREAM.content },
          operationId: 'invokeAgent',
          summary: 'Run a hosted agent',
          description:
            '200 when the run is over, 202 when it waits for a person or continues in the background. A caller that ' +
            'disconnects does not stop its run.',
        },
      },
    )
  const following = new Elysia({ prefix: '/api/v1', detail: { security: SECURITY.feed } }).use(guards.feed).get(
    '/runs/:run_id/output-stream',
    async ({ feed, params, query, request, server }) => {
      const run = await runs.find(feed.caller, params.run_id)
      if (feed.runId !== null && feed.runId !== run.runId)
        throw new ApiError('FORBIDDEN', 'this feed token is for another run', { reason: 'feed_token' })
      if (run.runtimeType !== 'hosted')
        throw new ApiError(
          'VALIDATION_ERROR',
          'only runs of hosted agents have an output stream; see …/stream for the feed',
          { reason: 'agent_not_hosted' },
        )
      const { session_id } = await runs.get(feed.caller, run.runId)
      server?.timeout(request, 0)
      return responder.stream(feed, { ...run, sessionId: session_id }, afterOf(request, query.after))
    },
    {
      params: RunParams,
      query: OutputStreamQuery,
      detail: {
        tags,
        operationId: 'streamRunOutput',
        summary: 'Follow the output of a hosted run',
        description:
          'Starts after the frame of `Last-Event-ID` or `after`, or at the beginning; the run may be over. The stream ' +
          'closes when the run ends or waits for a person.',
        responses: { 200: OUTPUT_STREAM },
      },
    },
  )
  return new Elysia().use(invoking).use(following)
}

export interface RequestContext {
  readonly request: Request
  readonly server: { timeout(request: Request, seconds: number): void } | null
  readonly set: { status?: number | string }
}

/** The response mode that a request asks for. */
export function responseModeOf(
  { request, server, set }: RequestContext,
  { stream, background }: Pick<ResponseMode, 'stream' | 'background'>,
): ResponseMode {
  if (stream === true && background === true)
    throw invalid(
      'background',
      'cannot be combined with stream: follow the run with GET /api/v1/runs/:run_id/output-stream',
    )
  return {
    stream,
    background,
    key: callerToken(request) ?? '',
    keepOpen: () => server?.timeout(request, 0),
    setStatus: (status) => {
      set.status = status
    },
  }
}

function afterOf(request: Request, after: string | undefined): OutputPosition | undefined {
  const header = request.headers.get('last-event-id')
  const id = header ?? after
  if (id === undefined || id === '') return undefined
  const position = parseOutputId(id)
  if (position === null)
    throw invalid(header === null ? 'query.after' : 'header Last-Event-ID', 'expected the id of a frame of this stream')
  return position
}
