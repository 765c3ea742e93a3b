import { Elysia } from 'elysia'
import { PageQuery } from '../../base/http/schema.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { RunParams } from '../runs/schema.ts'
import { ReportTask, TaskPage, TaskReported } from './schema.ts'
import type { TaskStore } from './store.ts'

interface TaskRoutesDeps {
  readonly guards: Guards
  readonly tasks: TaskStore
}

/** Tasks of runs: reported by agents, read by anyone with a key (docs/tasks.md). */
export function taskRoutes(deps: TaskRoutesDeps) {
  return new Elysia().use(ingestRoutes(deps)).use(readingRoutes(deps))
}

function ingestRoutes({ guards, tasks }: TaskRoutesDeps) {
  return new Elysia({ prefix: '/api/ingest/v1', detail: { tags: ['Ingest'], security: SECURITY.agentKey } })
    .use(guards.ingest)
    .post('/tasks', ({ caller, body }) => tasks.report(caller, body), {
      body: ReportTask,
      response: TaskReported,
      detail: {
        operationId: 'reportTask',
        summary: 'Create or update a task',
        errors: ['NOT_FOUND'],
        description:
          'Fields omitted from a later call keep their value. A report that arrives out of order changes nothing.',
      },
    })
}

function readingRoutes({ guards, tasks }: TaskRoutesDeps) {
  return new Elysia({ prefix: '/api/v1', detail: { tags: ['Runs'], security: SECURITY.anyKey } })
    .use(guards.anyKey('reads', 'admin'))
    .get('/runs/:run_id/tasks', ({ caller, params, query }) => tasks.list(caller, params.run_id, query), {
      params: RunParams,
      query: PageQuery,
      response: TaskPage,
      detail: {
        operationId: 'listTasks',
        summary: 'List the tasks of a run',
        description: 'Newest first. Those of a run that OpenTelemetry reports are read from ClickHouse, like events.',
      },
    })
}
