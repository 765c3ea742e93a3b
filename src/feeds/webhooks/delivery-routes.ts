import { Elysia } from 'elysia'
import type { Guards } from '../../tenants/keys/guards.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import type { DeliveryList } from './delivery-list.ts'
import type { Polls } from './poll.ts'
import type { Recoveries } from './recovery.ts'
import {
  DeliveryPage,
  ListDeliveries,
  PollQuery,
  RecoverWebhook,
  WebhookMessages,
  WebhookParams,
  WebhookRecord,
} from './schema.ts'
import type { WebhookStore } from './store.ts'

export interface DeliveryRoutesDeps {
  readonly guards: Guards
  readonly webhooks: Pick<WebhookStore, 'find' | 'get'>
  readonly deliveryList: DeliveryList
  readonly polls: Polls
  readonly recoveries: Recoveries
}

const DETAIL = { tags: ['Webhooks'], security: SECURITY.workspaceKey }

/** Deliveries of an endpoint, and ways to get missed ones: recovery and polling (docs/webhooks.md). */
export function deliveryRoutes({ guards, webhooks, deliveryList, polls, recoveries }: DeliveryRoutesDeps) {
  return new Elysia({ prefix: '/api/v1/webhooks', detail: DETAIL })
    .use(guards.workspaceKey('reads', 'admin'))
    .get(
      '/:webhook_id/deliveries',
      async ({ caller, params, query }) =>
        deliveryList.list(caller, await webhooks.find(caller, params.webhook_id), query),
      {
        params: WebhookParams,
        query: ListDeliveries,
        response: DeliveryPage,
        detail: {
          operationId: 'listWebhookDeliveries',
          summary: 'List deliveries',
          description:
            'As of their latest attempts, newest first. `status=pending` also lists those that wait for their first attempt. ' +
            'The SQL table `deliveries` has every attempt.',
        },
      },
    )
    .post(
      '/:webhook_id/recover',
      async ({ caller, params, body }) => {
        await recoveries.begin(caller, await webhooks.find(caller, params.webhook_id), body)
        return webhooks.get(caller, params.webhook_id)
      },
      {
        params: WebhookParams,
        body: RecoverWebhook,
        response: WebhookRecord,
        detail: {
          operationId: 'recoverWebhook',
          summary: 'Deliver earlier activity again',
          description:
            'Everything since a time or after a cursor, with the same ids, while new activity is delivered as usual. ' +
            'CONFLICT while another recovery is running.',
          errors: ['CONFLICT'],
        },
      },
    )
    .get(
      '/:webhook_id/poll',
      async ({ caller, params, query, request }) =>
        polls.poll(caller, await webhooks.find(caller, params.webhook_id), query, request.signal),
      {
        params: WebhookParams,
        query: PollQuery,
        response: WebhookMessages,
        detail: {
          operationId: 'pollWebhook',
          summary: 'Poll for messages',
          description:
            'For receivers without a public address: the same bodies as are sent, from any position. Does not wait for new ' +
            'activity.',
        },
      },
    )
}
