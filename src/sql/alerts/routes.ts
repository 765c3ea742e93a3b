import { Elysia } from 'elysia'
import type { Guards } from '../../tenants/keys/guards.ts'
import { resourceRoutes } from '../../tenants/keys/resource-routes.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { type DryRuns, TEST_SECONDS_MAX } from './dry-run.ts'
import {
  Alert,
  AlertPage,
  AlertParams,
  AlertTemplates,
  AlertTest,
  CreateAlert,
  DeletedAlert,
  EditAlert,
  TestAlert,
  TestDefinition,
} from './schema.ts'
import type { AlertStore } from './store.ts'
import { ALERT_TEMPLATES } from './templates.ts'

interface AlertRoutesDeps {
  readonly guards: Guards
  readonly alerts: AlertStore
  readonly dryRuns: DryRuns
}

const PREFIX = '/api/v1/alerts'
const TAG = 'Alerts'

/** Alerts (docs/alerts.md). */
export function alertRoutes(deps: AlertRoutesDeps) {
  return new Elysia().use(managementRoutes(deps)).use(testRoutes(deps))
}

function managementRoutes({ guards, alerts }: AlertRoutesDeps) {
  return resourceRoutes(guards, {
    path: PREFIX,
    tag: TAG,
    one: 'an alert',
    many: 'alerts',
    params: AlertParams,
    item: Alert,
    page: AlertPage,
    get: { description: 'Its definition, and the states of its first series.' },
    create: {
      body: CreateAlert,
      description:
        'Checks the query and the columns of its result. The alert is evaluated from the next tick on. A name that is ' +
        'already taken is a CONFLICT.',
    },
    edit: {
      body: EditAlert,
      description:
        'Changes the given fields. If they change what is evaluated, or disable the alert, all states are reset to ok, ' +
        'and series that alert are resolved.',
    },
    delete: {
      answer: DeletedAlert,
      description: 'Series that alert are resolved. Its transitions stay in the SQL table `alert_states`.',
    },
    store: alerts,
  }).get('/templates', () => ALERT_TEMPLATES, {
    response: AlertTemplates,
    detail: {
      operationId: 'listAlertTemplates',
      summary: 'List alert templates',
      description: 'Complete definitions, which can be posted unchanged.',
    },
  })
}

/** Separate from the other routes, because they use the query budget. */
function testRoutes({ guards, dryRuns }: AlertRoutesDeps) {
  return new Elysia({ prefix: PREFIX, detail: { tags: [TAG], security: SECURITY.workspaceKey } })
    .use(guards.workspaceKey('queries', 'viewer'))
    .post(
      '/test',
      ({ caller, body, request, server }) => {
        server?.timeout(request, TEST_SECONDS_MAX)
        return dryRuns.ofDefinition(caller, body, request.signal)
      },
      {
        body: TestDefinition,
        response: AlertTest,
        detail: {
          operationId: 'testAlertDefinition',
          summary: 'Test an alert definition',
          description: 'Says when it would have fired in the past, without saving it. All its series start as ok.',
        },
      },
    )
    .post(
      '/:alert_id/test',
      ({ caller, params, body, request, server }) => {
        server?.timeout(request, TEST_SECONDS_MAX)
        return dryRuns.ofAlert(caller, params.alert_id, body, request.signal)
      },
      {
        params: AlertParams,
        body: TestAlert,
        response: AlertTest,
        detail: {
          operationId: 'testAlert',
          summary: 'Test an alert',
          description:
            'Evaluates it again at each tick from `from` to `to`, starting with the states that it had at `from`. The ' +
            'transitions are those that it had live.',
        },
      },
    )
}
