import { Elysia } from 'elysia'
import type { Guards } from '../keys/guards.ts'
import type { Analytics } from './analytics.ts'
import { answerQuery } from './formats.ts'
import { QueryAnswer, RunQuery } from './schema.ts'

export interface QueryRoutesDeps {
  readonly guards: Guards
  readonly analytics: Analytics
}

/** SQL over the caller's workspace (docs/specification.md#sql). */
export function queryRoutes({ guards, analytics }: QueryRoutesDeps) {
  return new Elysia({ prefix: '/api/v1' }).use(guards.workspaceKey('queries')).post(
    '/query',
    ({ caller, body, request, server }) => {
      server?.timeout(request, analytics.idleSeconds)
      return answerQuery(analytics, caller, body, request.signal)
    },
    {
      body: RunQuery,
      response: QueryAnswer,
      detail: { tags: ['SQL'], summary: 'Run one SELECT over the events, runs and tasks of the workspace' },
    },
  )
}
