import { Elysia } from 'elysia'
import type { Guards } from '../keys/guards.ts'
import { SECURITY } from '../keys/security.ts'
import type { Analytics } from './analytics.ts'
import { answerQuery, STREAMED_MEDIA } from './formats.ts'
import { QueryAnswer, RunQuery } from './schema.ts'

interface QueryRoutesDeps {
  readonly guards: Guards
  readonly analytics: Analytics
}

/** SQL over the caller's workspace (docs/specification.md#sql). */
export function queryRoutes({ guards, analytics }: QueryRoutesDeps) {
  return new Elysia({ prefix: '/api/v1', detail: { security: SECURITY.workspaceKey } })
    .use(guards.workspaceKey('queries'))
    .post(
      '/query',
      ({ caller, body, request, server }) => {
        server?.timeout(request, analytics.idleSeconds)
        return answerQuery(analytics, caller, body, request.signal)
      },
      {
        body: RunQuery,
        response: QueryAnswer,
        detail: {
          tags: ['SQL'],
          media: { 200: STREAMED_MEDIA },
          operationId: 'runQuery',
          summary: 'Run a SQL query',
          description:
            'One SELECT over the events, runs and tasks of the workspace, in ClickHouse SQL. Formats other than ' +
            '`json` are streamed as bare bytes.',
        },
      },
    )
}
