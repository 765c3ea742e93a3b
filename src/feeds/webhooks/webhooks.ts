import type { EgressAllowList } from '../../outbound/egress/allow-list.ts'
import type { Egress } from '../../outbound/egress/egress.ts'
import type { FeatureContext } from '../../tenants/feature.ts'
import type { Feeds } from '../../tenants/partitions/partition.ts'
import type { Vault } from '../../tenants/secrets/vault.ts'
import type { FeedSource } from '../live/feed-source.ts'
import { type DeliveryOptions, startDeliveries } from './delivery/deliveries.ts'
import { DeliveryList } from './delivery-list.ts'
import { Polls } from './poll.ts'
import { Recoveries } from './recovery.ts'
import { webhookRoutes } from './routes.ts'
import { WebhookStore } from './store.ts'
import { checkWebhookUrl } from './url.ts'

export interface WebhooksDeps {
  readonly feeds: Feeds<FeedSource>
  readonly vault: Vault
  readonly egress: Egress
  readonly egressAllow: EgressAllowList
  readonly options: DeliveryOptions | undefined
}

/** Activity that is sent to URLs of tenants (docs/webhooks.md). */
export function startWebhooks(context: FeatureContext, { feeds, vault, egress, egressAllow, options }: WebhooksDeps) {
  const { sql, columnar, partitions, clock, publicUrl, metrics, teardown } = context
  const deliveries = startDeliveries({
    ...context,
    feeds,
    vault,
    egress,
    metrics: metrics.registry,
    setAside: metrics.setAside,
    ...(options && { options }),
  })
  teardown.add('webhooks', () => deliveries.stop())
  const onChange = () => deliveries.wake()
  const routes = webhookRoutes({
    ...context,
    webhooks: new WebhookStore({
      sql,
      clock,
      vault,
      feeds,
      checkUrl: (url) => checkWebhookUrl(url, egressAllow),
      onChange,
    }),
    deliveryList: new DeliveryList({ sql, columnar, partitions }),
    polls: new Polls({ sql, partitions, feeds, publicUrl }),
    recoveries: new Recoveries({ sql, clock, columnar, partitions, feeds, onChange }),
    attempts: deliveries,
  })
  return { routes, deliveries }
}
