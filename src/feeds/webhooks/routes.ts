import { Elysia } from 'elysia'
import { type AttemptRoutesDeps, attemptRoutes } from './attempt-routes.ts'
import { type DeliveryRoutesDeps, deliveryRoutes } from './delivery-routes.ts'
import { type EndpointRoutesDeps, endpointRoutes } from './endpoint-routes.ts'

type WebhookRoutesDeps = EndpointRoutesDeps & DeliveryRoutesDeps & AttemptRoutesDeps

/** Webhooks: endpoints, what they were sent, and attempts on request (docs/webhooks.md). */
export function webhookRoutes(deps: WebhookRoutesDeps) {
  return new Elysia().use(endpointRoutes(deps)).use(deliveryRoutes(deps)).use(attemptRoutes(deps))
}
