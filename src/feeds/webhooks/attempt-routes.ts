import { Elysia } from 'elysia'
import { notFound } from '../../base/errors.ts'
import type { BodyReader } from '../../base/http/body.ts'
import type { BodyHold } from '../../base/http/body-budget.ts'
import type { Idempotency } from '../../stores/idempotency/store.ts'
import type { Forwarder } from '../../tenants/keys/forward.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { parseDeliveryId } from './delivery-id.ts'
import { DeliveryParams, DeliveryRecord, type StoredWebhook, WebhookParams } from './schema.ts'
import type { WebhookStore } from './store.ts'

export interface AttemptRoutesDeps {
  readonly guards: Guards
  readonly reader: BodyReader
  readonly idempotency: Idempotency
  readonly forwarder: Forwarder
  readonly webhooks: Pick<WebhookStore, 'find'>
  readonly attempts: Attempts
}

/** Attempts on request; only the owner of the partition makes them. */
interface Attempts {
  test(webhook: StoredWebhook): Promise<DeliveryRecord>
  /** @throws ApiError NOT_FOUND when the activity is no longer available */
  resend(webhook: StoredWebhook, seq: number): Promise<DeliveryRecord>
}

const ACCESS = { audience: 'workspace', budget: 'reads', role: 'admin' } as const

interface Context {
  readonly request: Request
  readonly set: { readonly headers: unknown }
  bodyHold: BodyHold | undefined
}

/**
 * Attempts on request, which are carried out by the owner of the workspace's partition. Without a guard plugin: requests are
 * forwarded unread, as reports are. They have no content, so a body is ignored.
 */
export function attemptRoutes(deps: AttemptRoutesDeps) {
  const { guards, reader, idempotency, forwarder, webhooks, attempts } = deps
  const carryOut = async (context: Context, work: (caller: Caller) => Promise<DeliveryRecord>) => {
    const { request, set } = context
    const headers = set.headers as Record<string, string | number>
    const { caller, body } = await guards.receive(request, headers, ACCESS)
    context.bodyHold = body.hold
    return forwarder.carryOut(request, caller, body, () => {
      if (!request.headers.has('idempotency-key')) return work(caller)
      return idempotency.carryOut({ request, caller, bytes: reader.open(request, body) }, () => work(caller))
    })
  }
  return new Elysia({ prefix: '/api/v1/webhooks', detail: { tags: ['Webhooks'], security: SECURITY.workspaceKey } })
    .decorate({ bodyHold: undefined as BodyHold | undefined })
    .post(
      '/:webhook_id/test',
      (context) =>
        carryOut(context, async (caller) => attempts.test(await webhooks.find(caller, context.params.webhook_id))),
      {
        parse: 'none',
        params: WebhookParams,
        detail: {
          answer: DeliveryRecord,
          operationId: 'testWebhook',
          summary: 'Test a webhook',
          description: 'Sends a message of type `webhook.test` at once, and answers with the result of the attempt.',
        },
      },
    )
    .post(
      '/:webhook_id/deliveries/:delivery_id/resend',
      (context) =>
        carryOut(context, async (caller) => {
          const webhook = await webhooks.find(caller, context.params.webhook_id)
          return attempts.resend(webhook, seqOf(webhook, context.params.delivery_id))
        }),
      {
        parse: 'none',
        params: DeliveryParams,
        detail: {
          answer: DeliveryRecord,
          operationId: 'resendWebhookDelivery',
          summary: 'Resend a delivery',
          description:
            'Sends the message again at once, with the same id. NOT_FOUND when the log no longer has the activity, or the ' +
            'filter of the endpoint no longer matches it.',
        },
      },
    )
}

/** @throws ApiError NOT_FOUND for a delivery of another endpoint, or of a log that no longer exists */
function seqOf({ webhook_id, epoch }: StoredWebhook, deliveryId: string): number {
  const delivered = parseDeliveryId(deliveryId)
  if (delivered?.webhookId === webhook_id && delivered.epoch === epoch) return delivered.seq
  throw notFound('delivery')
}
