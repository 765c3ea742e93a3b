import type { Guards } from '../../tenants/keys/guards.ts'
import { resourceRoutes } from '../../tenants/keys/resource-routes.ts'
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
  return resourceRoutes(guards, {
    path: '/api/v1/webhooks',
    tag: 'Webhooks',
    one: 'a webhook',
    many: 'webhooks',
    params: WebhookParams,
    item: WebhookRecord,
    page: WebhookPage,
    list: { description: 'Newest first, without secrets.' },
    get: { description: 'Its settings, and in `health` how far it has got and whether it answers.' },
    create: {
      body: CreateWebhook,
      answer: NewWebhook,
      description: 'Sends what happens from now on. Only this answer has the `secret`.',
      errors: ['CONFLICT'],
    },
    edit: {
      body: EditWebhook,
      description:
        'Changes the given fields, for what is delivered from then on. An endpoint that is enabled again continues at ' +
        'its position.',
    },
    delete: { answer: DeletedWebhook, description: 'Pending deliveries are dropped. SQL keeps past attempts.' },
    store: webhooks,
  }).post('/:webhook_id/rotate', ({ caller, params }) => webhooks.rotate(caller, params.webhook_id), {
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
