import { PageQuery } from '../../base/http/schema.ts'
import { ifMatch } from '../../base/http/version.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { versionedRoutes } from '../../tenants/keys/versioned-routes.ts'
import {
  CreateWebhook,
  DeletedWebhook,
  EditWebhook,
  NewWebhook,
  WebhookPage,
  WebhookParams,
  WebhookRecord,
} from './schema.ts'
import type { WebhookStore } from './store.ts'

export interface EndpointRoutesDeps {
  readonly guards: Guards
  readonly webhooks: WebhookStore
}

/** Endpoints that activity is sent to (docs/webhooks.md). */
export function endpointRoutes({ guards, webhooks }: EndpointRoutesDeps) {
  return versionedRoutes(guards, '/api/v1/webhooks', 'Webhooks')
    .post('', ({ caller, body, mint }) => webhooks.create(caller, body, mint), {
      body: CreateWebhook,
      response: NewWebhook,
      detail: {
        operationId: 'createWebhook',
        summary: 'Create a webhook',
        description: 'Sends what happens from now on. Only this answer has the `secret`.',
        errors: ['CONFLICT'],
      },
    })
    .get('', ({ caller, query }) => webhooks.list(caller, query), {
      query: PageQuery,
      response: WebhookPage,
      detail: { operationId: 'listWebhooks', summary: 'List webhooks', description: 'Newest first, without secrets.' },
    })
    .get('/:webhook_id', ({ caller, params }) => webhooks.get(caller, params.webhook_id), {
      params: WebhookParams,
      response: WebhookRecord,
      detail: {
        operationId: 'getWebhook',
        summary: 'Read a webhook',
        description: 'Its settings, and in `health` how far it has got and whether it answers.',
      },
    })
    .patch(
      '/:webhook_id',
      ({ caller, params, body, request }) => webhooks.edit(caller, params.webhook_id, body, ifMatch(request)),
      {
        params: WebhookParams,
        body: EditWebhook,
        response: WebhookRecord,
        detail: {
          operationId: 'editWebhook',
          summary: 'Edit a webhook',
          description:
            'Changes the given fields, for what is delivered from then on. An endpoint that is enabled again continues at ' +
            'its position.',
        },
      },
    )
    .delete(
      '/:webhook_id',
      ({ caller, params, request }) => webhooks.delete(caller, params.webhook_id, ifMatch(request)),
      {
        params: WebhookParams,
        response: DeletedWebhook,
        detail: {
          operationId: 'deleteWebhook',
          summary: 'Delete a webhook',
          description: 'Pending deliveries are dropped. SQL keeps past attempts.',
        },
      },
    )
    .post('/:webhook_id/rotate', ({ caller, params }) => webhooks.rotate(caller, params.webhook_id), {
      params: WebhookParams,
      response: NewWebhook,
      detail: {
        operationId: 'rotateWebhookSecret',
        summary: 'Rotate the secret of a webhook',
        description:
          'For 24 hours, messages are signed with both the new and the previous secret. CONFLICT after several rotations ' +
          'within a day.',
        errors: ['CONFLICT'],
      },
    })
}
