import { Elysia } from 'elysia'
import { PageQuery } from '../../base/http/schema.ts'
import { ifMatch } from '../../base/http/version.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { versionedRoutes } from '../../tenants/keys/versioned-routes.ts'
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
  return versionedRoutes(guards, PREFIX, TAG)
    .post('', ({ caller, body, mint, request }) => alerts.create(caller, body, mint, request.signal), {
      body: CreateAlert,
      response: Alert,
      detail: {
        operationId: 'createAlert',
        summary: 'Create an alert',
        description:
          'Checks the query and the columns of its result. The alert is evaluated from the next tick on. A name that is ' +
          'already taken is a CONFLICT.',
      },
    })
    .get('', ({ caller, query }) => alerts.list(caller, query), {
      query: PageQuery,
      response: AlertPage,
      detail: { operationId: 'listAlerts', summary: 'List alerts', description: 'Newest first.' },
    })
    .get('/templates', () => ALERT_TEMPLATES, {
      response: AlertTemplates,
      detail: {
        operationId: 'listAlertTemplates',
        summary: 'List alert templates',
        description: 'Complete definitions, which can be posted unchanged.',
      },
    })
    .get('/:alert_id', ({ caller, params }) => alerts.get(caller, params.alert_id), {
      params: AlertParams,
      response: Alert,
      detail: {
        operationId: 'getAlert',
        summary: 'Read an alert',
        description: 'Its definition, and the states of its first series.',
      },
    })
    .patch(
      '/:alert_id',
      ({ caller, params, body, request }) =>
        alerts.edit(caller, params.alert_id, body, { version: ifMatch(request), signal: request.signal }),
      {
        params: AlertParams,
        body: EditAlert,
        response: Alert,
        detail: {
          operationId: 'editAlert',
          summary: 'Edit an alert',
          description:
            'Changes the given fields. If they change what is evaluated, or disable the alert, all states are reset to ok, ' +
            'and series that alert are resolved.',
        },
      },
    )
    .delete('/:alert_id', ({ caller, params, request }) => alerts.delete(caller, params.alert_id, ifMatch(request)), {
      params: AlertParams,
      response: DeletedAlert,
      detail: {
        operationId: 'deleteAlert',
        summary: 'Delete an alert',
        description: 'Series that alert are resolved. Its transitions stay in the SQL table `alert_states`.',
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
